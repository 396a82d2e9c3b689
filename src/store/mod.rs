//! Our files: what each is called, where it lives, how large it may grow, which lock guards it, and how it is read and
//! written. Shapes of the records are in [`records`]; system calls in [`file`].
//!
//! Rules that hold for all of them: files 0600 and folders 0700; whole-file writes are atomic; read-modify-write happens
//! under the file's lock, which is waited for at most [`PATIENCE`]; what is missing, too large, foreign or nonsensical
//! reads as absent. Nothing is written without its lock.

pub mod file;
pub mod key;
pub mod own;
pub mod records;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use key::Sid;

use crate::env::Env;

/// The longest wait for a lock; after it, counters leave their delta as pending and everything else is skipped.
pub const PATIENCE: Duration = Duration::from_millis(1000);
/// The longest that all waits for locks that were not had may take in one process: a hook takes many locks, and its host
/// waits for it.
const PATIENCE_IN_ALL: Duration = Duration::from_millis(1500);
/// How much shorter a JSON file may become where it is overwritten: `false` is longer than `true`.
const JSON_PAD: usize = 16;

/// How the name of a session's archive folder begins, in the temp folder.
pub const ARCHIVE_FOLDER: &str = "claude-tool-archive-";

/// Every file that si keeps, one row each. `{T}` is the temp folder, `{C}` the client's configuration folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateFile<'a> {
    /// `{T}/claude-token-budget-<sid>`: estimated tokens, decimal.
    TokenBudget(&'a Sid),
    /// `{T}/claude-tool-count-<sid>`: tool calls, decimal.
    ToolCount(&'a Sid),
    /// `{T}/claude-tool-seen-<sid>`: the last 256 raw tool_use_ids, one a line.
    ToolSeen(&'a Sid),
    /// `{T}/claude-compact-state-<sid>`: the highest zone already reported.
    ZoneState(&'a Sid),
    /// `{T}/claude-task-change-<sid>`: base-36 hashes of prompts hinted at, newest first.
    TaskChange(&'a Sid),
    /// `{T}/claude-ctx-shape-<sid>.jsonl`: the shape log.
    Shape(&'a Sid),
    /// `{T}/claude-ctx-shape-<sid>.rollup.json`: roots carried across compactions.
    Rollup(&'a Sid),
    /// `{T}/claude-ctx-shape-<sid>.session.json`: where the session started.
    SessionAnchor(&'a Sid),
    /// `{T}/claude-compact-snapshot-<sid>.json`: the bands of the last compaction while its regret window is open.
    Snapshot(&'a Sid),
    /// `{T}/claude-compact-prefix-<16 hex>.json`: fingerprint of the last guidance, by session anchor.
    Prefix(&'a str),
    /// `{T}/claude-git-nexus-<12 hex>.json`: the most changed files, by session anchor.
    Anchors(&'a str),
    /// `{T}/claude-cost-<sid>`: totals of the transcript up to an offset.
    Totals(&'a Sid),
    /// `{T}/claude-cost-sincecompact-<sid>`: totals since the last compaction.
    TotalsSinceCompact(&'a Sid),
    /// `{T}/claude-health-<name>`: `<http code> <epoch ms>`; the name is cleaned.
    Health(&'a str),
    /// `{T}/claude-usage-cache-<uid>.json`: quota figures.
    QuotaCache,
    /// `{T}/claude-usage-lock-<uid>.json`: when a quota refresh last started.
    QuotaLock,
    /// `{T}/claude-tool-archive-<sid>/<id>.json`: one archived tool response; the id is cleaned.
    Archived(&'a Sid, &'a str),
    /// `{T}/claude-tool-archive-<sid>/index.jsonl`: one row per archived response, oldest first.
    ArchiveIndex(&'a Sid),
    /// `{T}/claude-context-window-<sid>`: the client's context window, decimal.
    ContextWindow(&'a Sid),
    /// `{T}/claude-git-<16 hex>.json`: the last working-tree answer.
    WorkTree(&'a str),
    /// `{T}/claude-git-<16 hex>.refresh`: never written; its lock is held while a work tree is being scanned.
    WorkTreeRefresh(&'a str),
    /// `{C}/session-intelligence.json`: the user's config.
    Config,
    /// `{C}/session-intelligence.schema.json`: the JSON schema that a new config names.
    Schema,
    /// `{C}/statusline-intel.json`: the older, flat status line config.
    LegacyConfig,
    /// `{C}/.si-bootstrap-state`: what session starts have already done.
    Bootstrap,
    /// `{C}/logs/compact-history.jsonl`: one line per compaction, all sessions.
    History,
    /// `{C}/logs/adaptive-zones-announced.json`: the zones last announced, by project.
    ZonesAnnounced,
    /// `{C}/logs/deploy-breadcrumb`: `<target> <ISO time>`, written by the user's scripts.
    Deploy,
    /// `{C}/session-data/compaction-log.txt`: one line per compaction, local time.
    CompactionLog,
    /// `{C}/projects/<enc>/session-context.md`: the user's and Claude's notes.
    SessionContext(&'a str),
    /// `<project>/CLAUDE.md`: the user's instructions, with our block in them.
    ClaudeMd(&'a Path),
    /// `{C}/projects/<enc>/.si-handoff.json`: what the next session start resumes with.
    Handoff(&'a str),
    /// `{T}/claude-handoff-<sid>.json`: a handoff that another session of the project wrote over before it was taken.
    DisplacedHandoff(&'a Sid),
    /// `{C}/smartcompact/<sid>.md`: pins.
    Pins(&'a Sid),
    /// `{C}/settings.json`: the client's and the user's; only our entries in it are ours.
    Settings,
}

/// Who may own the name of a file: ours alone, or the user too, who may keep it as a link to elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Si,
    User,
}

impl StateFile<'_> {
    /// Where the file lives; none for a file below the configuration folder when there is none.
    pub fn path(&self, env: &Env) -> Option<PathBuf> {
        use StateFile::*;
        let temp = |name: String| Some(env.tmp.join(name));
        match self {
            TokenBudget(sid) => temp(format!("claude-token-budget-{sid}")),
            ToolCount(sid) => temp(format!("claude-tool-count-{sid}")),
            ToolSeen(sid) => temp(format!("claude-tool-seen-{sid}")),
            ZoneState(sid) => temp(format!("claude-compact-state-{sid}")),
            TaskChange(sid) => temp(format!("claude-task-change-{sid}")),
            Shape(sid) => temp(format!("claude-ctx-shape-{sid}.jsonl")),
            Rollup(sid) => temp(format!("claude-ctx-shape-{sid}.rollup.json")),
            SessionAnchor(sid) => temp(format!("claude-ctx-shape-{sid}.session.json")),
            Snapshot(sid) => temp(format!("claude-compact-snapshot-{sid}.json")),
            Prefix(hash) => temp(format!("claude-compact-prefix-{hash}.json")),
            Anchors(hash) => temp(format!("claude-git-nexus-{hash}.json")),
            Totals(sid) => temp(format!("claude-cost-{sid}")),
            TotalsSinceCompact(sid) => temp(format!("claude-cost-sincecompact-{sid}")),
            Health(name) => {
                temp(format!("claude-health-{}", key::clean(name, 100).unwrap_or_else(|| "default".into())))
            }
            QuotaCache => temp(format!("claude-usage-cache-{}.json", env.uid)),
            QuotaLock => temp(format!("claude-usage-lock-{}.json", env.uid)),
            Archived(sid, id) => temp(format!("{ARCHIVE_FOLDER}{sid}/{id}.json")),
            ArchiveIndex(sid) => temp(format!("{ARCHIVE_FOLDER}{sid}/index.jsonl")),
            ContextWindow(sid) => temp(format!("claude-context-window-{sid}")),
            WorkTree(hash) => temp(format!("claude-git-{hash}.json")),
            WorkTreeRefresh(hash) => temp(format!("claude-git-{hash}.refresh")),
            Config => env.in_claude("session-intelligence.json"),
            Schema => env.in_claude("session-intelligence.schema.json"),
            LegacyConfig => env.in_claude("statusline-intel.json"),
            Bootstrap => env.in_claude(".si-bootstrap-state"),
            History => env.in_claude("logs/compact-history.jsonl"),
            ZonesAnnounced => env.in_claude("logs/adaptive-zones-announced.json"),
            Deploy => env.in_claude("logs/deploy-breadcrumb"),
            CompactionLog => env.in_claude("session-data/compaction-log.txt"),
            SessionContext(enc) => env.in_claude(&format!("projects/{enc}/session-context.md")),
            ClaudeMd(root) => Some(root.join("CLAUDE.md")),
            Handoff(enc) => env.in_claude(&format!("projects/{enc}/.si-handoff.json")),
            DisplacedHandoff(sid) => temp(format!("claude-handoff-{sid}.json")),
            Pins(sid) => env.in_claude(&format!("smartcompact/{sid}.md")),
            Settings => env.in_claude("settings.json"),
        }
    }

    /// The largest size that is still read, in bytes.
    fn max_bytes(&self) -> u64 {
        use StateFile::*;
        match self {
            Archived(..) => 128 << 20,
            Shape(_) | ArchiveIndex(_) | History | Pins(_) => 16 << 20,
            _ => 4 << 20,
        }
    }

    fn owner(&self) -> Owner {
        use StateFile::*;
        match self {
            Config | LegacyConfig | Deploy | SessionContext(_) | Pins(_) | Settings | ClaudeMd(_) => Owner::User,
            _ => Owner::Si,
        }
    }

    /// The lock file that guards this file. Files that change together share one.
    fn lock_path(&self, env: &Env) -> Option<PathBuf> {
        use StateFile::*;
        let name = match self {
            TokenBudget(sid) | ToolCount(sid) | ToolSeen(sid) | Shape(sid) | Rollup(sid) | SessionAnchor(sid)
            | ZoneState(sid) => {
                format!("claude-tool-count-{sid}.lock")
            }
            Totals(sid) | TotalsSinceCompact(sid) => format!("claude-cost-{sid}.lock"),
            Archived(sid, _) | ArchiveIndex(sid) => format!("{ARCHIVE_FOLDER}{sid}.lock"),
            // Two configuration folders may link to one settings file.
            Settings => {
                let path = Settings.path(env)?;
                lock_name(&path.canonicalize().unwrap_or(path))
            }
            // Regret stamps travel from the snapshot into the history under one lock.
            Snapshot(_) | History => return Some(env.tmp.join(lock_name(&History.path(env)?))),
            other => {
                let path = other.path(env)?;
                match path.strip_prefix(&env.tmp) {
                    // A configuration folder below the temp folder is no place for lock files either.
                    Ok(inside) if inside.components().count() == 1 => format!("{}.lock", inside.display()),
                    _ => lock_name(&path),
                }
            }
        };
        Some(env.tmp.join(name))
    }
}

/// The lock name for a file outside the temp folder.
fn lock_name(path: &Path) -> String {
    format!("claude-lock-{}.lock", key::sha256_hex(path.as_os_str().as_encoded_bytes(), 16))
}

/// Reads and writes the files of [`StateFile`].
#[derive(Debug, Clone, Copy)]
pub struct Store<'e> {
    env: &'e Env,
}

/// Proof that a file's lock is held; the only way to write it.
#[derive(Debug)]
pub struct Guard<'e> {
    store: Store<'e>,
    lock_path: PathBuf,
    _lock: file::Lock,
}

impl<'e> Store<'e> {
    /// The files that belong to these surroundings.
    pub fn new(env: &'e Env) -> Store<'e> {
        Store { env }
    }

    /// Where a file lives; none without a configuration folder.
    pub fn path(&self, state: StateFile<'_>) -> Option<PathBuf> {
        state.path(self.env)
    }

    /// The whole content; none when absent. Readers take no lock: replacing a file by rename makes them safe.
    pub fn read(&self, state: StateFile<'_>) -> Option<Vec<u8>> {
        let path = state.path(self.env)?;
        let read = match state.owner() {
            Owner::Si => file::read_private(&path, state.max_bytes()),
            Owner::User => file::read_user(&path, state.max_bytes()),
        };
        read.ok().flatten()
    }

    /// The last `max` bytes of one of our own files; all of it when there are no more. None when absent.
    pub fn read_end(&self, state: StateFile<'_>, max: u64) -> Option<Vec<u8>> {
        file::read_private_end(&state.path(self.env)?, max.min(state.max_bytes())).ok().flatten()
    }

    /// The whole lines at the end of one of our own logs, as far as it may be read: all of it, unless another hand let
    /// it grow beyond measure. None when absent.
    pub fn read_lines(&self, state: StateFile<'_>) -> Option<Vec<u8>> {
        let max = state.max_bytes();
        let mut bytes = self.read_end(state, max)?;
        if bytes.len() as u64 == max {
            let first = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1);
            bytes.drain(..first);
        }
        Some(bytes)
    }

    /// The content as text, bad bytes replaced.
    pub fn read_text(&self, state: StateFile<'_>) -> Option<String> {
        let bytes = self.read(state)?;
        Some(String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
    }

    /// The content as a JSON record; none when it does not parse.
    pub fn read_json<T: DeserializeOwned>(&self, state: StateFile<'_>) -> Option<T> {
        serde_json::from_slice(&self.read(state)?).ok()
    }

    /// The content as a decimal integer within `range`; none otherwise.
    pub fn read_count(&self, state: StateFile<'_>, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        parse_count(&self.read(state)?, &range)
    }

    /// Takes the file's lock, waiting at most [`PATIENCE`].
    pub fn lock(&self, state: StateFile<'_>) -> Result<Guard<'e>> {
        self.lock_within(state, PATIENCE)
    }

    /// Takes the file's lock, waiting at most `patience` (zero: one try).
    pub fn lock_within(&self, state: StateFile<'_>, patience: Duration) -> Result<Guard<'e>> {
        let lock_path = state.lock_path(self.env).context("no configuration folder")?;
        let tmp = self.env.tmp.display();
        let no_place = || format!("{tmp} cannot be written: point TMPDIR at a folder of yours");
        if !self.env.tmp.exists() {
            file::private_dir(&self.env.tmp).with_context(no_place)?;
        }
        let patience = patience.min(PATIENCE_IN_ALL.saturating_sub(self.env.waited()));
        let begun = Instant::now();
        let lock = file::lock(&lock_path, patience).with_context(no_place)?;
        if lock.is_none() {
            self.env.add_wait(begun.elapsed());
        }
        let lock = lock.with_context(|| format!("another process holds {}; try again", lock_path.display()))?;
        Ok(Guard { store: *self, lock_path, _lock: lock })
    }

    /// Replaces a whole file under its lock.
    pub fn write(&self, state: StateFile<'_>, bytes: &[u8]) -> Result<()> {
        self.lock(state)?.write(state, bytes)
    }

    /// Replaces a whole file by a compact JSON record under its lock.
    pub fn write_json<T: Serialize>(&self, state: StateFile<'_>, record: &T) -> Result<()> {
        self.write(state, &serde_json::to_vec(record)?)
    }

    /// Appends a line under the file's lock.
    pub fn append(&self, state: StateFile<'_>, line: &str) -> Result<()> {
        self.lock(state)?.append(state, line)
    }

    /// Adds `delta` to a counter and returns the new value. When the lock cannot be had in time the delta is left as
    /// pending, to be folded in by the next holder, and the answer is none. A value out of `range` counts as absent.
    pub fn add(&self, state: StateFile<'_>, delta: u64, range: std::ops::RangeInclusive<u64>) -> Result<Option<u64>> {
        match self.lock(state) {
            Ok(guard) => guard.add(state, delta, range).map(Some),
            Err(_) => {
                self.leave_pending(state, delta)?;
                Ok(None)
            }
        }
    }

    /// Leaves a counter's delta for the next holder of its lock.
    pub fn leave_pending(&self, state: StateFile<'_>, delta: u64) -> Result<()> {
        let path = pending_path(&state.path(self.env).context("no configuration folder")?);
        file::append_pending(&path, delta).with_context(|| format!("append {}", path.display()))
    }
}

impl Guard<'_> {
    fn check(&self, state: StateFile<'_>) -> Result<PathBuf> {
        let env = self.store.env;
        debug_assert_eq!(state.lock_path(env).as_ref(), Some(&self.lock_path), "{state:?} under a foreign lock");
        state.path(env).context("no configuration folder")
    }

    /// The store this guard belongs to, for reading.
    pub fn store(&self) -> Store<'_> {
        self.store
    }

    /// Overwrites a small file in the temp folder where it stands if the new content fits, else replaces it.
    fn put(&self, path: &Path, bytes: &[u8], pad: usize) -> std::io::Result<()> {
        let outlives = self.outlives(path);
        if outlives == file::Outlives::Process && file::overwrite(path, bytes, pad)? {
            return Ok(());
        }
        file::write_atomic_parts(path, &[bytes], outlives)
    }

    /// Replaces a small JSON file of which a reader without the lock may see the old and the new mixed; cheaper than
    /// [`write_json`](Guard::write_json).
    pub fn mark_json<T: Serialize>(&self, state: StateFile<'_>, record: &T) -> Result<()> {
        let path = self.check(state)?;
        self.put(&path, &serde_json::to_vec(record)?, JSON_PAD).with_context(|| format!("write {}", path.display()))
    }

    fn outlives(&self, path: &Path) -> file::Outlives {
        if path.starts_with(&self.store.env.tmp) { file::Outlives::Process } else { file::Outlives::Crash }
    }

    /// Replaces the whole file.
    pub fn write(&self, state: StateFile<'_>, bytes: &[u8]) -> Result<()> {
        self.write_parts(state, &[bytes])
    }

    /// Replaces the whole file, the bytes in parts.
    pub fn write_parts(&self, state: StateFile<'_>, parts: &[&[u8]]) -> Result<()> {
        let path = self.check(state)?;
        let outlives = self.outlives(&path);
        let written = match (state.owner(), state) {
            (Owner::User, _) => file::write_user(&path, &parts.concat()),
            (Owner::Si, StateFile::Archived(..) | StateFile::ArchiveIndex(_)) => path
                .parent()
                .map_or(Ok(()), file::private_dir)
                .and_then(|()| file::write_atomic_parts(&path, parts, outlives)),
            (Owner::Si, _) => file::write_atomic_parts(&path, parts, outlives),
        };
        written.with_context(|| format!("write {}", path.display()))
    }

    /// Replaces the whole file by a compact JSON record.
    pub fn write_json<T: Serialize>(&self, state: StateFile<'_>, record: &T) -> Result<()> {
        self.write(state, &serde_json::to_vec(record)?)
    }

    /// Appends one line.
    pub fn append(&self, state: StateFile<'_>, line: &str) -> Result<()> {
        let path = self.check(state)?;
        if let StateFile::ArchiveIndex(_) = state {
            path.parent().map_or(Ok(()), file::private_dir)?;
        }
        file::append(&path, line).with_context(|| format!("append {}", path.display()))
    }

    /// Removes the file.
    pub fn remove(&self, state: StateFile<'_>) -> Result<()> {
        let path = self.check(state)?;
        file::remove(&path).with_context(|| format!("remove {}", path.display()))
    }

    /// Renames a damaged file out of the way, so that its content is not lost.
    pub fn set_aside(&self, state: StateFile<'_>) -> Result<PathBuf> {
        self.set_aside_as(state, "corrupt")
    }

    /// Renames a file out of the way, to `<name>.<why>.<ms>`.
    pub fn set_aside_as(&self, state: StateFile<'_>, why: &str) -> Result<PathBuf> {
        let path = self.check(state)?;
        file::set_aside(&path, why, self.store.env.now_ms).with_context(|| format!("set aside {}", path.display()))
    }

    /// The record of a file that holds what somebody may miss, before it is written anew; none when there is none. One
    /// that is there and cannot be read as a record (damaged, too large, no file at all) is set aside.
    pub fn read_or_set_aside<T: DeserializeOwned>(&self, state: StateFile<'_>) -> Result<Option<T>> {
        let path = self.check(state)?;
        let bytes = self.store.read(state);
        if let Some(record) = bytes.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()) {
            return Ok(Some(record));
        }
        let empty = bytes.is_some_and(|bytes| bytes.trim_ascii().is_empty());
        if !empty && path.symlink_metadata().is_ok() {
            self.set_aside(state)?;
        }
        Ok(None)
    }

    /// Adds `delta` and all pending deltas to a counter, and returns the new value (at most the end of `range`).
    pub fn add(&self, state: StateFile<'_>, delta: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let path = self.check(state)?;
        let old = self.store.read_count(state, range.clone()).unwrap_or(0);
        let top = *range.end();
        let value = |pending: u64| old.saturating_add(delta).saturating_add(pending).min(top);
        let write = |new: u64| self.put(&path, new.to_string().as_bytes(), 0);
        let folded = file::drain_pending(&pending_path(&path), old, value, write);
        if let Some(new) = folded.with_context(|| format!("add what is pending to {}", path.display()))? {
            return Ok(new);
        }
        write(value(0)).with_context(|| format!("write {}", path.display()))?;
        Ok(value(0))
    }
}

fn pending_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".pending");
    name.into()
}

fn parse_count(bytes: &[u8], range: &std::ops::RangeInclusive<u64>) -> Option<u64> {
    // The digits at the start count, as the JavaScript original reads its own files.
    let text = bytes.trim_ascii();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok().filter(|value| range.contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_fold_pending_deltas_in() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let (store, sid) = (Store::new(&env), Sid::new("s"));
        let count = StateFile::ToolCount(&sid);
        assert_eq!(store.add(count, 1, 1..=1_000_000).unwrap(), Some(1));
        let held = store.lock(count).unwrap();
        store.leave_pending(count, 5).unwrap();
        assert!(store.lock_within(count, Duration::ZERO).is_err());
        drop(held);
        assert_eq!(store.add(count, 1, 1..=1_000_000).unwrap(), Some(7));
        assert_eq!(store.read_count(count, 1..=1_000_000), Some(7));
    }

    #[test]
    fn a_count_out_of_range_reads_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let (store, sid) = (Store::new(&env), Sid::new("s"));
        for text in ["0", "-3", "999999999", "", "x"] {
            store.write(StateFile::ToolCount(&sid), text.as_bytes()).unwrap();
            assert_eq!(store.read_count(StateFile::ToolCount(&sid), 1..=1_000_000), None, "{text:?}");
        }
    }

    #[test]
    fn without_a_configuration_folder_its_files_are_absent() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = Env::for_tests(dir.path());
        env.claude_dir = None;
        let store = Store::new(&env);
        assert_eq!(store.read(StateFile::Config), None);
        assert!(store.append(StateFile::History, "{}").is_err());
    }
}
