//! Open follow-ups, the resume file that a compaction writes, and what taking it does to the disk.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use si::client::project::Folder;
use si::compaction::{follow_ups, handoff, session_context};
use si::git;
use si::log::Log;
use si::store::Store;
use si::watch::glob::Globs;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let env = sandbox.env();
    let store = Store::new(&env);
    let dir = env.in_claude("projects/-p").unwrap();
    let folder = Folder { enc: "-p".into(), dir: dir.clone() };
    for file in input["project_dir_files"].as_array().into_iter().flatten() {
        let path = dir.join(file["path"].as_str().unwrap());
        sandbox.write(&path, file["text"].as_str().unwrap());
        if let Some(ago) = file["mtime_ago_s"].as_i64() {
            let when = UNIX_EPOCH + Duration::from_millis((env.now_ms - ago * 1000) as u64);
            std::fs::File::options().append(true).open(path).unwrap().set_modified(when).unwrap();
        }
    }
    Ok(match row.fn_name() {
        "next_priorities" => json!({"items": follow_ups::open(&follow_ups::Sources::of(&folder))}),
        "write_handoff" => {
            let ids = if input["repo"].is_object() { sandbox.repo(&sandbox.cwd, &input["repo"]) } else { Vec::new() };
            let list = |key: &str| -> Vec<String> {
                serde_json::from_value(input["opts"][key].clone()).unwrap_or_default()
            };
            let head = git::head(&env, &sandbox.cwd, git::HOOK_DEADLINE);
            let context = session_context::read(store, "-p");
            let made = handoff::Input {
                session_id: "s-9",
                anchor: sandbox.cwd.to_str().unwrap(),
                started_ms: None,
                context: &context,
                head: head.as_ref(),
                dirty: &git::dirty_files(&env, &sandbox.cwd, Duration::from_secs(20)).unwrap_or_default(),
                secret: &Globs::default(),
                hot_dirs: &list("hotDirs"),
                dropped_dirs: &list("droppedDirs"),
            };
            let made = handoff::gather(&env, &folder, &made);
            if let Some(made) = &made {
                handoff::write(store, &folder, made).unwrap();
            }
            // Commits are named by their number in the table.
            let mut text = json!(made).to_string();
            for (n, id) in ids.iter().enumerate() {
                text = text.replace(&id[..7], &format!("<sha7:c{}>", n + 1));
            }
            let made: Value = serde_json::from_str(&text).unwrap();
            json!({"wrote": !made.is_null(), "handoff": made, "files": files(&dir)})
        }
        "read_handoff" => {
            let content = match &input["content"] {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            if let Some(content) = &content {
                sandbox.write(&dir.join(".si-handoff.json"), content);
            }
            let id = input["content"]["sessionId"].as_str().unwrap_or("s");
            let take = || {
                let taken = handoff::take(&env, store, &Log::new(&env, None, false, false), &folder, id)?;
                handoff::resume(&taken, true, 10_000).block
            };
            let block = take();
            let left = files(&dir);
            let shows = |line: &str| block.as_deref().is_some_and(|block| block.contains(line));
            let each = |key: &str| -> Vec<bool> {
                let items = input["content"][key].as_array().into_iter().flatten();
                items.filter_map(Value::as_str).map(shows).collect()
            };
            let task = input["content"]["currentTask"].as_str().unwrap_or("");
            json!({
                "rendered": block.is_some(),
                "files_left": left,
                "second_read_rendered": take().is_some(),
                "shows": {
                    "task_lines": task.lines().map(shows).collect::<Vec<_>>(),
                    "age": shows("AGO"),
                    "in_flight": each("inFlightFiles"),
                    "commits": each("recentCommits"),
                    "priority_bullets": each("nextPriorities"),
                    "priority_pointer": false,
                    "hot_dirs": shows("ACTIVE DIRECTORIES"),
                },
            })
        }
        other => return Err(format!("unknown fn {other}")),
    })
}

/// Names of what the handoff left in the project's folder, moments taken out.
fn files(dir: &PathBuf) -> Vec<String> {
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let timeless = |name: String| match name.split_once(".corrupt.") {
        Some((name, _)) => format!("{name}.corrupt.<ms>"),
        None => name,
    };
    names.map(timeless).filter(|name| name.starts_with(".si-handoff")).collect()
}
