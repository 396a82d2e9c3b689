//! Nothing that comes from elsewhere moves a terminal: escape sequences, control and bidirectional characters in every
//! place that text comes from, and every command that shows any of it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::properties::assert_printable;
use crate::support::{Output, Sandbox};

const SID: &str = "5e55a0b1-0000-4000-8000-000000000001";
/// A clipboard write, a title, a cleared screen, C1 controls, overrides, what cannot be seen, and a forged line.
const EVIL: &str = "e\u{1b}]52;c;aGk=\u{7}\u{1b}]0;t\u{1b}\\\u{1b}[2J\u{1b}[31mv\u{9b}2J\u{9d}0;x\u{9c}\u{202e}\u{2066}i\u{200b}\u{feff}\u{7f}\u{8}\r\u{2028}l";
/// What of it a name in git may hold.
const EVIL_REF: &str = "e\u{9b}2J\u{9d}0;x\u{9c}\u{202e}\u{2066}\u{200b}vil";

/// The payload of a redraw or a hook, with evil in every text.
fn payload(sandbox: &Sandbox) -> Value {
    json!({
        "session_id": SID, "transcript_path": transcript(sandbox), "cwd": sandbox.cwd, "hook_event_name": EVIL,
        "source": "startup", "trigger": EVIL, "custom_instructions": EVIL, "prompt": format!("deploy the {EVIL} of it now"),
        "model": {"id": EVIL, "display_name": EVIL}, "workspace": {"current_dir": sandbox.cwd, "project_dir": sandbox.cwd},
        "version": EVIL, "output_style": {"name": EVIL}, "effort": {"level": EVIL}, "vim": {"mode": EVIL},
        "agent": {"name": EVIL}, "worktree": {"name": EVIL, "path": EVIL, "branch": EVIL},
        "pr": {"number": 7, "url": EVIL, "review_state": EVIL}, "cost": {"total_cost_usd": 3.5, "total_duration_ms": 100_000},
        "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": 120_000, "output_tokens": 5}},
        "tool_name": EVIL, "tool_use_id": "toolu_evil",
        "tool_input": {"command": EVIL, "file_path": sandbox.cwd.join(EVIL), EVIL: EVIL},
        "tool_response": {"stdout": format!("{EVIL}\n").repeat(2000), "stderr": EVIL, EVIL: EVIL},
    })
}

fn transcript(sandbox: &Sandbox) -> std::path::PathBuf {
    let encoded = si::client::project::encode(&sandbox.cwd);
    sandbox.home.join(format!(".claude/projects/{encoded}/{SID}.jsonl"))
}

/// Puts evil into every place that si reads.
fn poison(sandbox: &Sandbox) {
    sandbox.repo(
        &sandbox.cwd,
        &json!({
            "branch": EVIL_REF, "commits": [{"message": format!("feat: {EVIL}"), "files": {"src/a.ts": "1\n"}}],
            "then": [["tag", EVIL_REF]], "dirty": {"src/a.ts": "2\n", "e\u{1b}[2J\u{202e}.txt": "x"},
        }),
    );
    let claude = sandbox.home.join(".claude");
    let tmp = |name: &str| sandbox.tmp.join(name.replace("{}", SID));
    let now = sandbox.now_ms;
    let line = |value: Value| format!("{value}\n");
    let row = |kind: &str, content: Value| {
        json!({"type": kind, "isSidechain": false, "uuid": EVIL, "sessionId": SID, "timestamp": sandbox.env().iso(now - 60_000),
            "version": EVIL, "gitBranch": EVIL, "message": {"id": EVIL, "role": kind, "model": EVIL, "content": content,
            "usage": {"input_tokens": 90_000, "output_tokens": 5}}})
    };
    let rows = [
        row("user", json!(format!("look for {EVIL}"))),
        row("assistant", json!([{"type": "tool_use", "id": "toolu_old", "name": EVIL, "input": {EVIL: EVIL}}])),
        row("user", json!([{"type": "tool_result", "tool_use_id": "toolu_old", "content": format!("found {EVIL}")}])),
        json!({"type": "system", "subtype": "compact_boundary", "sessionId": SID, "timestamp": EVIL,
            "compactMetadata": {"trigger": EVIL, "preTokens": 9, "postTokens": 5}}),
        row("assistant", json!([{"type": "text", "text": format!("found {EVIL}")}])),
    ];
    sandbox.write(&transcript(sandbox), rows.map(line).concat());
    let fields: Vec<&str> = si::statusline::fields::FIELDS.iter().map(|field| field.name).chain([EVIL]).collect();
    let config = json!({
        "statusline": {"preset": EVIL, "fields": fields, "separator": EVIL, EVIL: EVIL, "prevCommand": "",
            "serviceHealth": [{"name": EVIL, "url": EVIL}], "perProject": {EVIL: {EVIL: EVIL}}},
        "compact": {"threshold": EVIL, "feedback": EVIL}, "shape": {"dropGlobs": [EVIL], "scoring": EVIL},
        "debug": {"enabled": true}, EVIL: {EVIL: EVIL},
    });
    sandbox.write(&claude.join("session-intelligence.json"), config.to_string());
    sandbox.write(&claude.join("statusline-intel.json"), json!({"separator": EVIL, EVIL: EVIL}).to_string());
    let settings = json!({
        "statusLine": {"type": "command", "command": format!("/opt/{EVIL}")}, "enabledPlugins": {EVIL: true}, EVIL: EVIL,
        "hooks": {"PostToolUse": [{"matcher": EVIL, "hooks": [{"type": "command", "command": format!("/x/{EVIL}/si hook {EVIL}")},
            {"type": "command", "command": format!("/x/{EVIL}/si hook post-tool-use")},
            {"type": "command", "command": format!("node /{EVIL}/si-token-budget.js")}]}]},
    });
    sandbox.write(&claude.join("settings.json"), serde_json::to_string_pretty(&settings).unwrap());
    let notes = format!(
        "# {EVIL}\n\n## Current Task\ntype: feat — {EVIL}\nissue: #7 {EVIL}\n\n## Key Files\n- {EVIL}\n\n## {EVIL}\n{EVIL}\n"
    );
    sandbox.write(&transcript(sandbox).with_file_name("session-context.md"), notes);
    sandbox.write(&claude.join(format!("smartcompact/{SID}.md")), format!("- {EVIL}\n- second {EVIL}\n"));
    sandbox.write(&claude.join("logs/deploy-breadcrumb"), format!("{EVIL} 2026-01-01T00:00:00Z"));
    let history = json!({"t": now, "sid": SID, "cwd": sandbox.cwd, "tokens": 90_000, "cost": 1, "hotDirs": [EVIL],
        "warmDirs": [EVIL], "droppedDirs": [EVIL], "hadShift": false, "regretCount": 1, "regretDirs": [EVIL]});
    sandbox.write(&claude.join("logs/compact-history.jsonl"), line(history).repeat(6));
    let log = format!("[x] [ERROR] [{EVIL}] {EVIL} {{\"{EVIL}\": 1}}\n");
    let today = sandbox.env().local(now).format("%Y-%m-%d").to_string();
    sandbox.write(&claude.join(format!("logs/session-intel-{today}.log")), log);
    let state = json!({"wiredStatuslinePrev": EVIL, "wiredStatuslineAt": EVIL, "seededContexts": {EVIL: EVIL},
        "injectedClaudeMd": {EVIL: EVIL}, EVIL: EVIL});
    sandbox.write(&claude.join(".si-bootstrap-state"), state.to_string());
    let anchor = json!({"sessionId": SID, "cwd": sandbox.cwd, "projectRoot": EVIL, "startedAt": EVIL, "pid": 1});
    sandbox.write(&tmp("claude-ctx-shape-{}.session.json"), anchor.to_string());
    let entry = json!({"t": now - 1000, "tok": 50_000, "tool": EVIL, "root": EVIL, "file": EVIL, "event": null});
    sandbox.write(&tmp("claude-ctx-shape-{}.jsonl"), line(entry).repeat(30));
    sandbox.write(&tmp("claude-compact-state-{}"), EVIL);
    sandbox.write(&tmp("claude-tool-count-{}"), "41");
    let usage = json!({"sessionUsage": 5, "sessionResetAt": EVIL, "weeklyUsage": 7, "fetchedAt": now, "error": EVIL});
    sandbox.write(&tmp(&format!("claude-usage-cache-{}.json", sandbox.env().uid)), usage.to_string());
    let archived = json!({"id": "toolu_kept", "sid": SID, "tool": EVIL, "tool_input": {EVIL: EVIL}, "t": now, "chars": 9, "body": EVIL});
    sandbox.write(&tmp("claude-tool-archive-{}/toolu_kept.json"), archived.to_string());
    let index = json!({"id": "toolu_kept", "t": now, "tool": EVIL, "chars": 9, "preview": EVIL});
    sandbox.write(&tmp("claude-tool-archive-{}/index.jsonl"), line(index));
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Output {
    let words = args.iter().map(|arg| arg.to_string());
    sandbox.si(words).stdin(payload(sandbox).to_string()).var("CLAUDE_CODE_SESSION_ID", SID).run()
}

fn clean(args: &[&str], output: &Output) {
    let what = format!("si {}", args.join(" ").escape_debug());
    for (stream, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        // A lane that fails says so on stderr; nothing here may be such a fault of ours.
        assert!(!text.contains("panicked"), "{what}: {output}");
        assert_printable(&format!("{what}, {stream}"), &text.replace('\t', " "));
    }
}

#[test]
fn no_text_from_elsewhere_reaches_the_terminal_from_the_status_line() {
    let sandbox = Sandbox::new();
    poison(&sandbox);
    sandbox.settle_git(&sandbox.cwd);
    for args in [&["statusline"][..], &["statusline", "--explain"], &["statusline", "--preview"]] {
        let output = run(&sandbox, args);
        assert_eq!(output.code, 0, "{output}");
        assert!(
            output.stdout.contains("xvil") || args.len() > 1,
            "evil names are shown without what is evil: {output}"
        );
        clean(args, &output);
    }
    for columns in ["200", "60", "12"] {
        let output = sandbox.si(["statusline"]).stdin(payload(&sandbox).to_string()).var("COLUMNS", columns).run();
        clean(&["statusline", columns], &output);
    }
}

#[test]
fn no_text_from_elsewhere_reaches_the_user_from_a_hook() {
    let sandbox = Sandbox::new();
    poison(&sandbox);
    for hook in ["session-start", "user-prompt-submit", "post-tool-use", "pre-compact"] {
        let output = run(&sandbox, &["hook", hook]);
        let Ok(reply) = serde_json::from_str::<Value>(&output.stdout) else {
            assert!(output.stdout.is_empty() || hook == "pre-compact", "{hook}: {output}");
            continue;
        };
        let shown = reply["systemMessage"].as_str().unwrap_or_default();
        assert_printable(&format!("{hook}, systemMessage"), shown);
    }
}

/// Commands that show text from elsewhere, as a person types them.
fn commands() -> Vec<Vec<&'static str>> {
    let all = [
        "status",
        "doctor",
        "tail",
        "archive-list",
        "expand --list",
        "expand toolu_kept",
        "expand toolu_old",
        "expand toolu_none",
        "recover found",
        "recover --all found",
        "pin --list",
        "pin --remove 9",
        "show",
        "config",
        "explain",
        "get statusline.separator",
        "get statusline",
        "get shape.dropGlobs",
        "explain statusline.separator",
        "migrate",
        "reset all",
        "install --dry-run",
        "uninstall --dry-run",
        "set statusline.maxTaskLength 50",
        "set statusline.preset minimal --yes",
        "expand --prune",
        "pin --session nobody --list",
    ];
    let typed = [
        vec!["set", "statusline.separator", EVIL],
        vec!["set", EVIL, EVIL],
        vec!["get", EVIL],
        vec!["explain", EVIL],
        vec!["reset", EVIL],
        vec!["recover", EVIL],
        vec!["expand", EVIL],
        vec!["pin", "--session", EVIL, "--list"],
        vec!["status", "--session", EVIL],
        vec!["show", EVIL],
        vec![EVIL],
        vec!["pin", EVIL],
        vec!["log", "info", EVIL, EVIL],
        vec!["get", "--no-such-flag", EVIL],
    ];
    let all = all.into_iter().map(|line| line.split(' ').collect());
    all.chain(typed).collect()
}

/// Into a pipe some commands hand on word for word what they were asked for; the rest is clean there, too.
#[test]
fn no_text_from_elsewhere_reaches_a_terminal_from_a_command() {
    let sandbox = Sandbox::new();
    poison(&sandbox);
    for args in commands() {
        let output = run(&sandbox, &args);
        assert_ne!(output.code, 2, "{args:?}: {output}");
        let word_for_word =
            ["show", "get", "expand", "migrate", "reset", "set", "install", "uninstall"].contains(&args[0]);
        let stdout = if word_for_word { String::new() } else { output.stdout.clone() };
        clean(&args, &Output { stdout, ..output });
    }
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no script(1) here, so nothing was shown on a terminal");
        return;
    }
    for args in commands() {
        let shown = on_a_terminal(&sandbox, &args);
        clean(&args, &Output { code: 0, stdout: shown, stderr: String::new(), elapsed: Default::default() });
    }
}

/// What a command shows when all its streams are a terminal, whose line ends are made plain again.
fn on_a_terminal(sandbox: &Sandbox, args: &[&str]) -> String {
    let words: Vec<String> =
        std::iter::once(env!("CARGO_BIN_EXE_si")).chain(args.iter().copied()).map(quoted).collect();
    let typescript = sandbox.root().join("typescript");
    let run = sandbox.program("script", ["-qec", &words.join(" "), typescript.to_str().unwrap()]);
    run.var("CLAUDE_CODE_SESSION_ID", SID).var("SHELL", "/bin/sh").var("TERM", "xterm").run();
    let shown = String::from_utf8_lossy(&std::fs::read(Path::new(&typescript)).unwrap()).into_owned();
    // script(1) frames what was shown with two lines of its own, the first of which repeats the command.
    let (_, shown) = shown.split_once('\n').unwrap_or(("", &shown));
    let shown = shown.rsplit_once("\nScript done").map_or(shown, |(shown, _)| shown);
    // The terminal's own echo of the end of input.
    shown.replace("^D\u{8}\u{8}", "").replace("\r\n", "\n")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The trap does work: a terminal does get what a careless program writes.
#[test]
fn a_terminal_in_a_test_shows_what_it_is_sent() {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: no script(1) here");
        return;
    }
    let sandbox = Sandbox::new();
    let typescript = sandbox.root().join("typescript");
    sandbox
        .program("script", ["-qec", "printf 'a\\033[2Jb'", typescript.to_str().unwrap()])
        .var("SHELL", "/bin/sh")
        .run();
    assert!(sandbox.read(&typescript).contains("a\u{1b}[2Jb"));
}
