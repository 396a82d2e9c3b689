//! `si explain`.

use anyhow::{Result, bail};

use super::Terminal;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_terminal: &mut Terminal<'_>, _args: &Args) -> Result<()> {
    bail!("not built yet")
}
