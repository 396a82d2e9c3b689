//! Anchors: the files that recent commits changed most often. They keep their directories out of the drop list.

use std::path::Path;

use crate::env::Env;
use crate::store::Store;
use crate::store::records::git::AnchorFile;

/// The stored anchors of a project, most changed first, at most `limit`; a renewal is started where they are older than
/// a day or cover another window than `since_days`. Empty where nothing is known yet.
pub fn files(_env: &Env, _store: Store<'_>, _anchor: &Path, _since_days: u64, _limit: usize) -> Vec<AnchorFile> {
    Vec::new()
}

/// Counts the anchors again and stores them: the body of `si refresh anchors <dir> <days>`.
pub fn refresh(_env: &Env, _store: Store<'_>, _anchor: &Path, _since_days: u64) {}
