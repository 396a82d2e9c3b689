//! The regret window, the bounds of the history, and the announcement of learnt zones.

use serde_json::{Value, json};
use si::client::json::Raw;
use si::compaction::regret::{self, Band};
use si::compaction::history;
use si::store::{Sid, StateFile, Store};
use si::watch::zones::{self, Adaptive, Limits};

use super::Row;
use crate::support::Sandbox;

/// The moment that the sequences count from.
const T0: i64 = 1_750_000_000_000;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    match row.fn_name() {
        "regret_weight" => {
            let given = input["tool_input"].to_string();
            let weight = regret::weight(input["tool"].as_str().unwrap_or(""), Some(Raw::new(&given)));
            Ok(json!({ "weight": weight }))
        }
        "regret_sequence" => sequence(&input, sandbox),
        "history_append" => append(&input, sandbox),
        "announce_sequence" => announce(&input, sandbox),
        other => Err(format!("unknown fn {other}")),
    }
}

/// Adds `by` to every `t` in a value.
fn shifted(value: &Value, by: i64) -> Value {
    match value {
        Value::Object(map) => {
            let moved = |(key, value): (&String, &Value)| match value.as_i64().filter(|_| key == "t") {
                Some(t) => (key.clone(), (t + by).into()),
                None => (key.clone(), shifted(value, by)),
            };
            Value::Object(map.iter().map(moved).collect())
        }
        Value::Array(items) => items.iter().map(|item| shifted(item, by)).collect(),
        other => other.clone(),
    }
}

fn sequence(input: &Value, sandbox: &Sandbox) -> Result<Value, String> {
    let env = sandbox.env();
    let store = Store::new(&env);
    let sid = Sid::new(input["session_id"].as_str().unwrap_or(""));
    let snapshot = StateFile::Snapshot(&sid);
    let path = |state: StateFile<'_>| store.path(state).unwrap();
    let raw = input["raw_snapshot"].as_str().map(String::from);
    let given = raw.or_else(|| input["snapshot"].as_object().map(|_| shifted(&input["snapshot"], T0).to_string()));
    if let Some(text) = given {
        sandbox.write(&path(snapshot), text);
    }
    let lines = input["history"].as_array().into_iter().flatten().map(|line| format!("{}\n", shifted(line, T0)));
    let text = input["raw_history"].as_str().map_or_else(|| lines.collect(), String::from);
    sandbox.write(&path(StateFile::History), text);
    let mut before = None;
    let mut steps = Vec::new();
    for call in input["calls"].as_array().ok_or("no calls")? {
        let guard = store.lock(snapshot).unwrap();
        let given = call.get("tool_input").map(Value::to_string);
        let now = T0 + call["at_ms"].as_i64().unwrap_or(0);
        let (root, tool) = (call["root"].as_str(), call["tool"].as_str());
        let touch = regret::Touch { now_ms: now, root, tool, input: given.as_deref().map(Raw::new) };
        let outcome = regret::watch(&guard, &sid, &touch, None);
        let outcome = outcome.map_err(|error| format!("{error:#}"))?;
        let band = outcome.hit.map(|(band, _)| band);
        let mut step = json!({
            "hit": {
                "regret": band == Some(Band::Dropped), "soft_regret": band == Some(Band::Warm),
                "positive": band == Some(Band::Hot), "window_closed": outcome.closed,
                "weight": outcome.hit.map_or(0.0, |(_, weight)| weight),
            },
            "snapshot": shifted(&store.read_json::<Value>(snapshot).unwrap_or_default(), -T0),
        });
        let text = store.read_text(StateFile::History).unwrap_or_default();
        if before.as_ref() != Some(&text) {
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            step["history"] = lines.map(|line| shifted(&line, -T0)).collect();
            before = Some(text);
        }
        steps.push(step);
    }
    let name = path(snapshot).file_name().unwrap().to_string_lossy().into_owned();
    Ok(json!({"snapshot_name": name, "steps": steps}))
}

fn append(input: &Value, sandbox: &Sandbox) -> Result<Value, String> {
    let env = sandbox.env();
    let store = Store::new(&env);
    let number = |key: &str| input[key].as_u64().unwrap_or(0);
    let mut marks = Vec::new();
    for i in 0..number("count") {
        let pad = "p".repeat(number("pad") as usize);
        let line =
            json!({"t": i, "sid": "s", "cwd": "/srv/a", "tokens": 200_000 + i, "pad": pad}).to_string();
        let guard = store.lock(StateFile::History).unwrap();
        history::append_line(&guard, &line).map_err(|error| format!("{error:#}"))?;
        if (i + 1).is_multiple_of(number("report_every")) {
            let text = store.read_text(StateFile::History).unwrap();
            let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let lines = text.lines().count();
            marks.push(json!({"after": i + 1, "lines": lines, "bytes": text.len(), "first_t": first["t"]}));
        }
    }
    let read = history::read(store);
    let bytes = store.read(StateFile::History).unwrap();
    let last_three: Vec<i64> = history::last(&bytes, 3).iter().map(|entry| entry.t).collect();
    let ends = |entry: Option<&si::store::records::compaction_log::HistoryEntry>| entry.map(|entry| entry.t);
    Ok(json!({
        "marks": marks, "read_3": last_three,
        "read_default": {"count": read.len(), "first_t": ends(read.first()), "last_t": ends(read.last())},
    }))
}

fn announce(input: &Value, sandbox: &Sandbox) -> Result<Value, String> {
    let env = sandbox.env();
    let store = Store::new(&env);
    let mut steps = Vec::new();
    for step in input["steps"].as_array().ok_or("no steps")? {
        let zones = &step["zones"];
        let limit = |name: &str| zones[name].as_u64().unwrap_or(0);
        let adaptive = Adaptive {
            samples: limit("sampleCount") as usize,
            of_project: zones["bucket"] == "cwd",
            p50: 0.0,
            p90: 0.0,
            regret_rate: 0.0,
            cost_tightened: false,
        };
        let limits = Limits {
            yellow: limit("yellow"),
            orange: limit("orange"),
            red: limit("red"),
            adaptive: Some(adaptive).filter(|_| zones["adaptive"] == true),
        };
        let news = zones::announce(store, step["cwd"].as_str(), &limits, env.now_ms);
        let news = news.map_err(|error| format!("{error:#}"))?;
        let scope = news.as_ref().map(|_| if zones["bucket"] == "cwd" { "cwd" } else { "global" });
        steps.push(json!({
            "announced": news.is_some(), "first_time": news.as_ref().is_some_and(|news| news.first),
            "scope": scope, "state": store.read_json::<Value>(StateFile::ZonesAnnounced),
        }));
    }
    Ok(json!({ "steps": steps }))
}
