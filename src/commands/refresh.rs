//! `si refresh`: renews one stored answer. Redraws start it detached and never wait for it.

use std::path::PathBuf;

use anyhow::Result;

use super::Terminal;
use crate::store::Store;

/// Arguments of `si refresh`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to renew.
    #[command(subcommand)]
    pub what: What,
}

/// The answers that can be renewed.
#[derive(Debug, clap::Subcommand)]
pub enum What {
    /// The state of the work tree around a folder
    Git {
        /// The folder
        dir: PathBuf,
    },
}

/// Renews the answer and prints nothing: whoever asked is gone already.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let (env, store) = (terminal.env, Store::new(terminal.env));
    match &args.what {
        What::Git { dir } => crate::git::refresh(env, store, dir),
    }
    Ok(())
}
