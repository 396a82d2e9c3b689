//! `si show`: the effective configuration.

use anyhow::{Result, bail};

use super::Terminal;
use crate::config::edit::{Target, not_known};
use crate::config::{Config, tree};

/// Arguments of `si show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this section or key
    pub key: Option<String>,
}

/// Prints the effective configuration as JSON: every key, and those of the files that are not known.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let config = Config::load_in(terminal.env, &terminal.folder());
    let tree = tree::tree(terminal.env, &config);
    let part = match &args.key {
        None => &tree,
        Some(typed) => {
            let path = Target::find(typed).path();
            match tree::get(&tree, &path) {
                Some(part) => part,
                None => bail!("{}", not_known(typed)),
            }
        }
    };
    writeln!(terminal.out, "{}", serde_json::to_string_pretty(part)?)?;
    Ok(terminal.remark_broken(&config)?)
}
