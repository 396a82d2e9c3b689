//! The archive through the real binary: `si hook post-tool-use`, `si expand`, `si archive-list`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

const SID: &str = "5e55a0b1-0000-4000-8000-000000000001";

fn big(word: &str) -> String {
    word.to_string() + &" filler".repeat(800)
}

fn result(id: &str, response: Value) -> Value {
    json!({"session_id": SID, "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": id,
        "tool_response": response})
}

fn archive(sandbox: &Sandbox, id: &str, response: Value) {
    let output = sandbox.hook("tool-archive", &result(id, response)).run();
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{output}");
}

fn si(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.si(args.iter().copied()).var("CLAUDE_CODE_SESSION_ID", SID).run()
}

#[test]
fn a_result_comes_back_word_for_word_through_a_pipe() {
    let sandbox = Sandbox::new();
    let text = big("\u{1b}[31mred\u{7}\ttab é🙂 \"q\"\r\n");
    archive(&sandbox, "toolu_1", json!({"stdout": text, "stderr": "oh no\n"}));
    let output = si(&sandbox, &["expand", "toolu_1"]);
    let (head, body) = output.stdout.split_once("\n\n").unwrap();
    assert!(head.starts_with("# tool-archive expand: id=toolu_1 tool=Bash chars="), "{head}");
    assert!(head.ends_with("\n# input={\"command\":\"make\"}"), "{head}");
    assert_eq!(body, text + "\n[stderr]\noh no\n");
}

#[test]
fn expanding_without_an_id_is_bad_usage() {
    let sandbox = Sandbox::new();
    for args in [
        &["expand"][..],
        &["expand", ""],
        &["expand", "/../"],
        &["expand", "a", "--list"],
        &["expand", "--prune", "--list"],
    ] {
        let output = si(&sandbox, args);
        assert_eq!((output.code, output.stdout.as_str()), (64, ""), "{args:?}: {output}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn an_unknown_id_is_said_to_be_unknown_and_similar_ones_are_offered() {
    let sandbox = Sandbox::new();
    archive(&sandbox, "toolu_01ABCDEF", json!(big("x")));
    let output = si(&sandbox, &["expand", "toolu_01ABCDEG"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
    assert_eq!(
        output.stderr,
        "si: no result of toolu_01ABCDEG is found in any archive; did you mean toolu_01ABCDEF?\n"
    );
    let output = si(&sandbox, &["expand", "01ABC"]);
    assert!(output.stderr.contains("did you mean toolu_01ABCDEF?"), "{output}");
    let output = si(&sandbox, &["expand", "../../../../etc/passwd"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
    assert!(output.stderr.ends_with("; si expand --list shows what there is\n"), "{output}");
}

#[test]
fn other_sessions_and_the_transcript_are_looked_through() {
    let sandbox = Sandbox::new();
    archive(&sandbox, "toolu_1", json!(big("one")));
    let other = sandbox.si(["expand", "toolu_1", "--session", "another"]).run();
    assert!(other.stdout.contains("\n\none filler"), "{other}");
    let row = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "two"}]}});
    let project = si::client::project::encode(&sandbox.cwd);
    sandbox.write(&sandbox.home.join(format!(".claude/projects/{project}/{SID}.jsonl")), row.to_string());
    let output = si(&sandbox, &["expand", "toolu_2"]);
    assert!(output.stdout.ends_with("\n\ntwo"), "{output}");
    let output = si(&sandbox, &["expand", "toolu_3"]);
    let place = format!("in any archive, nor in the transcript of session {SID}");
    assert_eq!((output.code, output.stderr.contains(&place)), (1, true), "{output}");
}

#[test]
fn a_listing_shows_id_tool_size_age_and_a_safe_preview() {
    let sandbox = Sandbox::new();
    let empty = si(&sandbox, &["expand", "--list"]);
    assert!(empty.stdout.contains("is empty") && empty.stdout.contains("4096 characters"), "{empty}");
    archive(&sandbox, "toolu_1", json!(big("\u{1b}]52;c;x\u{7} first\nline")));
    archive(&sandbox, "toolu_22", json!(big("second")));
    std::fs::remove_file(sandbox.tmp.join(format!("claude-tool-archive-{SID}/toolu_22.json"))).unwrap();
    for args in [&["expand", "--list"][..], &["archive-list"]] {
        let output = si(&sandbox, args);
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(lines[0], "ID        TOOL  SIZE  AGE       PREVIEW");
        assert!(lines[1].starts_with("toolu_1   Bash    5K  just now  ]52;c;x first line filler"), "{output}");
        assert!(lines[2].starts_with("toolu_22  Bash    5K  just now  (missing) second filler"), "{output}");
    }
}

#[test]
fn what_was_used_lately_is_kept_and_prune_goes_by_ttl_days() {
    let sandbox = Sandbox::new();
    let config = r#"{"toolArchive":{"maxPerSession":2,"ttlDays":3}}"#;
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), config);
    let now = sandbox.now_ms;
    let day = |days: i64| (now + days * 86_400_000).to_string();
    for (n, id) in ["a", "b"].iter().enumerate() {
        sandbox.hook("tool-archive", &result(id, json!(big(id)))).var("SI_NOW", &(now + n as i64).to_string()).run();
    }
    sandbox.si(["expand", "a", "--sid", SID]).var("SI_NOW", &(now + 10).to_string()).run();
    sandbox.hook("tool-archive", &result("c", json!(big("c")))).var("SI_NOW", &(now + 20).to_string()).run();
    let list = si(&sandbox, &["expand", "--list"]);
    let ids: Vec<&str> = list.stdout.lines().skip(1).filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(ids, ["a", "c"], "{list}");
    let prune = sandbox.si(["expand", "--prune"]).var("SI_NOW", &day(2)).run();
    assert_eq!(prune.stdout, "Removed 0 results older than 3 days (1 session looked at).\n");
    let prune = sandbox.si(["expand", "--prune"]).var("SI_NOW", &day(4)).run();
    assert_eq!(prune.stdout, "Removed 2 results older than 3 days (1 session looked at).\n");
}

#[test]
fn many_hooks_at_once_lose_nothing() {
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let sandbox = &sandbox;
            // Each fires twice, as it does when plugin and settings both register the hook.
            for _ in 0..2 {
                scope.spawn(move || archive(sandbox, &format!("toolu_{n}"), json!(big(&format!("body {n}")))));
            }
        }
    });
    let list = si(&sandbox, &["expand", "--list"]);
    assert_eq!(list.stdout.lines().count(), 9, "{list}");
    for n in 0..8 {
        assert_eq!(list.stdout.matches(&format!("toolu_{n} ")).count(), 1, "{list}");
        assert!(si(&sandbox, &["expand", &format!("toolu_{n}")]).stdout.contains(&format!("\n\nbody {n} filler")));
    }
}

#[test]
fn the_archive_is_private_whatever_the_mask() {
    let sandbox = Sandbox::new();
    archive(&sandbox, "toolu_1", json!(big("x")));
    let folder = sandbox.tmp.join(format!("claude-tool-archive-{SID}"));
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("toolu_1.json"))), (0o700, 0o600));
}

#[test]
fn a_twenty_megabyte_result_is_archived_in_good_time() {
    let sandbox = Sandbox::new();
    let text = "line of output é \"quoted\"\n".repeat(800_000);
    archive(&sandbox, "toolu_1", json!({"stdout": text, "stderr": ""}));
    let output = si(&sandbox, &["expand", "toolu_1"]);
    assert_eq!(output.stdout.split_once("\n\n").unwrap().1, text);
}

#[test]
fn a_damaged_record_is_said_to_be_damaged_and_read_from_the_transcript() {
    let sandbox = Sandbox::new();
    archive(&sandbox, "toolu_1", json!(big("one")));
    sandbox.write(&sandbox.tmp.join(format!("claude-tool-archive-{SID}/toolu_1.json")), "{\"id\":");
    let run = |sid: &str| sandbox.si(["expand", "toolu_1"]).var("CLAUDE_CODE_SESSION_ID", sid).run();
    for sid in [SID, "another"] {
        let output = run(sid);
        assert_eq!(output.code, 1, "{output}");
        assert!(output.stderr.contains("the record of toolu_1 is damaged"), "{output}");
        assert!(!output.stderr.contains("did you mean"), "{output}");
    }
    let row = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "from there"}]}});
    let project = si::client::project::encode(&sandbox.cwd);
    sandbox.write(&sandbox.home.join(format!(".claude/projects/{project}/{SID}.jsonl")), row.to_string());
    for sid in [SID, "another"] {
        let output = run(sid);
        assert!(output.stdout.ends_with("\n\nfrom there"), "{sid}: {output}");
    }
}
