//! The quota figures: the endpoint's answer, the token, the stored answer and when it is renewed.

use serde_json::{Value, json};
use si::config::Config;
use si::statusline::quota::{self, Answer};
use si::store::Store;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    match row.fn_name() {
        "usage_response" => {
            let answer = match input["status"].as_u64() {
                Some(status) => quota::parse_response(status as u16, input["body"].as_str().unwrap_or("")),
                None => Err("network"),
            };
            Ok(json!({"cache": answer.map_or_else(|error| json!({"error": error}), |figures| json!(figures))}))
        }
        "token_from_file" => Ok(json!({"token": input["file_text"].as_str().and_then(quota::parse_token)})),
        "usage_cache" => Ok(stored(&input, sandbox)),
        other => Err(format!("fn {other} is not known")),
    }
}

fn stored(input: &Value, sandbox: &Sandbox) -> Value {
    let mut env = sandbox.env();
    // Something that can be started, and something to ask with: a refresh that is due does start.
    env.exe = Some("/bin/true".into());
    let token = json!({"claudeAiOauth": {"accessToken": "invented"}});
    sandbox.write(&sandbox.home.join(".claude/.credentials.json"), token.to_string());
    let [cache_name, lock_name] = ["cache", "lock"].map(|what| format!("claude-usage-{what}-{}.json", env.uid));
    let write = |name: &str, content: &Value, age_s: f64| {
        let mut op = json!({"op": "write", "base": "tmp", "path": name, "mtime_ago_s": age_s});
        op[if content.is_string() { "text" } else { "json" }] = content.clone();
        sandbox.setup(&[op]);
    };
    if !input["cache"].is_null() {
        write(&cache_name, &input["cache"], input["cache_age_s"].as_f64().unwrap());
    }
    if let Some(age_s) = input["lock_age_s"].as_f64() {
        write(&lock_name, &json!({"t": env.now_ms - (age_s * 1000.0) as i64}), age_s);
    }
    let store = Store::new(&env);
    let answer = Answer::read(store);
    let starts = quota::refresh_if_due(&env, store, &Config::load(&env), answer.as_ref());
    let read = answer.map(|answer| {
        let mut read = json!(answer.cache.figures);
        read["error"] = json!(answer.cache.error);
        read["fetchedAt"] = json!(answer.cache.fetched_at);
        read["stale"] = json!(answer.is_stale(env.now_ms));
        read
    });
    json!({"read": read, "starts_refresh": starts, "cache_name": cache_name, "lock_name": lock_name})
}
