//! Git: the only file that names libgit2 or starts `git`.
//!
//! HEAD is read from its files, without opening a repository. The working tree is asked of `git`, within a deadline, so
//! that it never writes into the repository and never runs a program that the repository names; past the deadline the
//! last stored answer counts, and one detached process per work tree asks again. Log and diffs between commits come
//! from libgit2, which starts nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::env::Env;
use crate::store::Store;

/// How long a redraw waits for the working tree.
pub const LINE_DEADLINE: Duration = Duration::from_millis(60);
/// How long a hook waits for the working tree.
pub const HOOK_DEADLINE: Duration = Duration::from_millis(600);

/// What HEAD names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A branch with at least one commit.
    Branch,
    /// No branch, but a commit that a tag names.
    Tag,
    /// No branch and no tag: a commit.
    Detached,
    /// A branch without a commit.
    Unborn,
}

/// Where a work tree stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Branch, tag or short commit id. It comes from outside: sanitise it before it is shown.
    pub name: String,
    /// What `name` is.
    pub kind: Kind,
    /// Full id of the commit; none on an unborn branch.
    pub id: Option<String>,
    /// The top folder of the work tree.
    pub root: PathBuf,
    /// The repository's folder for this work tree (`.git`, or what a `.git` file names).
    pub git_dir: PathBuf,
    /// The repository's folder that all work trees share.
    pub common_dir: PathBuf,
}

/// What a scan of the working tree found. A part that git did not tell is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkTree {
    /// Changed, staged and untracked entries.
    pub dirty: Option<u64>,
    /// Lines added against HEAD.
    pub added: Option<u64>,
    /// Lines deleted against HEAD.
    pub deleted: Option<u64>,
    /// Commits that the upstream branch lacks; none without an upstream.
    pub ahead: Option<u64>,
    /// Commits of the upstream branch that are missing here.
    pub behind: Option<u64>,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Full id.
    pub id: String,
    /// First line of the message.
    pub subject: String,
    /// Committer time, epoch milliseconds.
    pub at_ms: i64,
}

/// One changed file of the working tree, as `git status --porcelain` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirtyFile {
    /// The two status letters, such as ` M`, `R ` or `??`.
    pub code: String,
    /// Path from the top of the work tree.
    pub path: String,
    /// The former path of a renamed file.
    pub from: Option<String>,
}

/// HEAD of the work tree that `dir` is in; none outside of one, in a bare repository, or where the repository belongs to
/// another user. Reads files only.
pub fn head(_env: &Env, _dir: &Path) -> Option<Head> {
    None
}

/// The state of the working tree around `dir`: a new scan if the stored answer is out of date and the scan ends within
/// `deadline`, else the stored answer, renewed by a detached process. None when nothing is known.
pub fn work_tree(_env: &Env, _store: Store<'_>, _dir: &Path, _deadline: Duration) -> Option<WorkTree> {
    None
}

/// Scans the work tree around `dir` for as long as a detached refresh may take, and stores the answer: the body of
/// `si refresh git <dir>`. Does nothing while another refresh of the same work tree runs.
pub fn refresh(_env: &Env, _store: Store<'_>, _dir: &Path) {}

/// Marks the stored answer of the work tree around `dir` as out of date: a file there changed.
pub fn mark_stale(_env: &Env, _store: Store<'_>, _dir: &Path) {}

/// The commit that HEAD names.
pub fn last_commit(_env: &Env, _dir: &Path) -> Option<Commit> {
    None
}

/// Paths that a commit changed against its first parent, from the top of the work tree, in order of name.
pub fn commit_files(_env: &Env, _dir: &Path, _id: &str) -> Vec<String> {
    Vec::new()
}

/// Commits on HEAD since a moment, newest first, at most `max`.
pub fn commits_since(_env: &Env, _dir: &Path, _since_ms: i64, _max: usize) -> Vec<Commit> {
    Vec::new()
}

/// Paths that commits of the last `hours` changed, from the top of the work tree, each once.
pub fn recent_files(_env: &Env, _dir: &Path, _hours: f64) -> Vec<String> {
    Vec::new()
}

/// Changed and untracked files of the working tree; none when git did not answer within `deadline`.
pub fn dirty_files(_env: &Env, _dir: &Path, _deadline: Duration) -> Option<Vec<DirtyFile>> {
    None
}
