//! `si migrate`: folds the older, flat `statusline-intel.json` into the configuration file.

use anyhow::{Context, Result, bail};

use super::Terminal;
use super::change::{Outcome, conclude, propose};
use crate::client::json::Raw;
use crate::client::json_edit::Document;
use crate::config::edit::Target;
use crate::store::{StateFile, Store};

/// Arguments of `si migrate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Writes what the older file holds and the newer one does not under `statusline`. The older file stays.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let store = Store::new(terminal.env);
    let path = store.path(StateFile::LegacyConfig).context("there is no configuration folder: HOME is not set")?;
    let Some(bytes) = store.read(StateFile::LegacyConfig) else {
        writeln!(terminal.out, "Nothing to migrate: there is no {}.", path.display())?;
        return Ok(());
    };
    let older =
        Document::parse(&bytes).map_err(|fault| anyhow::anyhow!("{} does not parse: {fault}", path.display()))?;
    let Some(names) = older.keys(&[]) else { bail!("{} is not a JSON object", path.display()) };
    let mut folded = Folded::default();
    let outcome = propose(terminal, args.yes, |document| {
        for name in &names {
            fold(&older, document, &[name], &mut folded)?;
        }
        Ok(())
    })?;
    for text in &folded.unusable {
        terminal.remark(format!("note: {text}, so it was not taken over"))?;
    }
    match outcome {
        Outcome::Unchanged if !folded.unusable.is_empty() => {
            writeln!(terminal.out, "Nothing else to migrate from {}.", path.display())?;
        }
        Outcome::Unchanged => {
            writeln!(
                terminal.out,
                "Nothing to migrate: session-intelligence.json already holds all of {}.",
                path.display()
            )?;
        }
        Outcome::Written => writeln!(terminal.out, "{} is not needed any more.", path.display())?,
        Outcome::Shown => {}
    }
    conclude(terminal, outcome, &folded.targets)
}

/// What was taken over, and a sentence for each value that cannot be used.
#[derive(Default)]
struct Folded {
    targets: Vec<Target>,
    unusable: Vec<String>,
}

/// Copies the value at `path` where the newer file has none and it can be used; objects member by member.
fn fold(older: &Document, newer: &mut Document, path: &[&str], folded: &mut Folded) -> Result<()> {
    let steps = [&["statusline"], path].concat();
    let target = Target::find(&steps.join("."));
    let is_group = target.key.is_none() && !target.is_unknown();
    if let Some(names) = older.keys(path)
        && (is_group || newer.keys(&steps).is_some())
    {
        return names.iter().try_for_each(|name| fold(older, newer, &[path, &[name]].concat(), folded));
    }
    if newer.raw(&steps).is_some() {
        return Ok(()); // the newer file wins
    }
    let raw = older.raw(path).unwrap_or("null");
    let accepted = match target.key {
        Some(key) if !key.fits(Raw::new(raw)) => Some(key.accepted()),
        None if is_group => Some("a JSON object of keys".into()),
        _ => None,
    };
    if let Some(accepted) = accepted {
        let shown: String = raw.chars().take(40).collect();
        folded.unusable.push(format!("{} is {shown}, but takes {accepted}", path.join(".")));
        return Ok(());
    }
    let written = match older.value(path) {
        Some(value) => newer.set(&steps, &value),
        None => newer.set_raw(&steps, raw),
    };
    written.map_err(|mismatch| anyhow::anyhow!("{mismatch} in the newer file; put it right first"))?;
    folded.targets.push(target);
    Ok(())
}
