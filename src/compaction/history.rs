//! The compaction history of all sessions: what zones and guidance learn from.

use anyhow::Result;

use crate::store::records::compaction_log::HistoryEntry;
use crate::store::{Guard, StateFile, Store};

/// How many of the last lines are ever read.
pub const READ: usize = 50;
/// How many of the last lines are kept once the file is over [`MAX_BYTES`].
const KEEP: usize = 200;
/// The size over which the file is cut.
const MAX_BYTES: usize = 256 << 10;

/// The last [`READ`] lines that can be read, oldest first.
pub fn read(store: Store<'_>) -> Vec<HistoryEntry> {
    parse_last(&store.read(StateFile::History).unwrap_or_default(), READ)
}

/// The last `limit` entries of a history, oldest first; lines that are no entries are passed over.
pub fn parse_last(bytes: &[u8], limit: usize) -> Vec<HistoryEntry> {
    let lines = bytes.rsplit(|byte| *byte == b'\n').filter(|line| line.first() == Some(&b'{'));
    let mut entries: Vec<HistoryEntry> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).take(limit).collect();
    entries.reverse();
    entries
}

/// Appends an entry, marked as written by si, and cuts the file when it has grown too large.
pub fn append(guard: &Guard<'_>, entry: &HistoryEntry) -> Result<()> {
    let entry = HistoryEntry { by: Some("si".into()), ..entry.clone() };
    guard.append(StateFile::History, &serde_json::to_string(&entry)?)?;
    let bytes = guard.store().read(StateFile::History).unwrap_or_default();
    if bytes.len() > MAX_BYTES {
        guard.write(StateFile::History, last_lines(&bytes, KEEP))?;
    }
    Ok(())
}

/// The last `count` lines of `bytes`.
pub fn last_lines(bytes: &[u8], count: usize) -> &[u8] {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let start = memchr::memrchr_iter(b'\n', body).nth(count.saturating_sub(1)).map_or(0, |at| at + 1);
    if count == 0 { &[] } else { &bytes[start..] }
}
