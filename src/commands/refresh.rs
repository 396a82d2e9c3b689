//! `si refresh`: renews one stored answer. Redraws start it detached and never wait for it.

use std::path::PathBuf;

use anyhow::Result;

use super::Terminal;
use crate::config::Config;
use crate::git;
use crate::statusline::{health, quota};
use crate::store::Store;
use crate::watch::anchors;

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
    /// The files that recent commits changed most often
    Anchors {
        /// The folder
        dir: PathBuf,
        /// The window, days
        days: u64,
        /// How many files
        limit: usize,
    },
    /// The five-hour and the weekly quota
    Quota,
    /// The health of the configured services
    Health {
        /// The project whose services are meant
        project: Option<PathBuf>,
    },
}

/// Renews the answer and prints nothing: whoever asked is gone already.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let (env, store) = (terminal.env, Store::new(terminal.env));
    // Nobody waits for it, so it yields to all that somebody waits for.
    let _ = rustix::process::nice(10);
    match &args.what {
        What::Git { dir } => git::refresh(env, store, dir),
        What::Anchors { dir, days, limit } => anchors::refresh(env, store, dir, *days, *limit),
        What::Quota => quota::refresh(env, store)?,
        What::Health { project } => {
            let config = Config::load(env);
            match project {
                Some(dir) => health::refresh(env, store, &config.for_project(dir)),
                None => health::refresh(env, store, &config),
            }
        }
    }
    Ok(())
}
