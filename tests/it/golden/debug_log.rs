//! The debug log: format, levels and their switches, meta, rotation.

use serde_json::{Map, Value, json};
use si::client::payload::env_session_id;
use si::config::Config;
use si::log::{Level, Log};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    if !input["config"].is_null() {
        sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), input["config"].to_string());
    }
    let mut env = sandbox.env();
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        env = env.with_var(name, value.as_str().unwrap());
    }
    let debug = Config::load(&env).debug;
    let log = Log::new(&env, env_session_id(&env), debug.enabled, debug.quiet);
    let path = log.path().unwrap();
    if let Some(size) = input["existing_log_bytes"].as_u64() {
        sandbox.write(&path, vec![b'x'; size as usize]);
    }
    for call in input["calls"].as_array().unwrap() {
        let text = |at: usize| call[at].as_str().unwrap();
        let level = Level::parse(text(1)).ok_or_else(|| format!("level {} is not known", text(1)))?;
        log.write(level, text(0), text(2), call[3].clone());
    }
    let moment = "2026-01-02 03:04:05.678".len();
    let today = env.local(env.now_ms).format("%Y-%m-%d").to_string();
    let mut files = Map::new();
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap().replace(&today, "<date>");
        let content = match input["existing_log_bytes"].as_u64() {
            Some(_) => json!({"bytes": entry.metadata().unwrap().len()}),
            None => {
                let text = sandbox.read(entry.path());
                text.lines().map(|line| format!("<local time ms>{}", &line[moment..])).collect()
            }
        };
        files.insert(name, content);
    }
    // The log never prints, and so changes no exit code: it returns nothing.
    Ok(json!({"exit": 0, "stderr_empty": true, "files": files}))
}
