//! What happens around a compaction, through the real binary: session start and pre-compact.

#![allow(clippy::disallowed_methods, reason = "tests make files")]

mod handoff;

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

const ID: &str = "5e55a0b1-0000-4000-8000-000000000001";
const BEGIN: &str = "<!-- BEGIN session-intelligence:rules -->";
/// The longest reply and the longest guidance that the client takes whole.
const LIMIT: usize = 10_000;

fn enc(path: &Path) -> String {
    si::client::project::encode(path)
}

/// The client's folder of the project.
fn folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.home.join(".claude/projects").join(enc(&sandbox.cwd))
}

fn payload(sandbox: &Sandbox, more: Value) -> Value {
    let transcript = folder(sandbox).join(format!("{ID}.jsonl"));
    let mut payload = json!({"session_id": ID, "transcript_path": transcript, "cwd": sandbox.cwd});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload
}

/// Starts the session; what is printed is nothing or one JSON object.
fn start(sandbox: &Sandbox, source: &str) -> Value {
    reply(&sandbox.hook("SessionStart", &payload(sandbox, json!({"source": source}))).run())
}

fn reply(output: &Output) -> Value {
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    assert!(output.stdout.encode_utf16().count() <= LIMIT + 1, "{output}");
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_str(&output.stdout).unwrap() }
}

fn for_model(reply: &Value) -> &str {
    reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or("")
}

fn for_user(reply: &Value) -> &str {
    reply["systemMessage"].as_str().unwrap_or("")
}

/// Compacts the session and returns the guidance.
fn compact(sandbox: &Sandbox) -> String {
    compact_with(sandbox, json!({"trigger": "manual"}), &[])
}

fn compact_with(sandbox: &Sandbox, more: Value, vars: &[(&str, &str)]) -> String {
    let mut run = sandbox.hook("PreCompact", &payload(sandbox, more));
    for (key, value) in vars {
        run = run.var(key, value);
    }
    let output = run.run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    assert!(output.stdout.encode_utf16().count() <= LIMIT, "{output}");
    output.stdout
}

fn repo(sandbox: &Sandbox, message: &str) {
    let commit = json!({"commits": [{"files": {"src/auth/session.ts": "1", "src/billing/ledger.ts": "1", "old/tests/a.ts": "1"}, "message": message}]});
    sandbox.repo(&sandbox.cwd, &commit);
}

fn commit(sandbox: &Sandbox, file: &str, message: &str) {
    sandbox.write(&sandbox.cwd.join(file), message);
    sandbox.git(&sandbox.cwd, &["add", "-A"], &[]);
    sandbox.git(&sandbox.cwd, &["commit", "-q", "-m", message], &[]);
}

fn notes(sandbox: &Sandbox) -> PathBuf {
    folder(sandbox).join("session-context.md")
}

fn age(path: &Path, sandbox: &Sandbox, hours: i64) {
    let when = UNIX_EPOCH + Duration::from_millis((sandbox.now_ms - hours * 3_600_000) as u64);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(when).unwrap();
}

fn state(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read(sandbox.home.join(".claude/.si-bootstrap-state"))).unwrap()
}

/// The shape log of a session that moved from one folder by way of another to a third.
fn shape_log(sandbox: &Sandbox) {
    let mut rows = String::new();
    for n in 0..30 {
        let file = match n {
            0..8 => "old/tests/a.ts",
            8..16 => "lib/mid/x.ts",
            _ if n % 2 == 0 => "src/billing/ledger.ts",
            _ => "src/billing/.env",
        };
        let root = file.rsplit_once('/').unwrap().0;
        let path = sandbox.cwd.join(file);
        let row = json!({"t": n, "tok": 10_000 * (n + 1), "tool": "Edit", "root": root, "file": path, "event": null});
        rows.push_str(&format!("{row}\n"));
    }
    let event = json!({"t": 31, "tok": 300_000, "tool": "Bash", "root": null, "file": null, "event": "commit"});
    sandbox.write(&sandbox.tmp.join(format!("claude-ctx-shape-{ID}.jsonl")), format!("{rows}{event}\n"));
    sandbox.write(&sandbox.tmp.join(format!("claude-token-budget-{ID}")), "300000");
}

// --- session start

#[test]
fn a_first_start_sets_everything_up_once_and_says_so() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "fix: cookie (#9)");
    sandbox.git(&sandbox.cwd, &["checkout", "-q", "-b", "fix/164-login"], &[]);
    let first = start(&sandbox, "startup");
    for said in ["Settings file made", "Notes for this project made", "CLAUDE.md was made", "After /compact"] {
        assert!(for_user(&first).contains(said), "{said}: {first}");
    }
    assert_eq!(for_model(&first), "");
    let config: Value =
        serde_json::from_str(&sandbox.read(sandbox.home.join(".claude/session-intelligence.json"))).unwrap();
    assert_eq!(config.as_object().unwrap().keys().collect::<Vec<_>>(), ["$schema"], "the seed sets nothing");
    let text = sandbox.read(notes(&sandbox));
    let sha = &sandbox.git(&sandbox.cwd, &["rev-parse", "HEAD"], &[])[..7];
    let task = format!(
        "## Current Task\n<!-- si:autofill sha={sha} -->\ntype: bug-fix — fix: cookie (#9)\n\
         description: derived from last commit on `fix/164-login`\nissue: #164\n"
    );
    let files = format!(
        "## Key Files\n<!-- si:autofill sha={sha} -->\n- old/tests/a.ts\n- src/auth/session.ts\n- src/billing/ledger.ts\n"
    );
    assert!(text.contains(&task) && text.contains(&files), "{text}");
    assert_eq!(sandbox.read(sandbox.cwd.join("CLAUDE.md")).matches(BEGIN).count(), 1);

    let everything = || {
        let files = [
            notes(&sandbox),
            sandbox.cwd.join("CLAUDE.md"),
            sandbox.home.join(".claude/settings.json"),
            sandbox.home.join(".claude/.si-bootstrap-state"),
        ];
        files.map(|path| (path.metadata().unwrap().modified().unwrap(), sandbox.read(&path)))
    };
    let before = everything();
    assert_eq!(start(&sandbox, "startup"), Value::Null, "a second start has nothing to say");
    assert_eq!(everything(), before, "and writes nothing");
}

#[test]
fn only_a_fresh_conversation_touches_the_projects_own_files() {
    for source in ["resume", "compact", "fork"] {
        let sandbox = Sandbox::new();
        repo(&sandbox, "feat: one");
        start(&sandbox, source);
        assert!(!sandbox.cwd.join("CLAUDE.md").exists(), "{source}");
        assert!(!sandbox.read(notes(&sandbox)).contains("si:autofill"), "{source}");
    }
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    start(&sandbox, "clear");
    assert!(sandbox.cwd.join("CLAUDE.md").exists() && sandbox.read(notes(&sandbox)).contains("si:autofill"));
}

#[test]
fn autofill_follows_the_commits_and_keeps_off_what_a_person_wrote() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: price $5 and $$ and $& shown");
    start(&sandbox, "startup");
    assert!(sandbox.read(notes(&sandbox)).contains("type: feat — feat: price $5 and $$ and $& shown\n"));
    commit(&sandbox, "docs/two.md", "docs: two");
    start(&sandbox, "startup");
    let text = sandbox.read(notes(&sandbox));
    assert!(text.contains("type: docs — docs: two\n") && text.contains("- docs/two.md\n") && !text.contains("price"));
    // A line under the sentinel is changed by hand: from now on the section is the user's.
    sandbox.write(&notes(&sandbox), text.replace("type: docs — docs: two", "type: bug-fix — my own words"));
    commit(&sandbox, "three.rs", "feat: three");
    start(&sandbox, "startup");
    let text = sandbox.read(notes(&sandbox));
    assert!(text.contains("type: bug-fix — my own words\n"), "{text}");
    assert!(text.contains("- three.rs\n"), "the other section is still ours: {text}");
    sandbox.write(&notes(&sandbox), "## Current Task\n- mine\n\n## Key Files\n- mine.ts\n");
    commit(&sandbox, "four.rs", "feat: four");
    start(&sandbox, "startup");
    assert_eq!(sandbox.read(notes(&sandbox)), "## Current Task\n- mine\n\n## Key Files\n- mine.ts\n");
}

#[test]
fn secrets_of_a_commit_are_not_named() {
    let sandbox = Sandbox::new();
    sandbox.repo(
        &sandbox.cwd,
        &json!({"commits": [{"files": {".env": "1", "a.ts": "1", "k/id.pem": "1", "MySecret.txt": "1", "key.PEM": "1"}, "message": "x"}]}),
    );
    start(&sandbox, "startup");
    let text = sandbox.read(notes(&sandbox));
    assert!(text.contains("- a.ts"), "{text}");
    for secret in [".env", ".pem", "Secret", "PEM"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn a_start_in_a_subfolder_belongs_to_its_project() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    let deep = sandbox.cwd.join("src/auth");
    let elsewhere = json!({"cwd": deep, "source": "startup", "transcript_path": null});
    sandbox.hook("SessionStart", &payload(&sandbox, elsewhere)).run();
    assert!(sandbox.cwd.join("CLAUDE.md").exists() && !deep.join("CLAUDE.md").exists());
    let own = sandbox.home.join(".claude/projects").join(enc(&deep));
    assert!(own.join("session-context.md").exists(), "the folder is made where there is none");

    let sandbox = Sandbox::new();
    std::fs::create_dir_all(folder(&sandbox)).unwrap();
    let deep = sandbox.cwd.join("packages/api");
    std::fs::create_dir_all(&deep).unwrap();
    sandbox.hook("SessionStart", &payload(&sandbox, json!({"cwd": deep, "source": "startup"}))).run();
    assert!(notes(&sandbox).exists(), "the transcript's folder");
    let without = json!({"cwd": deep, "source": "startup", "transcript_path": "/etc/../x/y.jsonl"});
    sandbox.hook("SessionStart", &payload(&sandbox, without)).run();
    assert_eq!(std::fs::read_dir(sandbox.home.join(".claude/projects")).unwrap().count(), 1, "the nearest that exists");
    assert!(!sandbox.cwd.join("CLAUDE.md").exists(), "no project marker, no file");
}

#[test]
fn a_link_that_leads_out_of_the_project_is_not_written_through() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    let victim = sandbox.home.join(".profile");
    sandbox.write(&victim, "export A=1\n");
    std::os::unix::fs::symlink(&victim, sandbox.cwd.join("CLAUDE.md")).unwrap();
    start(&sandbox, "startup");
    assert_eq!(sandbox.read(&victim), "export A=1\n");
    std::fs::remove_file(sandbox.cwd.join("CLAUDE.md")).unwrap();
    let shared = sandbox.home.join("dotfiles/agents.md");
    sandbox.write(&shared, "mine\n");
    std::os::unix::fs::symlink(&shared, sandbox.cwd.join("CLAUDE.md")).unwrap();
    start(&sandbox, "startup");
    assert!(sandbox.read(&shared).starts_with("mine\n\n<!-- BEGIN"));
    assert!(sandbox.cwd.join("CLAUDE.md").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn switches_turn_each_step_off() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    let config = sandbox.home.join(".claude/session-intelligence.json");
    let off = json!({"bootstrap": {"claudeMd": false, "sessionContext": false, "statusline": false}, "continue": {"afterCompact": false}});
    sandbox.write(&config, off.to_string());
    assert_eq!(start(&sandbox, "startup"), Value::Null);
    assert!(!sandbox.cwd.join("CLAUDE.md").exists() && !notes(&sandbox).exists());
    assert!(!sandbox.home.join(".claude/settings.json").exists());
    sandbox.write(&config, json!({"hooks": {"sessionStart": false, "preCompact": false}}).to_string());
    assert_eq!(start(&sandbox, "startup"), Value::Null);
    assert_eq!(compact(&sandbox), "");
    assert!(!sandbox.home.join(".claude/logs/compact-history.jsonl").exists());
}

#[test]
fn sessions_that_start_together_lose_nothing() {
    let sandbox = Sandbox::new();
    let projects: Vec<PathBuf> = (0..8).map(|n| sandbox.root().join(format!("p{n}"))).collect();
    for dir in &projects {
        sandbox.repo(dir, &json!({"commits": [{"files": {"a": "1"}, "message": "x"}]}));
    }
    let said: Vec<String> = std::thread::scope(|scope| {
        let run = |(n, dir): (usize, &PathBuf)| {
            let payload = json!({"session_id": format!("s{n}"), "cwd": dir, "source": "startup"});
            let sandbox = &sandbox;
            scope.spawn(move || for_user(&reply(&sandbox.hook("SessionStart", &payload).run())).to_string())
        };
        let runs: Vec<_> = projects.iter().enumerate().map(run).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let state = state(&sandbox);
    for key in ["seededContexts", "autoFilled", "injectedClaudeMd"] {
        assert_eq!(state[key].as_object().unwrap().len(), 8, "{key}: {state}");
    }
    assert_eq!(said.iter().filter(|text| text.contains("After /compact")).count(), 1, "one tip for all");
    assert_eq!(said.iter().filter(|text| text.contains("Settings file made")).count(), 1);
}

#[test]
fn a_damaged_bootstrap_state_is_set_aside() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home.join(".claude/.si-bootstrap-state"), "{\"wiredStatuslinePrev\":\"bar");
    start(&sandbox, "startup");
    let names = std::fs::read_dir(sandbox.home.join(".claude")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(names.into_iter().any(|name| name.to_string_lossy().starts_with(".si-bootstrap-state.corrupt.")));
    assert!(state(&sandbox)["shownCompactResumeTip"].is_string());
}

#[test]
fn hostile_surroundings_change_no_exit_code() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    shape_log(&sandbox);
    for hook in ["SessionStart", "PreCompact"] {
        for stdin in ["", "null", "[]", "{", "\"x\"", "{\"cwd\":5,\"session_id\":[],\"source\":{},\"trigger\":1}"] {
            let output = sandbox.si(["hook", hook]).stdin(stdin).run();
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{hook} {stdin}: {output}");
        }
        for (key, value) in [
            ("HOME", ""),
            ("HOME", "relative"),
            ("HOME", "/nonexistent/home"),
            ("TMPDIR", "/nonexistent/tmp"),
            ("PATH", ""),
        ] {
            let output = sandbox.hook(hook, &payload(&sandbox, json!({}))).var(key, value).run();
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{hook} {key}={value}: {output}");
        }
    }
    // A configuration folder that cannot be written costs what would be remembered, not the guidance.
    let sandbox = Sandbox::new();
    shape_log(&sandbox);
    sandbox.write(&sandbox.root().join("file"), "");
    let blocked = sandbox.root().join("file/claude");
    let output = sandbox
        .hook("PreCompact", &payload(&sandbox, json!({})))
        .var("CLAUDE_CONFIG_DIR", blocked.to_str().unwrap())
        .run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    assert!(output.stdout.contains("PRESERVE (recently active"), "{output}");
}

// --- pre-compact

#[test]
fn the_guidance_holds_the_users_words_and_what_was_observed() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    shape_log(&sandbox);
    sandbox.write(
        &notes(&sandbox),
        "## Current Task\ntype: bug-fix\ndescription: round totals\n\n## Key Decisions\n- (what)\n",
    );
    let words = json!({"trigger": "manual", "custom_instructions": "keep the zebra"});
    let text = compact_with(&sandbox, words, &[]);
    assert!(text.starts_with("COMPACTION GUIDANCE (from session-context.md):\n"), "{text}");
    assert!(text.contains("CURRENT TASK:\ntype: bug-fix\ndescription: round totals\n"), "{text}");
    assert!(text.contains("PRESERVE (recently active, still in use):\n  - src/billing\n"), "{text}");
    assert!(text.contains("SAFE TO DROP (untouched for most of the session):\n  - old/tests\n"), "{text}");
    assert!(text.contains("PHASE MARKERS OBSERVED:\n  - commit\n"), "{text}");
    assert!(text.contains(&format!("{}/memory/\n", folder(&sandbox).display())), "{text}");
    assert!(!text.contains("zebra") && !text.contains("(what)") && !text.contains('\u{1b}') && !text.contains(".env"));
}

#[test]
fn the_same_work_gives_the_same_bytes() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    start(&sandbox, "startup");
    shape_log(&sandbox);
    let first = compact(&sandbox);
    start(&sandbox, "compact");
    // The session goes on in the same directory with other files, longer answers and one more call.
    let more = json!({"t": 40, "tok": 330_000, "tool": "Read", "root": "src/billing", "file": sandbox.cwd.join("src/billing/new.ts"), "event": null});
    let log = sandbox.tmp.join(format!("claude-ctx-shape-{ID}.jsonl"));
    let rows = sandbox.read(&log);
    sandbox.write(&log, format!("{rows}{more}\n"));
    assert_eq!(compact(&sandbox), first);
    let day = sandbox.read(sandbox.home.join(".claude/logs").join(log_name(&sandbox)));
    assert!(!day.contains("stable prefix changed"), "{day}");
    commit(&sandbox, "src/auth/x.ts", "feat: two");
    sandbox.write(&notes(&sandbox), "## Key Decisions\n- another\n");
    assert_ne!(compact(&sandbox), first);
    assert!(sandbox.read(sandbox.home.join(".claude/logs").join(log_name(&sandbox))).contains("stable prefix changed"));
    assert!(compact_with(&sandbox, json!({}), &[("CLAUDE_COMPACT_STABLE_PREFIX", "0")]).contains(" calls)"));
}

fn log_name(sandbox: &Sandbox) -> String {
    let day = sandbox.env().local(sandbox.now_ms).format("%Y-%m-%d").to_string();
    format!("session-intel-{day}.log")
}

#[test]
fn history_and_snapshot_hold_what_was_listed_and_the_transcripts_tokens() {
    let sandbox = Sandbox::new();
    shape_log(&sandbox);
    let usage = json!({"input_tokens": 20_000, "cache_read_input_tokens": 300_000, "cache_creation_input_tokens": 0, "output_tokens": 5});
    let row = json!({"type": "assistant", "sessionId": ID, "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"id": "m1", "role": "assistant", "model": "claude-opus-4-7", "usage": usage, "content": []}});
    sandbox.write(&folder(&sandbox).join(format!("{ID}.jsonl")), format!("{row}\n"));
    let text = compact(&sandbox);
    let history = sandbox.read(sandbox.home.join(".claude/logs/compact-history.jsonl"));
    let entry: Value = serde_json::from_str(history.trim_end()).unwrap();
    let snapshot = sandbox.tmp.join(format!("claude-compact-snapshot-{ID}.json"));
    let snapshot: Value = serde_json::from_str(&sandbox.read(snapshot)).unwrap();
    assert!(text.contains("SAFE TO DROP (untouched for most of the session):\n  - old/tests\n"));
    for record in [&entry, &snapshot] {
        assert_eq!(record["droppedDirs"], json!(["old/tests"]), "{record}");
        assert_eq!(record["hotDirs"], json!(["src/billing"]), "{record}");
        assert_eq!(record["tokens"], json!(320_000), "the transcript's, not the estimate's 300,000: {record}");
        assert!(record["cost"].as_f64().unwrap() > 0.0, "{record}");
    }
    assert_eq!((&entry["cwd"], &entry["hadShift"]), (&json!(sandbox.cwd), &json!(true)));
    let log = sandbox.read(sandbox.home.join(".claude/session-data/compaction-log.txt"));
    assert!(log.starts_with('[') && log.ends_with("] Context compaction triggered\n"), "{log}");
    // A budget that a compaction has rolled up no longer counts as context.
    let env = sandbox.env();
    let estimate = si::watch::budget::estimate(si::store::Store::new(&env), &si::store::Sid::new(ID));
    assert_eq!(estimate, 0);
}

#[test]
fn a_file_that_history_calls_important_keeps_its_directory() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    shape_log(&sandbox);
    assert!(compact(&sandbox).contains("- old/tests\n"), "a file that was only ever added is no anchor");
    for n in 0..3 {
        commit(&sandbox, "old/tests/a.ts", &format!("fix: {n}"));
    }
    std::fs::remove_dir_all(&sandbox.tmp).unwrap();
    std::fs::create_dir(&sandbox.tmp).unwrap();
    shape_log(&sandbox);
    let text = compact(&sandbox);
    assert!(text.contains("still in use):\n  - old/tests\n  - src/billing\n"), "{text}");
}

#[test]
fn hand_written_sections_grow_old_and_our_autofill_does_not_renew_them() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    sandbox.write(&notes(&sandbox), "## Current Task\n(hint)\n\n## Key Decisions\n- keep the zebra\n");
    age(&notes(&sandbox), &sandbox, 100);
    start(&sandbox, "startup");
    assert!(sandbox.read(notes(&sandbox)).contains("type: feat — feat: one"), "filled in just now");
    let text = compact(&sandbox);
    assert!(text.contains("type: feat — feat: one") && !text.contains("zebra"), "{text}");
    assert!(text.contains(&format!("(see {})", notes(&sandbox).display())), "{text}");
    let changed = sandbox.read(notes(&sandbox)).replace("keep the zebra", "keep both zebras");
    sandbox.write(&notes(&sandbox), changed);
    assert!(compact(&sandbox).contains("keep both zebras"));
}

#[test]
fn directives_about_memory_name_what_there_is_and_can_be_turned_off() {
    let sandbox = Sandbox::new();
    assert!(!compact(&sandbox).contains("PRIORITIES REVIEW"), "nothing to review");
    let memory = folder(&sandbox).join("memory");
    sandbox.write(&memory.join("MEMORY.md"), "## Next steps\n- ~~shipped~~\n");
    sandbox.write(&memory.join("project_session_2026-01-01_aa.md"), "## TODO\n- test it\n");
    let text = compact(&sandbox);
    let review = text.split("PRIORITIES REVIEW:").nth(1).unwrap();
    assert!(review.contains("memory/project_session_*.md, the newest") && !review.contains("MEMORY.md"), "{review}");
    let off = compact_with(&sandbox, json!({}), &[("CLAUDE_COMPACT_MEMORY_OFFLOAD", "0")]);
    assert!(!off.contains("MEMORY OFFLOAD") && !off.contains("PRIORITIES"), "{off}");
    let verbose = compact_with(&sandbox, json!({}), &[("CLAUDE_COMPACT_STABLE_PREFIX", "0")]);
    let day = sandbox.env().local(sandbox.now_ms).format("%Y-%m-%d").to_string();
    assert!(verbose.contains(&format!("project_session_{day}_5e55a0b1.md")), "{verbose}");
    assert!(verbose.contains("project_session_2026-01-01_aa.md"), "{verbose}");
}

#[test]
fn a_guidance_is_never_longer_than_the_client_takes() {
    let sandbox = Sandbox::new();
    shape_log(&sandbox);
    let long = "- a decision 🙂 with its reason\n".repeat(2000);
    sandbox.write(&notes(&sandbox), format!("## Current Task\nmine\n\n## Key Decisions\n{long}"));
    let text = compact(&sandbox);
    assert!(text.contains("CURRENT TASK:\nmine\n") && text.contains("(cut here for length"), "{text}");
    assert!(text.contains("PRESERVE (recently active"), "{text}");
}
