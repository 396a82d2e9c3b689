//! Thinking tokens: what is left of the output after what the reader sees.

use serde_json::{Value, json};
use si::client::thinking;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let path = sandbox.tmp.join("t.jsonl");
    if let Some(text) = input["transcript"].as_str() {
        sandbox.write(&path, text);
    }
    let recent = input["opts"]["recentWindow"].as_u64().map_or(thinking::RECENT_TURNS, |turns| turns as usize);
    let scan = input["opts"]["scanBytes"].as_u64().unwrap_or(thinking::SCAN_BYTES);
    match row.fn_name() {
        "thinking_tokens" => {
            let thinking = thinking::recent(&path, recent, scan);
            Ok(json!({
                "total": thinking.total,
                "turns": thinking.turns,
                "recent": thinking.recent,
                "lastTurnAgo": thinking.last_turn_ago,
            }))
        }
        other => Err(format!("unknown fn {other}")),
    }
}
