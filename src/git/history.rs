//! Commits and what they changed, mostly by libgit2, which starts no program.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use git2::{Delta, DescribeFormatOptions, DescribeOptions, DiffOptions, Oid, Repository, Sort};

use super::command::{Git, pathspec};
use super::head::{Head, Kind, Place, key};
use crate::env::Env;
use crate::store::records::git::{CommitFacts, WorkTreeAnswer};
use crate::store::{StateFile, Store};

/// How long storing a commit's facts waits for the record's lock.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long hooks wait for what libgit2 alone tells: much longer than a repository takes that answers at all.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// The most commits that are looked at for recent files.
const MAX_RECENT: usize = 200;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Full id.
    pub id: String,
    /// First line of the message. It comes from outside: sanitise it before it is shown.
    pub subject: String,
    /// Committer time, epoch milliseconds.
    pub at_ms: i64,
}

/// The commit that HEAD names. The last answer is stored, so that a redraw does not open the repository for it; none when
/// the repository does not answer within `deadline`.
pub fn last_commit(env: &Env, head: &Head, deadline: Duration) -> Option<Commit> {
    let id = head.id.as_deref()?;
    let stored = facts(env, head, deadline)?;
    Some(Commit { id: id.to_string(), subject: stored.subject, at_ms: stored.at })
}

/// The tag that names the commit of a detached HEAD.
pub(super) fn tag(env: &Env, head: &Head, deadline: Duration) -> Option<String> {
    facts(env, head, deadline)?.tag
}

/// What is known of HEAD's commit: from the record of the work tree, else from the repository, and then stored.
pub(super) fn facts(env: &Env, head: &Head, deadline: Duration) -> Option<CommitFacts> {
    let id = head.id.as_deref()?;
    let store = Store::new(env);
    let key = key(&head.root);
    let file = StateFile::WorkTree(&key);
    let tags_at = (head.kind != Kind::Branch).then(|| tags_at(head));
    let known = |record: WorkTreeAnswer| record.commit.filter(|commit| commit.id == id && commit.tags_at == tags_at);
    if let Some(commit) = store.read_json(file).and_then(known) {
        return Some(commit);
    }
    let (asked, of) = (head.clone(), id.to_string());
    let commit = CommitFacts { tags_at, ..within(deadline, move || read_facts(&asked, &of))? };
    if let Ok(guard) = store.lock_within(file, PATIENCE) {
        let record = store.read_json::<WorkTreeAnswer>(file).unwrap_or_default();
        let _ = guard.write_json(file, &WorkTreeAnswer { commit: Some(commit.clone()), ..record }); // asked again next time
    }
    Some(commit)
}

/// When the places last changed that tags are kept in: each alone in a file, all in one, or in tables.
fn tags_at(head: &Head) -> String {
    let changed = |name: &str| match head.common_dir.join(name).metadata() {
        Ok(meta) => format!("{}.{:09}", meta.mtime(), meta.mtime_nsec()),
        Err(_) => String::new(),
    };
    ["refs/tags", "packed-refs", "reftable"].map(changed).join(" ")
}

fn read_facts(head: &Head, id: &str) -> Option<CommitFacts> {
    let repository = open(head)?;
    let commit = repository.find_commit(Oid::from_str(id).ok()?).ok()?;
    let tag = repository
        .describe(DescribeOptions::new().describe_tags().max_candidates_tags(0))
        .and_then(|exact| exact.format(Some(DescribeFormatOptions::new().abbreviated_size(0))))
        .ok();
    let at = commit.time().seconds() * 1000;
    Some(CommitFacts { id: id.to_string(), subject: subject(&commit), at, tag, tags_at: None })
}

/// The answer to a question to libgit2; none when it does not come in time. libgit2 opens what a repository and its
/// config name whatever that is, so a pipe there, or a disk that is gone, holds it for ever: then its thread is left to
/// the end of the process.
fn within<T: Send + 'static>(budget: Duration, ask: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    let (answer, answered) = mpsc::channel();
    std::thread::Builder::new().spawn(move || answer.send(ask())).ok()?;
    answered.recv_timeout(budget).ok()?
}

fn open(head: &Head) -> Option<Repository> {
    // Hashing every object anew would tell of a broken disk, at a quarter of the time.
    git2::opts::strict_hash_verification(false);
    Repository::open(&head.root).ok()
}

fn subject(commit: &git2::Commit<'_>) -> String {
    let message = String::from_utf8_lossy(commit.message_bytes());
    // As git does: the lines up to the first blank one are one subject.
    message.trim_start().lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ").trim().into()
}

/// What HEAD's commit holds at a path from the top of the work tree.
pub fn committed(head: &Head, path: &str) -> Option<Vec<u8>> {
    let (head, path) = (head.clone(), path.to_string());
    within(ANSWERS_WITHIN, move || {
        let repository = open(&head)?;
        let commit = repository.find_commit(Oid::from_str(head.id.as_deref()?).ok()?).ok()?;
        let entry = commit.tree().ok()?.get_path(Path::new(&path)).ok()?;
        Some(repository.find_blob(entry.id()).ok()?.content().to_vec())
    })
}

/// Paths that HEAD's commit changed against its first parent, from the top of the work tree, in order of name.
pub fn commit_files(head: &Head) -> Vec<String> {
    let head = head.clone();
    let find = move || {
        let repository = open(&head)?;
        let commit = repository.find_commit(Oid::from_str(head.id.as_deref()?).ok()?).ok()?;
        changed(&repository, &commit)
    };
    within(ANSWERS_WITHIN, find).unwrap_or_default()
}

/// Paths that a commit changed against its first parent; of a merge, what it brought in.
fn changed(repository: &Repository, commit: &git2::Commit<'_>) -> Option<Vec<String>> {
    let before = commit.parent(0).ok().map(|parent| parent.tree()).transpose().ok()?;
    let mut options = DiffOptions::new();
    options.ignore_submodules(true).skip_binary_check(true);
    let mut diff =
        repository.diff_tree_to_tree(before.as_ref(), Some(&commit.tree().ok()?), Some(&mut options)).ok()?;
    let has = |kind| diff.deltas().any(|delta| delta.status() == kind);
    if has(Delta::Added) && has(Delta::Deleted) {
        diff.find_similar(None).ok()?; // a moved file is one file, under its new name
    }
    let path = |delta: git2::DiffDelta<'_>| {
        let bytes = delta.new_file().path_bytes().or(delta.old_file().path_bytes())?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    Some(diff.deltas().filter_map(path).collect())
}

/// Commits on HEAD since a moment, newest first, at most `max`.
pub fn commits_since(head: &Head, since_ms: i64, max: usize) -> Vec<Commit> {
    let head = head.clone();
    let find = move || {
        let mut commits = Vec::new();
        each_since(&head, since_ms, |_, commit| {
            let at_ms = commit.time().seconds() * 1000;
            commits.push(Commit { id: commit.id().to_string(), subject: subject(commit), at_ms });
            commits.len() < max
        });
        Some(commits)
    };
    within(ANSWERS_WITHIN, find).unwrap_or_default()
}

/// Paths at or below one of `within` that commits since a moment changed, from the top of the work tree, each once; merges
/// do not count, since what they brought in was changed elsewhere. Asked of `git`, which can be stopped at `deadline`; what
/// it has not told by then is none.
pub fn recent_files(env: &Env, dir: &Path, since_ms: i64, within: &[String], deadline: Duration) -> Vec<String> {
    let find = || {
        let since = since_ms.div_euclid(1000);
        let specs: Vec<String> = within.iter().map(|path| pathspec(path)).collect();
        let words = [
            "log",
            "--no-merges",
            &format!("--max-age={since}"),
            &format!("--max-count={MAX_RECENT}"),
            "--format=",
            "--name-only",
            "--find-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-color",
            "-z",
            "--",
        ];
        let words: Vec<&str> = words.into_iter().chain(specs.iter().map(String::as_str)).collect();
        Git::new(env, &Place::of(env, dir)?, deadline, &|| false)?.ask(&words)
    };
    let answer = find().unwrap_or_default();
    // A line break stands where the message of a commit would.
    let names = answer.split(|byte| *byte == 0).map(|name| name.trim_ascii_start()).filter(|name| !name.is_empty());
    let names: BTreeSet<&[u8]> = names.collect();
    names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Visits the paths that each commit without a second parent changed since a moment, newest commit first. Says whether it
/// came to the end within `budget`.
pub fn touched_since(head: &Head, since_ms: i64, budget: Duration, mut visit: impl FnMut(&str)) -> bool {
    let begun = Instant::now();
    let head = head.clone();
    let find = move || {
        let mut paths = Vec::new();
        let mut in_time = true;
        each_since(&head, since_ms, |repository, commit| {
            if commit.parent_count() < 2 {
                paths.extend(changed(repository, commit).into_iter().flatten());
            }
            in_time = begun.elapsed() < budget;
            in_time
        });
        Some((paths, in_time))
    };
    let Some((paths, in_time)) = within(budget + ANSWERS_WITHIN, find) else { return false };
    paths.iter().for_each(|path| visit(path));
    in_time
}

/// Walks from HEAD, newest first, over the commits that are not older than `since_ms`, until `visit` says to stop.
fn each_since(head: &Head, since_ms: i64, mut visit: impl FnMut(&Repository, &git2::Commit<'_>) -> bool) {
    let mut walk = || -> Option<()> {
        let repository = open(head)?;
        let mut walk = repository.revwalk().ok()?;
        walk.set_sorting(Sort::TIME).ok()?;
        walk.push(Oid::from_str(head.id.as_deref()?).ok()?).ok()?;
        for id in walk {
            let commit = repository.find_commit(id.ok()?).ok()?;
            // In order of time everything after this one is older still, but for skewed clocks.
            // Commits know whole seconds only.
            if commit.time().seconds() < since_ms.div_euclid(1000) || !visit(&repository, &commit) {
                break;
            }
        }
        Some(())
    };
    walk();
}
