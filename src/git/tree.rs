//! The working tree: scans by `git`, the stored answer, and the detached process that renews it.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::command::{Git, pathspec};
use super::head::{Head, Kind, Place, head, key};
use super::history;
use crate::env::Env;
use crate::process;
use crate::store::records::git::WorkTreeAnswer;
use crate::store::{StateFile, Store};

/// How long an answer stands without being asked again.
const FRESH_MS: u64 = 30_000;
/// How long a detached refresh lets git run.
const REFRESH_DEADLINE: Duration = Duration::from_secs(10);
/// How often a refresh looks whether it was given up.
const GIVE_UP_EVERY: Duration = Duration::from_millis(50);
/// From how large an index on, in bytes, a work tree of which nothing is known is scanned by a detached refresh alone: that
/// of about 6,000 files, which git looks through in some 30 ms.
const LARGE_INDEX: u64 = 512 << 10;
/// The most paths that a diff is asked for by name.
const MAX_NAMED: usize = 200;
/// How long a mark waits for the record's lock: a hook has better things to do.
const MARK_PATIENCE: Duration = Duration::from_millis(100);

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

/// The state of the working tree of `head`: a new scan if the stored answer is out of date and the scan ends within
/// `deadline`, else the stored answer, renewed by a detached process. None when nothing is known.
pub fn work_tree(env: &Env, store: Store<'_>, head: &Head, deadline: Duration) -> Option<WorkTree> {
    let key = key(&head.root);
    let stored = store.read_json::<WorkTreeAnswer>(StateFile::WorkTree(&key)).unwrap_or_default();
    let index_mtime = index_mtime(head);
    if is_current(env, &stored, head, index_mtime) {
        return answer(&stored);
    }
    // A scan that is known to need more than there is would only cost its deadline, and the first redraw of a session has
    // a transcript to read as well.
    let unknown = stored.t == 0 && stored.took == 0;
    let too_long = u128::from(stored.took) > deadline.as_millis() || unknown && index_size(head) > LARGE_INDEX;
    let mut partial = None;
    if !too_long {
        let begun = Instant::now();
        match scan(env, head, deadline, &|| false) {
            Some((scan, true)) => {
                remember(env, store, head, index_mtime, Some(scan), begun.elapsed());
                return Some(scan);
            }
            other => partial = other.map(|(scan, _)| scan),
        }
    }
    let _ = start_refresh(env, store, &head.root, &key); // without it the next redraw tries again
    answer(&stored).or(partial)
}

/// Scans the work tree around `dir` for as long as a detached refresh may take, and stores the answer: the body of
/// `si refresh git <dir>`. Does nothing while another refresh of the same work tree runs.
pub fn refresh(env: &Env, store: Store<'_>, dir: &Path) {
    let Some(place) = Place::of(env, dir) else { return };
    let key = key(&place.root);
    let Ok(_running) = store.lock_within(StateFile::WorkTreeRefresh(&key), Duration::ZERO) else { return };
    let Some(head) = head(env, dir, REFRESH_DEADLINE) else { return };
    let begun = Instant::now();
    let looked = std::cell::Cell::new(begun);
    let give_up = || {
        if looked.get().elapsed() < GIVE_UP_EVERY {
            return false;
        }
        looked.set(Instant::now());
        let record = store.read_json::<WorkTreeAnswer>(StateFile::WorkTree(&key)).unwrap_or_default();
        is_since_start(env, record.asked_anew)
    };
    let index_mtime = index_mtime(&head);
    let scan = scan(env, &head, REFRESH_DEADLINE, &give_up).map(|(scan, _)| scan);
    if scan.is_some() || begun.elapsed() >= REFRESH_DEADLINE {
        // A scan that took too long is stored as well: with nothing new in it, but not to be tried at once again.
        remember(env, store, &head, index_mtime, scan, begun.elapsed());
    }
    // A redraw that could not wait for them finds them next time.
    let _ = history::facts(env, &head, REFRESH_DEADLINE);
}

/// Marks the stored answer of the work tree around `dir` as out of date: a file there changed.
pub fn mark_stale(env: &Env, store: Store<'_>, dir: &Path) {
    mark(env, store, dir, |record| {
        record.stale = true;
        // Newer than an earlier mark even if that still stands: a scan may be under way that saw the earlier change.
        record.stale_at = env.now_ms;
    });
}

/// Asks for a new answer about the work tree around `dir`, from scratch: a refresh that still waits for its git is given
/// up. For the start of a session, when a disk that did not answer before may have come back.
pub fn ask_anew(env: &Env, store: Store<'_>, dir: &Path) {
    mark(env, store, dir, |record| {
        record.stale = true;
        record.took = 0;
        record.asked_anew = env.now_ms;
    });
}

fn mark(env: &Env, store: Store<'_>, dir: &Path, change: impl FnOnce(&mut WorkTreeAnswer)) {
    let Some(place) = Place::of(env, dir) else { return };
    let key = key(&place.root);
    let file = StateFile::WorkTree(&key);
    let Ok(guard) = store.lock_within(file, MARK_PATIENCE) else { return };
    let mut record = store.read_json::<WorkTreeAnswer>(file).unwrap_or_default();
    change(&mut record);
    let _ = guard.mark_json(file, &record); // the answer then stays as it is until its age asks for a new one
}

/// Changed and untracked files of the working tree; none when git did not answer within `deadline`.
pub fn dirty_files(env: &Env, dir: &Path, deadline: Duration) -> Option<Vec<DirtyFile>> {
    dirty_files_within(env, dir, &[], deadline)
}

/// Like [`dirty_files`], at or below the paths of `within` alone; without any, everywhere.
pub fn dirty_files_within(env: &Env, dir: &Path, within: &[String], deadline: Duration) -> Option<Vec<DirtyFile>> {
    let place = Place::of(env, dir)?;
    Some(status(&Git::new(env, &place, deadline, &|| false)?, within)?.files)
}

fn is_current(env: &Env, stored: &WorkTreeAnswer, head: &Head, index_mtime: i64) -> bool {
    stored.t > 0
        && !stored.stale
        && stored.head == head.id.as_deref().unwrap_or("")
        && stored.branch == head.name
        && stored.index_mtime == index_mtime
        // One from the future (the clock was set back) would stand until then.
        && env.now_ms.abs_diff(stored.t) < FRESH_MS
}

/// Whether a mark was set since this process started. One from further in the future tells of a clock that was set back.
fn is_since_start(env: &Env, at: i64) -> bool {
    at > env.now_ms && at.abs_diff(env.now_ms) < 2 * REFRESH_DEADLINE.as_millis() as u64
}

fn answer(stored: &WorkTreeAnswer) -> Option<WorkTree> {
    let WorkTreeAnswer { dirty, added, deleted, ahead, behind, .. } = *stored;
    Some(WorkTree { dirty, added, deleted, ahead, behind }).filter(|known| *known != WorkTree::default())
}

fn index_size(head: &Head) -> u64 {
    head.git_dir.join("index").metadata().map_or(0, |meta| meta.len())
}

fn index_mtime(head: &Head) -> i64 {
    let modified = head.git_dir.join("index").metadata().and_then(|meta| meta.modified());
    modified.ok().and_then(|when| when.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_millis() as i64)
}

/// Stores a scan; one that failed leaves the numbers as they were.
fn remember(env: &Env, store: Store<'_>, head: &Head, index_mtime: i64, scan: Option<WorkTree>, took: Duration) {
    let key = key(&head.root);
    let file = StateFile::WorkTree(&key);
    let Ok(guard) = store.lock(file) else { return };
    let mut record = store.read_json::<WorkTreeAnswer>(file).unwrap_or_default();
    // A mark set since this process started may be about a change that the scan did not see.
    record.stale = record.stale && [record.stale_at, record.asked_anew].iter().any(|at| is_since_start(env, *at));
    record.t = env.now_ms;
    record.head = head.id.clone().unwrap_or_default();
    record.index_mtime = index_mtime;
    record.branch = head.name.clone();
    record.took = took.as_millis() as u64;
    if let Some(scan) = scan {
        WorkTree {
            dirty: record.dirty,
            added: record.added,
            deleted: record.deleted,
            ahead: record.ahead,
            behind: record.behind,
        } = scan;
    }
    let _ = guard.write_json(file, &record); // the next redraw scans again
}

/// Starts one detached refresh per work tree.
fn start_refresh(env: &Env, store: Store<'_>, root: &Path, key: &str) -> anyhow::Result<()> {
    drop(store.lock_within(StateFile::WorkTreeRefresh(key), Duration::ZERO)?);
    let args: [OsString; 3] = ["refresh".into(), "git".into(), root.into()];
    Ok(process::detach_self(env, &args)?)
}

/// What git says of a work tree, and whether it had the time to say all.
fn scan(env: &Env, head: &Head, deadline: Duration, give_up: &dyn Fn() -> bool) -> Option<(WorkTree, bool)> {
    let place = Place { root: head.root.clone(), git_dir: head.git_dir.clone(), common_dir: head.common_dir.clone() };
    let git = Git::new(env, &place, deadline, give_up)?;
    let status = status(&git, &[])?;
    let lines = match head.kind {
        Kind::Unborn => None, // nothing to compare with
        _ if status.files.iter().all(|file| file.code == "??") => Some((0, 0)),
        _ => {
            let words = [
                "--literal-pathspecs",
                "diff",
                "--numstat",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                IGNORE_SUBMODULES,
                "HEAD",
                "--",
            ];
            let words: Vec<&str> = words.into_iter().chain(tracked(&status.files)).collect();
            // A diff of giant files may take longer than all that is left; the count stands without it.
            git.ask(&words).map(|answer| sum_numstat(&answer))
        }
    };
    let work_tree = WorkTree {
        dirty: Some(status.files.len() as u64),
        added: lines.map(|(added, _)| added),
        deleted: lines.map(|(_, deleted)| deleted),
        ahead: status.ahead_behind.map(|(ahead, _)| ahead),
        behind: status.ahead_behind.map(|(_, behind)| behind),
    };
    Some((work_tree, lines.is_some() || head.kind == Kind::Unborn))
}

/// The changed paths that git tracks, so that a diff need not look at all the others once more; none, which stands for
/// all, where they are many or cannot be named.
fn tracked(files: &[DirtyFile]) -> Vec<&str> {
    let changed = files.iter().filter(|file| file.code != "??");
    let paths: Vec<&str> =
        changed.flat_map(|file| [Some(&file.path), file.from.as_ref()]).flatten().map(String::as_str).collect();
    let named = paths.len() <= MAX_NAMED && !paths.iter().any(|path| path.contains(char::REPLACEMENT_CHARACTER));
    if named { paths } else { Vec::new() }
}

const IGNORE_SUBMODULES: &str = "--ignore-submodules=all";

#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    files: Vec<DirtyFile>,
    ahead_behind: Option<(u64, u64)>,
}

fn status(git: &Git<'_>, within: &[String]) -> Option<Status> {
    let specs: Vec<String> = within.iter().map(|path| pathspec(path)).collect();
    let words = ["status", "--porcelain=v2", "--branch", "-z", IGNORE_SUBMODULES, "--"];
    let words: Vec<&str> = words.into_iter().chain(specs.iter().map(String::as_str)).collect();
    Some(parse_status(&git.ask(&words)?))
}

/// Reads `git status --porcelain=v2 --branch -z`.
fn parse_status(answer: &[u8]) -> Status {
    let text = String::from_utf8_lossy(answer);
    let mut status = Status::default();
    let mut fields = text.split('\0');
    while let Some(field) = fields.next() {
        let (kind, rest) = field.split_at(field.len().min(2));
        // Words before the path: `XY sub mH mI mW hH hI`, in renames one more, in conflicts three more.
        let n_words = match kind {
            "# " => {
                let counts = rest.strip_prefix("branch.ab +").and_then(|counts| counts.split_once(" -"));
                if let Some((ahead, behind)) = counts {
                    status.ahead_behind = ahead.parse().ok().zip(behind.parse().ok());
                }
                continue;
            }
            "? " => 0,
            "1 " => 7,
            "2 " => 8,
            "u " => 9,
            _ => continue,
        };
        let Some(path) = rest.splitn(n_words + 1, ' ').nth(n_words) else { continue };
        let code = if n_words == 0 { "??".into() } else { rest.split(' ').next().unwrap_or("").replace('.', " ") };
        let from = if kind == "2 " { fields.next().map(String::from) } else { None };
        status.files.push(DirtyFile { code, path: path.into(), from });
    }
    status
}

/// Adds up the first two columns of `git diff --numstat`; binary files have `-` there.
fn sum_numstat(answer: &[u8]) -> (u64, u64) {
    let text = String::from_utf8_lossy(answer);
    let mut sums = (0, 0);
    for line in text.lines() {
        let mut columns = line.split('\t').map(|column| column.parse().unwrap_or(0));
        sums.0 += columns.next().unwrap_or(0u64);
        sums.1 += columns.next().unwrap_or(0u64);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_every_kind_of_entry() {
        let answer = b"# branch.oid 1\0# branch.head main\0# branch.upstream o/m\0# branch.ab +2 -3\0\
            1 .M N... 100644 100644 100644 aa bb a b.txt\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\0old name\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0? \xd1\x84 x\0";
        let status = parse_status(answer);
        assert_eq!(status.ahead_behind, Some((2, 3)));
        let entry = |code: &str, path: &str, from: Option<&str>| DirtyFile {
            code: code.into(),
            path: path.into(),
            from: from.map(String::from),
        };
        let want = [
            entry(" M", "a b.txt", None),
            entry("R ", "new", Some("old name")),
            entry("UU", "both", None),
            entry("??", "ф x", None),
        ];
        assert_eq!(status.files, want);
    }

    #[test]
    fn binary_files_count_no_lines() {
        assert_eq!(sum_numstat(b"3\t1\ta\n-\t-\tb.png\n0\t4\t{x => y}/c\n"), (3, 5));
    }
}
