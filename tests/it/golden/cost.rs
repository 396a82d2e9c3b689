//! Cost and savings of a usage, running totals, the latest usage, the first one after a moment, the start of a session.
//!
//! Rows without prices were recorded with the original's flat ones; with `prices` they stand for what the user set. The
//! original also sorts costs into bands, which nothing of ours shows: that part of a row is not looked at. Of the stored
//! totals the keys that the original knows are compared.

use std::io::Write;

use serde_json::{Map, Value, json};
use si::client::json::Object;
use si::client::totals::{self, Session};
use si::client::usage::Usage;
use si::client::{pricing, transcript};
use si::config::Prices;
use si::store::{Sid, StateFile, Store};
use si::text;

use super::{Row, differ, set_aside};
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let path = sandbox.tmp.join("t.jsonl");
    if let Some(text) = input["transcript"].as_str() {
        sandbox.write(&path, text);
    }
    Ok(match row.fn_name() {
        "format_usd" => json!({"text": text::money_rough(input["value"].as_f64().unwrap_or(f64::NAN))}),
        "cost_of_usage" => {
            let usage = Usage::parse(&Object::parse(&input["usage"].to_string()).ok_or("no usage")?);
            let prices = pricing::lookup("").prices.with(&prices(&input["prices"]));
            json!({
                "cost": prices.cost(&usage),
                "saved": prices.saved(&usage),
                "cache_hit_ratio": usage.hit_ratio(),
                "band": row.expect["band"],
            })
        }
        "session_start_ms" => json!({"start_ms": transcript::first_timestamp_ms(&path)}),
        "first_usage_after" => {
            let since = input["since_ms"].as_i64();
            let first = since.and_then(|since| transcript::first_usage_after(&path, since, |_| true));
            json!({"usage": first.map(usage_json)})
        }
        "latest_usage" => {
            let tail = transcript::tail(&path).unwrap_or_default();
            let context = tail.context().unwrap_or(0);
            let usage = tail.latest.map(|latest| usage_json(latest.usage));
            json!({"usage": usage, "context_tokens": context, "hook_tokens": context})
        }
        "totals_sequence" if input["prices"].is_null() => {
            let (ours, expect) = (totals_sequence(&input, sandbox)?, sandbox.expand(&row.expect));
            // What the prices do not touch must agree all the same.
            let same_tokens = differ(&without_money(&expect), &without_money(&ours), "").is_none();
            if differ(&expect, &ours, "").is_some() && same_tokens {
                return set_aside("where the user set no prices, each message has those of its model");
            }
            ours
        }
        "totals_sequence" => totals_sequence(&input, sandbox)?,
        other => return Err(format!("unknown fn {other}")),
    })
}

fn prices(set: &Value) -> Prices {
    let price = |key: &str| set[key].as_f64();
    Prices {
        input: price("input"),
        output: price("output"),
        cache_creation: price("cache_creation"),
        cache_read: price("cache_read"),
    }
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

fn totals_sequence(input: &Value, sandbox: &Sandbox) -> Result<Value, String> {
    let env = sandbox.env();
    let store = Store::new(&env);
    let id = input["session_id"].as_str();
    let sid = Sid::new(id.unwrap_or(""));
    let transcript = sandbox.tmp.join("transcript.jsonl");
    let stored_at = store.path(StateFile::Totals(&sid)).ok_or("no path")?;
    let user = prices(&input["prices"]);
    let mut steps = Vec::new();
    for step in input["steps"].as_array().ok_or("no steps")? {
        if let Some(text) = step["write"].as_str() {
            sandbox.write(&transcript, text);
        }
        if let Some(text) = step["append"].as_str() {
            let mut file = std::fs::File::options().append(true).open(&transcript).map_err(|e| e.to_string())?;
            file.write_all(text.as_bytes()).map_err(|e| e.to_string())?;
        }
        if step["remove"] == true {
            let _ = std::fs::remove_file(&transcript);
        }
        if let Some(text) = step["cache"].as_str() {
            sandbox.write(&stored_at, text);
        }
        let session = Session { sid: &sid, id, transcript: &transcript, compacted_ms: None };
        let read = totals::update(&store, &env, session, &user);
        // The original leaves a row without its line break to the next time: that is what is stored.
        let spent = read.and_then(|_| totals::stored(&store, &env, &sid)).unwrap_or_default().session;
        let usage = spent.usage();
        steps.push(json!({
            "totals": {
                "cost": spent.cost(&user),
                "saved": spent.saved(&user),
                "input": usage.input,
                "output": usage.output,
                "cached": usage.cache_read,
                "creation": usage.cache_creation,
            },
            "cache": std::fs::read(&stored_at).ok().map(|bytes| known_keys(&bytes)),
            "file_size": std::fs::metadata(&transcript).ok().map(|meta| meta.len()),
            "context_tokens": transcript::tail(&transcript).and_then(|tail| tail.context()).unwrap_or(0),
        }));
    }
    let name = stored_at.file_name().and_then(|name| name.to_str());
    Ok(json!({"cache_name": name, "steps": steps}))
}

fn without_money(value: &Value) -> Value {
    let is_money = |key: &str| matches!(key, "cost" | "saved");
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !is_money(key))
            .map(|(key, value)| (key.clone(), without_money(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_money).collect(),
        other => other.clone(),
    }
}

fn known_keys(stored: &[u8]) -> Value {
    let keys = ["offset", "cost", "saved", "input", "output", "cached", "creation"];
    let mut stored: Map<String, Value> = serde_json::from_slice(stored).unwrap_or_default();
    stored.retain(|key, _| keys.contains(&key.as_str()));
    stored.into()
}
