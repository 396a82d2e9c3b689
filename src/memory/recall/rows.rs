//! What a transcript row says: the words of a person, the model or a tool, and nothing of what the client copies.
//!
//! Copies of requests, system prompts, hook output, summaries and the output of `si recover` itself are no messages:
//! found there, a text would come back several times, or as a paraphrase of itself.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::json::{Object, Raw};

/// How the output of `si recover` begins, so that it is known again.
pub const HEADING: &str = "Recovered for ";
/// How the output of `si expand` begins.
pub const EXPAND_HEADING: &str = "# tool-archive expand: ";
/// How the first line of `si pin`'s output names the session.
const IN_SESSION: &str = " in session ";

/// One row's words.
#[derive(Debug)]
pub struct Said<'a> {
    /// The message that the row is a part of; the API's messages are written as several rows.
    pub message: Option<&'a str>,
    /// When, ISO 8601.
    pub timestamp: Option<&'a str>,
    /// Whether a subagent's conversation holds it.
    pub sidechain: bool,
    /// Its parts that can be read.
    pub parts: Vec<Part<'a>>,
}

/// One part of a message.
#[derive(Debug)]
pub struct Part<'a> {
    /// Who speaks.
    pub role: Role<'a>,
    /// What is said.
    pub text: Cow<'a, str>,
}

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role<'a> {
    /// A person.
    User,
    /// The model.
    Assistant,
    /// The model, thinking.
    Thinking,
    /// The model, calling this tool.
    Call(&'a str),
    /// A tool, answering the call with this id.
    Result(&'a str),
}

impl<'a> Said<'a> {
    /// Reads a row; none when it is no message.
    pub fn of(row: &'a str) -> Option<Said<'a>> {
        let row = match serde_json::from_str::<Row<'a>>(row) {
            Ok(row) => row,
            Err(_) => Row::lenient(&Object::parse(row)?),
        };
        if row.is_compact_summary == Some(true) || row.is_meta == Some(true) {
            return None;
        }
        let message = row.message.unwrap_or_default();
        let mut parts = match row.kind? {
            "user" => parts(message.content?, Role::User),
            "assistant" => parts(message.content?, Role::Assistant),
            // A prompt that was typed while the model was at work.
            "attachment" => {
                let attachment = Raw::new(row.attachment?.get()).object()?;
                attachment.str("type").filter(|kind| kind == "queued_command")?;
                parts(raw_value(attachment.get("prompt")?)?, Role::User)
            }
            _ => return None,
        };
        parts.retain(|part| !is_own(part));
        let sidechain = row.is_sidechain == Some(true);
        Some(Said { message: message.id, timestamp: row.timestamp, sidechain, parts })
    }
}

/// What of a row is read, in one pass where the row has the usual shape. Most of a transcript is the text of messages, so
/// every pass over it that is saved counts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    timestamp: Option<&'a str>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_sidechain: Option<bool>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Message<'a> {
    id: Option<&'a str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// One block of a message's content.
#[derive(Debug, Default, Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    name: Option<&'a str>,
    tool_use_id: Option<&'a str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'a> Row<'a> {
    /// Reads a row of another shape leaf by leaf; one of a wrong type is absent.
    fn lenient(row: &Object<'a>) -> Row<'a> {
        let flag = |key: &str| row.get(key).and_then(Raw::bool);
        let message = row.get("message").and_then(Raw::object);
        Row {
            kind: plain(row, "type"),
            timestamp: plain(row, "timestamp"),
            is_meta: flag("isMeta"),
            is_compact_summary: flag("isCompactSummary"),
            is_sidechain: flag("isSidechain"),
            message: message.map(|message| Message { id: plain(&message, "id"), content: value(&message, "content") }),
            attachment: value(row, "attachment"),
        }
    }
}

impl<'a> Block<'a> {
    fn lenient(block: &Object<'a>) -> Block<'a> {
        Block {
            kind: plain(block, "type"),
            name: plain(block, "name"),
            tool_use_id: plain(block, "tool_use_id"),
            text: value(block, "text"),
            thinking: value(block, "thinking"),
            input: value(block, "input"),
            content: value(block, "content"),
        }
    }

    fn part(&self, role: &Role<'a>) -> Option<Part<'a>> {
        let text = |value: Option<&'a RawValue>| Raw::new(value?.get()).str();
        Some(match self.kind? {
            "text" => Part { role: role.clone(), text: text(self.text)? },
            "thinking" => Part { role: Role::Thinking, text: text(self.thinking)? },
            "tool_use" => {
                let mut text = String::new();
                strings(Raw::new(self.input?.get()), &mut text);
                Part { role: Role::Call(self.name.unwrap_or_default()), text: text.into() }
            }
            "tool_result" => {
                let text = result_text(Raw::new(self.content?.get()))?;
                Part { role: Role::Result(self.tool_use_id.unwrap_or_default()), text }
            }
            _ => return None,
        })
    }
}

/// A string without escapes, as ids and kinds are.
fn plain<'a>(object: &Object<'a>, key: &str) -> Option<&'a str> {
    serde_json::from_str(object.get(key)?.text()).ok()
}

fn value<'a>(object: &Object<'a>, key: &str) -> Option<&'a RawValue> {
    raw_value(object.get(key)?)
}

fn raw_value(raw: Raw<'_>) -> Option<&RawValue> {
    serde_json::from_str(raw.text()).ok()
}

fn parts<'a>(content: &'a RawValue, role: Role<'a>) -> Vec<Part<'a>> {
    let raw = Raw::new(content.get());
    if let Some(text) = raw.str() {
        return vec![Part { role, text }];
    }
    let blocks = serde_json::from_str::<Vec<Block<'a>>>(content.get()).unwrap_or_else(|_| {
        let items = raw.items().unwrap_or_default();
        items.into_iter().filter_map(|item| Some(Block::lenient(&item.object()?))).collect()
    });
    blocks.iter().filter_map(|block| block.part(&role)).collect()
}

/// The text of a tool result: a string, or the text blocks of a list.
pub fn result_text(content: Raw<'_>) -> Option<Cow<'_, str>> {
    if let Some(text) = content.str() {
        return Some(text);
    }
    let texts = content.items()?.into_iter().filter_map(|block| block.object()?.str("text"));
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

/// The strings in a tool's input, one below the other.
fn strings(value: Raw<'_>, out: &mut String) {
    if let Some(text) = value.str() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&text);
    } else if let Some(items) = value.items() {
        items.into_iter().for_each(|item| strings(item, out));
    } else if let Some(object) = value.object() {
        object.iter().for_each(|(_, value)| strings(value, out));
    }
}

/// Whether a part is a call of si that handles words of the conversation, or what it printed: a copy in any case.
fn is_own(part: &Part<'_>) -> bool {
    let own = |command: &str| matches!(command, "recover" | "pin" | "expand" | "slash");
    match &part.role {
        Role::Result(_) => {
            let first = part.text.trim_start().lines().next().unwrap_or("");
            let pinned = first.starts_with("Pinned ") || first.starts_with("Nothing new was pinned");
            let listed =
                first.split(IN_SESSION).next().is_some_and(|count| count.ends_with(" pins") || count == "1 pin");
            first.starts_with(HEADING)
                || first.starts_with(EXPAND_HEADING)
                || (pinned || listed) && first.contains(IN_SESSION)
        }
        Role::Call("Bash") => {
            let words: Vec<&str> = part.text.split_whitespace().take(40).collect();
            let is_si = |word: &str| word.trim_matches(['"', '\'']).rsplit('/').next() == Some("si");
            words.windows(2).any(|pair| is_si(pair[0]) && own(pair[1]))
        }
        Role::User if part.text.starts_with("<command-") => {
            let args = part.text.split("<command-args>").nth(1).unwrap_or("");
            let ours = ["/si<", ":si<", "smartcompact<"].iter().any(|name| part.text.contains(name));
            ours && own(args.split_whitespace().next().unwrap_or(""))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(row: &str) -> Vec<(String, String)> {
        let parts = Said::of(row).map(|said| said.parts).unwrap_or_default();
        parts.iter().map(|part| (format!("{:?}", part.role), part.text.to_string())).collect()
    }

    #[test]
    fn messages_are_told_by_who_speaks() {
        for (row, role, text) in [
            (r#"{"type":"user","message":{"content":"hi \ud83d"}}"#, "User", "hi \u{fffd}"),
            (r#"{"type":"user","message":{"content":[{"type":"text","text":"hi"}]}}"#, "User", "hi"),
            (r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}"#, "Thinking", "hm"),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"a \"b\"","n":5,"l":["c",{"d":"e"}]}}]}}"#,
                r#"Call("Bash")"#,
                "a \"b\"\nc\ne",
            ),
            (
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"out"},{"type":"image"}]}]}}"#,
                r#"Result("t1")"#,
                "out",
            ),
            (
                r#"{"type":"user","isMeta":"odd","message":{"id":5,"content":[7,{"type":"text","text":"hi"}]}}"#,
                "User",
                "hi",
            ),
            (r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"wait"}}"#, "User", "wait"),
        ] {
            assert_eq!(said(row), [(role.to_string(), text.to_string())], "{row}");
        }
    }

    #[test]
    fn what_only_looks_like_our_output_is_a_message() {
        for text in ["Pinned to 1.2 in Cargo.toml", "2 pins in the socket", "si says x"] {
            let row =
                serde_json::json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": text}]}});
            assert_eq!(said(&row.to_string()).len(), 1, "{text}");
        }
        for command in ["rsi pin", "echo si", "pin si"] {
            let block = serde_json::json!({"type": "tool_use", "name": "Bash", "input": {"command": command}});
            let row = serde_json::json!({"type": "assistant", "message": {"content": [block]}});
            assert_eq!(said(&row.to_string()).len(), 1, "{command}");
        }
    }

    #[test]
    fn copies_summaries_and_own_output_are_no_messages() {
        for row in [
            r#"{"type":"user","isCompactSummary":true,"message":{"content":"x"}}"#,
            r#"{"type":"user","isMeta":true,"message":{"content":"x"}}"#,
            r#"{"type":"api-request-blob","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"last-prompt","lastPrompt":"x"}"#,
            r#"{"type":"attachment","attachment":{"type":"hook_success","content":"x"}}"#,
            r#"{"type":"system","content":"x"}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"Recovered for x: …"}]}}"#,
            r#"{"type":"user","message":{"content":"<command-name>/si</command-name><command-args>recover x</command-args>"}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"'/home/u/.local/bin/si' recover x"}}]}}"#,
            r##"{"type":"user","message":{"content":[{"type":"tool_result","content":"# tool-archive expand: id=t1 tool=Bash"}]}}"##,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"Pinned 2 in session x:\n  1  y"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"12 pins in session x:\n  1  y"}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"si pin - <<'E'\nx\nE"}}]}}"#,
            r#"{"type":"user","message":"odd"}"#,
            r#"{"message":{"content":"x"}}"#,
        ] {
            assert_eq!(said(row), [], "{row}");
        }
    }
}
