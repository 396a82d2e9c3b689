//! Totals of a transcript up to an offset, and since the last compaction.
//!
//! The plain keys are those of the JavaScript original. What it does not know stands under `si`: the sums by model that
//! prices are applied to when they are shown, and what it takes to go on from `offset` without counting anything twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `claude-cost-<sid>`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TotalsRecord {
    /// How far the transcript was read, in bytes: always just past a line break.
    pub offset: u64,
    /// Dollars, at the prices in force when it was written.
    #[serde(default)]
    pub cost: f64,
    /// Dollars that cache reads saved, likewise.
    #[serde(default)]
    pub saved: f64,
    /// Input tokens past the cache.
    #[serde(default)]
    pub input: u64,
    /// Output tokens.
    #[serde(default)]
    pub output: u64,
    /// Tokens read from the cache.
    #[serde(default)]
    pub cached: u64,
    /// Tokens written to the cache.
    #[serde(default)]
    pub creation: u64,
    /// Ours; absent where the original wrote the file.
    #[serde(rename = "si", default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// Keys of others, kept.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `claude-cost-sincecompact-<sid>`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SinceCompactRecord {
    /// When the compaction was, epoch milliseconds.
    #[serde(rename = "compactMs")]
    pub compact_ms: i64,
    /// How far the transcript was read, in bytes.
    pub offset: u64,
    /// Dollars since then.
    pub cost: f64,
    /// Dollars saved since then.
    pub saved: f64,
}

/// Input, output, five-minute cache writes, one-hour cache writes, cache reads: tokens.
pub type Tokens = [u64; 5];

/// What goes on from the offset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// How far the transcript was read, and by what it is known.
    pub place: Place,
    /// The same for each of the subagents' files, by name.
    #[serde(default)]
    pub agents: BTreeMap<String, Place>,
    /// Model ids; the keys of the sums are places in this list.
    pub models: Vec<String>,
    /// Rows of this session.
    pub own: Sums,
    /// Rows that a fork copied from another session.
    #[serde(default)]
    pub foreign: Sums,
    /// Whether any row names this session as its own.
    #[serde(rename = "ownSeen", default)]
    pub own_seen: bool,
    /// How many compactions there were.
    #[serde(default)]
    pub compactions: u64,
    /// The last of them.
    #[serde(default)]
    pub boundary: Option<BoundaryRecord>,
    /// Epoch milliseconds of a compaction that the transcript does not tell of.
    #[serde(rename = "compactedMs", default)]
    pub compacted_ms: Option<i64>,
    /// The last messages, oldest first.
    pub recent: Vec<Counted>,
    /// What the original had counted before we took over.
    #[serde(default)]
    pub base: Option<Base>,
}

/// How far a file was read, and by what it is known to be still that file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Bytes read, just past a line break.
    pub offset: u64,
    /// Its inode.
    pub ino: u64,
    /// A hash of the (up to) 4 KB before the offset, in hex.
    pub hash: String,
}

/// Tokens by model.
pub type ByModel = BTreeMap<usize, Tokens>;

/// Sums over the same rows for three spans of time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// The whole session.
    pub session: ByModel,
    /// Since the last compaction.
    pub since: ByModel,
    /// By minute (epoch minutes), the last hour alone.
    pub minutes: BTreeMap<i64, ByModel>,
}

/// A compaction, as the transcript tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundaryRecord {
    /// When it was, epoch milliseconds.
    #[serde(rename = "t")]
    pub at_ms: Option<i64>,
    /// Tokens before it.
    #[serde(rename = "pre")]
    pub pre_tokens: Option<u64>,
    /// Tokens after it.
    #[serde(rename = "post")]
    pub post_tokens: Option<u64>,
    /// `manual` or `auto`.
    pub trigger: Option<String>,
}

/// What was counted for a message, to be taken back when another row of it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// A hash of its id.
    pub id: u64,
    /// Which file it came from: 0 for the transcript, else a hash of the subagent file's name.
    pub source: u32,
    /// Its model's place in the list.
    pub model: usize,
    /// Whether it was this session's own.
    pub own: bool,
    /// How many compactions there had been; none where it does not count since any.
    pub epoch: Option<u64>,
    /// The epoch minute it was counted for.
    pub minute: Option<i64>,
    /// What was counted.
    pub tokens: Tokens,
}

/// Totals that were taken over as they stood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// Dollars.
    pub cost: f64,
    /// Dollars saved.
    pub saved: f64,
    /// Tokens.
    pub tokens: Tokens,
}
