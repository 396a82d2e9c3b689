//! The files that recent commits changed most often, and the cache of the answer.

use std::path::Path;

use serde_json::{Value, json};
use si::store::records::git::{AnchorFile, AnchorFiles};
use si::store::{StateFile, Store};
use si::watch::anchors::{self, Query};

use super::Row;
use crate::support::Sandbox;

/// Longer than any count here takes, however busy the machine.
const PATIENT: std::time::Duration = std::time::Duration::from_secs(60);

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    Ok(match row.fn_name() {
        "top_touched_sequence" => sequence(&input, sandbox),
        "top_touched" => {
            let env = sandbox.env();
            let cwd = Path::new(input["cwd"].as_str().unwrap());
            json!({"files": anchors::files(&env, Store::new(&env), cwd, &Query::new(90, 20))})
        }
        "cache_file_name" => {
            let env = sandbox.env();
            let key = anchors::file_key(Path::new(input["cwd"].as_str().unwrap()));
            let path = StateFile::Anchors(&key).path(&env).unwrap();
            json!({"name": path.file_name().unwrap().to_str()})
        }
        "to_globs" => {
            // Anchors reach the analysis as paths; a stored file with members of a wrong type holds the others.
            let stored = json!({"t": 1, "sinceDays": 90, "files": input["anchors"]});
            let stored: AnchorFiles = serde_json::from_value(stored).unwrap_or_default();
            json!({"globs": globs(&stored.files)})
        }
        other => return Err(format!("unknown fn {other}")),
    })
}

fn globs(files: &[AnchorFile]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

fn sequence(input: &Value, sandbox: &Sandbox) -> Value {
    sandbox.repo(&sandbox.cwd, &input["repo"]);
    let cwd = sandbox.cwd.join(input["sub_dir"].as_str().unwrap_or(""));
    let cwd = if input["sub_dir"].is_string() { cwd } else { sandbox.cwd.clone() };
    let env = sandbox.env();
    let store = Store::new(&env);
    let key = anchors::file_key(&cwd);
    let file = StateFile::Anchors(&key);
    let step = |call: &Value| {
        if let Some(path) = call["commit"]["path"].as_str() {
            sandbox.write(&sandbox.cwd.join(path), call["commit"]["text"].as_str().unwrap());
            sandbox.git(&sandbox.cwd, &["add", "-A"], &[]);
            sandbox.git(&sandbox.cwd, &["commit", "-q", "-m", "more"], &[]);
            return json!({});
        }
        if let Some(age) = call["age_cache_s"].as_i64() {
            let mut stored: AnchorFiles = store.read_json(file).unwrap();
            stored.t = env.now_ms - age * 1000;
            store.write_json(file, &stored).unwrap();
            return json!({});
        }
        if let Some(raw) = call["raw_cache"].as_str() {
            store.write(file, raw.as_bytes()).unwrap();
            return json!({});
        }
        let options = &call["opts"];
        let extensions: Option<Vec<&str>> =
            options["extensions"].as_array().map(|list| list.iter().map(|item| item.as_str().unwrap()).collect());
        let since = options["sinceDays"].as_u64().unwrap_or(90);
        let limit = options["limit"].as_u64().unwrap_or(20) as usize;
        let query = Query { extensions: extensions.as_deref().unwrap_or(Query::new(0, 0).extensions), patience: PATIENT,
            ..Query::new(since, limit) };
        if options["force"] == true {
            std::fs::remove_file(store.path(file).unwrap()).ok();
        }
        // A count that a busy machine did not end in time is begun anew, as the next asker would.
        let asked = || {
            let files = anchors::files(&env, store, &cwd, &query);
            let cache = store.read_json::<AnchorFiles>(file)?;
            (cache.since_days == since && env.now_ms - cache.t < 86_400_000).then_some((files, cache))
        };
        let (files, cache) = (0..200).find_map(|_| asked()).expect("counted in one of many tries");
        json!({"files": files, "globs": globs(&files), "cache": {"since_days": cache.since_days, "files": cache.files}})
    };
    json!({"steps": input["calls"].as_array().unwrap().iter().map(step).collect::<Vec<_>>()})
}
