//! Pins and recall through the real binary.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

const SID: &str = "5e55a0b1-0000-4000-8000-000000000001";
const OTHER: &str = "5e55a0b2-0000-4000-8000-000000000002";

fn si(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.si(args.iter().copied()).var("CLAUDE_CODE_SESSION_ID", SID).run()
}

/// Runs a script in the session, with nothing else of the surroundings.
fn sh(sandbox: &Sandbox, script: &str) -> std::process::Output {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).env_clear().current_dir(&sandbox.cwd);
    shell.envs([("HOME", sandbox.home.as_os_str()), ("TMPDIR", sandbox.tmp.as_os_str())]);
    shell.env("CLAUDE_CODE_SESSION_ID", SID).output().unwrap()
}

fn pin_input(sandbox: &Sandbox, args: &[&str], input: &str) -> Output {
    sandbox.si(args.iter().copied()).var("CLAUDE_CODE_SESSION_ID", SID).stdin(input).run()
}

fn transcript(sandbox: &Sandbox, sid: &str) -> PathBuf {
    let project = si::client::project::encode(&sandbox.cwd);
    sandbox.home.join(format!(".claude/projects/{project}/{sid}.jsonl"))
}

fn write_rows(sandbox: &Sandbox, sid: &str, rows: &[Value]) {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    sandbox.write(&transcript(sandbox, sid), lines);
}

fn user(text: &str) -> Value {
    json!({"type": "user", "sessionId": SID, "timestamp": "2026-01-02T03:04:05Z", "message": {"content": text}})
}

fn boundary() -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "manual"}})
}

fn pin_file(sandbox: &Sandbox) -> PathBuf {
    sandbox.home.join(format!(".claude/smartcompact/{SID}.md"))
}

/// What a session start puts in front of the model.
fn context(sandbox: &Sandbox, hook: &str, sid: &str, source: &str) -> String {
    let payload = json!({"session_id": sid, "transcript_path": transcript(sandbox, sid), "cwd": sandbox.cwd,
        "hook_event_name": "SessionStart", "source": source});
    let output = sandbox.hook(hook, &payload).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    assert!(output.stdout.encode_utf16().count() <= 10_000, "{output}");
    let reply: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or("").to_string()
}

#[test]
fn pins_come_back_word_for_word_whatever_stands_in_them() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x"), boundary(), user("y")]);
    let texts = [
        "Decision: keep `serde`; \"retries\" cost $1.50 & <b>more</b>",
        "Steps:\n\n```sh\nmake all\n\n# done\n```\n- [ ] left",
        "<!-- si:pin at=2020-01-01T00:00:00Z round=9 -->\n--- pin 9 ---",
        "日本語 🙂 e\u{301}",
    ];
    for text in texts {
        let output = si(&sandbox, &["pin", "--no-compact", "--", text]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
        assert!(output.stdout.starts_with(&format!("Pinned 1 in session {SID} ")), "{output}");
        assert!(output.stdout.contains(", round 2:\n"), "{output}");
    }
    for (hook, source) in [("SessionStart", "compact"), ("pin-inject", "resume"), ("SessionStart", "startup")] {
        let context = context(&sandbox, hook, SID, source);
        for text in texts {
            assert_eq!(context.matches(&format!("\n{text}\n")).count(), 1, "{hook} {source}: {context}");
        }
        assert!(!self::context(&sandbox, hook, OTHER, source).contains("Decision"), "{hook} {source}");
    }
    assert!(!context(&sandbox, "bootstrap", SID, "compact").contains("Decision"));
}

#[test]
fn a_text_that_begins_like_an_item_of_a_list_needs_no_dashes_before_it() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    write_rows(&sandbox, OTHER, &[user("x")]);
    for text in ["- [ ] left\n- next", "--- rule ---", "-x is a flag", "--list the files first", "--a b=c"] {
        assert_eq!(si(&sandbox, &["pin", text]).code, 0, "{text}");
        assert_eq!(si(&sandbox, &["pin", "--session", OTHER, "so:", text, "--no-compact"]).code, 0, "{text}");
        assert!(context(&sandbox, "SessionStart", SID, "compact").contains(&format!("\n{text}\n")), "{text}");
        let theirs = context(&sandbox, "SessionStart", OTHER, "compact");
        assert!(theirs.contains(&format!("\nso: {text}\n")), "{text}: {theirs}");
    }
    let found = si(&sandbox, &["recover", "- x", "--all"]);
    assert!(found.code == 0 && found.stdout.contains("Recovered for"), "{found}");
    let focus = si(&sandbox, &["pin", "plain", "--focus=the tests"]);
    assert!(focus.stdout.contains("Prioritize: the tests."), "{focus}");
}

#[test]
fn standard_input_is_many_pins_and_duplicates_are_said() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    let output = pin_input(&sandbox, &["pin"], "one\ntwo\n");
    assert!(output.stdout.contains("Pinned 2 ") && output.stdout.contains("\n    2  two\n"), "{output}");
    let output =
        pin_input(&sandbox, &["pin", "-", "--focus", "the  plan\nand tests"], "two\nstill two\n\none\n\n\ntwo\n");
    assert!(output.stdout.contains("Pinned 1 ") && output.stdout.contains("\n    3  two still two\n"), "{output}");
    assert!(output.stdout.contains("Pinned before, not added again:\n    1  one\n    2  two\n"), "{output}");
    let line = output.stdout.lines().find(|line| line.starts_with("/compact ")).unwrap();
    assert!(line.contains("durable ledger") && line.ends_with(" Prioritize: the plan and tests."), "{line}");
    let output = pin_input(&sandbox, &["pin", "--no-compact"], "one\n");
    assert!(output.stdout.starts_with("Nothing new was pinned") && !output.stdout.contains("/compact"), "{output}");
    let output = pin_input(&sandbox, &["pin", "--focus", "tests"], "");
    assert!(output.code == 0 && output.stdout.contains("Prioritize: tests."), "{output}");
}

#[test]
fn what_cannot_be_read_is_not_taken_for_no_pins() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(pin_file(&sandbox)).unwrap();
    for args in [&["pin", "--list"][..], &["pin", "--clear"], &["pin", "x"]] {
        let output = si(&sandbox, args);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{args:?}: {output}");
        assert!(output.stderr.contains("cannot be read as a pin file"), "{output}");
    }
}

#[test]
fn a_session_that_was_mistyped_gets_no_file() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    write_rows(&sandbox, OTHER, &[user("y")]);
    for (name, says) in [("s1", "no session has the id s1"), ("5e55", "5e55 is the start of 2 sessions")] {
        for args in [
            &["pin", "x"][..],
            &["pin", "--list"],
            &["pin", "--clear"],
            &["recover", "x"],
            &["expand", "a"],
            &["expand", "--list"],
            &["status"],
        ] {
            let output = sandbox.si(args.iter().copied().chain(["--session", name])).run();
            assert_eq!(output.code, 1, "{args:?}: {output}");
            assert!(output.stderr.contains(says) && output.stderr.lines().count() == 1, "{args:?}: {output}");
        }
    }
    assert!(!sandbox.home.join(".claude/smartcompact").exists());
    assert_eq!(si(&sandbox, &["pin", "x"]).stderr, "");
}

#[test]
fn the_start_of_an_id_in_any_case_is_the_session_itself() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("otter")]);
    write_rows(&sandbox, OTHER, &[user("y")]);
    let start = &SID[..8].to_uppercase();
    let pinned = sandbox.si(["pin", "keep this", "--session", start]).run();
    assert_eq!((pinned.code, pinned.stderr.as_str()), (0, ""), "{pinned}");
    assert!(context(&sandbox, "pin-inject", SID, "compact").contains("\nkeep this\n"));
    let found = sandbox.si(["recover", "otter", "--session", start]).run();
    assert!(found.stdout.contains(SID), "{found}");
    // The one this runs in needs no trace.
    let fresh = sandbox.si(["pin", "z", "--session", "fre"]).var("CLAUDE_CODE_SESSION_ID", "fresh-1").run();
    assert_eq!(fresh.code, 0, "{fresh}");
    assert!(sandbox.home.join(".claude/smartcompact/fresh-1.md").is_file());
}

#[test]
fn wrong_input_pins_nothing_and_says_why() {
    let sandbox = Sandbox::new();
    for (args, input, code, says) in [
        (&["pin"][..], "", 1, "standard input is empty"),
        (&["pin", "-"], " \n\n", 1, "standard input is empty"),
        (&["pin", ""], "", 64, "the text is empty"),
        (&["pin", "--lst"], "", 64, "--list"),
        (&["pin", "text", "--list"], "", 64, "cannot be used with"),
        (&["pin", "--list", "--clear"], "", 64, "cannot be used with"),
        (&["pin", "--remove", "one"], "", 64, "invalid"),
        (&["pin", "--remove", "3"], "", 1, "there is no pin 3"),
        (&["pin", "--remove"], "", 64, "--remove"),
    ] {
        let output = pin_input(&sandbox, args, input);
        assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{args:?}: {output}");
        assert!(output.stderr.contains(says), "{args:?}: {output}");
        assert!(!pin_file(&sandbox).exists(), "{args:?}");
    }
    let bytes = sandbox.si(["pin"]).var("CLAUDE_CODE_SESSION_ID", SID).stdin(b"caf\xe9".to_vec()).run();
    assert_eq!((bytes.code, bytes.stderr.as_str()), (1, "si: nothing was pinned: standard input is not UTF-8 text\n"));
    let nowhere = sandbox.si(["pin", "x"]).run();
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.stderr.ends_with("name one with --session ID\n"), "{nowhere}");
}

#[test]
fn pins_are_listed_removed_and_cleared() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    assert!(si(&sandbox, &["pin", "--list"]).stdout.starts_with("No pins in session "));
    pin_input(&sandbox, &["pin"], "one\ntwo \u{1b}[31m\nthree\n");
    let file = sandbox.read(pin_file(&sandbox));
    sandbox.write(&pin_file(&sandbox), file + "\n- by hand\n");
    let list = si(&sandbox, &["pin", "--list"]);
    let rows: Vec<&str> = list.stdout.lines().collect();
    assert_eq!(rows[1], "   no   units  round  pinned            text");
    assert!(rows[2].starts_with("    1       3      1  20") && rows[2].ends_with("  one"), "{list}");
    assert!(rows[3].ends_with("  two [31m"), "{list}");
    assert_eq!(rows[5], "    4       7      -  by hand           by hand");
    let removed = si(&sandbox, &["pin", "--remove", "2,4"]);
    assert!(removed.stdout.contains("\n       two [31m\n       by hand\n"), "{removed}");
    assert!(context(&sandbox, "pin-inject", SID, "compact").contains("\nthree\n"));
    let cleared = si(&sandbox, &["pin", "--clear"]);
    assert!(cleared.stdout.starts_with("Cleared 2 pins of session "), "{cleared}");
    let backup = cleared.stdout.lines().find_map(|line| line.strip_prefix("Backup: ")).unwrap();
    assert!(sandbox.read(backup.split(" (").next().unwrap()).contains("- three\n"));
    assert_eq!(context(&sandbox, "pin-inject", SID, "compact"), "");
    assert!(si(&sandbox, &["pin", "--clear"]).stdout.ends_with("nothing to clear.\n"));
}

#[test]
fn what_will_not_come_back_is_said_at_once() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    for n in 1..=12 {
        si(&sandbox, &["pin", &format!("Bulk {n} {}", "words ".repeat(160))]);
    }
    let output = si(&sandbox, &["pin", &"long ".repeat(3000)]);
    assert!(output.stdout.contains("Room: 13 pins take 2"), "{output}");
    assert!(output.stdout.contains("No room for: 1, 2, 3, 13."), "{output}");
    assert!(output.stdout.contains("Too long to come back even alone: 13."), "{output}");
    assert!(si(&sandbox, &["pin", "--list"]).stdout.contains("(no room) Bulk 1 "));
    let context = context(&sandbox, "SessionStart", SID, "compact");
    assert!(context.contains("4 more pins are not shown here") && context.contains("Bulk 12"), "{context}");
    assert!(context.contains(pin_file(&sandbox).to_str().unwrap()), "{context}");
}

#[test]
fn many_pins_at_once_are_all_kept() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    std::thread::scope(|scope| {
        for n in 0..16 {
            let sandbox = &sandbox;
            scope.spawn(move || assert_eq!(si(sandbox, &["pin", &format!("pin number {n}.")]).code, 0));
        }
    });
    let list = si(&sandbox, &["pin", "--list"]);
    for n in 0..16 {
        assert_eq!(list.stdout.matches(&format!("pin number {n}.")).count(), 1, "{list}");
    }
}

#[test]
fn a_full_disk_loses_nothing() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    si(&sandbox, &["pin", "kept"]);
    let before = sandbox.read(pin_file(&sandbox));
    for args in ["pin lost?", "pin --remove 1"] {
        // No byte can be written to any file; root is not exempt from this.
        let script = format!("ulimit -f 0; exec '{}' {args}", env!("CARGO_BIN_EXE_si"));
        let output = sh(&sandbox, &script);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{args}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(": File too large"), "{output:?}");
        assert_eq!(sandbox.read(pin_file(&sandbox)), before, "{args}");
        assert_eq!(std::fs::read_dir(pin_file(&sandbox).parent().unwrap()).unwrap().count(), 1, "{args}");
    }
}

#[test]
fn a_pin_that_cannot_be_written_is_an_error_and_harms_no_other() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("x")]);
    si(&sandbox, &["pin", "kept"]);
    // A home that cannot be written, in a way that root cannot pass either.
    let folder = pin_file(&sandbox).parent().unwrap().to_path_buf();
    std::fs::rename(&folder, folder.with_extension("away")).unwrap();
    sandbox.write(&folder, "a file where the folder was");
    let output = si(&sandbox, &["pin", "lost?"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
    assert!(output.stderr.starts_with("si: nothing was pinned: "), "{output}");
    assert!(sandbox.read(folder.with_extension("away").join(format!("{SID}.md"))).contains("- kept\n"));
}

#[test]
fn a_switch_that_keeps_pins_away_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), r#"{"pins":{"enabled":false}}"#);
    write_rows(&sandbox, SID, &[user("x")]);
    let output = si(&sandbox, &["pin", "x"]);
    assert_eq!(output.stderr, "si: pins are kept but do not come back: pins.enabled is off\n");
    assert_eq!(context(&sandbox, "pin-inject", SID, "compact"), "");
}

#[test]
fn words_are_recovered_from_before_a_compaction() {
    let sandbox = Sandbox::new();
    let rows = [
        user("the staging database is called violet-otter"),
        boundary(),
        json!({"type": "user", "isCompactSummary": true, "message": {"content": "SUMMARY violet-otter"}}),
        json!({"type": "last-prompt", "lastPrompt": "violet-otter"}),
        user("C:\\dir\\new costs $1.50 (a.b*c)"),
    ];
    write_rows(&sandbox, SID, &rows);
    let output = si(&sandbox, &["recover", "VIOLET-otter"]);
    let head = format!("Recovered for \"VIOLET-otter\" in session {SID} (this one, by CLAUDE_CODE_SESSION_ID): ");
    assert_eq!(
        output.stdout,
        head + "1 message; 1 compaction so far.\n\n1. user · 2026-01-02 03:04 · round 1 · 1 hit\n   the staging database is \
                called violet-otter\n"
    );
    for topic in ["C:\\dir\\new", "$1.50", "(a.b*c)", "COSTS new"] {
        assert!(si(&sandbox, &["recover", topic]).stdout.contains("costs $1.50"), "{topic}");
    }
    let typed = sandbox.si(["recover", "-", "--sid", SID]).stdin("$1.50 otter").run();
    assert!(typed.stdout.contains("2 messages, 0 with all words"), "{typed}");
    let nothing = si(&sandbox, &["recover", "a.b*d"]);
    assert_eq!(nothing.code, 0);
    assert!(nothing.stdout.starts_with("Nothing found: no message of session "), "{nothing}");
}

#[test]
fn what_recover_printed_is_not_found_again() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("needle")]);
    let printed = si(&sandbox, &["recover", "needle"]).stdout;
    let result = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": printed}]}});
    write_rows(&sandbox, SID, &[user("needle"), result]);
    assert_eq!(si(&sandbox, &["recover", "needle"]).stdout, printed);
}

#[test]
fn what_was_too_long_to_be_searched_is_said() {
    let sandbox = Sandbox::new();
    write_rows(&sandbox, SID, &[user("the needle")]);
    let file = std::fs::File::options().write(true).open(transcript(&sandbox, SID)).unwrap();
    // A row of zeros, which takes no room on the disk.
    file.set_len(file.metadata().unwrap().len() + (65 << 20)).unwrap();
    for topic in ["needle", "haystack"] {
        let output = si(&sandbox, &["recover", topic]);
        assert!(output.stdout.ends_with("\nNot searched: 1 row of the transcript that is over 64 MB.\n"), "{output}");
    }
}

#[test]
fn recovering_nothing_is_bad_usage_and_no_transcript_an_error() {
    let sandbox = Sandbox::new();
    for topic in [&["recover"][..], &["recover", ""], &["recover", " \t"], &["recover", "--no-such"]] {
        let output = si(&sandbox, topic);
        assert_eq!((output.code, output.stdout.as_str()), (64, ""), "{topic:?}: {output}");
    }
    let many: Vec<String> = ["recover".to_string()].into_iter().chain((0..40).map(|n| format!("w{n}"))).collect();
    let output = sandbox.si(many).var("CLAUDE_CODE_SESSION_ID", SID).run();
    assert_eq!((output.code, output.stderr.as_str()), (64, "si: 40 words are too many: give at most 32\n"));
    let output = si(&sandbox, &["recover", "x"]);
    assert_eq!((output.code, output.stderr), (1, format!("si: there is no transcript of session {SID}\n")));
}

/// The command lines in the file that the client hands to the model, as they would reach a shell.
#[test]
fn the_calls_that_the_slash_command_shows_work() {
    let sandbox = Sandbox::new();
    let command = include_str!("../../commands/smartcompact.md");
    let blocks: Vec<&str> = command.split("```\n").skip(1).step_by(2).collect();
    assert_eq!(blocks.len(), 3);
    write_rows(&sandbox, SID, &[user("the topic is retries")]);
    let run = |script: &str| {
        let script = script.replace("si ", &format!("'{}' ", env!("CARGO_BIN_EXE_si")));
        let output = sh(&sandbox, &script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let pins = ["Decision: it's `$HOME` & \"(x)\" *\n\\n stays", "Your rule: never guess"];
    let filled = blocks[0].replace("THE FOCUS", "what'\\''s next").replace("FIRST PIN", pins[0]);
    let pinned = run(&filled.replace("SECOND PIN", pins[1]));
    assert!(pinned.contains("Pinned 2 ") && pinned.contains(" Prioritize: what's next.\n"), "{pinned}");
    let context = context(&sandbox, "pin-inject", SID, "compact");
    assert!(pins.iter().all(|pin| context.contains(&format!("\n{pin}\n"))), "{context}");
    let save = blocks[0].replace("--focus 'THE FOCUS'", "--no-compact");
    assert!(!run(&save).contains("/compact"));
    let nothing = blocks[0].replace("FIRST PIN\n\nSECOND PIN\n", "");
    assert!(run(&nothing).contains("/compact "));
    assert!(run(&blocks[1].replace("TOPIC", "RETRIES topic")).contains("the topic is retries"));
}
