//! The task-change detector: its parts, and the decision through the real binary.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use si::client::json::{Object, decode};
use si::client::transcript;
use si::watch::task_change::{self, Mentions};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let text = |key: &str| input[key].as_str().unwrap_or("").to_string();
    let list = |key: &str| -> Vec<String> {
        input[key].as_array().into_iter().flatten().filter_map(|item| Some(item.as_str()?.to_string())).collect()
    };
    Ok(match row.fn_name() {
        "is_system_prompt" => json!({ "system": task_change::is_machine_prompt(&text("prompt")) }),
        "prompt_files" => json!({ "files": task_change::files(&text("prompt")) }),
        "key_files" => json!({ "files": task_change::key_files(&text("session_context")) }),
        "current_task_text" => json!({ "text": task_change::task_text(&text("session_context")) }),
        "root_prefix" => json!({ "prefix": task_change::root_prefix(&text("path")) }),
        "file_overlap" => {
            let at_hand = [list("key_files"), list("pooled")].concat();
            json!({ "score": task_change::file_overlap(&list("prompt_files"), &at_hand) })
        }
        "tokenize" => json!({ "tokens": task_change::words(&text("text")) }),
        "jaccard" => json!({ "score": task_change::word_overlap(&text("old"), &text("new")) }),
        "combine" => {
            let signals = input["signals"].as_array().into_iter().flatten();
            let signals: Vec<_> = signals.map(|s| (s["score"].as_f64(), s["weight"].as_f64().unwrap_or(0.0))).collect();
            json!({ "score": task_change::combine(&signals) })
        }
        "hash_prompt" => json!({ "hash": task_change::hash(&text("prompt")) }),
        "fmt_tokens" => json!({ "text": si::text::tokens_fine(input["value"].as_f64().unwrap_or(0.0)) }),
        "transcript_files" => {
            let path = sandbox.tmp.join("t.jsonl");
            sandbox.write(&path, text("transcript"));
            let mut mentions = Mentions::new(input["turn_limit"].as_u64().unwrap_or(20) as usize, &[]);
            transcript::each_line_backwards(&path, 1 << 20, |line| {
                match Object::parse(&decode(line)).is_none_or(|row| mentions.row(&row)) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            json!({ "files": mentions.into_files() })
        }
        "decision" => decision(&input, sandbox),
        other => return Err(format!("unknown fn {other}")),
    })
}

fn decision(input: &Value, sandbox: &Sandbox) -> Value {
    if let Some(context) = input["session_context"].as_str() {
        let enc = si::client::project::encode(&sandbox.cwd);
        sandbox.write(&sandbox.home.join(".claude/projects").join(enc).join("session-context.md"), context);
    }
    if !input["token_budget"].is_null() {
        let text = input["token_budget"].as_str().map_or_else(|| input["token_budget"].to_string(), String::from);
        sandbox.write(&sandbox.tmp.join("claude-token-budget-tc1"), text);
    }
    if input["config"].is_object() {
        sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), input["config"].to_string());
    }
    if input["repo"].is_object() {
        sandbox.repo(&sandbox.cwd, &input["repo"]);
    }
    let transcript = sandbox.tmp.join("t.jsonl");
    if let Some(text) = input["transcript"].as_str() {
        sandbox.write(&transcript, text);
    }
    let bin = sandbox.root().join("bin");
    let claude = bin.join("claude");
    // A `claude` that is there but fails stands for none.
    let prints = input["claude_on_path_prints"].as_str();
    sandbox.write_program(&claude, prints.map_or("#!/bin/sh\nexit 1\n".into(), |text| format!("#!/bin/sh\necho '{text}'\n")));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let steps: Vec<Value> = input["prompts"].as_array().unwrap().iter().map(|prompt| {
        let mut payload = json!({"session_id": "tc1", "cwd": sandbox.cwd, "hook_event_name": "UserPromptSubmit"});
        if prompt.is_string() {
            payload["prompt"] = prompt.clone();
        }
        if input["transcript"].is_string() {
            payload["transcript_path"] = json!(transcript);
        }
        for (key, value) in input["payload_extra"].as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        let state = sandbox.tmp.join("claude-task-change-tc1");
        let before = std::fs::read_to_string(&state).ok();
        let mut run = sandbox.hook("task-change", &payload).var("PATH", &path);
        for (key, value) in input["env"].as_object().into_iter().flatten() {
            run = run.var(key, value.as_str().unwrap_or(""));
        }
        let output = run.run();
        let after = std::fs::read_to_string(&state).ok().filter(|after| Some(after) != before.as_ref());
        let shown = |begin: &str, end: char| {
            let (_, rest) = output.stderr.split_once(begin)?;
            Some(rest.split(end).next()?.to_string())
        };
        let decision = match (output.stderr.contains("/clear"), output.stderr.contains("/compact")) {
            (true, _) => "clear",
            (_, true) => "compact",
            _ => "silent",
        };
        json!({
            "exit": output.code, "stdout_empty": output.stdout.is_empty(), "decision": decision,
            "stderr_lines": output.stderr.lines().count(), "score_shown": shown("score ", ','),
            "tokens_shown": shown(", ", ' '), "state_written": after.and_then(|text| Some(text.lines().next()?.to_string())),
        })
    }).collect();
    match <[Value; 1]>::try_from(steps) {
        Ok([only]) => only,
        Err(steps) => json!({ "steps": steps }),
    }
}
