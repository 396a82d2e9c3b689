use super::*;
use crate::store::file;
use serde_json::{Value, json};

fn found_in(rows: &[Value], query: &str) -> Found {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let lines: String = rows.iter().map(|row| row.as_str().map_or(row.to_string(), str::to_string) + "\n").collect();
    file::write_atomic(&path, lines.as_bytes()).unwrap();
    search(&path, &words(query), false)
}

fn words(query: &str) -> Vec<Word> {
    query.split_whitespace().filter_map(Word::new).collect()
}

fn user(text: &str, minute: u32) -> Value {
    json!({"type": "user", "timestamp": format!("2026-01-02T03:{minute:02}:00Z"), "message": {"content": text}})
}

fn boundary() -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"})
}

fn snippets(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.snippet.as_str()).collect()
}

#[test]
fn all_words_come_first_then_more_hits_then_the_newer() {
    let rows = [
        user("budget budget budget budget", 1),
        user("retry older", 2),
        user("retry newer", 3),
        user("the BUDGET for a Retry", 4),
        user("nothing", 5),
    ];
    let found = found_in(&rows, "retry budget");
    assert_eq!(
        snippets(&found),
        ["the BUDGET for a Retry", "budget budget budget budget", "retry newer", "retry older"]
    );
    assert_eq!((found.messages, found.with_all), (4, 1));
}

#[test]
fn rounds_are_counted_and_what_lies_before_a_compaction_is_found() {
    let summary = json!({"type": "user", "isCompactSummary": true, "message": {"content": "summary of needle"}});
    let side = json!({"type": "system", "subtype": "compact_boundary", "isSidechain": true});
    let quoted = user("a row with compact_boundary in it", 2);
    let rows = [user("needle one", 1), quoted, boundary(), summary, side, user("needle two", 3), boundary()];
    let found = found_in(&rows, "needle");
    let rounds: Vec<_> = found.hits.iter().map(|hit| (hit.snippet.as_str(), hit.round)).collect();
    assert_eq!(rounds, [("needle two", 2), ("needle one", 1)]);
    assert_eq!(found.compactions, 2);
}

#[test]
fn the_rows_of_one_message_are_one_message() {
    let row = |content: Value| json!({"type": "assistant", "message": {"id": "m1", "content": [content]}});
    let rows = [
        row(json!({"type": "text", "text": "about the proxy"})),
        row(json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "grep retry"}})),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "retry = 7"}]}}),
        row(json!({"type": "tool_use", "id": "u", "name": "Read", "input": {"file_path": "retry.rs proxy.rs"}})),
        user("retry", 1),
    ];
    let found = found_in(&rows, "proxy retry");
    let seen: Vec<_> = found.hits.iter().map(|hit| (hit.who.as_str(), hit.all, hit.count)).collect();
    assert_eq!(seen, [("assistant, calling Read", true, 4), ("user", false, 1), ("tool result t", false, 1)]);
}

#[test]
fn a_text_that_is_written_again_is_found_once() {
    let copy = |session: &str| {
        json!({"type": "user", "sessionId": session, "timestamp": "2026-01-02T03:00:00Z", "message": {"content": "needle"},
            "toolUseResult": "needle"})
    };
    let found = found_in(&[copy("a"), copy("b"), copy("b")], "needle");
    assert_eq!((found.messages, found.hits.len()), (1, 1));
}

#[test]
fn ten_snippets_are_kept_and_all_are_counted() {
    let rows: Vec<Value> = (0..50).map(|n| user(&format!("needle number {n}"), n)).collect();
    let found = found_in(&rows, "needle");
    assert_eq!((found.messages, found.hits.len()), (50, SNIPPETS));
    assert_eq!(
        (found.hits[0].snippet.as_str(), found.hits[9].snippet.as_str()),
        ("needle number 49", "needle number 40")
    );
}

#[test]
fn a_snippet_is_short_safe_and_around_the_hit() {
    let long = format!("{} the\n\n  retry \u{1b}[31m BUDGET is\t7 {}", "before ".repeat(5000), "after ".repeat(5000));
    let found = found_in(&[user(&long, 1)], "budget retry");
    let snippet = &found.hits[0].snippet;
    assert!(snippet.starts_with("…before before"), "{snippet}");
    assert!(snippet.contains(" the retry [31m BUDGET is 7 after after") && snippet.ends_with('…'), "{snippet}");
    assert!(text::utf16_len(snippet) <= SNIPPET && text::utf16_len(snippet) > SNIPPET - 20);
    for text in
        ["🙂".repeat(3000) + "needle" + &"🙂".repeat(3000), "needle".repeat(900), format!("needle{}", " ".repeat(9000))]
    {
        let found = found_in(&[user(&text, 1)], "needle");
        let snippet = &found.hits[0].snippet;
        assert!(snippet.contains("needle") && text::utf16_len(snippet) <= SNIPPET, "{snippet}");
    }
}

#[test]
fn the_snippet_shows_the_place_with_most_words() {
    let text = format!("retry early {} then retry with budget and limit {}", "x ".repeat(500), "budget ".repeat(50));
    let found = found_in(&[user(&text, 1)], "budget retry limit");
    assert!(found.hits[0].snippet.contains("retry with budget and limit"), "{}", found.hits[0].snippet);
}

#[test]
fn damaged_rows_cost_only_themselves() {
    let rows = [
        user("first needle", 1),
        Value::from("{\"broken needle"),
        Value::from(""),
        Value::from("[\"needle\"]"),
        Value::from(r#"{"type":"user","message":{"content":"cut \ud83d needle"}}"#),
        Value::from(
            r#"{"type":"user","message":{"content":[{"type":"text","text":5},{"type":"text","text":"odd needle"}]}}"#,
        ),
    ];
    let found = found_in(&rows, "needle");
    assert_eq!(snippets(&found), ["first needle", "odd needle", "cut \u{fffd} needle"]);
}

#[test]
fn subagents_are_searched_only_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let inline = json!({"type": "user", "isSidechain": true, "message": {"content": "needle inline"}});
    file::write_atomic(&path, format!("{}\n{inline}\n", user("needle main", 1)).as_bytes()).unwrap();
    let row = json!({"type": "assistant", "isSidechain": true, "message": {"content": [{"type": "text", "text": "needle file"}]}});
    let rows = format!("{}\n{row}\n", boundary());
    file::write_atomic(&dir.path().join("s/subagents/agent-abc.jsonl"), rows.as_bytes()).unwrap();
    assert_eq!(snippets(&search(&path, &words("needle"), false)), ["needle main"]);
    let found = search(&path, &words("needle"), true);
    let seen: Vec<_> = found.hits.iter().map(|hit| (hit.who.as_str(), hit.snippet.as_str(), hit.round)).collect();
    assert_eq!(
        seen,
        [
            ("user", "needle main", 1),
            ("subagent abc, assistant", "needle file", 0),
            ("subagent, user", "needle inline", 1)
        ]
    );
    assert_eq!(found.compactions, 0);
}

#[test]
fn without_a_transcript_nothing_is_found() {
    let found = search(Path::new("/nonexistent/s.jsonl"), &words("needle"), true);
    assert_eq!((found.messages, found.compactions), (0, 0));
    assert_eq!(compactions(Path::new("/nonexistent/s.jsonl")), 0);
}

#[test]
fn a_long_row_is_searched_and_one_beyond_all_sense_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let long = user(&format!("{} needle", "x".repeat(9 << 20)), 1);
    file::write_atomic(&path, format!("{long}\n").as_bytes()).unwrap();
    let found = search(&path, &words("needle"), false);
    assert_eq!((found.messages, found.too_long), (1, 0));
    // Zeros that take no room on the disk.
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + transcript::LONGEST_LINE + 1).unwrap();
    let found = search(&path, &words("needle"), false);
    assert_eq!((found.messages, found.too_long), (1, 1));
}
