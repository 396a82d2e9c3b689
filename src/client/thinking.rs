//! Thinking tokens of recent turns: the client's own count where it gives one, else what is left of the output after the
//! visible text and tool calls, at four characters a token.

use std::ops::ControlFlow;
use std::path::Path;

use super::json::{self, Object, Raw};
use super::lines::{self, Needles};
use super::row::is_message;
use super::{json_len, transcript, usage};
use crate::text::utf16_len;

/// How many turns with thinking count as recent.
pub const RECENT_TURNS: usize = 10;
/// How much of the end of a transcript is looked at, in bytes.
pub const SCAN_BYTES: u64 = 512 << 10;

/// Characters that a tool call costs besides its name and input.
const CALL_UNITS: usize = 20;

/// Thinking in the last part of a transcript, in tokens and turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thinking {
    /// Tokens in all turns seen.
    pub total: u64,
    /// Turns with thinking.
    pub turns: usize,
    /// Tokens in the last few of them.
    pub recent: u64,
    /// How many turns ago the last of them was; 0 is the latest turn.
    pub last_turn_ago: Option<usize>,
}

/// One API message; its content blocks may lie in several rows.
#[derive(Debug, Default)]
struct Turn {
    id: Option<String>,
    output: u64,
    /// UTF-16 units of what the reader sees.
    visible: usize,
    /// The client's own count.
    told: Option<u64>,
    thought: bool,
}

impl Turn {
    fn tokens(&self) -> u64 {
        // Half a token rounds up.
        self.told.unwrap_or_else(|| self.output.saturating_sub((self.visible as u64 + 2) / 4))
    }
}

/// Adds up the thinking of the main conversation in the last `scan_bytes` of a transcript, of the last `recent_turns`
/// turns with thinking apart; all zero when there is none to read.
pub fn recent(transcript: &Path, recent_turns: usize, scan_bytes: u64) -> Thinking {
    let turns = turns(transcript, scan_bytes).unwrap_or_default();
    let thoughts: Vec<u64> = turns.iter().filter(|turn| turn.thought).map(Turn::tokens).collect();
    let skip = thoughts.len().saturating_sub(recent_turns);
    Thinking {
        total: thoughts.iter().sum(),
        turns: thoughts.len(),
        recent: thoughts[skip..].iter().sum(),
        last_turn_ago: turns.iter().rev().position(|turn| turn.thought),
    }
}

fn turns(path: &Path, scan_bytes: u64) -> Option<Vec<Turn>> {
    let (file, size) = transcript::open(path)?;
    let mut turns: Vec<Turn> = Vec::new();
    // A window that begins within a file begins within a line.
    let from = match size.saturating_sub(scan_bytes) {
        0 => 0,
        cut => lines::next_line(&file, cut + 1, size).ok()?,
    };
    lines::scan_whole(&file, from, size, &Needles::new(&["\"usage\""]), |line| {
        if let Some(row) = Object::parse(&json::decode(line)) {
            let _ = add_row(&mut turns, &row); // a row of another kind adds nothing
        }
        ControlFlow::Continue(())
    })
    .ok()?;
    Some(turns)
}

fn add_row(turns: &mut Vec<Turn>, row: &Object<'_>) -> Option<()> {
    let sidechain = row.get("isSidechain").and_then(Raw::bool) == Some(true);
    if sidechain || !is_message(row.str("type").as_deref()) {
        return None;
    }
    let message = row.get("message")?.object()?;
    let usage = message.get("usage")?.object()?;
    let content = message.get("content")?.items()?;
    message.str("role").filter(|role| role == "assistant")?;
    let id = message.name("id").map(|id| id.into_owned());
    let known = turns.iter().rposition(|turn| id.is_some() && turn.id == id);
    let at = known.unwrap_or_else(|| {
        turns.push(Turn { id, ..Turn::default() });
        turns.len() - 1
    });
    let turn = &mut turns[at];
    turn.output = usage.get("output_tokens").and_then(usage::count).unwrap_or(0);
    turn.told = usage.at(&["output_tokens_details", "thinking_tokens"]).and_then(usage::count);
    turn.thought |= turn.told.is_some_and(|tokens| tokens > 0);
    for block in content.into_iter().filter_map(Raw::object) {
        match block.str("type").as_deref() {
            Some("thinking" | "redacted_thinking") => turn.thought = true,
            Some("text") => turn.visible += block.str("text").map_or(0, |text| utf16_len(&text)),
            Some("tool_use") => {
                let name = block.str("name").map_or(0, |name| utf16_len(&name));
                turn.visible +=
                    block.get("input").map_or(2, |input| json_len::compact(input) as usize) + name + CALL_UNITS;
            }
            _ => {}
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, block: &str, details: &str) -> String {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"role\":\"assistant\",\"content\":[{block}],\
             \"usage\":{{\"output_tokens\":100{details}}}}}}}\n"
        )
    }

    fn recent_of(text: &str, scan_bytes: u64) -> Thinking {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        crate::store::file::write_atomic(&path, text.as_bytes()).unwrap();
        recent(&path, RECENT_TURNS, scan_bytes)
    }

    const THINKING: &str = r#"{"type":"thinking","thinking":"","signature":"s"}"#;
    const TEXT: &str = r#"{"type":"text","text":"12345678"}"#;

    #[test]
    fn a_call_takes_what_javascript_would_write() {
        let call = r#"{"type":"tool_use","name":"X","input": { "a" : 1.0, "b": 1e3 }}"#;
        let text = row("m1", THINKING, "") + &row("m1", call, "");
        // {"a":1,"b":1000}, the name and twenty make 37 units, which are 9 tokens.
        assert_eq!(recent_of(&text, SCAN_BYTES).total, 91);
    }

    #[test]
    fn blocks_of_one_message_are_one_turn() {
        let text = row("m1", THINKING, "") + &row("m1", TEXT, "") + &row("m1", TEXT, "") + &row("m2", TEXT, "");
        let thinking = recent_of(&text, SCAN_BYTES);
        assert_eq!(thinking, Thinking { total: 96, turns: 1, recent: 96, last_turn_ago: Some(1) });
    }

    #[test]
    fn the_clients_own_count_is_the_true_one() {
        let told = r#","output_tokens_details":{"thinking_tokens":33}"#;
        let none = r#","output_tokens_details":{"thinking_tokens":0}"#;
        let text = row("m1", TEXT, told) + &row("m2", TEXT, none) + &row("m3", THINKING, none);
        let thinking = recent_of(&text, SCAN_BYTES);
        assert_eq!(thinking, Thinking { total: 33, turns: 2, recent: 33, last_turn_ago: Some(0) });
    }

    #[test]
    fn subagents_and_what_the_window_cuts_do_not_count() {
        let first = row("m1", THINKING, "");
        let side = row("m2", THINKING, "").replacen('{', "{\"isSidechain\":true,", 1);
        let last = row("m3", THINKING, "");
        assert_eq!(recent_of(&(first.clone() + &side + &last), SCAN_BYTES).turns, 2);
        assert_eq!(recent_of(&(first + &side + &last), (side.len() + last.len() + 5) as u64).turns, 1);
        assert_eq!(recent(Path::new("/nonexistent/t.jsonl"), 1, 1), Thinking::default());
    }
}
