//! `si completions`: a completion script for a shell.

use anyhow::Result;
use clap::CommandFactory;

use super::Terminal;
use crate::cli::Cli;

/// Arguments of `si completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "si", &mut script);
    Ok(terminal.out.write_all(&script)?)
}
