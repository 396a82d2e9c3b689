//! What must not get lost: what the session and the user had before a fault, compared with what is there after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use si::store::StateFile;

use crate::world::{FORMER, PIN, WORDS, World};

/// How the content of a file may change while calls are made: what holds of it before and after.
type Rule = fn(&[u8], &[u8]) -> bool;

/// The files that hold something, and what was in them.
pub struct Kept {
    files: Vec<(PathBuf, Rule, Vec<u8>)>,
}

impl Kept {
    /// Notes what a world has.
    pub fn of(world: &World) -> Kept {
        use StateFile::*;
        let sid = &world.sid;
        let rules: [(StateFile<'_>, Rule); 14] = [
            (Config, same),
            (LegacyConfig, same),
            (Deploy, same),
            (Settings, settings),
            (Pins(sid), pins),
            (ClaudeMd(&world.sandbox.cwd), words),
            (SessionContext(&world.enc), words),
            (Bootstrap, former),
            (History, moments),
            (CompactionLog, begins),
            (ToolCount(sid), count),
            (TokenBudget(sid), count),
            (SessionAnchor(sid), anchor),
            (ArchiveIndex(sid), archived),
        ];
        let files = rules.map(|(state, rule)| {
            let path = world.path(state);
            let before = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(rule(&before, &before), "{}: {}", path.display(), String::from_utf8_lossy(&before));
            (path, rule, before)
        });
        Kept { files: files.into() }
    }

    /// Checks that all of it is still there.
    pub fn check(&self, what: &str) {
        self.check_at(what, |path| path.to_path_buf());
    }

    /// The same for the files that are asked for.
    pub fn check_where(&self, what: &str, wanted: impl Fn(&Path) -> bool) {
        let files = self.files.iter().filter(|(path, ..)| wanted(path));
        compare(what, files, |path| path.to_path_buf());
    }

    /// The same where the files are looked at in another place.
    pub fn check_at(&self, what: &str, place: impl Fn(&Path) -> PathBuf) {
        compare(what, self.files.iter(), place);
    }

    /// The files that hold the user's own words or what nobody can restore: when one is damaged, the damaged bytes stay.
    pub fn irreplaceable(world: &World) -> Vec<PathBuf> {
        use StateFile::*;
        let states = [
            Config,
            LegacyConfig,
            Deploy,
            Settings,
            Pins(&world.sid),
            ClaudeMd(&world.sandbox.cwd),
            SessionContext(&world.enc),
            Bootstrap,
        ];
        states.map(|state| world.path(state)).into()
    }
}

fn compare<'a>(
    what: &str,
    files: impl Iterator<Item = &'a (PathBuf, Rule, Vec<u8>)>,
    place: impl Fn(&Path) -> PathBuf,
) {
    for (path, rule, before) in files {
        let after = std::fs::read(place(path)).unwrap_or_default();
        let [old, new] = [before, &after].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(rule(before, &after), "{what}: {}\n{old}\n---\n{new}", path.display());
    }
}

fn same(before: &[u8], after: &[u8]) -> bool {
    before == after
}

fn settings(_: &[u8], after: &[u8]) -> bool {
    serde_json::from_slice::<Value>(after).is_ok_and(|settings| settings["theme"] == "dark")
}

fn pins(before: &[u8], after: &[u8]) -> bool {
    String::from_utf8_lossy(before).matches(PIN).count() == 1 && after.starts_with(before)
}

fn words(_: &[u8], after: &[u8]) -> bool {
    String::from_utf8_lossy(after).contains(WORDS)
}

fn former(_: &[u8], after: &[u8]) -> bool {
    serde_json::from_slice::<Value>(after).is_ok_and(|state| state["wiredStatuslinePrev"] == FORMER)
}

fn moments(before: &[u8], after: &[u8]) -> bool {
    let moments = |bytes: &[u8]| -> BTreeSet<String> {
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        lines.map(|entry| entry["t"].to_string()).collect()
    };
    !moments(before).is_empty() && moments(after).is_superset(&moments(before))
}

fn begins(before: &[u8], after: &[u8]) -> bool {
    after.starts_with(before)
}

fn count(before: &[u8], after: &[u8]) -> bool {
    let [before, after] = [before, after].map(|bytes| std::str::from_utf8(bytes).ok()?.parse::<u64>().ok());
    before.is_some() && after >= before
}

fn anchor(before: &[u8], after: &[u8]) -> bool {
    let cwd = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok()?["cwd"].as_str().map(String::from);
    cwd(before).is_some() && cwd(before) == cwd(after)
}

fn archived(before: &[u8], after: &[u8]) -> bool {
    let ids = |bytes: &[u8]| -> BTreeSet<String> {
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        lines.map(|row| row["id"].to_string()).collect()
    };
    !ids(before).is_empty() && ids(after).is_superset(&ids(before))
}
