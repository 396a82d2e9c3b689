//! Changing the configuration file: the difference is shown first, then written on a YES, or at once with `--yes`.
//!
//! What was shown is what is written: the file is read again under its lock, and a file that changed meanwhile is left
//! alone, as is one that does not parse.

use std::io::BufRead;

use anyhow::{Context, Result, bail};
use similar::TextDiff;

use super::Terminal;
use crate::client::json_edit::Document;
use crate::config::edit::Target;
use crate::config::{Config, Effect, Key, docs, fault, tree};
use crate::store::{StateFile, Store, file};

/// A file larger than this is nobody's configuration.
const MAX: u64 = 4 << 20;

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The file is as it was before: nothing to do.
    Unchanged,
    /// Shown, and not written.
    Shown,
    /// Written.
    Written,
}

/// Shows what `edit` makes of the configuration file, and writes it when the user says YES or `yes` is given.
pub fn propose(
    terminal: &mut Terminal<'_>,
    yes: bool,
    edit: impl FnOnce(&mut Document) -> Result<()>,
) -> Result<Outcome> {
    let store = Store::new(terminal.env);
    let path = store.path(StateFile::Config).context("there is no configuration folder: HOME is not set")?;
    // While a person reads, nobody else is kept waiting.
    let locked = if yes { Some(store.lock(StateFile::Config)?) } else { None };
    let before = current(&path)?;
    if let Some(why) = before.as_deref().and_then(fault) {
        bail!("{} does not parse, so it was not touched: {why}", path.display());
    }
    let shown = match &before {
        Some(bytes) if !bytes.trim_ascii().is_empty() => bytes.as_slice(),
        _ => docs::SEED.as_bytes(),
    };
    let mut document = Document::parse(shown)
        .map_err(|fault| anyhow::anyhow!("{} does not parse, so it was not touched: {fault}", path.display()))?;
    let unedited = document.to_bytes();
    edit(&mut document)?;
    let after = document.to_bytes();
    if after == unedited {
        return Ok(Outcome::Unchanged);
    }
    show(terminal, &path, before.as_deref().unwrap_or_default(), &after)?;
    let guard = match locked {
        Some(guard) => guard,
        None if !(terminal.env.tty.stdin && terminal.env.tty.stdout) => {
            terminal.remark("not written (add --yes)")?;
            return Ok(Outcome::Shown);
        }
        None if !asked(terminal)? => {
            terminal.remark("not written")?;
            return Ok(Outcome::Shown);
        }
        None => store.lock(StateFile::Config)?,
    };
    if current(&path)? != before {
        bail!("{} was changed meanwhile, so it was not touched; try again", path.display());
    }
    guard.write(StateFile::Config, &after)?;
    if shown == docs::SEED.as_bytes() {
        docs::keep_schema(store)?;
    }
    Ok(Outcome::Written)
}

/// The file's bytes; none when it does not exist. A file that cannot be read is not one to write over.
fn current(path: &std::path::Path) -> Result<Option<Vec<u8>>> {
    let read = file::read_user(path, MAX).with_context(|| format!("cannot read {}", path.display()))?;
    if read.is_none() && std::fs::symlink_metadata(path).is_ok() && std::fs::metadata(path).is_ok() {
        bail!("{} is no regular file of at most 4 MB, so it was not touched", path.display());
    }
    Ok(read)
}

fn show(terminal: &mut Terminal<'_>, path: &std::path::Path, before: &[u8], after: &[u8]) -> Result<()> {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let name = path.display().to_string();
    let old_name = if before.is_empty() { "/dev/null" } else { &name };
    let diff = TextDiff::from_lines(before.as_ref(), after.as_ref());
    let text = diff.unified_diff().context_radius(3).header(old_name, &name).to_string();
    let colours = terminal.env.tty.stdout && terminal.env.var("NO_COLOR").is_none();
    for line in text.lines() {
        match line.as_bytes().first() {
            Some(b'+') if colours => writeln!(terminal.out, "\x1b[32m{line}\x1b[0m")?,
            Some(b'-') if colours => writeln!(terminal.out, "\x1b[31m{line}\x1b[0m")?,
            _ => writeln!(terminal.out, "{line}")?,
        }
    }
    Ok(())
}

fn asked(terminal: &mut Terminal<'_>) -> Result<bool> {
    terminal.out.flush()?;
    write!(terminal.err, "Type YES to write this: ")?;
    terminal.err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "YES")
}

/// Ends a change with what the user has to know: where it was written, when it holds, and what stands in its way.
pub fn conclude(terminal: &mut Terminal<'_>, outcome: Outcome, targets: &[Target]) -> Result<()> {
    if outcome != Outcome::Written {
        return Ok(());
    }
    let path = Store::new(terminal.env).path(StateFile::Config).context("no configuration folder")?;
    let mut keys = targets.iter().flat_map(Target::keys).peekable();
    let next = keys.peek().is_some() && keys.all(|key| key.spec.effect == Effect::NextSession);
    let when = if next { "when the next session starts" } else { "from the next redraw, tool call or prompt on" };
    writeln!(terminal.out, "Written to {}. It holds {when}; Claude Code need not be restarted.", path.display())?;
    remarks(terminal, targets)
}

/// The limits of later zones that are raised to that of `key`, which is `limit` now.
fn raised(document: &Document, config: &Config, key: &Key, limit: u64) -> Vec<&'static str> {
    const ZONES: [&str; 3] = ["statusline.zones.yellow", "statusline.zones.orange", "statusline.zones.red"];
    let at = ZONES.iter().position(|name| *name == key.path).unwrap_or(ZONES.len());
    let is_raised = |key: &&Key| {
        let steps: Vec<&str> = key.path.split('.').collect();
        let own = document.value(&steps).or_else(|| key.default_value()).and_then(|own| own.as_f64());
        (key.value)(config).and_then(|value| value.as_u64()) == Some(limit) && own.is_some_and(|own| own < limit as f64)
    };
    ZONES.into_iter().skip(at + 1).filter_map(crate::config::key).filter(is_raised).map(|key| key.path).collect()
}

/// Says where what was written is not what holds.
fn remarks(terminal: &mut Terminal<'_>, targets: &[Target]) -> Result<()> {
    let dir = terminal.folder();
    let config = Config::load_in(terminal.env, &dir);
    let text = Store::new(terminal.env).read(StateFile::Config).unwrap_or_default();
    let Ok(document) = Document::parse(&text) else { return Ok(()) };
    for target in targets.iter().filter(|target| !target.in_project()) {
        let Some(key) = target.key else { continue };
        let steps: Vec<&str> = target.steps.iter().map(String::as_str).collect();
        let written = document.value(&steps);
        let source = tree::source_in(terminal.env, &config, &dir, key);
        if let tree::Source::Project(_) = source {
            terminal.remark(format!("note: here {} is {}, {source}", key.path, super::get::shown(&config, key)))?;
            continue;
        }
        if let tree::Source::Variable(_) | tree::Source::Legacy = source {
            terminal.remark(format!("note: {} is {}, {source}", key.path, super::get::shown(&config, key)))?;
            continue;
        }
        if key.path == "statusline.preset" && written.is_some() {
            let fields = crate::config::key("statusline.fields")
                .map(|fields| tree::source_in(terminal.env, &config, &dir, fields));
            if fields.is_some_and(|source| source != tree::Source::Preset) {
                terminal.remark(
                    "note: statusline.fields is set and beats the preset; `si reset statusline.fields` makes room",
                )?;
            }
            continue;
        }
        let effective = (key.value)(&config);
        if let Some(written) = &written
            && effective.as_ref().and_then(serde_json::Value::as_f64) != written.as_f64()
        {
            terminal.remark(format!("note: {} counts as {}", key.path, super::get::shown(&config, key)))?;
        }
        let limit = written.and_then(|written| written.as_u64());
        for name in limit.map(|limit| raised(&document, &config, key, limit)).unwrap_or_default() {
            let limit = super::get::shown(&config, key);
            terminal.remark(format!("note: {name} counts as {limit} too: no zone begins before {}", key.path))?;
        }
    }
    Ok(())
}
