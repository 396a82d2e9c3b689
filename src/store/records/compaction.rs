//! What session start and compaction remember beside the log: what has been set up already, what the next session start
//! resumes with, and the fingerprint of the last guidance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient;

/// `.si-bootstrap-state`. Moments are ISO 8601; maps are keyed by the name of a project folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BootstrapState {
    /// When the config file was seeded.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub seeded_config_at: Option<String>,
    /// When each project's session-context.md was seeded.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Map::is_empty")]
    pub seeded_contexts: Map<String, Value>,
    /// What each project's session-context.md was filled with last.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "BTreeMap::is_empty")]
    pub auto_filled: BTreeMap<String, AutoFill>,
    /// When each project's CLAUDE.md was last given the managed block.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Map::is_empty")]
    pub injected_claude_md: Map<String, Value>,
    /// The projects whose CLAUDE.md holds the managed block, so that it can be taken out again.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "BTreeMap::is_empty")]
    pub claude_md_folders: BTreeMap<String, String>,
    /// When the tip about resuming after a compaction was shown.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub shown_compact_resume_tip: Option<String>,
    /// Since when each section of a session-context.md has been as it is.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "BTreeMap::is_empty")]
    pub sections: BTreeMap<String, BTreeMap<String, SectionMark>>,
    /// The wiring of the status line, and keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What a session-context.md was filled with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoFill {
    /// Full id of the commit.
    #[serde(deserialize_with = "lenient::leaf")]
    pub sha: String,
    /// When, ISO 8601.
    #[serde(deserialize_with = "lenient::leaf")]
    pub at: String,
    /// Hash of what was written into `Current Task`.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Hash of what was written into `Key Files`.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
    /// Keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Since when a section has been as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SectionMark {
    /// Hash of its body.
    #[serde(deserialize_with = "lenient::leaf")]
    pub hash: String,
    /// Epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub since: i64,
}

/// `.si-handoff.json`: what the next session start resumes with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Handoff {
    /// When it was written, epoch milliseconds.
    #[serde(deserialize_with = "lenient::maybe_whole")]
    pub t: Option<i64>,
    /// The session that wrote it, as the client names it.
    #[serde(deserialize_with = "lenient::leaf")]
    pub session_id: String,
    /// Where that session started.
    #[serde(deserialize_with = "lenient::leaf")]
    pub cwd: String,
    /// `Current Task`, as a person wrote it.
    #[serde(deserialize_with = "lenient::leaf")]
    pub current_task: String,
    /// How old that was, hours.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub current_task_age_hours: Option<f64>,
    /// `Key Files`, as a person wrote them.
    #[serde(deserialize_with = "lenient::leaf")]
    pub key_files: String,
    /// Open follow-ups.
    #[serde(deserialize_with = "lenient::list")]
    pub next_priorities: Vec<String>,
    /// Uncommitted files, as `git status --porcelain` names them.
    #[serde(deserialize_with = "lenient::list")]
    pub in_flight_files: Vec<String>,
    /// Short id and subject of this session's commits, newest first.
    #[serde(deserialize_with = "lenient::list")]
    pub recent_commits: Vec<String>,
    /// Directories in active use.
    #[serde(deserialize_with = "lenient::list")]
    pub hot_dirs: Vec<String>,
    /// Directories that the guidance listed as safe to drop.
    #[serde(deserialize_with = "lenient::list")]
    pub dropped_dirs: Vec<String>,
}

/// `claude-compact-prefix-<hash>.json`: the fingerprint of a project's last guidance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefix {
    /// SHA-256 of `text`, hex.
    #[serde(deserialize_with = "lenient::leaf")]
    pub hash: String,
    /// The guidance, autofilled bodies taken out.
    #[serde(deserialize_with = "lenient::leaf")]
    pub text: String,
    /// When it was written, epoch milliseconds.
    #[serde(deserialize_with = "lenient::maybe_whole")]
    pub t: Option<i64>,
}
