//! The shape log: where the tool calls of a session land, and the folder that it started in.

use std::path::Path;

use anyhow::Result;

use super::bands::{Options, Scoring};
use crate::config::Config;
use crate::env::Env;
use crate::store::records::shape::{Rollup, SessionAnchor, ShapeEntry};
use crate::store::{Guard, Sid, StateFile, Store};

/// The log of a session, oldest first; lines that are no entries are passed over.
pub fn entries(store: Store<'_>, sid: &Sid) -> Vec<ShapeEntry> {
    let bytes = store.read(StateFile::Shape(sid)).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Where the session started; none where nothing has recorded it.
pub fn anchor(store: Store<'_>, sid: &Sid) -> Option<SessionAnchor> {
    store.read_json::<SessionAnchor>(StateFile::SessionAnchor(sid)).filter(|anchor| anchor.cwd.starts_with('/'))
}

/// Records where a session starts, for a session start: an earlier record of the same session stays.
///
/// `guard` holds the lock of [`StateFile::SessionAnchor`]. Returns the record in force.
pub fn pin_anchor(guard: &Guard<'_>, env: &Env, sid: &Sid, session_id: &str, cwd: &Path) -> Result<SessionAnchor> {
    if let Some(anchor) = anchor(guard.store(), sid) {
        return Ok(anchor);
    }
    let anchor = SessionAnchor {
        session_id: session_id.into(),
        cwd: cwd.to_string_lossy().into_owned(),
        project_root: crate::watch::root_dir::project_root(cwd).map(|root| root.to_string_lossy().into_owned()),
        started_at: Some(env.iso(env.now_ms)),
        pid: Some(std::process::id()),
        ..SessionAnchor::default()
    };
    guard.write_json(StateFile::SessionAnchor(sid), &anchor)?;
    Ok(anchor)
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
}

impl Settings {
    /// The settings of the project at `cwd`.
    pub fn of(config: &Config, _cwd: &str) -> Settings {
        let shape = &config.shape;
        Settings {
            scoring: Scoring::parse(&shape.scoring),
            warm_cutoff: shape.warm_score_cutoff,
            depth: shape.root_dir_depth,
            preserve: shape.preserve_globs.clone(),
        }
    }

    /// The same as options of an analysis.
    pub fn options<'a>(&'a self, cwd: &'a str, anchors: &'a [String], rollup: Option<&'a Rollup>) -> Options<'a> {
        Options {
            scoring: self.scoring,
            warm_cutoff: Some(self.warm_cutoff),
            preserve: &self.preserve,
            anchors,
            cwd: Some(cwd),
            depth: Some(self.depth),
            rollup,
        }
    }
}
