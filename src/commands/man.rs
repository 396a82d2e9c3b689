//! `si man`: the manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;

use super::Terminal;
use crate::cli::Cli;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write the page and one for each command into this folder instead of printing it
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints the page in troff (`si man | man -l -` shows it), or writes all pages into a folder.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return Ok(terminal.out.write_all(&page)?);
    };
    clap_mangen::generate_to(Cli::command(), dir)
        .with_context(|| format!("the manual pages cannot be written into {}", dir.display()))
}
