//! What is remembered of a compaction: a line of the history for good, and a snapshot of its bands while the calls
//! that follow are watched for regret.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient;

/// One line of the compaction history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HistoryEntry {
    /// When, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
    /// The session, as file names carry it.
    #[serde(deserialize_with = "lenient::leaf")]
    pub sid: String,
    /// Where the session started.
    #[serde(deserialize_with = "lenient::leaf")]
    pub cwd: String,
    /// Tokens in context just before.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub tokens: Option<f64>,
    /// Dollars that the session had cost by then.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub cost: Option<f64>,
    /// Directories listed as still in use.
    #[serde(deserialize_with = "lenient::list")]
    pub hot_dirs: Vec<String>,
    /// Directories of middling recency.
    #[serde(deserialize_with = "lenient::list")]
    pub warm_dirs: Vec<String>,
    /// Directories listed as safe to drop.
    #[serde(deserialize_with = "lenient::list")]
    pub dropped_dirs: Vec<String>,
    /// Whether a domain shift was seen.
    #[serde(deserialize_with = "lenient::leaf")]
    pub had_shift: bool,
    /// Weighted hard regret, stamped when the window closes.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::number")]
    pub regret_count: f64,
    /// `si` in lines that si wrote: costs of the JavaScript original count each message several times.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Stamps of the closed window, and keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The bands of the last compaction and what was touched since.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Snapshot {
    /// When, epoch milliseconds: the `t` of its history line.
    #[serde(deserialize_with = "lenient::maybe_whole")]
    pub t: Option<i64>,
    /// Tokens in context just before.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub tokens: Option<f64>,
    /// Dollars that the session had cost by then.
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub cost: Option<f64>,
    /// Directories listed as still in use.
    #[serde(deserialize_with = "lenient::list")]
    pub hot_dirs: Vec<String>,
    /// Directories of middling recency.
    #[serde(deserialize_with = "lenient::list")]
    pub warm_dirs: Vec<String>,
    /// Directories listed as safe to drop.
    #[serde(deserialize_with = "lenient::list")]
    pub dropped_dirs: Vec<String>,
    /// Tool calls of the main conversation since.
    #[serde(deserialize_with = "lenient::whole")]
    pub calls_since: i64,
    /// Touches of dropped directories.
    #[serde(deserialize_with = "lenient::list")]
    pub regret_hits: Vec<Hit>,
    /// Touches of warm directories.
    #[serde(deserialize_with = "lenient::list")]
    pub soft_regret_hits: Vec<Hit>,
    /// Touches of hot directories.
    #[serde(deserialize_with = "lenient::list")]
    pub positive_hits: Vec<Hit>,
    /// Cache figures of the first turn after, and keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One touch of a directory that a compaction had banded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hit {
    /// When, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
    /// The directory.
    #[serde(deserialize_with = "lenient::leaf")]
    pub root: String,
    /// The tool's name.
    #[serde(deserialize_with = "lenient::leaf")]
    pub tool: Option<String>,
    /// How much it counts; none where it was written without one (counts as 1).
    #[serde(deserialize_with = "lenient::leaf", serialize_with = "lenient::maybe_number")]
    pub weight: Option<f64>,
}
