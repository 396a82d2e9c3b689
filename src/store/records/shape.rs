//! What the session's tool calls touched, what is carried of it across compactions, and where the session started.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient;

/// One line of the shape log: a tool call of the main conversation that touched a path or was a phase event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShapeEntry {
    /// When, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
    /// The token budget of the session just after the call.
    #[serde(deserialize_with = "lenient::whole")]
    pub tok: i64,
    /// The tool's name.
    #[serde(deserialize_with = "lenient::leaf")]
    pub tool: Option<String>,
    /// The root directory: relative to where the session started, absolute outside.
    #[serde(deserialize_with = "lenient::leaf")]
    pub root: Option<String>,
    /// The path as the tool was given it.
    #[serde(deserialize_with = "lenient::leaf")]
    pub file: Option<String>,
    /// `commit`, `push` or `pr`; null for an ordinary call.
    #[serde(deserialize_with = "lenient::leaf")]
    pub event: Option<String>,
}

/// Roots of the shape log that compactions have rolled up, so that trimming the log does not forget them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rollup {
    /// Entries up to this token count are in here already.
    #[serde(deserialize_with = "lenient::whole")]
    pub rolled_through_tok: i64,
    /// By root directory; at most 100.
    #[serde(deserialize_with = "lenient::leaf")]
    pub roots: Map<String, Value>,
    /// When it was last written, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub updated_at: i64,
}

/// One root directory of a [`Rollup`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RolledRoot {
    /// Calls that touched it.
    #[serde(deserialize_with = "lenient::whole")]
    pub count: i64,
    /// Token budget at its first touch.
    #[serde(deserialize_with = "lenient::whole")]
    pub first: i64,
    /// Token budget at its last touch.
    #[serde(deserialize_with = "lenient::whole")]
    pub last: i64,
    /// Up to three of its files, the first ones touched.
    #[serde(deserialize_with = "lenient::list")]
    pub samples: Vec<String>,
    /// Whether a preserve glob or an anchor protects it.
    #[serde(deserialize_with = "lenient::leaf")]
    pub allowlisted: bool,
}

/// Where a session started: later `cwd`s of the client may drift.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionAnchor {
    /// The raw session id.
    #[serde(deserialize_with = "lenient::leaf")]
    pub session_id: String,
    /// The folder the session started in, absolute.
    #[serde(deserialize_with = "lenient::leaf")]
    pub cwd: String,
    /// The nearest folder at or above it with a project marker, if any.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub project_root: Option<String>,
    /// When, ISO 8601.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The process that wrote it.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `token-budget` where no session start had written it.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub pinned_by: Option<String>,
    /// When `token-budget` wrote it, ISO 8601.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Rollup {
    /// The roots by name; nonsense in the file reads as zero.
    pub fn each(&self) -> impl Iterator<Item = (String, RolledRoot)> {
        self.roots.iter().map(|(name, root)| (name.clone(), serde_json::from_value(root.clone()).unwrap_or_default()))
    }

    /// Sets one root.
    pub fn put(&mut self, name: &str, root: &RolledRoot) {
        self.roots.insert(name.into(), serde_json::to_value(root).unwrap_or_default());
    }
}
