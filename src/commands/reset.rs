//! `si reset`: takes values out of the configuration file, so that the defaults hold again.

use anyhow::{Result, bail};

use super::Terminal;
use super::change::{Outcome, conclude, propose};
use super::set::are;
use crate::config::KEYS;
use crate::config::edit::{Target, not_known};

/// Arguments of `si reset`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Keys, labels or sections; `all` (or `*`) for everything
    #[arg(required = true, value_name = "KEY")]
    pub keys: Vec<String>,
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Takes the named keys out of the file. With `all`, keys that are not known stay.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let all = args.keys.iter().any(|key| matches!(key.as_str(), "all" | "*"));
    let targets: Vec<Target> = if all {
        KEYS.iter().map(|key| Target::find(key.path)).collect()
    } else {
        args.keys.iter().map(|typed| Target::find(typed)).collect()
    };
    let mut absent = None;
    let outcome = propose(terminal, args.yes, |document| {
        for target in &targets {
            let mut removed = target.remove(document);
            // A section holds keys, each of which may also stand where a scalar took the place of the section.
            if !removed && target.key.is_none() {
                removed = target.keys().iter().any(|key| Target::find(key.path).remove(document));
            }
            if !removed && target.is_unknown() && !target.in_project() {
                absent = absent.take().or_else(|| Some(target.path()));
            }
        }
        match &absent {
            Some(path) => bail!("{}", not_known(path)),
            None => Ok(()),
        }
    })?;
    if outcome == Outcome::Unchanged {
        let names: Vec<String> = targets.iter().map(Target::path).collect();
        let what = if all { "no known key is".into() } else { format!("{} not", are(&names)) };
        writeln!(terminal.out, "Nothing to change: {what} set in the file.")?;
    }
    conclude(terminal, outcome, &targets)
}
