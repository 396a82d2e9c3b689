//! The two emoji fields.

use serde_json::{Value, json};
use si::statusline::emoji::{self, Activity, State};
use si::watch::zones::Limits;

use super::{Row, set_aside};
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let deployed_ms = input["deploy_age_s"].as_f64().map(|seconds| (seconds * 1000.0) as i64);
    let number = |key: &str| input[key].as_f64().unwrap_or(0.0);
    let emoji = match row.fn_name() {
        "pick_emoji" => {
            let task = input["task"].as_str().unwrap_or("");
            let limit = |name: &str| input["zones"][name].as_u64().unwrap();
            let limits =
                Limits { yellow: limit("yellow"), orange: limit("orange"), red: limit("red"), adaptive: None };
            let zone = limits.zone(number("tokens") as u64);
            let emoji = emoji::state(&State { zone, task, dirty: number("dirty_files") > 0.0, deployed_ms });
            let mut words = task.split(|c: char| !c.is_ascii_alphanumeric());
            if row.expect["emoji"] != emoji && words.any(|word| word.eq_ignore_ascii_case("feature")) {
                return set_aside("C13: feature counts as feat");
            }
            emoji
        }
        "pick_emoji_second" => emoji::activity(&Activity {
            deployed_ms,
            cost: number("costUsd"),
            session_ms: number("sessionDurationMs"),
            tools: number("tools") as u64,
        }),
        other => return Err(format!("fn {other} is not known")),
    };
    Ok(json!({"emoji": emoji}))
}
