//! Watching the calls after a compaction: touches of what was dropped are regret, touches of what was kept are proof.
//! When the window closes, the sums are stamped into the history, from which zones and guidance learn.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::history;
use crate::client::json::Raw;
use crate::client::transcript;
use crate::client::usage::Usage;
use crate::store::records::compaction_log::{Hit, Snapshot};
use crate::store::{Guard, Sid, StateFile};
use crate::text;
use crate::watch::phase;

/// Calls of the main conversation that a window holds.
const WINDOW_CALLS: i64 = 30;
/// How long it stays open.
const WINDOW_MS: i64 = 30 * 60 * 1000;
/// How much less a touch of a warm directory weighs.
const SOFT: f64 = 0.5;

/// What a call did to an open window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// Which band it touched, and how much that weighs.
    pub hit: Option<(Band, f64)>,
    /// Whether the window is closed: by this call, or since there is none.
    pub closed: bool,
}

/// A band of the last compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Band {
    /// It was listed as safe to drop: hard regret.
    Dropped,
    /// It was of middling recency: soft regret.
    Warm,
    /// It was listed as still in use.
    Hot,
}

impl Band {
    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Band::Dropped => "dropped",
            Band::Warm => "warm",
            Band::Hot => "hot",
        }
    }
}

/// A call of the main conversation, as the window sees it.
#[derive(Debug, Clone, Copy)]
pub struct Touch<'a> {
    /// When, epoch milliseconds.
    pub now_ms: i64,
    /// The directory that it touched.
    pub root: Option<&'a str>,
    /// The tool's name.
    pub tool: Option<&'a str>,
    /// The tool's input.
    pub input: Option<Raw<'a>>,
}

/// How much a touch weighs by what was done: looking at it again counts most, tidying up least.
pub fn weight(tool: &str, input: Option<Raw<'_>>) -> f64 {
    match tool {
        "Read" => 1.0,
        "Grep" | "Glob" => 0.7,
        "Edit" | "Write" | "NotebookEdit" => 0.3,
        "Bash" => {
            let command = input.and_then(Raw::object).and_then(|input| input.str("command")).unwrap_or_default();
            if phase::is_housekeeping(&command) { 0.1 } else { 0.5 }
        }
        _ => 0.5,
    }
}

/// Counts a call of the main conversation in the session's window, and closes the window when it is over; the call that
/// closes it is not scored.
///
/// `guard` holds the lock of [`StateFile::Snapshot`], which is also that of the history. `transcript` is measured once, for
/// how much of the prompt cache survived the compaction.
pub fn watch(guard: &Guard<'_>, sid: &Sid, touch: &Touch<'_>, transcript: Option<&Path>) -> Result<Outcome> {
    let Touch { now_ms, root, tool, input } = *touch;
    let Some(mut snapshot) = guard.store().read_json::<Snapshot>(StateFile::Snapshot(sid)) else {
        return Ok(Outcome { hit: None, closed: true });
    };
    measure_cache(&mut snapshot, transcript);
    let age = snapshot.t.map_or(i64::MAX, |t| (now_ms - t).max(0));
    if snapshot.calls_since >= WINDOW_CALLS || age > WINDOW_MS {
        close(guard, sid, &snapshot)?;
        return Ok(Outcome { hit: None, closed: true });
    }
    snapshot.calls_since += 1;
    let mut outcome = Outcome::default();
    if let Some(root) = root.filter(|root| !root.is_empty()) {
        let full = weight(tool.unwrap_or(""), input);
        let within = |dirs: &[String]| dirs.iter().any(|dir| dir == root);
        let found = if within(&snapshot.dropped_dirs) {
            Some((Band::Dropped, full, &mut snapshot.regret_hits))
        } else if within(&snapshot.hot_dirs) {
            Some((Band::Hot, full, &mut snapshot.positive_hits))
        } else if within(&snapshot.warm_dirs) {
            Some((Band::Warm, full * SOFT, &mut snapshot.soft_regret_hits))
        } else {
            None
        };
        if let Some((band, weight, hits)) = found {
            let tool = tool.map(String::from);
            hits.push(Hit { t: now_ms, root: root.into(), tool, weight: Some(weight) });
            outcome.hit = Some((band, weight));
        }
    }
    guard.write_json(StateFile::Snapshot(sid), &snapshot)?;
    Ok(outcome)
}

/// Opens the window of a compaction: closes and stamps one that is still open, then writes the new snapshot.
///
/// `guard` holds the lock of [`StateFile::Snapshot`], which is also that of the history.
pub fn open(guard: &Guard<'_>, sid: &Sid, snapshot: &Snapshot) -> Result<()> {
    if let Some(open) = guard.store().read_json::<Snapshot>(StateFile::Snapshot(sid)) {
        close(guard, sid, &open)?;
    }
    guard.write_json(StateFile::Snapshot(sid), snapshot)
}

fn close(guard: &Guard<'_>, sid: &Sid, snapshot: &Snapshot) -> Result<()> {
    let stamps = stamps(snapshot);
    if let (Some(t), false) = (snapshot.t, stamps.is_empty()) {
        history::stamp(guard, sid.as_str(), t, &stamps)?;
    }
    guard.remove(StateFile::Snapshot(sid))
}

/// What a closed window adds to its history entry: nothing where nothing was seen.
fn stamps(snapshot: &Snapshot) -> Map<String, Value> {
    let sum = |hits: &[Hit]| hits.iter().map(|hit| hit.weight.unwrap_or(1.0)).sum::<f64>();
    let dirs = |hits: &[Hit]| hits.iter().map(|hit| hit.root.clone()).collect::<Vec<_>>();
    let mut stamps = Map::new();
    let (hard, soft, kept) = (&snapshot.regret_hits, &snapshot.soft_regret_hits, &snapshot.positive_hits);
    if !(hard.is_empty() && soft.is_empty() && kept.is_empty()) {
        let (regret, positive) = (sum(hard), sum(kept));
        stamps.insert("regretCount".into(), two_digits(regret));
        stamps.insert("regretHits".into(), json!(hard.len()));
        stamps.insert("regretDirs".into(), json!(dirs(hard)));
        stamps.insert("positiveHits".into(), json!(kept.len()));
        stamps.insert("positiveWeight".into(), two_digits(positive));
        if !soft.is_empty() {
            stamps.insert("softRegretCount".into(), two_digits(sum(soft)));
            stamps.insert("softRegretHits".into(), json!(soft.len()));
            stamps.insert("softRegretDirs".into(), json!(dirs(soft)));
        }
        if regret + positive > 0.0 {
            stamps.insert("continuationQuality".into(), two_digits((positive - regret) / (positive + regret)));
        }
    }
    if let Some(ratio) = snapshot.extra.get("postCompactCacheHitRatio").filter(|ratio| ratio.is_number()) {
        stamps.insert("postCompactCacheHitRatio".into(), ratio.clone());
        for key in ["postCompactCacheRead", "postCompactCacheCreation"] {
            stamps.insert(key.into(), snapshot.extra.get(key).cloned().unwrap_or(json!(0)));
        }
    }
    stamps
}

fn two_digits(number: f64) -> Value {
    let rounded: f64 = text::fixed(number, 2).parse().unwrap_or(0.0);
    if rounded.fract() == 0.0 { json!(rounded as i64) } else { json!(rounded) }
}

/// Notes, once, how much of its prefix the first turn after the compaction read from the cache.
fn measure_cache(snapshot: &mut Snapshot, transcript: Option<&Path>) {
    let (Some(t), Some(transcript)) = (snapshot.t, transcript) else { return };
    if snapshot.extra.contains_key("postCompactCacheMeasured") {
        return;
    }
    let cached = |usage: &Usage| usage.hit_ratio().is_some();
    let Some(usage) = transcript::first_usage_after(transcript, t, cached) else { return };
    let ratio = usage.hit_ratio().unwrap_or(0.0);
    let ratio: f64 = text::fixed(ratio, 3).parse().unwrap_or(0.0);
    let figures = [
        ("postCompactCacheMeasured", json!(true)),
        ("postCompactCacheHitRatio", if ratio.fract() == 0.0 { json!(ratio as i64) } else { json!(ratio) }),
        ("postCompactCacheRead", json!(usage.cache_read)),
        ("postCompactCacheCreation", json!(usage.cache_creation)),
    ];
    snapshot.extra.extend(figures.map(|(key, value)| (key.to_string(), value)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::store::Store;
    use crate::store::records::compaction_log::HistoryEntry;

    const T: i64 = 1_767_323_000_000;

    /// An open window with this snapshot, and its line in the history.
    fn window<R>(snapshot: Value, work: impl FnOnce(&Guard<'_>, &Sid) -> R) -> (R, Option<Value>, Vec<HistoryEntry>) {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let (store, sid) = (Store::new(&env), Sid::new("s"));
        let guard = store.lock(StateFile::Snapshot(&sid)).unwrap();
        let entry = HistoryEntry { t: T, sid: "s".into(), ..HistoryEntry::default() };
        history::append(&guard, &entry).unwrap();
        guard.write_json(StateFile::Snapshot(&sid), &snapshot).unwrap();
        let result = work(&guard, &sid);
        (result, store.read_json(StateFile::Snapshot(&sid)), history::read(store))
    }

    fn touch(root: Option<&str>) -> Touch<'_> {
        Touch { now_ms: T + 1000, root, tool: Some("Read"), input: None }
    }

    #[test]
    fn every_call_counts_and_the_one_that_closes_is_not_scored() {
        let snapshot = json!({"t": T, "droppedDirs": ["a/b"], "callsSince": 28, "regretHits": []});
        let ((), left, history) = window(snapshot, |guard, sid| {
            let close = |root| watch(guard, sid, &touch(root), None).unwrap();
            assert_eq!(close(Some("a/b")).hit, Some((Band::Dropped, 1.0)));
            assert_eq!(close(None), Outcome::default());
            assert_eq!(close(Some("a/b")), Outcome { hit: None, closed: true });
        });
        assert_eq!(left, None);
        assert_eq!(history[0].regret_count, 1.0);
    }

    #[test]
    fn a_second_compaction_closes_and_stamps_the_first_window() {
        let hit = json!({"t": T, "root": "a/b", "tool": "Read", "weight": 1});
        let snapshot = json!({"t": T, "droppedDirs": ["a/b"], "callsSince": 3, "regretHits": [hit]});
        let ((), left, history) = window(snapshot, |guard, sid| {
            open(guard, sid, &Snapshot { t: Some(T + 5), ..Snapshot::default() }).unwrap();
        });
        assert_eq!(left.unwrap()["t"], T + 5);
        assert_eq!((history[0].regret_count, &history[0].extra["continuationQuality"]), (1.0, &json!(-1)));
    }

    #[test]
    fn cache_figures_are_stamped_though_nothing_was_touched() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("t.jsonl");
        let row = |at: &str, side: bool, read: u64| {
            json!({"type": "assistant", "isSidechain": side, "timestamp": at, "message": {"usage": {
                "input_tokens": 1, "cache_read_input_tokens": read, "cache_creation_input_tokens": 100}}})
        };
        let rows = [
            row("2026-01-02T03:00:00Z", false, 5),
            row("2026-01-02T03:03:30Z", true, 7),
            row("2026-01-02T03:03:40Z", false, 300),
            row("2026-01-02T03:03:50Z", false, 900),
        ];
        crate::store::file::write_atomic(&transcript, rows.map(|row| format!("{row}\n")).concat().as_bytes()).unwrap();
        let ((), left, history) = window(json!({"t": T, "callsSince": 29}), |guard, sid| {
            watch(guard, sid, &touch(None), Some(&transcript)).unwrap();
            watch(guard, sid, &touch(None), Some(&transcript)).unwrap();
        });
        assert_eq!(left, None);
        let extra = &history[0].extra;
        assert_eq!((&extra["postCompactCacheHitRatio"], &extra["postCompactCacheRead"]), (&json!(0.75), &json!(300)));
        assert!(!extra.contains_key("regretHits"));
    }

    #[test]
    fn a_window_is_over_after_half_an_hour_but_not_by_a_clock_that_was_set_back() {
        let run = |now_ms| {
            window(json!({"t": T, "callsSince": 0}), |guard, sid| {
                watch(guard, sid, &Touch { now_ms, ..touch(None) }, None).unwrap().closed
            })
            .0
        };
        assert!(!run(T + WINDOW_MS));
        assert!(run(T + WINDOW_MS + 1));
        assert!(!run(T - 5_000_000));
    }
}
