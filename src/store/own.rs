//! Which files on disk are ours: for removing them all, and for sweeping up what killed processes left of their writes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::process::{Pid, test_kill_process};
use serde_json::{Map, Value};

use super::{ARCHIVE_FOLDER, Sid, StateFile, Store, file};

/// How the names of one session's files in the temp folder begin; the session's id follows, up to the first dot.
const SESSION_NAMES: [&str; 11] = [
    "claude-token-budget-",
    "claude-tool-count-",
    "claude-tool-seen-",
    ARCHIVE_FOLDER,
    "claude-compact-state-",
    "claude-compact-snapshot-",
    "claude-task-change-",
    "claude-ctx-shape-",
    "claude-cost-sincecompact-",
    "claude-cost-",
    "claude-context-window-",
];

/// How the names of all other files of ours in the temp folder begin.
const OTHER_NAMES: [&str; 6] = [
    "claude-compact-prefix-",
    "claude-git-",
    "claude-handoff-",
    "claude-health-",
    "claude-usage-cache-",
    "claude-usage-lock-",
];

/// How often leftovers are looked for.
const SWEEP_EVERY_MS: u64 = 86_400_000;
/// How old a leftover must be. A write takes milliseconds, but a clock may jump.
const LEFTOVER_MS: u64 = 3_600_000;

/// A folder with files that we write.
struct Place {
    folder: PathBuf,
    /// Whether a file of this name is ours alone.
    owns: Box<dyn Fn(&str) -> bool>,
    /// Whether a file of this name is written by us, though it is the user's.
    edits: Box<dyn Fn(&str) -> bool>,
}

impl Place {
    fn new(folder: PathBuf, owns: impl Fn(&str) -> bool + 'static, edits: impl Fn(&str) -> bool + 'static) -> Place {
        Place { folder, owns: Box::new(owns), edits: Box::new(edits) }
    }

    /// Whether a name is that of a temporary file of ours: what it was to replace is ours or written by us.
    fn is_leftover(&self, name: &str) -> bool {
        file::temp_of(name).is_some_and(|(target, _)| (self.owns)(target) || (self.edits)(target))
    }
}

impl Store<'_> {
    /// Every file of ours that exists, for removing them all: the temp files of all sessions of this user, what lies in
    /// the configuration folder, and what killed processes left of their writes. Not session-context.md, whose words are
    /// the user's and Claude's, and not the lock files: another process may be waiting for one.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let state: Map<String, Value> = self.read_json(StateFile::Bootstrap).unwrap_or_default();
        let folders = state.get("claudeMdFolders").and_then(Value::as_object).into_iter().flatten();
        let projects = folders.filter_map(|(_, folder)| folder.as_str().map(PathBuf::from));
        let mut found = Vec::new();
        for place in self.places().into_iter().chain(self.edited_places(projects)) {
            let wanted = |name: &str| (place.owns)(name) || place.is_leftover(name);
            each_own(&place.folder, wanted, |path, _| found.push(path));
        }
        found
    }

    /// The ids of the sessions that left files of ours, as file names carry them.
    pub fn session_ids(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        let mut add = |rest: Option<&str>| {
            let id = rest.and_then(|rest| rest.split('.').next()).filter(|id| Sid::new(id).as_str() == *id);
            ids.extend(id.map(str::to_string));
        };
        let of_temp = |name: &str| SESSION_NAMES.iter().find_map(|start| name.strip_prefix(start).map(str::to_string));
        let counts = |name: &str| file::temp_of(name).is_none() && !name.ends_with(".lock");
        each_own(
            &self.env.tmp,
            |name| counts(name) && of_temp(name).is_some(),
            |_, name| add(of_temp(name).as_deref()),
        );
        if let Some(folder) = self.env.in_claude("smartcompact") {
            each_own(&folder, |name| counts(name) && name.ends_with(".md"), |_, name| add(Some(name)));
        }
        ids
    }

    /// Removes what killed processes left of their writes, at most once a day; returns how many files. `project` is the
    /// folder whose CLAUDE.md this session writes.
    pub fn sweep(&self, project: Option<PathBuf>) -> usize {
        let stamp = self.env.tmp.join("claude-sweep.lock");
        // The lock file's time is that of the last sweep.
        if changed_ms(&stamp).is_some_and(|last| self.env.now_ms.abs_diff(last) < SWEEP_EVERY_MS) {
            return 0;
        }
        let Ok(Some(lock)) = file::lock(&stamp, Duration::ZERO) else { return 0 };
        let _ = lock.touch(self.env.now_ms); // else the next session start sweeps again
        let mut removed = 0;
        let inner = self.inner_places();
        for place in self.places().into_iter().chain(inner).chain(self.edited_places(project.into_iter())) {
            each_own(
                &place.folder,
                |name| place.is_leftover(name),
                |path, name| {
                    removed += usize::from(self.is_abandoned(&path, name) && file::remove(&path).is_ok());
                },
            );
        }
        removed
    }

    /// Whether nobody writes a temporary file any more: it is old, and its process is gone.
    fn is_abandoned(&self, path: &Path, name: &str) -> bool {
        let old = changed_ms(path).is_some_and(|changed| self.env.now_ms.abs_diff(changed) > LEFTOVER_MS);
        let pid = file::temp_of(name).and_then(|(_, pid)| Pid::from_raw(pid.try_into().ok()?));
        old && pid.is_none_or(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
    }

    /// The folders with files that are ours alone.
    fn places(&self) -> Vec<Place> {
        let temp = |name: &str| {
            SESSION_NAMES.iter().chain(&OTHER_NAMES).any(|prefix| name.starts_with(prefix)) && !name.ends_with(".lock")
        };
        let mut places = vec![Place::new(self.env.tmp.clone(), temp, |_| false)];
        let Some(claude) = &self.env.claude_dir else { return places };
        let config = |name: &str| {
            ["session-intelligence.json", "session-intelligence.schema.json", ".si-bootstrap-state", "smartcompact"]
                .iter()
                .any(|file| is(name, file))
        };
        places.push(Place::new(claude.clone(), config, |_| false));
        let logs = |name: &str| {
            ["compact-history.jsonl", "adaptive-zones-announced.json"].iter().any(|file| is(name, file))
                || name.starts_with("session-intel-")
        };
        places.push(Place::new(claude.join("logs"), logs, |_| false));
        let data = |name: &str| is(name, "compaction-log.txt");
        places.push(Place::new(claude.join("session-data"), data, |_| false));
        for project in std::fs::read_dir(claude.join("projects")).into_iter().flatten().flatten() {
            let handoff = |name: &str| is(name, ".si-handoff.json");
            places.push(Place::new(project.path(), handoff, |name| name == "session-context.md"));
        }
        places
    }

    /// The folders in folders that are ours as a whole.
    fn inner_places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        each_own(
            &self.env.tmp,
            |name| name.starts_with(ARCHIVE_FOLDER),
            |path, _| {
                // A link leads to a folder that may not be ours.
                if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                    places.push(Place::new(path, |name| name.ends_with(".json") || name == "index.jsonl", |_| false));
                }
            },
        );
        if let Some(pins) = self.env.in_claude("smartcompact") {
            places.push(Place::new(pins, |name| name.ends_with(".md"), |_| false));
        }
        places
    }

    /// The folders of files that we edit for the user: where they are links, the folders that these lead to.
    fn edited_places(&self, projects: impl Iterator<Item = PathBuf>) -> Vec<Place> {
        let rules = projects.filter_map(|folder| StateFile::ClaudeMd(&folder).path(self.env));
        let edited =
            [StateFile::Settings, StateFile::Config].into_iter().filter_map(|state| self.path(state)).chain(rules);
        let place = |path: PathBuf| {
            let target = file::resolve_links(&path).ok()?;
            let name = target.file_name()?.to_str()?.to_owned();
            Some(Place::new(target.parent()?.to_path_buf(), |_| false, move |other| other == name))
        };
        edited.filter_map(place).collect()
    }
}

/// Whether a name is that of a file, or of what was set aside of it as damaged.
fn is(name: &str, file: &str) -> bool {
    name.strip_prefix(file).is_some_and(|end| end.is_empty() || end.starts_with(".corrupt."))
}

/// Visits the entries of a folder that have a wanted name and belong to this user.
fn each_own(folder: &Path, wanted: impl Fn(&str) -> bool, mut visit: impl FnMut(PathBuf, &str)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| wanted(name))
            && entry.metadata().is_ok_and(|meta| file::is_own(&meta))
        {
            visit(entry.path(), name);
        }
    }
}

fn changed_ms(path: &Path) -> Option<i64> {
    let since = path.symlink_metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::store::Sid;

    #[test]
    fn everything_of_ours_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let (store, sid) = (Store::new(&env), Sid::new("s"));
        use StateFile::*;
        let all = [
            TokenBudget(&sid),
            ToolCount(&sid),
            ToolSeen(&sid),
            ZoneState(&sid),
            TaskChange(&sid),
            Shape(&sid),
            Rollup(&sid),
            SessionAnchor(&sid),
            Snapshot(&sid),
            Prefix("aa"),
            Anchors("aa"),
            Totals(&sid),
            TotalsSinceCompact(&sid),
            Health("x"),
            QuotaCache,
            QuotaLock,
            ArchiveIndex(&sid),
            ContextWindow(&sid),
            WorkTree("aa"),
            Config,
            Bootstrap,
            History,
            ZonesAnnounced,
            CompactionLog,
            Handoff("-p"),
            DisplacedHandoff(&sid),
            Pins(&sid),
        ];
        let theirs = [LegacyConfig, Deploy, SessionContext("-p"), Settings];
        for state in all.iter().chain(&theirs) {
            store.write(*state, b"x").unwrap();
        }
        let found = store.own_files();
        for state in all {
            let path = state.path(&env).unwrap();
            assert!(found.iter().any(|own| path.starts_with(own)), "{} is missing", path.display());
        }
        for state in theirs {
            assert!(!found.contains(&state.path(&env).unwrap()));
        }
        assert!(!found.iter().any(|path| path.extension().is_some_and(|end| end == "lock")));
        assert_eq!(found.len(), all.len());
    }

    #[test]
    fn leftovers_of_killed_processes_are_swept_once_a_day_when_they_are_old() {
        let dir = tempfile::tempdir().unwrap();
        let mut env = Env::for_tests(dir.path());
        let (sid, project) = (Sid::new("s"), env.cwd.clone());
        use StateFile::*;
        let written =
            [ToolCount(&sid), Archived(&sid, "a"), Pins(&sid), Settings, SessionContext("-p"), ClaudeMd(&project)];
        // No process has such an id.
        let beside = |state: &StateFile<'_>, env: &Env, pid: u32| {
            let path = state.path(env).unwrap();
            path.with_file_name(format!(".{}.{pid}.0.tmp", path.file_name().unwrap().to_str().unwrap()))
        };
        let plant = |path: &Path, env: &Env, age_ms: i64| {
            file::write_atomic(path, b"half").unwrap();
            file::set_changed(path, env.now_ms - age_ms).unwrap();
        };
        for state in &written {
            plant(&beside(state, &env, 2_000_000_000), &env, 7_200_000);
        }
        let theirs = env.tmp.join(".other.2000000000.0.tmp");
        let young = beside(&TokenBudget(&sid), &env, 2_000_000_000);
        let alive = beside(&TokenBudget(&sid), &env, std::process::id());
        for (path, age_ms) in [(&theirs, 7_200_000), (&young, 1000), (&alive, 7_200_000)] {
            plant(path, &env, age_ms);
        }
        assert_eq!(Store::new(&env).sweep(Some(project.clone())), written.len());
        assert!([&theirs, &young, &alive].into_iter().all(|path| path.exists()));
        env.now_ms += 7_200_000;
        assert_eq!(Store::new(&env).sweep(None), 0, "not twice a day");
        env.now_ms += 86_400_000;
        assert_eq!(Store::new(&env).sweep(None), 1);
        assert!(!young.exists() && alive.exists() && theirs.exists());

        plant(&young, &env, 0);
        let own = Store::new(&env).own_files();
        assert!(own.contains(&young) && own.contains(&alive) && !own.contains(&theirs));
    }
}
