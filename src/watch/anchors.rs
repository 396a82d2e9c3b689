//! Anchors: the files that recent commits changed most often. They keep their directories out of the drop list.
//!
//! Counting walks months of history, so its answer is stored for a day. Where there is none it is counted at once if
//! that is quick, else by a detached process, and the caller goes on with what was known before.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::env::Env;
use crate::git;
use crate::process;
use crate::store::records::git::{AnchorFile, AnchorFiles};
use crate::store::{StateFile, Store, key};

/// How long a count stands, milliseconds.
const FRESH_MS: i64 = 86_400_000;
/// How long a caller waits for a new count.
const QUICK: Duration = Duration::from_millis(20);
/// How long a detached process counts; what it has by then is what the newest commits say.
const REFRESH: Duration = Duration::from_secs(20);
/// From how many commits on a file protects its directory.
const OFTEN: u64 = 2;
/// The least number of files that is stored.
const LEAST_STORED: usize = 20;
/// Source and documentation: what a person works on.
const EXTENSIONS: [&str; 22] = [
    ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".py", ".go", ".rs", ".java", ".kt", ".swift", ".c", ".cc", ".cpp",
    ".h", ".hpp", ".rb", ".php", ".cs", ".scala", ".md",
];

/// Which files count, and how many of them are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// How far back, days.
    pub since_days: u64,
    /// At most so many files.
    pub limit: usize,
    /// Endings of the files that count; every file where there are none.
    pub extensions: &'a [&'a str],
    /// How long a caller waits for a new count before a detached process makes it.
    pub patience: Duration,
}

impl Query<'static> {
    /// Files that a person works on.
    pub fn new(since_days: u64, limit: usize) -> Query<'static> {
        Query { since_days, limit, extensions: &EXTENSIONS, patience: QUICK }
    }
}

/// The anchors of the project at `anchor`, most changed first, as paths in its repository. Empty where nothing is known
/// yet, or outside of a repository.
pub fn files(env: &Env, store: Store<'_>, anchor: &Path, query: &Query<'_>) -> Vec<AnchorFile> {
    let file_key = file_key(anchor);
    let file = StateFile::Anchors(&file_key);
    let stored = store.read_json::<AnchorFiles>(file).filter(|stored| stored.since_days == query.since_days);
    // A moment in the future counts as now.
    let fresh = stored.as_ref().is_some_and(|stored| env.now_ms.saturating_sub(stored.t) < FRESH_MS);
    let mut files = stored.map(|stored| stored.files).unwrap_or_default();
    if !fresh && let Some(head) = git::head(env, anchor, git::HOOK_DEADLINE) {
        match count(env, &head, query, query.patience) {
            (counted, true) => {
                files = counted;
                let record = AnchorFiles { t: env.now_ms, since_days: query.since_days, files: files.clone() };
                let _ = store.lock_within(file, Duration::ZERO).and_then(|guard| guard.write_json(file, &record)); // counted again next time
            }
            _ => drop(start_refresh(env, store, anchor, query)), // without it the next call tries again
        }
    }
    files.truncate(query.limit);
    files
}

/// Paths of the anchors that protect their directories: files that more than one commit changed. A file that was only
/// ever added says nothing about where the work is, and in a young repository every file would be an anchor.
pub fn protecting(env: &Env, store: Store<'_>, anchor: &Path, query: &Query<'_>) -> Vec<String> {
    let often = files(env, store, anchor, query).into_iter().filter(|file| file.count >= OFTEN);
    often.map(|file| file.path).collect()
}

/// Sees to it that a count is stored, without reading it: for callers that have no use for it yet.
pub fn keep_counted(env: &Env, store: Store<'_>, anchor: &Path, query: &Query<'_>) {
    let file_key = file_key(anchor);
    let stored =
        store.path(StateFile::Anchors(&file_key)).and_then(|path| path.symlink_metadata().ok()?.modified().ok());
    let since = stored.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_millis() as i64);
    if since.is_none_or(|since| env.now_ms - since >= FRESH_MS) {
        files(env, store, anchor, query);
    }
}

/// Has the anchors counted again, however new they are, by a detached process.
pub fn renew(env: &Env, store: Store<'_>, anchor: &Path, query: &Query<'_>) {
    drop(start_refresh(env, store, anchor, query)); // without it they are counted again within a day
}

/// Counts the anchors of the project at `anchor` again and stores them: the body of `si refresh anchors`. Does nothing
/// while another process does it.
pub fn refresh(env: &Env, store: Store<'_>, anchor: &Path, since_days: u64, limit: usize) {
    let file_key = file_key(anchor);
    let file = StateFile::Anchors(&file_key);
    let Ok(guard) = store.lock_within(file, Duration::ZERO) else { return };
    let Some(head) = git::head(env, anchor, git::HOOK_DEADLINE) else { return };
    let (files, _) = count(env, &head, &Query::new(since_days, limit), REFRESH);
    let _ = guard.write_json(file, &AnchorFiles { t: env.now_ms, since_days, files }); // the next asker starts anew
}

/// The name part of the file that holds a project's anchors.
pub fn file_key(anchor: &Path) -> String {
    key::sha1_hex(anchor.as_os_str().as_encoded_bytes(), 12)
}

/// Counts commits per file, and says whether all commits of the window were seen within `budget`.
fn count(env: &Env, head: &git::Head, query: &Query<'_>, budget: Duration) -> (Vec<AnchorFile>, bool) {
    let mut files: Vec<AnchorFile> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    let since_ms = env.now_ms - query.since_days as i64 * 86_400_000;
    let complete = git::touched_since(head, since_ms, budget, |path| {
        let wanted = |ending: &&str| path.len() > ending.len() && path.ends_with(*ending);
        if query.extensions.is_empty() || query.extensions.iter().any(wanted) {
            let index = *at.entry(path.to_string()).or_insert(files.len());
            match files.get_mut(index) {
                Some(file) => file.count += 1,
                None => files.push(AnchorFile { path: path.to_string(), count: 1 }),
            }
        }
    });
    files.sort_by_key(|file| std::cmp::Reverse(file.count)); // stable: of equals, the one changed last comes first
    files.truncate(query.limit.max(LEAST_STORED));
    (files, complete)
}

fn start_refresh(env: &Env, store: Store<'_>, anchor: &Path, query: &Query<'_>) -> anyhow::Result<()> {
    drop(store.lock_within(StateFile::Anchors(&file_key(anchor)), Duration::ZERO)?);
    let numbers = [query.since_days.to_string(), query.limit.to_string()].map(OsString::from);
    let [days, limit] = numbers;
    Ok(process::detach_self(env, &["refresh".into(), "anchors".into(), anchor.into(), days, limit])?)
}
