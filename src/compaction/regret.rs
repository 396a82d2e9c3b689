//! Watching the calls after a compaction: touches of what was dropped are regret.

use anyhow::Result;

use crate::store::records::compaction_log::Snapshot;
use crate::store::{Guard, Sid, StateFile};

/// Opens the window of a compaction: closes and stamps one that is still open, then writes the new snapshot.
///
/// `guard` holds the lock of [`StateFile::Snapshot`], which is also that of the history.
pub fn open(guard: &Guard<'_>, sid: &Sid, snapshot: &Snapshot) -> Result<()> {
    guard.write_json(StateFile::Snapshot(sid), snapshot)
}
