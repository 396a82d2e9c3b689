//! `si log`: a line in the debug log, for users' scripts.

use anyhow::{Result, bail};

use super::{Terminal, Usage};
use crate::client::payload::env_session_id;
use crate::config::Config;
use crate::log::{Level, Log};

/// Arguments of `si log`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// debug, info, warn or error
    pub level: String,
    /// Who says it: a short name
    pub source: String,
    /// What is said
    #[arg(required = true, num_args = 1.., allow_hyphen_values = true)]
    pub message: Vec<String>,
}

/// Writes the line. A level that the configuration leaves out is no error.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let Some(level) = Level::parse(&args.level) else {
        return Err(Usage(format!("{} is not a level; it is one of debug, info, warn, error", args.level)).into());
    };
    let debug = Config::load(terminal.env).debug;
    let log = Log::new(terminal.env, env_session_id(terminal.env), debug.enabled, debug.quiet);
    if log.path().is_none() {
        bail!("there is no configuration folder to log to: HOME is not set");
    }
    log.write(level, &args.source, &args.message.join(" "), serde_json::Value::Null);
    Ok(())
}
