//! The client's `settings.json`: reading it, and changing our part of it while everything else stays byte for byte.
//!
//! The file is the user's. It is edited as text under a lock, replaced in one step, keeps its mode, and where it is a
//! link the link's target is replaced. A file that does not parse is never written: the user is told the line and the
//! column. Which entries are ours is decided in [`entries`], the status line in [`statusline`].

pub mod entries;
pub mod plugins;
pub mod statusline;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::json_edit::Document;
use crate::env::Env;
use crate::store::{StateFile, Store, file};

/// The largest settings file that is read.
const MAX: u64 = 16 << 20;
/// How often an edit starts again because another program wrote the file meanwhile.
const TRIES: usize = 5;

/// What an edit made of the file.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The file.
    pub path: PathBuf,
    /// Its content before; empty where there was no file.
    pub before: Vec<u8>,
    /// Its content after.
    pub after: Vec<u8>,
}

impl Edit {
    /// Whether anything is different.
    pub fn changed(&self) -> bool {
        self.before != self.after
    }
}

/// The bootstrap state as it stands on disk, unknown keys included.
pub type State = Map<String, Value>;

/// Reads the settings; a missing or empty file reads as `{}`. An error says in one sentence what is wrong with the file.
pub fn read(env: &Env) -> Result<Document> {
    let path = path(env)?;
    parse(&path, &load(&path)?)
}

/// Reads the bootstrap state; absent or damaged reads as empty.
pub fn read_state(store: Store<'_>) -> State {
    store.read_json(StateFile::Bootstrap).unwrap_or_default()
}

/// What `work` would make of the settings; nothing is written.
pub fn preview(
    env: &Env,
    store: Store<'_>,
    work: impl FnOnce(&mut Document, &mut State) -> Result<()>,
) -> Result<Edit> {
    let path = path(env)?;
    let before = load(&path)?;
    let after = apply(&path, &before, &mut read_state(store), work)?;
    Ok(Edit { path, before, after })
}

/// Changes the settings and the bootstrap state together, under both locks; the caller must hold neither.
///
/// The client and other tools do not know our lock, so `work` runs again on a file that was written between our reading
/// and our writing. The state goes first, because it keeps what would otherwise be lost; when the settings cannot be
/// written it is put back.
pub fn change(
    env: &Env,
    store: Store<'_>,
    mut work: impl FnMut(&mut Document, &mut State) -> Result<()>,
) -> Result<Edit> {
    let path = path(env)?;
    let busy = || format!("{} was not changed", path.display());
    let _settings = store.lock(StateFile::Settings).with_context(busy)?;
    let guard = store.lock(StateFile::Bootstrap).with_context(busy)?;
    // It may hold the former status line.
    let old: State = guard.read_or_set_aside(StateFile::Bootstrap)?.unwrap_or_default();
    let stored = store.read(StateFile::Bootstrap);
    for _ in 0..TRIES {
        let mut state = old.clone();
        let before = load(&path)?;
        let after = apply(&path, &before, &mut state, &mut work)?;
        if load(&path)? != before {
            continue;
        }
        if state != old {
            guard.write_json(StateFile::Bootstrap, &state).with_context(busy)?;
        }
        if after != before
            && let Err(error) = write(&path, &after)
        {
            // Best effort: a left-over note of the former status line harms nobody.
            let _ = match &stored {
                _ if state == old => Ok(()),
                Some(bytes) => guard.write(StateFile::Bootstrap, bytes),
                None => guard.remove(StateFile::Bootstrap),
            };
            return Err(error);
        }
        return Ok(Edit { path, before, after });
    }
    bail!("{} was not changed: another program keeps writing it; try again", path.display())
}

/// Writes a file of the user's; the error says what to do when it may not be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write_user(path, bytes).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => anyhow::anyhow!(
            "{} is read-only: make it writable, or make the change that --dry-run shows where the file comes from",
            path.display()
        ),
        _ => anyhow::Error::new(error).context(format!("write {}", path.display())),
    })
}

fn path(env: &Env) -> Result<PathBuf> {
    StateFile::Settings.path(env).context("there is no home folder: set HOME or CLAUDE_CONFIG_DIR")
}

fn load(path: &Path) -> Result<Vec<u8>> {
    match file::read_user(path, MAX).with_context(|| format!("read {}", path.display()))? {
        Some(bytes) => Ok(bytes),
        None if std::fs::metadata(path).is_ok() => bail!("{} is not a regular file of sane size", path.display()),
        None => Ok(Vec::new()),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Document> {
    let document = Document::parse(bytes)
        .map_err(|fault| anyhow::anyhow!("{} is not JSON, so it was left alone ({fault})", path.display()))?;
    match document.keys(&[]) {
        Some(_) => Ok(document),
        None => bail!("{} is not a JSON object, so it was left alone", path.display()),
    }
}

fn apply(
    path: &Path,
    before: &[u8],
    state: &mut State,
    work: impl FnOnce(&mut Document, &mut State) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut document = parse(path, before)?;
    let untouched = document.to_bytes();
    work(&mut document, state).with_context(|| format!("{} was left alone", path.display()))?;
    let after = document.to_bytes();
    // An empty file that needs no change stays empty.
    Ok(if after == untouched { before.to_vec() } else { after })
}

#[cfg(test)]
mod tests;
