//! The shape log: where the tool calls of a session land, and the folder that it started in.

use std::path::Path;

use anyhow::Result;

use super::bands::{Options, Scoring};
use super::root_dir;
use crate::call::Call;
use crate::client::project;
use crate::config::Config;
use crate::env::Env;
use crate::store::records::shape::{Rollup, SessionAnchor, ShapeEntry};
use crate::store::{Guard, Sid, StateFile, Store};

/// Lines that are read where nothing else is configured.
const DEFAULT_ENTRIES: usize = 200;
/// What a line may take on average before the log is cut, in bytes.
const LINE_BYTES: u64 = 640;

/// The last 200 lines of a session's log, oldest first.
pub fn entries(store: Store<'_>, sid: &Sid) -> Vec<ShapeEntry> {
    last(store, sid, DEFAULT_ENTRIES)
}

/// The last `max_entries` lines (50 to 2000) of a session's log, oldest first.
pub fn last(store: Store<'_>, sid: &Sid, max_entries: usize) -> Vec<ShapeEntry> {
    let bytes = store.read_lines(StateFile::Shape(sid)).unwrap_or_default();
    let lines = bytes.rsplit(|byte| *byte == b'\n').filter_map(parse);
    let mut entries: Vec<ShapeEntry> = lines.take(clamp_entries(max_entries)).collect();
    entries.reverse();
    entries
}

/// One line; JSON of another shape is an entry that touched nothing, what is no JSON is none.
fn parse(line: &[u8]) -> Option<ShapeEntry> {
    match serde_json::from_slice(line) {
        Ok(entry) => Some(entry),
        Err(error) if error.is_data() && line != b"null" => Some(ShapeEntry::default()),
        Err(_) => None,
    }
}

fn clamp_entries(max_entries: usize) -> usize {
    max_entries.clamp(50, 2000)
}

/// Appends an entry, and cuts the log to its last `max_entries` lines (50 to 2000) when it has grown too large.
///
/// `guard` holds the lock of [`StateFile::Shape`].
pub fn append(guard: &Guard<'_>, sid: &Sid, entry: &ShapeEntry, max_entries: usize) -> Result<()> {
    let (log, most) = (StateFile::Shape(sid), clamp_entries(max_entries));
    guard.append(log, &serde_json::to_string(entry)?)?;
    let size = guard.store().path(log).and_then(|path| Some(path.symlink_metadata().ok()?.len()));
    if size.is_some_and(|size| size > most as u64 * LINE_BYTES)
        && let Some(bytes) = guard.store().read_lines(log)
    {
        guard.write(log, crate::compaction::history::last_lines(&bytes, most))?;
    }
    Ok(())
}

/// Where the session started; none where nothing has recorded it.
pub fn anchor(store: Store<'_>, sid: &Sid) -> Option<SessionAnchor> {
    store.read_json::<SessionAnchor>(StateFile::SessionAnchor(sid)).filter(|anchor| anchor.cwd.starts_with('/'))
}

/// Records where a session starts, for a session start: an earlier record of the same session stays.
///
/// `guard` holds the lock of [`StateFile::SessionAnchor`]. Returns the record in force.
pub fn pin_anchor(guard: &Guard<'_>, env: &Env, sid: &Sid, cwd: &Path) -> Result<SessionAnchor> {
    if let Some(anchor) = anchor(guard.store(), sid) {
        return Ok(anchor);
    }
    let anchor = SessionAnchor {
        session_id: sid.as_str().into(),
        cwd: cwd.to_string_lossy().into_owned(),
        project_root: root_dir::project_root(cwd).map(|root| root.to_string_lossy().into_owned()),
        started_at: Some(env.iso(env.now_ms)),
        pid: Some(std::process::id()),
        ..SessionAnchor::default()
    };
    guard.write_json(StateFile::SessionAnchor(sid), &anchor)?;
    Ok(anchor)
}

/// Records where a session is, for a tool call that finds no record (a plugin just installed, a temp folder wiped).
///
/// `guard` holds the lock of [`StateFile::SessionAnchor`].
pub fn heal_anchor(guard: &Guard<'_>, env: &Env, sid: &Sid, cwd: &Path) -> Result<()> {
    let anchor = SessionAnchor {
        session_id: sid.as_str().into(),
        cwd: cwd.to_string_lossy().into_owned(),
        pinned_by: Some("token-budget".into()),
        updated_at: Some(env.iso(env.now_ms)),
        ..SessionAnchor::default()
    };
    guard.write_json(StateFile::SessionAnchor(sid), &anchor)
}

/// What told where a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The record of its start.
    Recorded,
    /// The payload.
    Payload,
    /// The project that the touched file is in.
    ProjectRoot,
    /// The process.
    Process,
}

/// [`resolve`] for a call; `file` is what it touched.
pub fn resolve_call(call: &Call<'_>, recorded: Option<&SessionAnchor>, file: Option<&str>) -> (String, Source) {
    let told = if recorded.is_none() { project::start_dir(call.payload) } else { None };
    resolve(recorded, told.as_deref(), file, &call.env.cwd)
}

/// The folder that paths of a session are relative to, and what told it; `told` is what the payload says.
pub fn resolve(
    recorded: Option<&SessionAnchor>,
    told: Option<&Path>,
    file: Option<&str>,
    process_cwd: &Path,
) -> (String, Source) {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    if let Some(anchor) = recorded {
        return (anchor.cwd.clone(), Source::Recorded);
    }
    if let Some(cwd) = told.filter(|cwd| cwd.is_absolute()) {
        return (text(cwd), Source::Payload);
    }
    let file = file.map(|file| file.replace('\\', "/")).filter(|file| file.starts_with('/'));
    match file.and_then(|file| root_dir::project_root(Path::new(&file))) {
        Some(root) => (text(&root), Source::ProjectRoot),
        None => (text(process_cwd), Source::Process),
    }
}

/// What of `shape` holds for one project: `perProject` on top of the general keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What decides the score of a directory.
    pub scoring: Scoring,
    /// The least score of a warm directory.
    pub warm_cutoff: f64,
    /// Path segments of a root directory, 1 to 5.
    pub depth: usize,
    /// Globs whose directories are always hot.
    pub preserve: Vec<String>,
    /// Globs of secrets.
    pub secret: Vec<String>,
    /// Lines that are kept and read.
    pub max_entries: usize,
}

impl Settings {
    /// The settings of the project at `cwd`.
    pub fn of(config: &Config, cwd: &str) -> Settings {
        let config = config.for_project(Path::new(cwd));
        let shape = &config.shape;
        Settings {
            scoring: Scoring::parse(&shape.scoring),
            warm_cutoff: shape.warm_score_cutoff,
            depth: shape.root_dir_depth,
            preserve: shape.preserve_globs.clone(),
            secret: shape.drop_globs.clone(),
            max_entries: shape.max_entries,
        }
    }

    /// The same as options of an analysis.
    pub fn options<'a>(
        &'a self,
        cwd: &'a str,
        anchors: &'a [String],
        missed: &'a [String],
        rollup: Option<&'a Rollup>,
    ) -> Options<'a> {
        Options {
            scoring: self.scoring,
            warm_cutoff: Some(self.warm_cutoff),
            preserve: &self.preserve,
            secret: &self.secret,
            anchors,
            missed,
            cwd: Some(cwd),
            depth: Some(self.depth),
            rollup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projects_own_settings_reach_every_analysis() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let own = r#"{"preserveGlobs": ["docs/**"], "scoring": "hybrid", "rootDirDepth": 3, "warmScoreCutoff": 0.65}"#;
        let text = format!(r#"{{"shape": {{"preserveGlobs": ["plans/**"], "perProject": {{"/w/app": {own}}}}}}}"#);
        Store::new(&env).write(StateFile::Config, text.as_bytes()).unwrap();
        let config = Config::load(&env);
        let here = Settings::of(&config, "/w/app");
        assert_eq!((here.scoring, here.depth, here.warm_cutoff), (Scoring::Hybrid, 3, 0.65));
        assert_eq!(here.preserve, ["plans/**", "docs/**"]);
        assert_eq!(Settings::of(&config, "/w/other").preserve, ["plans/**"]);
    }

    #[test]
    fn a_recorded_start_beats_where_the_client_has_drifted_to() {
        let recorded = SessionAnchor { cwd: "/w/app".into(), ..SessionAnchor::default() };
        let drifted = Some(Path::new("/w/app/sub"));
        assert_eq!(resolve(Some(&recorded), drifted, None, Path::new("/")), ("/w/app".into(), Source::Recorded));
        assert_eq!(resolve(None, drifted, None, Path::new("/")), ("/w/app/sub".into(), Source::Payload));
    }
}
