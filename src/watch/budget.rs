//! The token budget: what the tool calls of a session have put into its context, estimated.

use std::path::Path;

use super::root_dir::Kind;
use crate::client::json::{Object, Raw};
use crate::client::json_len;
use crate::client::payload::{Payload, ToolResponse};
use crate::store::{Sid, StateFile, Store};

/// Token budgets outside of this are nonsense.
pub const BUDGET_RANGE: std::ops::RangeInclusive<u64> = 1..=10_000_000;
/// Tool counts outside of this are nonsense.
pub const COUNT_RANGE: std::ops::RangeInclusive<u64> = 1..=1_000_000;

/// What every call costs beside its input and output.
const PER_CALL: u64 = 100;
/// After a file was changed the model sees one sentence.
const CHANGED: u64 = 150;
/// What an image or a PDF costs, whatever its bytes.
const PICTURE: u64 = 1500;

/// The estimate of tokens in context: the budget, which only grows, less what compactions have rolled up.
pub fn estimate(store: Store<'_>, sid: &Sid) -> u64 {
    let budget = store.read_count(StateFile::TokenBudget(sid), BUDGET_RANGE).unwrap_or(0);
    in_context(store, sid, budget)
}

/// What of a budget is still in context.
pub fn in_context(store: Store<'_>, sid: &Sid, budget: u64) -> u64 {
    if budget == 0 { 0 } else { budget.saturating_sub(super::rollup::rolled_through(store, sid)) }
}

/// What a tool call puts into the context, estimated: its input and what the model sees of its result, four UTF-16 units
/// a token.
pub fn call_tokens(payload: &Payload<'_>) -> u64 {
    let tool = payload.tool_name().unwrap_or_default();
    let input = payload.tool_input().map_or(0, |input| quarter(json_len::compact(input)));
    PER_CALL + input + payload.tool_response().map_or(0, |response| seen(&tool, response))
}

/// Tokens of what the model sees of a result: the client's result objects hold much more than that.
fn seen(tool: &str, result: &ToolResponse<'_>) -> u64 {
    let response = result.raw();
    if let Some(units) = json_len::string(response) {
        return quarter(units);
    }
    if matches!(tool, "Edit" | "MultiEdit" | "Write" | "NotebookEdit") {
        return CHANGED;
    }
    if let Some(object) = result.object() {
        let of_tool = match tool {
            "Bash" => of_bash(object),
            "Read" => of_read(object),
            _ => None,
        };
        return of_tool.unwrap_or_else(|| quarter(json_len::compact(response)));
    }
    match response.items() {
        Some(items) if items.iter().any(|item| is_picture(*item)) => {
            let tokens = |item: Raw<'_>| if is_picture(item) { PICTURE } else { quarter(json_len::compact(item)) };
            items.into_iter().map(tokens).sum()
        }
        _ => quarter(json_len::compact(response)),
    }
}

fn of_bash(result: &Object<'_>) -> Option<u64> {
    if result.get("isImage").and_then(Raw::bool) == Some(true) {
        return Some(PICTURE);
    }
    let stream = |name| result.get(name).and_then(json_len::string);
    let (stdout, stderr) = (stream("stdout"), stream("stderr"));
    stdout.or(stderr)?;
    Some(quarter(stdout.unwrap_or(0) + stderr.unwrap_or(0)))
}

fn of_read(result: &Object<'_>) -> Option<u64> {
    match result.str("type").as_deref() {
        Some("image" | "pdf" | "parts") => Some(PICTURE),
        _ => result.at(&["file", "content"]).and_then(json_len::string).map(quarter),
    }
}

/// A content block that is an image or a PDF.
fn is_picture(block: Raw<'_>) -> bool {
    block.object().and_then(|block| block.str("type").map(|kind| matches!(&*kind, "image" | "document"))) == Some(true)
}

fn quarter(units: u64) -> u64 {
    units.div_ceil(4)
}

/// The path that a call touched, as the tool was given it, and what it names.
pub fn touched<'a>(payload: &Payload<'a>) -> Option<(std::borrow::Cow<'a, str>, Kind)> {
    let input = payload.tool_input()?.object()?;
    let named = |key| input.str(key).filter(|path| !path.is_empty());
    if let Some(file) = named("file_path").or_else(|| named("notebook_path")) {
        return Some((file, Kind::File));
    }
    let path = named("path")?;
    // Grep may be given a file; a path that is gone or relative to elsewhere counts as the folder that it usually is.
    let kind = if Path::new(&*path).is_file() { Kind::File } else { Kind::Folder };
    Some((path, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tokens(tool: &str, response: Value) -> u64 {
        let payload = json!({"tool_name": tool, "tool_input": {}, "tool_response": response}).to_string();
        call_tokens(&Payload::parse(&payload).unwrap()) - PER_CALL - 1
    }

    #[test]
    fn what_the_model_sees_counts_not_what_the_client_sends() {
        let long = "x".repeat(4000);
        for (tool, response, want) in [
            ("Bash", json!({"stdout": long, "stderr": "yyyy", "interrupted": false}), 1001),
            ("Bash", json!({"stdout": long, "isImage": true}), 1500),
            ("Read", json!({"type": "text", "file": {"filePath": "/a", "content": long, "numLines": 1}}), 1000),
            ("Read", json!({"type": "image", "file": {"base64": long}}), 1500),
            ("Read", json!({"type": "pdf", "file": {"base64": long}}), 1500),
            ("Edit", json!({"originalFile": long, "newString": long}), 150),
            ("Write", json!({"content": long}), 150),
            ("NotebookEdit", json!({"original_file": long}), 150),
            ("mcp__x", json!("日本語\n"), 1),
            ("mcp__x", json!({"a": 1}), 2),
            ("mcp__x", json!([{"type": "image", "data": long}, {"a": 1}]), 1502),
            ("Bash", Value::Null, 0),
        ] {
            assert_eq!(tokens(tool, response.clone()), want, "{tool} {:.60}", response.to_string());
        }
    }

    #[test]
    fn the_estimate_is_what_no_compaction_has_rolled_up() {
        let dir = tempfile::tempdir().unwrap();
        let env = crate::env::Env::for_tests(dir.path());
        let (store, sid) = (Store::new(&env), Sid::new("s"));
        store.write(StateFile::TokenBudget(&sid), b"5000").unwrap();
        assert_eq!(estimate(store, &sid), 5000);
        store.write(StateFile::Rollup(&sid), br#"{"rolledThroughTok":4200}"#).unwrap();
        assert_eq!(estimate(store, &sid), 800);
        store.write(StateFile::Rollup(&sid), br#"{"rolledThroughTok":99999}"#).unwrap();
        assert_eq!(estimate(store, &sid), 0);
    }
}
