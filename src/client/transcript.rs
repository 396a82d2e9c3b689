//! Reading transcripts: the tail backwards in blocks, the whole in one streaming pass.

use std::ops::ControlFlow;
use std::path::Path;

use super::usage::Usage;

/// The latest message of the main conversation that says how large the context is.
#[derive(Debug, Clone, PartialEq)]
pub struct Latest {
    /// Its usage.
    pub usage: Usage,
    /// Its model id; empty when the row names none.
    pub model: String,
    /// When it was written, epoch milliseconds.
    pub at_ms: Option<i64>,
}

/// A compaction, as its `compact_boundary` row tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// When it happened, epoch milliseconds.
    pub at_ms: Option<i64>,
    /// Context before it, in tokens.
    pub pre_tokens: Option<u64>,
    /// Context after it, in tokens.
    pub post_tokens: Option<u64>,
    /// `manual` or `auto`.
    pub trigger: Option<String>,
}

/// The end of a transcript: whichever of the two is newer, and never a usage that a compaction has outdated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tail {
    /// The latest main-chain usage, if no compaction came after it.
    pub latest: Option<Latest>,
    /// The last compaction, if no main-chain usage came after it.
    pub boundary: Option<Boundary>,
}

impl Tail {
    /// Tokens in context now: the latest usage, else what the compaction left; none when neither is known.
    pub fn context(&self) -> Option<u64> {
        self.latest.as_ref().map(|latest| latest.usage.context()).or_else(|| self.boundary.as_ref()?.post_tokens)
    }
}

/// Reads the end of a transcript backwards; none when it cannot be read.
pub fn tail(_path: &Path) -> Option<Tail> {
    None
}

/// The last compaction in a transcript, wherever it is. Where totals are kept, ask them: they know it already.
pub fn last_boundary(_path: &Path) -> Option<Boundary> {
    None
}

/// The first timestamp in the first megabyte, epoch milliseconds.
pub fn first_timestamp_ms(_path: &Path) -> Option<i64> {
    None
}

/// Calls `visit` with each line from the end of the file backwards, no further than `max_bytes` from it. A line over 8 MB
/// is passed over.
pub fn each_line_backwards(_path: &Path, _max_bytes: u64, _visit: impl FnMut(&[u8]) -> ControlFlow<()>) {}

/// Calls `visit` with each line from the start of the file on. A line over 8 MB is passed over.
pub fn each_line(_path: &Path, _visit: impl FnMut(&[u8]) -> ControlFlow<()>) {}
