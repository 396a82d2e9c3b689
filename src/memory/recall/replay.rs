//! A tool result, read back from the raw transcript: the archive may have been wiped, capped or switched off.

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;

use super::rows;
use crate::client::json::{self, Object, Raw};
use crate::client::payload::ToolResponse;
use crate::client::transcript;
use crate::env;
use crate::memory::archive::body::Body;

/// A tool result as the transcript holds it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The tool's name; empty when the row that called it is not there.
    pub tool: String,
    /// The tool's input, as JSON.
    pub input: Option<String>,
    /// When the tool answered, epoch milliseconds.
    pub at_ms: Option<i64>,
    /// The answer as readable text.
    pub body: String,
}

/// Looks for the result of a tool call in a transcript and in those of its subagents.
pub fn tool_result(transcript: &Path, id: &str) -> Option<Replay> {
    std::iter::once(transcript.to_path_buf()).chain(super::subagents(transcript)).find_map(|path| in_file(&path, id))
}

fn in_file(path: &Path, id: &str) -> Option<Replay> {
    let quoted = serde_json::Value::from(id).to_string();
    let mark = memmem::Finder::new(quoted.as_bytes());
    let mut replay = Replay::default();
    let mut found = false;
    transcript::each_line(path, |line| {
        if mark.find(line).is_none() {
            return ControlFlow::Continue(());
        }
        let text = json::decode(line);
        let Some(row) = Object::parse(&text) else { return ControlFlow::Continue(()) };
        let message = row.get("message").and_then(Raw::object).unwrap_or_default();
        let blocks = message.get("content").and_then(Raw::items).unwrap_or_default();
        let blocks: Vec<Object<'_>> = blocks.into_iter().filter_map(Raw::object).collect();
        let block = |kind: &str, key: &str| {
            blocks.iter().find(|block| {
                block.str("type").is_some_and(|text| text == kind) && block.str(key).is_some_and(|text| text == id)
            })
        };
        if let Some(call) = block("tool_use", "id") {
            replay.tool = call.str("name").unwrap_or_default().into_owned();
            replay.input = call.get("input").map(|input| input.text().to_string());
        }
        let Some(result) = block("tool_result", "tool_use_id") else { return ControlFlow::Continue(()) };
        // The client keeps the tool's own answer beside what the model was shown of it.
        let whole = row
            .get("toolUseResult")
            .filter(|whole| blocks.len() == 1 && !matches!(whole.text(), "{}" | "[]"))
            .map(ToolResponse::new)
            .and_then(|result| Body::of(&result))
            .map(|body| body.text());
        let shown = || result.get("content").and_then(rows::result_text).unwrap_or_default().into_owned();
        replay.body = whole.filter(|text| !text.is_empty()).unwrap_or_else(shown);
        replay.at_ms = row.str("timestamp").and_then(|text| env::parse_iso(&text));
        found = true;
        ControlFlow::Break(())
    });
    found.then_some(replay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::file;

    #[test]
    fn a_result_is_found_by_its_call() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("s.jsonl");
        let rows = [
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"/a"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"text","text":"\"t1\""}]}}"#,
            r#"{"type":"user","timestamp":"2026-01-02T03:04:05Z","toolUseResult":{"stdout":"out\n","stderr":"oh"},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"out oh"}]}}"#,
            r#"{"type":"user","toolUseResult":{},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"1\tx"}]}]}}"#,
        ];
        file::write_atomic(&main, rows.join("\n").as_bytes()).unwrap();
        let agent = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t3","content":"from the agent"}]}}"#;
        file::write_atomic(&dir.path().join("s/subagents/agent-1.jsonl"), agent.as_bytes()).unwrap();

        let bash = tool_result(&main, "t1").unwrap();
        assert_eq!((bash.tool.as_str(), bash.body.as_str()), ("Bash", "out\n[stderr]\noh"));
        assert_eq!(bash.input.as_deref(), Some(r#"{"command":"ls"}"#));
        assert_eq!(bash.at_ms, Some(1_767_323_045_000));
        assert_eq!(tool_result(&main, "t2").unwrap().body, "1\tx");
        assert_eq!(tool_result(&main, "t3").unwrap().body, "from the agent");
        assert_eq!(tool_result(&main, "t"), None);
        assert_eq!(tool_result(&main, "../t1"), None);
    }
}
