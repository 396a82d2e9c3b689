//! The status line through the binary: what it shows, where the figures come from, how it fits, and what it survives.

#![allow(clippy::disallowed_methods, reason = "tests make files")]

mod bad_input;
mod fields;
mod health;
mod layout;
mod modes;
mod previous;
mod quota;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use si::text;

use crate::support::{Output, Sandbox};

const SESSION: &str = "5e55a0b1-0000-4000-8000-000000000001";

/// A payload with a session, a model and the sandbox's project, `extra` laid over it.
fn payload(sandbox: &Sandbox, extra: Value) -> Value {
    let mut payload = json!({
        "session_id": SESSION,
        "cwd": sandbox.cwd,
        "model": {"id": "claude-opus-4-8", "display_name": "Opus 4.8"},
    });
    for (key, value) in extra.as_object().unwrap() {
        payload[key] = value.clone();
    }
    payload
}

fn redraw(sandbox: &Sandbox, fields: &str, payload: &Value, vars: &[(&str, &str)]) -> Output {
    let mut run = sandbox.si(["statusline"]).stdin(payload.to_string());
    if !fields.is_empty() {
        run = run.var("CLAUDE_STATUSLINE_FIELDS", fields);
    }
    for (name, value) in vars {
        run = run.var(name, value);
    }
    let output = run.run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    output
}

/// The rows without colours.
fn shows(sandbox: &Sandbox, fields: &str, extra: Value) -> String {
    let output = redraw(sandbox, fields, &payload(sandbox, extra), &[("NO_COLOR", "1")]);
    output.stdout.trim_end_matches('\n').to_string()
}

/// The rows with colours.
fn paints(sandbox: &Sandbox, fields: &str, extra: Value) -> String {
    redraw(sandbox, fields, &payload(sandbox, extra), &[]).stdout.trim_end_matches('\n').to_string()
}

fn usage(input: u64, creation: u64, read: u64, output: u64) -> Value {
    json!({
        "input_tokens": input, "cache_creation_input_tokens": creation, "cache_read_input_tokens": read,
        "output_tokens": output,
    })
}

fn current(usage: Value) -> Value {
    json!({"context_window": {"current_usage": usage, "context_window_size": 1_000_000}})
}

/// A reply of the main conversation, `age_s` seconds old.
fn reply(sandbox: &Sandbox, id: &str, age_s: i64, usage: Value) -> Value {
    json!({
        "type": "assistant", "sessionId": SESSION, "timestamp": sandbox.env().iso(sandbox.now_ms - age_s * 1000),
        "message": {"id": id, "role": "assistant", "model": "claude-opus-4-8", "content": [], "usage": usage},
    })
}

fn boundary(sandbox: &Sandbox, age_s: i64, post: u64) -> Value {
    json!({
        "type": "system", "subtype": "compact_boundary", "sessionId": SESSION,
        "timestamp": sandbox.env().iso(sandbox.now_ms - age_s * 1000),
        "compactMetadata": {"trigger": "manual", "preTokens": 300_000, "postTokens": post},
    })
}

/// Writes a transcript where the client would and returns its path as a piece of payload.
fn transcript(sandbox: &Sandbox, rows: &[Value]) -> Value {
    let enc = si::client::project::encode(&sandbox.cwd);
    let path = sandbox.home.join(format!(".claude/projects/{enc}/{SESSION}.jsonl"));
    sandbox.write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>());
    json!({"transcript_path": path})
}

fn config(sandbox: &Sandbox, statusline: Value) {
    let text = json!({"statusline": statusline}).to_string();
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), text);
}

/// Puts a program in front of the PATH and returns the new PATH.
fn shim(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let bin = sandbox.root().join("bin");
    sandbox.write_program(&bin.join(name), script);
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Waits for a file that a detached process writes.
fn wait_for(path: &Path) -> String {
    let begun = Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ if begun.elapsed() > Duration::from_secs(20) => panic!("{} never came", path.display()),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
