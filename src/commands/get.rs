//! `si get`: one effective value.

use anyhow::{Result, bail};
use serde_json::Value;

use super::Terminal;
use crate::client::json_edit::Document;
use crate::config::edit::{Target, not_known};
use crate::config::{Config, Key, tree};
use crate::store::{StateFile, Store};

/// Arguments of `si get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The key (compact.threshold), its label, or a section
    pub key: String,
}

/// Prints one value: text as it is, anything else as JSON.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let config = Config::load_in(terminal.env, &terminal.folder());
    let printed = print(terminal, &config, &args.key);
    // What is said to be unset may stand in a file that cannot be read.
    terminal.remark_broken(&config)?;
    printed
}

fn print(terminal: &mut Terminal<'_>, config: &Config, typed: &str) -> Result<()> {
    let target = Target::find(typed);
    if target.in_project() {
        return in_project(terminal, &target, typed);
    }
    if let Some(key) = target.key {
        writeln!(terminal.out, "{}", shown(config, key))?;
        return Ok(());
    }
    match tree::get(&tree::tree(terminal.env, config), &target.path()) {
        Some(Value::String(text)) => writeln!(terminal.out, "{text}")?,
        Some(value) => writeln!(terminal.out, "{}", serde_json::to_string_pretty(value)?)?,
        None => bail!("{}", not_known(typed)),
    }
    Ok(())
}

/// A value in force, for people: text as it is, anything else as JSON.
pub fn shown(config: &Config, key: &Key) -> String {
    match (key.value)(config) {
        None => key.spec.unset.unwrap_or("not set").into(),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    }
}

fn in_project(terminal: &mut Terminal<'_>, target: &Target, typed: &str) -> Result<()> {
    let bytes = Store::new(terminal.env).read(StateFile::Config).unwrap_or_default();
    let steps: Vec<&str> = target.steps.iter().map(String::as_str).collect();
    let value = Document::parse(&bytes).ok().and_then(|document| document.value(&steps));
    match value {
        Some(Value::String(text)) => writeln!(terminal.out, "{text}")?,
        Some(value) => writeln!(terminal.out, "{value}")?,
        None => bail!("{typed} is not set"),
    }
    Ok(())
}
