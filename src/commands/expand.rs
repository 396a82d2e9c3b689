//! `si expand`.

use anyhow::{Result, bail};

use super::Terminal;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_terminal: &mut Terminal<'_>, _args: &Args) -> Result<()> {
    bail!("not built yet")
}

/// Arguments of `archive-list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {}

/// Lists the archive.
pub fn list(_terminal: &mut Terminal<'_>, _args: &ListArgs) -> Result<()> {
    bail!("not built yet")
}
