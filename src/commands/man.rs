//! `si man`: the manual page.

use anyhow::Result;
use clap::CommandFactory;

use super::Terminal;
use crate::cli::Cli;

/// Prints the page in troff; `si man | man -l -` shows it.
pub fn run(terminal: &mut Terminal<'_>) -> Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    Ok(terminal.out.write_all(&page)?)
}
