//! `si status`, `doctor`, `tail`, `log`, `man`, `completions`, and the help: what a person looks at.

use serde_json::json;

use crate::support::{Output, Sandbox};

fn si(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.si(args.iter().copied()).run()
}

/// A transcript of one turn with 150,000 tokens in context, in the project folder of the sandbox's working folder.
fn transcript(sandbox: &Sandbox, id: &str) {
    let name = si::client::project::encode(&sandbox.cwd);
    let row = json!({
        "type": "assistant", "uuid": "u", "sessionId": id, "version": "2.1.332", "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"id": "msg_1", "role": "assistant", "model": "claude-opus-5-5", "content": [{"type": "text", "text": "hi"}],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 149_980, "cache_creation_input_tokens": 10, "output_tokens": 100}},
    });
    sandbox.write(&sandbox.home.join(format!(".claude/projects/{name}/{id}.jsonl")), format!("{row}\n"));
}

#[test]
fn status_on_a_fresh_machine_says_what_is_missing() {
    let output = si(&Sandbox::new(), &["status"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    for piece in [
        "not registered (si install)",
        "status line       none",
        "none was found for this folder",
        "from 200k",
        "too few to learn from",
    ] {
        assert!(output.stdout.contains(piece), "{piece}: {output}");
    }
}

#[test]
fn status_names_the_session_its_counters_and_the_source_of_the_zones() {
    let sandbox = Sandbox::new();
    transcript(&sandbox, "5e55a0b1-0000-4000-8000-000000000001");
    let lines: String =
        (0..6).map(|n| format!("{}\n", json!({"t": n, "sid": "x", "cwd": sandbox.cwd, "tokens": 250_000}))).collect();
    sandbox.write(&sandbox.home.join(".claude/logs/compact-history.jsonl"), lines);
    sandbox.write(&sandbox.tmp.join("claude-tool-count-5e55a0b1-0000-4000-8000-000000000001"), "42");
    let output = si(&sandbox, &["status"]);
    for piece in [
        "5e55a0b1-0000-4000-8000-000000000001 (the newest in ",
        "150k, yellow",
        "tool calls        42",
        "learned from 6 compactions of this project, starting at the defaults",
    ] {
        assert!(output.stdout.contains(piece), "{piece}: {output}");
    }
    let named = si(&sandbox, &["status", "--sid=5e55a0b1"]);
    assert!(named.stdout.contains("session           5e55a0b1-0000-4000-8000-000000000001\n"), "{named}");
    let own = sandbox.si(["status"]).var("CLAUDE_CODE_SESSION_ID", "other").run();
    assert!(own.stdout.contains("other (this one, by CLAUDE_CODE_SESSION_ID)"), "{own}");
}

#[test]
fn hooks_that_are_registered_twice_are_named_with_their_places() {
    let sandbox = Sandbox::new();
    assert_eq!(si(&sandbox, &["install"]).code, 0);
    assert!(si(&sandbox, &["status"]).stdout.contains("PostToolUse       settings.json\n"));
    let again = sandbox.read(sandbox.home.join(".claude/settings.json"));
    sandbox.write(&sandbox.cwd.join(".claude/settings.json"), again);
    let status = si(&sandbox, &["status"]);
    assert!(status.stdout.contains("PostToolUse is answered from settings.json and .claude/settings.json"), "{status}");
    let doctor = si(&sandbox, &["doctor"]);
    assert!(
        doctor.stdout.contains("PostToolUse is registered 2 times: settings.json, .claude/settings.json"),
        "{doctor}"
    );
}

#[test]
fn doctor_gives_a_fix_for_everything_it_finds() {
    let sandbox = Sandbox::new();
    transcript(&sandbox, "s");
    sandbox.write(
        &sandbox.home.join(".claude/session-intelligence.json"),
        r#"{"compact":{"treshold":5,"threshold":"x"},"statusline":{"fields":["tokenz"]}}"#,
    );
    sandbox.write(
        &sandbox.home.join(".claude/settings.json"),
        r#"{"hooks":{"PreCompact":[{"hooks":[{"type":"command","command":"/gone/si hook pre-compact"}]}]}}"#,
    );
    let open = sandbox.tmp.join("claude-token-budget-s");
    sandbox.write(&open, "5");
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(si(&sandbox, &["log", "warn", "deploy", "half", "done"]).code, 0);
    let output = si(&sandbox, &["doctor"]);
    for piece in [
        "FAIL  program       /gone/si is registered, and is not there",
        "FAIL  hooks         not registered: SessionStart, PostToolUse, UserPromptSubmit",
        "compact.treshold is not a known key; did you mean compact.threshold?",
        "compact.threshold is \"x\", and the default holds; it takes a whole number from 1 to 10k, for example 50",
        "statusline.fields names tokenz, which is no field; did you mean tokens?",
        "others can read 1 of the files of sessions",
        "Claude Code 2.1.332",
        "WARN  deploy           [default] half done",
        "2 to fix.",
    ] {
        assert!(output.stdout.contains(piece), "{piece}: {output}");
    }
    let found = output.stdout.lines().filter(|line| line.starts_with("FAIL") || line.starts_with("warn")).count();
    assert_eq!(output.stdout.matches("fix: ").count(), found, "{output}");
}

#[test]
fn doctor_is_content_after_an_installation() {
    let sandbox = Sandbox::new();
    assert_eq!(si(&sandbox, &["install"]).code, 0);
    let output = si(&sandbox, &["doctor"]);
    assert!(output.stdout.ends_with("All is well.\n"), "{output}");
}

#[test]
fn a_plugin_whose_commands_do_not_find_the_program_is_reported() {
    let sandbox = Sandbox::new();
    let settings = json!({"enabledPlugins": {"session-intelligence@session-intelligence": true}});
    sandbox.write(&sandbox.home.join(".claude/settings.json"), settings.to_string());
    let warned = "the plugin's slash commands call si by its name, and it is not on PATH";
    let doctor = |path: &str| sandbox.si(["doctor"]).var("PATH", path).run();
    assert!(doctor("/usr/bin:/bin").stdout.contains(warned));
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_si")).parent().unwrap();
    assert!(!doctor(&format!("{}:/usr/bin", folder.display())).stdout.contains(warned));
    assert_eq!(si(&sandbox, &["install"]).code, 0);
    assert!(!doctor("/usr/bin:/bin").stdout.contains(warned), "the installer's commands name the whole path");
}

#[test]
fn help_doctor_and_the_reference_lead_to_every_switch() {
    let sandbox = Sandbox::new();
    let page = include_str!("../../docs/configuration.md");
    for text in [&si(&sandbox, &["--help"]).stdout, &si(&sandbox, &["doctor"]).stdout, page] {
        for key in [
            "statusline.enabled",
            "hooks.sessionStart",
            "hooks.preCompact",
            "hooks.postToolUse",
            "hooks.userPromptSubmit",
            "toolArchive.enabled",
            "pins.enabled",
            "bootstrap.claudeMd",
            "statusline.quota",
            "taskChange.enabled",
            "learn.enabled",
            "continue.echo",
        ] {
            assert!(text.contains(&format!("si set {key} false")), "{key}: {text}");
        }
    }
}

#[test]
fn a_script_writes_to_the_log_and_tail_shows_it() {
    let sandbox = Sandbox::new();
    assert_eq!(si(&sandbox, &["tail"]).stdout, "The log is empty.\n");
    sandbox
        .si(["log", "INFO", "deploy", "one\u{1b}[31m\nline"])
        .var("CLAUDE_CODE_SESSION_ID", "session-number-1")
        .run();
    si(&sandbox, &["log", "error", "deploy", "two"]);
    si(&sandbox, &["log", "debug", "deploy", "not wanted"]);
    let all = si(&sandbox, &["tail", "--all"]).stdout;
    assert_eq!(all.lines().count(), 2, "{all}");
    assert!(all.contains("INFO  deploy           [ion-number-1] one [31m line\n"), "{all}");
    let one = si(&sandbox, &["tail", "--session", "session-number-1"]);
    assert_eq!(one.stdout.lines().count(), 1, "{one}");
    assert_eq!(si(&sandbox, &["tail", "--all", "--level", "error"]).stdout.lines().count(), 1);
    assert_eq!(si(&sandbox, &["tail", "--all", "-n", "0"]).stdout, "");
    assert_eq!(si(&sandbox, &["log", "loud", "x", "y"]).code, 64);
}

#[test]
fn completions_and_the_manual_page_name_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(si(&sandbox, &["completions", shell]).stdout.contains("archive-list"), "{shell}");
    }
    assert_eq!(si(&sandbox, &["completions", "tcsh"]).code, 64);
    let page = si(&sandbox, &["man"]).stdout;
    assert!(page.contains(".TH si 1") && page.contains("migrate"), "{page}");
    let folder = sandbox.root().join("man1");
    std::fs::create_dir(&folder).unwrap();
    let written = si(&sandbox, &["man", "--dir", folder.to_str().unwrap()]);
    assert_eq!((written.code, written.stdout.as_str(), written.stderr.as_str()), (0, "", ""), "{written}");
    assert_eq!(sandbox.read(folder.join("si.1")), page);
    for (command, option) in [("pin", "no\\-compact"), ("recover", "all"), ("install", "dry\\-run"), ("set", "yes")] {
        let text = sandbox.read(folder.join(format!("si-{command}.1")));
        assert!(text.contains(option) && text.contains(".SH OPTIONS"), "{command}: {text}");
    }
    assert!(!folder.join("si-slash.1").exists());
    let nowhere = si(&sandbox, &["man", "--dir", "/proc/no-such-folder"]);
    assert!(nowhere.code == 1 && nowhere.stderr.contains("cannot be written into /proc/no-such-folder"), "{nowhere}");
}

#[test]
fn without_a_home_every_report_still_answers() {
    let sandbox = Sandbox::new();
    for command in ["status", "doctor", "show", "config"] {
        let output = sandbox.si([command]).var("HOME", "relative").run();
        assert_eq!(output.code, 0, "{command}: {output}");
    }
    let output = sandbox.si(["set", "compact.threshold", "5", "--yes"]).var("HOME", "relative").run();
    assert_eq!((output.code, output.stderr.as_str()), (1, "si: there is no configuration folder: HOME is not set\n"));
}

#[test]
fn compactions_are_counted_without_contradiction() {
    let sandbox = Sandbox::new();
    let id = "5e55a0b1-0000-4000-8000-000000000001";
    transcript(&sandbox, id);
    let entry = json!({"t": sandbox.now_ms - 300_000, "sid": id, "cwd": sandbox.cwd, "tokens": 250_000});
    sandbox.write(&sandbox.home.join(".claude/logs/compact-history.jsonl"), format!("{entry}\n"));
    let output = si(&sandbox, &["status"]);
    let says = |piece: &str| assert!(output.stdout.contains(piece), "{piece}: {output}");
    says("compactions       the first began 5m ago, and is not in the transcript yet\n");
    says("1 compaction in the history, too few");
}
