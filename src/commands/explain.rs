//! `si explain`: what a key does, what it may hold, and where its value comes from.

use anyhow::{Result, bail};

use super::Terminal;
use super::get::shown;
use crate::config::edit::{Target, not_known};
use crate::config::{Config, Effect, KEYS, Key, SECTIONS, docs, tree};
use crate::text;

/// Arguments of `si explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The key, its label, or a section; without: all keys in one line each
    pub key: Option<String>,
}

/// Describes one key at length, or a section, or everything, in one line for each key.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    answer(terminal, args)?;
    let config = Config::load(terminal.env);
    Ok(terminal.remark_broken(&config)?)
}

fn answer(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let Some(typed) = &args.key else {
        for (section, title) in SECTIONS {
            writeln!(terminal.out, "{title}")?;
            for key in KEYS.iter().filter(|key| key.section() == *section) {
                line(terminal, key)?;
            }
        }
        return Ok(());
    };
    let target = Target::find(typed);
    match (target.key, target.keys().as_slice()) {
        (Some(key), _) => describe(terminal, key),
        (None, []) => bail!("{}", not_known(typed)),
        (None, keys) => keys.iter().try_for_each(|key| line(terminal, key)),
    }
}

fn line(terminal: &mut Terminal<'_>, key: &Key) -> Result<()> {
    Ok(writeln!(terminal.out, "  {:<34} {}", key.path, key.help)?)
}

fn describe(terminal: &mut Terminal<'_>, key: &Key) -> Result<()> {
    let dir = terminal.folder();
    let config = Config::load_in(terminal.env, &dir);
    let source = tree::source_in(terminal.env, &config, &dir, key);
    let effect = match key.spec.effect {
        Effect::Now => "from the next redraw, tool call or prompt on; no restart",
        Effect::NextSession => "when the next session starts",
    };
    writeln!(terminal.out, "{} ({})\n{}\n", key.path, key.label, key.help)?;
    let mut row = |name: &str, text: &str| writeln!(terminal.out, "{name:<9} {text}");
    row("value", &format!("{} ({source})", text::sanitize(&shown(&config, key))))?;
    row("default", &shown(&Config::built_in(), key))?;
    row("takes", &key.accepted())?;
    for var in key.spec.vars {
        row("variable", &format!("{}{}", var.name, docs::form(var.accepts)))?;
    }
    row("holds", effect)?;
    let example = key.accepted();
    let example = example.rsplit("for example ").next().unwrap_or_default();
    row("change", &format!("si set {} {example}", key.path))?;
    Ok(())
}
