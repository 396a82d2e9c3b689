//! What a transcript row says: the words of a person, the model or a tool, and nothing of what the client copies.
//!
//! Copies of requests, system prompts, hook output, summaries and the output of `si recover` itself are no messages:
//! found there, a text would come back several times, or as a paraphrase of itself.

use std::borrow::Cow;

use crate::client::json::{Object, Raw};

/// How the output of `si recover` begins, so that it is known again.
pub const HEADING: &str = "Recovered for ";

/// One row's words.
#[derive(Debug)]
pub struct Said<'a> {
    /// The message that the row is a part of; the API's messages are written as several rows.
    pub message: Option<Cow<'a, str>>,
    /// When, ISO 8601.
    pub timestamp: Option<Cow<'a, str>>,
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
    Call(Cow<'a, str>),
    /// A tool, answering the call with this id.
    Result(Cow<'a, str>),
}

impl<'a> Said<'a> {
    /// Reads a row; none when it is no message.
    pub fn of(row: &Object<'a>) -> Option<Said<'a>> {
        let flag = |key: &str| row.get(key).and_then(Raw::bool) == Some(true);
        if flag("isCompactSummary") || flag("isMeta") {
            return None;
        }
        let message = row.get("message").and_then(Raw::object);
        let mut parts = match row.str("type")?.as_ref() {
            "user" => parts(message.as_ref()?.get("content")?, Role::User),
            "assistant" => parts(message.as_ref()?.get("content")?, Role::Assistant),
            // A prompt that was typed while the model was at work.
            "attachment" => {
                let attachment = row.get("attachment").and_then(Raw::object)?;
                attachment.str("type").filter(|kind| kind == "queued_command")?;
                parts(attachment.get("prompt")?, Role::User)
            }
            _ => return None,
        };
        parts.retain(|part| !is_own(part));
        Some(Said {
            message: message.and_then(|message| message.str("id")),
            timestamp: row.str("timestamp"),
            sidechain: flag("isSidechain"),
            parts,
        })
    }
}

fn parts<'a>(content: Raw<'a>, role: Role<'a>) -> Vec<Part<'a>> {
    if let Some(text) = content.str() {
        return vec![Part { role, text }];
    }
    let blocks = content.items().unwrap_or_default();
    blocks.into_iter().filter_map(|block| part(&block.object()?, &role)).collect()
}

fn part<'a>(block: &Object<'a>, role: &Role<'a>) -> Option<Part<'a>> {
    Some(match block.str("type")?.as_ref() {
        "text" => Part { role: role.clone(), text: block.str("text")? },
        "thinking" => Part { role: Role::Thinking, text: block.str("thinking")? },
        "tool_use" => {
            let mut text = String::new();
            strings(block.get("input")?, &mut text);
            Part { role: Role::Call(block.str("name").unwrap_or_default()), text: text.into() }
        }
        "tool_result" => {
            let text = result_text(block.get("content")?)?;
            Part { role: Role::Result(block.str("tool_use_id").unwrap_or_default()), text }
        }
        _ => return None,
    })
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

/// Whether a part is a search for words itself, or what one found.
fn is_own(part: &Part<'_>) -> bool {
    match &part.role {
        Role::Result(_) => part.text.trim_start().starts_with(HEADING),
        Role::Call(name) if name == "Bash" => {
            let words: Vec<&str> = part.text.split_whitespace().take(40).collect();
            let is_si = |word: &str| word.trim_matches(['"', '\'']).rsplit('/').next() == Some("si");
            words.windows(2).any(|pair| is_si(pair[0]) && pair[1] == "recover")
        }
        Role::User => part.text.starts_with("<command-") && part.text.contains("<command-args>recover "),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(row: &str) -> Vec<(String, String)> {
        let row = Object::parse(row).unwrap();
        let parts = Said::of(&row).map(|said| said.parts).unwrap_or_default();
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
            (r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"wait"}}"#, "User", "wait"),
        ] {
            assert_eq!(said(row), [(role.to_string(), text.to_string())], "{row}");
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
            r#"{"type":"user","message":"odd"}"#,
            r#"{"message":{"content":"x"}}"#,
        ] {
            assert_eq!(said(row), [], "{row}");
        }
    }
}
