//! The fingerprint of the guidance.

use serde_json::{Value, json};
use si::compaction::prefix;
use si::store::key::sha256_hex;
use si::store::records::compaction::Prefix;
use si::store::{StateFile, Store};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    Ok(match row.fn_name() {
        "normalize_prefix" => {
            let normalised = prefix::normalise(input["text"].as_str().unwrap_or(""));
            json!({"normalized": normalised, "sha256": sha256_hex(normalised.as_bytes(), 64)})
        }
        "prefix_file_name" => {
            let key = prefix::file_key(input["cwd"].as_str().unwrap_or(""));
            let path = StateFile::Prefix(&key).path(&sandbox.env()).unwrap();
            json!({"name": path.file_name().unwrap().to_str()})
        }
        "prefix_sequence" => {
            let mut env = sandbox.env();
            let steps = input["steps"].as_array().unwrap().iter().map(|step| {
                env.now_ms += step["after_s"].as_i64().unwrap_or(0) * 1000;
                let store = Store::new(&env);
                let cwd = step["cwd"].as_str().unwrap();
                let key = prefix::file_key(cwd);
                let file = StateFile::Prefix(&key);
                if let Some(raw) = step["raw"].as_str() {
                    store.write(file, raw.as_bytes()).unwrap();
                    return json!({});
                }
                let outcome = prefix::compare(&env, store, cwd, step["text"].as_str().unwrap()).unwrap();
                let drift = outcome.drift.as_ref();
                json!({
                    "drifted": drift.is_some(),
                    "first_run": outcome.first,
                    "new_hash": outcome.hash,
                    "prev_hash": drift.map(|drift| &drift.previous),
                    "age_s": drift.map(|drift| drift.age_s),
                    "diff": drift.map(|drift| &drift.lines),
                    "file": store.read_json::<Prefix>(file).unwrap(),
                })
            });
            json!({"steps": steps.collect::<Vec<_>>()})
        }
        other => return Err(format!("unknown fn {other}")),
    })
}
