//! The compaction history of all sessions: what zones and guidance learn from.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value};

use crate::client::cursor::Cursor;
use crate::client::json::Raw;
use crate::store::records::compaction_log::HistoryEntry;
use crate::store::{Guard, Sid, StateFile, Store};

/// How many of the last entries are ever read.
pub const READ: usize = 50;
/// How much of the end of the file holds as many as a rule.
const END_BYTES: u64 = 48 << 10;
/// How many of the last lines are kept once the file is over [`MAX_BYTES`].
const KEEP: usize = 200;
/// The size over which the file is cut.
const MAX_BYTES: usize = 256 << 10;
/// How many of a project's last compactions say which directories were missed.
const MISSED_OVER: usize = 10;
/// In how many of them a directory must have been missed.
const MISSED_IN: usize = 2;

/// The last [`READ`] entries, oldest first.
pub fn read(store: Store<'_>) -> Vec<HistoryEntry> {
    last(&store.read_lines(StateFile::History).unwrap_or_default(), READ)
}

/// What zones learn from: the last [`READ`] entries, oldest first, with project, tokens, cost, regret and writer alone.
/// Every redraw and every tool call asks for it, and reading whole records would be most of their time.
pub fn lessons(store: Store<'_>) -> Vec<HistoryEntry> {
    let end = store.read_end(StateFile::History, END_BYTES).unwrap_or_default();
    let whole = (end.len() as u64) < END_BYTES;
    // The first line of a cut is not whole.
    let lines = if whole { &end[..] } else { memchr::memchr(b'\n', &end).map_or(&[][..], |at| &end[at + 1..]) };
    let lessons = last_lessons(lines);
    if whole || lessons.len() == READ {
        return lessons;
    }
    last_lessons(&store.read_lines(StateFile::History).unwrap_or_default())
}

fn last_lessons(bytes: &[u8]) -> Vec<HistoryEntry> {
    let mut end = bytes.len();
    let breaks = memchr::memrchr_iter(b'\n', bytes).map(Some).chain([None]);
    let lines = breaks.map(|at| {
        let begin = at.map_or(0, |at| at + 1);
        let line = &bytes[begin..end];
        end = at.unwrap_or(0);
        line
    });
    let lines = lines.filter(|line| line.first() == Some(&b'{'));
    let mut lessons: Vec<HistoryEntry> = lines.filter_map(lesson).take(READ).collect();
    lessons.reverse();
    lessons
}

fn lesson(line: &[u8]) -> Option<HistoryEntry> {
    let mut entry = HistoryEntry::default();
    let mut cursor = Cursor::new(line);
    cursor.object(|cursor, key| {
        let mut value = || cursor.raw().map(Raw::new);
        match key {
            b"cwd" => entry.cwd = value()?.str().unwrap_or_default().into_owned(),
            b"tokens" => entry.tokens = value()?.f64(),
            b"cost" => entry.cost = value()?.f64(),
            b"regretCount" => entry.regret_count = value()?.f64().unwrap_or_default(),
            b"by" => entry.by = value()?.str().map(|text| text.into_owned()),
            _ => cursor.skip()?,
        }
        Some(())
    })?;
    cursor.is_at_end().then_some(entry)
}

/// When a session was last compacted, epoch milliseconds, as far as the end of the file tells; the other lines are not
/// parsed.
pub fn last_of(store: Store<'_>, sid: &Sid) -> Option<i64> {
    let bytes = store.read_end(StateFile::History, END_BYTES)?;
    let named = memchr::memmem::FinderRev::new(sid.as_str());
    let mut lines = named.rfind_iter(&bytes).map(|at| {
        let begin = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
        &bytes[begin..end]
    });
    lines.find_map(|line| {
        let entry: HistoryEntry = serde_json::from_slice(line).ok()?;
        (entry.sid == sid.as_str() && entry.t > 0).then_some(entry.t)
    })
}

/// The last `limit` entries of a history, oldest first; lines that are no entries are passed over.
pub fn last(bytes: &[u8], limit: usize) -> Vec<HistoryEntry> {
    let lines = bytes.rsplit(|byte| *byte == b'\n').filter(|line| line.first() == Some(&b'{'));
    let mut entries: Vec<HistoryEntry> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).take(limit).collect();
    entries.reverse();
    entries
}

/// Appends an entry, marked as written by si, and cuts the file when it has grown too large.
///
/// `guard` holds the lock of [`StateFile::History`].
pub fn append(guard: &Guard<'_>, entry: &HistoryEntry) -> Result<()> {
    let entry = HistoryEntry { by: Some("si".into()), ..entry.clone() };
    append_line(guard, &serde_json::to_string(&entry)?)
}

/// Appends a line as it is, and cuts the file when it has grown too large.
pub fn append_line(guard: &Guard<'_>, line: &str) -> Result<()> {
    guard.append(StateFile::History, line)?;
    let size = guard.store().path(StateFile::History).and_then(|path| Some(path.symlink_metadata().ok()?.len()));
    if size.is_some_and(|size| size > MAX_BYTES as u64)
        && let Some(bytes) = guard.store().read_lines(StateFile::History)
    {
        guard.write(StateFile::History, last_lines(&bytes, KEEP))?;
    }
    Ok(())
}

/// Adds `stamps` to the entry that session `sid` wrote at `t`, else to the last one of that moment; every other line stays
/// byte for byte. False when there is no such entry.
///
/// `guard` holds the lock of [`StateFile::History`].
pub fn stamp(guard: &Guard<'_>, sid: &str, t: i64, stamps: &Map<String, Value>) -> Result<bool> {
    let text = guard.store().read_text(StateFile::History).unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().collect();
    let at_moment = |line: &&str| {
        let entry: HistoryEntry = serde_json::from_str(line).ok()?;
        (entry.t == t).then_some(entry.sid)
    };
    let found: Vec<(usize, String)> =
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, at_moment(line)?))).collect();
    let Some((at, _)) = found.iter().rfind(|(_, by)| by == sid).or(found.last()) else { return Ok(false) };
    let mut entry: Map<String, Value> = serde_json::from_str(lines[*at])?;
    entry.extend(stamps.clone());
    let line = serde_json::to_string(&entry)?;
    lines[*at] = &line;
    guard.write(StateFile::History, (lines.join("\n") + "\n").as_bytes())?;
    Ok(true)
}

/// Directories of a project that at least two of its last ten compactions dropped and the session then reached for:
/// they are listed as warm, not as safe to drop.
pub fn missed(history: &[HistoryEntry], cwd: &str) -> Vec<String> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in history.iter().rev().filter(|entry| entry.cwd == cwd).take(MISSED_OVER) {
        let dirs = entry.extra.get("regretDirs").and_then(Value::as_array);
        let mut dirs: Vec<&str> = dirs.into_iter().flatten().filter_map(Value::as_str).collect();
        dirs.sort_unstable();
        dirs.dedup();
        for dir in dirs {
            *times.entry(dir).or_default() += 1;
        }
    }
    times.into_iter().filter(|(_, times)| *times >= MISSED_IN).map(|(dir, _)| dir.to_string()).collect()
}

/// The last `count` lines of `bytes`.
pub fn last_lines(bytes: &[u8], count: usize) -> &[u8] {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let start = memchr::memrchr_iter(b'\n', body).nth(count.saturating_sub(1)).map_or(0, |at| at + 1);
    if count == 0 { &[] } else { &bytes[start..] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;

    #[test]
    fn a_stamp_changes_its_own_line_alone() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let store = Store::new(&env);
        let lines = "{bad\n{\"t\":1, \"sid\":\"a\"}\n{\"t\":1,\"sid\":\"b\",\"big\":12345678901234567890123}\n";
        let guard = store.lock(StateFile::History).unwrap();
        guard.write(StateFile::History, lines.as_bytes()).unwrap();
        let stamps: Map<String, Value> = [("regretHits".to_string(), 2.into())].into_iter().collect();
        assert!(stamp(&guard, "a", 1, &stamps).unwrap());
        assert!(!stamp(&guard, "a", 9, &stamps).unwrap());
        let after = store.read_text(StateFile::History).unwrap();
        assert_eq!(after, lines.replace("{\"t\":1, \"sid\":\"a\"}", "{\"t\":1,\"sid\":\"a\",\"regretHits\":2}"));
    }

    #[test]
    fn lessons_are_those_of_the_whole_records_however_long_the_lines() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let store = Store::new(&env);
        for filler in [0, 700, 30_000] {
            let line = |n: usize| {
                let dirs = "x".repeat(filler);
                format!(
                    "{{\"t\":{n},\"cwd\":\"/p{n}\",\"tokens\":{n}000,\"cost\":{n}.5,\"regretCount\":1.5,\"by\":\"si\",\"hotDirs\":[\"{dirs}\"]}}\n"
                )
            };
            let text: String =
                (1..=60).map(line).chain(["{broken\n".into(), "{\"tokens\":\"9\",\"cwd\":5}\n".into()]).collect();
            store.write(StateFile::History, text.as_bytes()).unwrap();
            let whole = read(store);
            let lean = whole.into_iter().map(|entry| HistoryEntry {
                cwd: entry.cwd,
                tokens: entry.tokens,
                cost: entry.cost,
                regret_count: entry.regret_count,
                by: entry.by,
                ..HistoryEntry::default()
            });
            assert_eq!(lessons(store), lean.collect::<Vec<_>>(), "{filler}");
        }
    }

    #[test]
    fn what_two_compactions_missed_is_named_once_per_compaction() {
        let line = |cwd: &str, dirs: &str| format!("{{\"t\":1,\"cwd\":\"{cwd}\",\"regretDirs\":{dirs}}}\n");
        let text = line("/p", r#"["a/b","a/b","c/d"]"#) + &line("/q", r#"["c/d"]"#) + &line("/p", r#"["a/b"]"#);
        let history = last(text.as_bytes(), READ);
        assert_eq!(missed(&history, "/p"), ["a/b"]);
        assert!(missed(&history, "/q").is_empty());
    }

    #[test]
    fn the_last_lines_are_whole() {
        for (text, count, want) in [("a\nb\nc\n", 2, "b\nc\n"), ("a\nb", 1, "b"), ("a\n", 5, "a\n"), ("a\nb\n", 0, "")]
        {
            assert_eq!(last_lines(text.as_bytes(), count), want.as_bytes(), "{text:?} {count}");
        }
    }

    #[test]
    fn wrong_types_read_as_absent() {
        let line = br#"{"t":"x","sid":5,"tokens":"12","cost":null,"hotDirs":"a","regretCount":{},"warmDirs":["a",1]}"#;
        let entry = &last(line, 1)[0];
        assert_eq!((entry.t, entry.tokens, entry.regret_count), (0, None, 0.0));
        assert_eq!((entry.sid.as_str(), entry.hot_dirs.len(), entry.warm_dirs.len()), ("", 0, 1));
    }
}
