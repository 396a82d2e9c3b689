//! What hooks leave on disk, step by step, through the real binary.
//!
//! Of these rows the exit code binds, and the files that the original and si share, below the temp folder and the
//! client's folder; texts for people, the debug log and settings.json do not. Keys of ours in a JSON object are allowed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Row, set_aside};
use crate::support::Sandbox;

/// Names of the files that bind, by how they begin.
const BINDING: [&str; 18] = [
    "tmp:claude-token-budget-",
    "tmp:claude-tool-count-",
    "tmp:claude-compact-state-",
    "tmp:claude-task-change-",
    "tmp:claude-ctx-shape-",
    "tmp:claude-compact-snapshot-",
    "tmp:claude-compact-prefix-",
    "tmp:claude-git-nexus-",
    "tmp:claude-cost-",
    "tmp:claude-tool-archive-",
    "home:.claude/session-intelligence.json",
    "home:.claude/.si-bootstrap-state",
    "home:.claude/logs/compact-history.jsonl",
    "home:.claude/logs/adaptive-zones-announced.json",
    "home:.claude/session-data/compaction-log.txt",
    "home:.claude/projects/",
    "home:.claude/smartcompact/",
    "home:.claude/statusline-intel.json",
];

type Files = BTreeMap<String, String>;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    if let Some(why) = overruled(row) {
        return set_aside(why);
    }
    let input = row.input(sandbox);
    sandbox.setup(input["setup"].as_array().map(Vec::as_slice).unwrap_or_default());
    let mut steps = Vec::new();
    let wanted = sandbox.expand(&row.expect["steps"]);
    for (step, want) in input["steps"].as_array().ok_or("no steps")?.iter().zip(wanted.as_array().unwrap()) {
        sandbox.setup(step["before"].as_array().map(Vec::as_slice).unwrap_or_default());
        let before = files(sandbox);
        let stdin = step["stdin_raw"].as_str().map_or_else(
            || step.get("stdin").map_or(String::new(), Value::to_string),
            String::from,
        );
        let mut hook = sandbox.si(["hook", step["hook"].as_str().unwrap_or("")]).stdin(stdin);
        for (key, value) in step["env"].as_object().into_iter().flatten() {
            hook = hook.var(key, value.as_str().unwrap_or(""));
        }
        let output = hook.run();
        steps.push(compare(want, output.code, &before, &files(sandbox)));
    }
    Ok(json!({ "steps": steps }))
}

/// Why a row does not hold, where a ruling says so though the row carries no tag of it.
fn overruled(row: &Row) -> Option<&'static str> {
    let steps = || row.input["steps"].as_array().into_iter().flatten();
    let unreadable = |step: &Value| {
        let raw = step["stdin_raw"].as_str().or(step.get("stdin").is_none().then_some(""));
        raw.is_some_and(|raw| !serde_json::from_str::<Value>(raw).is_ok_and(|value| value.is_object()))
    };
    if steps().any(|step| step["hook"] == "token-budget" && unreadable(step)) {
        return Some("unreadable stdin: nothing is counted");
    }
    None
}

/// Every binding file, by the name that the tables give it.
fn files(sandbox: &Sandbox) -> Files {
    let mut found = Files::new();
    for (base, root) in [("tmp", &sandbox.tmp), ("home", &sandbox.home)] {
        walk(root, &mut |path| {
            let inside = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let name = format!("{base}:{inside}");
            let ours = name.ends_with(".lock") || name.ends_with(".pending");
            if !ours && BINDING.iter().any(|begin| name.starts_with(begin)) && !inside.contains("/memory/") {
                found.insert(name, String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned());
            }
        });
    }
    found
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&PathBuf)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}

/// The step as it was, in the shape of `want`; what does not bind is taken from there.
fn compare(want: &Value, code: i32, before: &Files, after: &Files) -> Value {
    let binds = |name: &str| BINDING.iter().any(|begin| name.starts_with(begin));
    let mut step = want.clone();
    step["exit"] = code.into();
    let wanted = want["files"].as_object().cloned().unwrap_or_default();
    // A name may hold a hash that the table spells out; a file of that kind stands for it.
    let named = |name: &str| {
        let pattern = |key: &&String| key.split_once('<').is_some_and(|(begin, _)| name.starts_with(begin));
        wanted.keys().find(pattern).cloned().unwrap_or_else(|| name.to_string())
    };
    let mut now: serde_json::Map<String, Value> =
        wanted.iter().filter(|(name, _)| !binds(name)).map(|(name, file)| (name.clone(), file.clone())).collect();
    for (name, text) in after.iter().filter(|(name, text)| before.get(*name) != Some(text)) {
        let key = named(name);
        let shown = show(wanted.get(&key).unwrap_or(&Value::Null), before.get(name).map(String::as_str), text);
        now.insert(key, shown);
    }
    step["files"] = Value::Object(now);
    let gone = before.keys().filter(|name| !after.contains_key(*name)).cloned().map(Value::from);
    let others = want["removed"].as_array().into_iter().flatten().filter(|name| !binds(name.as_str().unwrap_or("")));
    step["removed"] = others.cloned().chain(gone).collect();
    step
}

/// One file in the shape of `want`.
fn show(want: &Value, before: Option<&str>, now: &str) -> Value {
    let lines = |text: &str| -> Value { text.lines().map(|line| serde_json::from_str(line).unwrap_or(json!(line))).collect() };
    let appended = before.filter(|before| !before.is_empty()).and_then(|before| now.strip_prefix(before));
    let mut shown = want.as_object().cloned().unwrap_or_default();
    let kind = match (before, appended) {
        (None, _) => "created",
        (_, Some(_)) if want["kind"] == "appended" => "appended",
        _ => "changed",
    };
    shown.insert("kind".into(), kind.into());
    for (key, value) in &mut shown {
        let found = match key.as_str() {
            "json" => serde_json::from_str(now).unwrap_or(json!(now)),
            "text" => json!(now),
            "jsonl" => lines(now),
            "appended_jsonl" => lines(appended.unwrap_or("")),
            "appended_text" => json!(appended),
            "ends_with_newline" => json!(now.ends_with('\n')),
            "total_lines" => json!(now.lines().count()),
            "keys" => json!(serde_json::from_str::<Value>(now).ok().and_then(|file| {
                Some(file.as_object()?.keys().filter(|key| value.as_array().is_some_and(|w| w.contains(&json!(key)))).cloned().collect::<Vec<_>>())
            })),
            "hash_is_sha256_of_text" => {
                let file: Value = serde_json::from_str(now).unwrap_or_default();
                let text = file["text"].as_str().unwrap_or("");
                json!(file["hash"] == si::store::key::sha256_hex(text.as_bytes(), 64))
            }
            _ => continue, // says nothing that binds
        };
        *value = without_extras(value, found);
    }
    if want.is_null() {
        shown.insert("text".into(), json!(now));
    }
    Value::Object(shown)
}

/// `found` without the keys that `want` does not have, and with the table's own placeholders where they stand for it.
fn without_extras(want: &Value, found: Value) -> Value {
    match (want, found) {
        (Value::Object(want), Value::Object(found)) => {
            let kept = found.into_iter().filter_map(|(key, value)| Some((key.clone(), without_extras(want.get(&key)?, value))));
            Value::Object(kept.collect())
        }
        (Value::Array(want), Value::Array(found)) => {
            let null = Value::Null;
            found.into_iter().enumerate().map(|(at, item)| without_extras(want.get(at).unwrap_or(&null), item)).collect()
        }
        (Value::String(want), found) if want == "<depends on path length>" => {
            let number = found.as_u64().or_else(|| found.as_str()?.parse().ok());
            if number.is_some() { json!(want) } else { found }
        }
        (Value::String(want), Value::String(found)) if want.contains("<local time>") => {
            let same = si::text::utf16_len(&found) > 0 && found.ends_with(want.rsplit('>').next().unwrap_or(""));
            if same { json!(want) } else { json!(found) }
        }
        (_, found) => found,
    }
}

#[test]
fn only_the_exit_code_and_the_shared_files_bind() {
    let want = json!({"exit": 0, "stdout_empty": true, "removed": [], "files": {
        "tmp:claude-tool-count-s": {"kind": "changed", "text": "2"}, "cwd:CLAUDE.md": {"kind": "created"}}});
    let [before, after] = ["1", "2"].map(|n| Files::from([("tmp:claude-tool-count-s".to_string(), n.to_string())]));
    assert_eq!(super::differ(&want, &compare(&want, 0, &before, &after), ""), None);
    assert!(super::differ(&want, &compare(&want, 1, &before, &after), "").is_some());
    assert!(super::differ(&want, &compare(&want, 0, &before, &before), "").is_some());
    let more = Files::from([("tmp:claude-compact-state-s".to_string(), "red".to_string())]);
    assert!(super::differ(&want, &compare(&want, 0, &before, &[after, more].into_iter().flatten().collect()), "").is_some());
}
