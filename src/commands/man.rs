//! `si man`: the manual page, made from the command line's own table.

use anyhow::Result;
use clap::CommandFactory;

use super::Terminal;

/// Prints the page in roff.
pub fn run(terminal: &mut Terminal<'_>) -> Result<()> {
    clap_mangen::Man::new(crate::cli::Cli::command()).render(&mut terminal.out)?;
    Ok(())
}
