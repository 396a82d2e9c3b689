//! Git: the only room that names libgit2 or starts `git`.
//!
//! HEAD is read from its files ([`head`]), without opening a repository. The working tree is asked of `git`
//! ([`work_tree`], [`dirty_files`]), within a deadline, so that it never writes into the repository and never runs a
//! program that the repository names; past the deadline the last stored answer counts, and one detached process per work
//! tree asks again. Commits and diffs between them come from libgit2 ([`last_commit`] and its kin), which starts nothing.
//!
//! A bare repository, one that belongs to another user, and no repository are all the same: none.

mod command;
mod head;
mod history;
mod tree;

use std::time::Duration;

pub use head::{Head, Kind, head};
pub use history::{Commit, commit_files, commits_since, committed, last_commit, recent_files, touched_since};
pub use tree::{DirtyFile, WorkTree, ask_anew, dirty_files, dirty_files_within, mark_stale, refresh, work_tree};

/// How long a redraw waits for each answer of a repository.
pub const LINE_DEADLINE: Duration = Duration::from_millis(60);
/// How long a hook waits for each answer of a repository.
pub const HOOK_DEADLINE: Duration = Duration::from_millis(600);
