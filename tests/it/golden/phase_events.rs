//! Phase events of tool calls.

use serde_json::{Value, json};
use si::client::json::Raw;
use si::client::payload::ToolResponse;
use si::watch::phase::of_call;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let [given, output] = ["tool_input", "tool_output"].map(|key| input.get(key).map(Value::to_string));
    let [given, output] = [&given, &output].map(|text| text.as_deref().map(Raw::new));
    let phase = of_call(input["tool"].as_str().unwrap_or(""), given, output.map(ToolResponse::new).as_ref());
    Ok(json!({ "event": phase.map(|phase| phase.name()) }))
}
