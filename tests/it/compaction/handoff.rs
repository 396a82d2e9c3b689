//! The handoff: what a compaction leaves, what of it is named, and the block that resumes from it.

use super::*;

#[test]
fn a_compaction_hands_over_to_the_next_start_of_the_same_session() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    start(&sandbox, "startup");
    shape_log(&sandbox);
    sandbox.write(
        &notes(&sandbox),
        "## Current Task\ntype: bug-fix — login loop\nissue: #7\n\n## Next steps\n- write the test\n",
    );
    commit(&sandbox, "src/billing/ledger.ts", "fix: rounding");
    sandbox.write(&sandbox.cwd.join("src/billing/ledger.ts"), "changed");
    sandbox.write(&sandbox.cwd.join("src/billing/.env"), "SECRET=1");
    compact(&sandbox);
    let file = folder(&sandbox).join(".si-handoff.json");
    let handoff: Value = serde_json::from_str(&sandbox.read(&file)).unwrap();
    assert_eq!(handoff["inFlightFiles"], json!(["M src/billing/ledger.ts"]), "{handoff}");
    assert_eq!(handoff["nextPriorities"], json!(["write the test"]));
    assert_eq!(handoff["hotDirs"], json!(["src/billing"]));
    assert!(handoff["recentCommits"][0].as_str().unwrap().ends_with(" fix: rounding"), "{handoff}");

    let other = json!({"session_id": "another", "cwd": sandbox.cwd, "source": "startup"});
    let other = reply(&sandbox.hook("SessionStart", &other).run());
    assert!(!for_model(&other).contains("SESSION RESUME") && file.exists(), "another session leaves it alone");

    let resumed = start(&sandbox, "compact");
    let (block, banner) = (for_model(&resumed), for_user(&resumed));
    assert!(
        block.starts_with("SESSION RESUME") && block.contains("type: bug-fix — login loop\nissue: #7\n"),
        "{block}"
    );
    assert!(block.contains("- write the test\n") && block.contains("- M src/billing/ledger.ts\n"), "{block}");
    assert!(banner.starts_with("Resuming: bug-fix — login loop · 1 file in flight"), "{banner}");
    assert_eq!(banner.lines().count(), 1, "{banner}");
    assert!(block.contains(banner), "the model is asked to echo it");
    assert!(!file.exists() && start(&sandbox, "compact").is_null(), "once");
}

#[test]
fn a_handoff_that_is_old_damaged_or_empty_resumes_nothing() {
    let hour = 3_600_000;
    let with =
        |t: i64, id: &str| json!({"t": t, "sessionId": id, "currentTask": "x", "currentTaskAgeHours": 0}).to_string();
    let sandbox = Sandbox::new();
    start(&sandbox, "startup");
    let file = folder(&sandbox).join(".si-handoff.json");
    for (content, left) in [
        (with(sandbox.now_ms - hour - 1000, ID), false),
        (with(sandbox.now_ms - hour - 1000, "another"), false),
        (with(sandbox.now_ms, "another"), true),
        (String::new(), false),
        ("[]".into(), false),
        ("null".into(), false),
        ("{}".into(), false),
        ("{oops".into(), false),
    ] {
        sandbox.write(&file, &content);
        assert_eq!(start(&sandbox, "compact"), Value::Null, "{content}");
        assert_eq!(file.exists(), left, "{content}");
    }
    let names = std::fs::read_dir(folder(&sandbox)).unwrap().flatten().map(|entry| entry.file_name());
    let aside: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".corrupt.")).collect();
    assert_eq!(aside.len(), 1, "only what may hold something is kept: {aside:?}");
}

#[test]
fn pins_come_before_the_resume_block_and_the_reply_stays_short() {
    let sandbox = Sandbox::new();
    start(&sandbox, "startup");
    let files: Vec<String> = (0..20).map(|n| format!("M src/{}{n}.ts", "f".repeat(60))).collect();
    let handoff = json!({"t": sandbox.now_ms, "sessionId": ID, "currentTask": "type: fix — loop", "currentTaskAgeHours": 0, "inFlightFiles": files});
    for (pin, shown) in [(100, true), (7500, true), (9500, false)] {
        sandbox.write(&folder(&sandbox).join(".si-handoff.json"), handoff.to_string());
        sandbox.si(["pin", "--session", ID, "--clear"]).run();
        let output = sandbox.si(["pin", "--session", ID, &"p".repeat(pin)]).run();
        assert_eq!(output.code, 0, "{output}");
        let resumed = start(&sandbox, "compact");
        let block = for_model(&resumed);
        assert!(block.contains(&"p".repeat(pin)), "the pin is whole: {pin}");
        assert_eq!(block.contains("SESSION RESUME"), shown, "{pin}: {block}");
        assert!(!shown || block.contains("type: fix — loop"), "{pin}: {block}");
        assert!(for_user(&resumed).starts_with("Resuming: fix — loop · 20 files in flight"), "{pin}: {resumed}");
    }
}

#[test]
fn two_sessions_of_a_project_that_compact_at_once_both_resume() {
    let sandbox = Sandbox::new();
    start(&sandbox, "startup");
    sandbox.write(&notes(&sandbox), "## Current Task\ntype: fix — loop\n");
    let of = |id: &str, more: Value| {
        let mut payload = json!({"session_id": id, "cwd": sandbox.cwd});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let resumes = |id: &str| {
        let output = sandbox.hook("SessionStart", &of(id, json!({"source": "compact"}))).run();
        output.stdout.contains("SESSION RESUME")
    };
    for order in [["one-session", "other-session"], ["other-session", "one-session"]] {
        for id in ["one-session", "other-session"] {
            assert_eq!(sandbox.hook("PreCompact", &of(id, json!({"trigger": "auto"}))).run().code, 0);
        }
        for id in order {
            assert!(resumes(id) && !resumes(id), "{id} of {order:?}");
        }
    }
}

#[test]
fn the_resume_block_can_be_turned_off_or_left_without_its_echo() {
    let sandbox = Sandbox::new();
    start(&sandbox, "startup");
    let handoff =
        json!({"t": sandbox.now_ms, "sessionId": ID, "currentTask": "type: fix — loop", "currentTaskAgeHours": 0})
            .to_string();
    let config = sandbox.home.join(".claude/session-intelligence.json");
    sandbox.write(&folder(&sandbox).join(".si-handoff.json"), &handoff);
    sandbox.write(&config, "{\"continue\":{\"afterCompact\":false}}");
    assert_eq!(start(&sandbox, "compact"), Value::Null);
    assert!(folder(&sandbox).join(".si-handoff.json").exists());
    sandbox.write(&config, "{\"continue\":{\"echo\":false}}");
    let resumed = start(&sandbox, "compact");
    assert!(!for_model(&resumed).contains(for_user(&resumed)), "{resumed}");
    assert!(for_model(&resumed).contains("Carry on in that same reply"), "{resumed}");
}

/// What the last compaction of the session left.
fn left(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read(folder(sandbox).join(".si-handoff.json"))).unwrap()
}

#[test]
fn no_secret_file_is_named_though_a_person_wrote_it_down() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    sandbox.write(
        &notes(&sandbox),
        "## Current Task\ntype: fix — login\n\n## Key Files\n- src/auth/session.ts\n- .env.production\n\
         - `deploy/id.pem` (the key)\n- server.KEY\n- Credentials.json\n- config/*.toml\n",
    );
    sandbox.write(&sandbox.cwd.join("deploy/notes.txt"), "one\ntwo\nthree\n");
    sandbox.git(&sandbox.cwd, &["add", "."], &[]);
    sandbox.git(&sandbox.cwd, &["commit", "-q", "-m", "notes"], &[]);
    sandbox.git(&sandbox.cwd, &["mv", "deploy/notes.txt", "deploy/secret-notes.txt"], &[]);
    compact(&sandbox);
    let handoff = left(&sandbox);
    assert_eq!(handoff["keyFiles"], "- src/auth/session.ts\n- config/*.toml", "{handoff}");
    let block = start(&sandbox, "compact");
    for secret in [".env", ".pem", "secret", ".KEY", "Credentials"] {
        assert!(!handoff.to_string().contains(secret) && !block.to_string().contains(secret), "{secret}: {handoff}");
    }
}

/// Compacts until the handoff names these files: on a busy machine git may not answer in time.
#[track_caller]
fn in_flight_is(sandbox: &Sandbox, want: &Value) {
    for _ in 0..40 {
        compact(sandbox);
        if left(sandbox)["inFlightFiles"] == *want {
            return;
        }
    }
    panic!("{} are in flight, not {want}", left(sandbox)["inFlightFiles"]);
}

#[test]
fn a_claude_md_in_which_only_our_block_is_new_is_nobodys_work() {
    let sandbox = Sandbox::new();
    repo(&sandbox, "feat: one");
    start(&sandbox, "startup");
    sandbox.write(&notes(&sandbox), "## Current Task\ntype: fix — login\n");
    let rules = sandbox.cwd.join("CLAUDE.md");
    assert!(sandbox.read(&rules).starts_with(BEGIN));
    in_flight_is(&sandbox, &json!([]));
    sandbox.write(&rules, format!("# Mine\n\n{}", sandbox.read(&rules)));
    in_flight_is(&sandbox, &json!(["?? CLAUDE.md"]));
    // One that was there before is in flight for what a person changed in it.
    sandbox.write(&rules, "# Mine\n");
    sandbox.git(&sandbox.cwd, &["add", "."], &[]);
    sandbox.git(&sandbox.cwd, &["commit", "-q", "-m", "rules"], &[]);
    start(&sandbox, "startup");
    assert!(sandbox.read(&rules).contains(BEGIN));
    in_flight_is(&sandbox, &json!([]));
    sandbox.write(&rules, sandbox.read(&rules).replace("# Mine", "# Ours"));
    in_flight_is(&sandbox, &json!(["M CLAUDE.md"]));
}

#[test]
fn a_claude_md_in_another_encoding_is_left_alone_and_doctor_says_so() {
    for mark in [[0xff, 0xfe], [0xfe, 0xff]] {
        let sandbox = Sandbox::new();
        repo(&sandbox, "feat: one");
        let units = "# Mine\r\n".encode_utf16();
        let text = units.flat_map(|unit| if mark[0] == 0xff { unit.to_le_bytes() } else { unit.to_be_bytes() });
        let wide: Vec<u8> = mark.into_iter().chain(text).collect();
        std::fs::write(sandbox.cwd.join("CLAUDE.md"), &wide).unwrap();
        start(&sandbox, "startup");
        assert_eq!(std::fs::read(sandbox.cwd.join("CLAUDE.md")).unwrap(), wide);
        let doctor = sandbox.si(["doctor"]).run();
        assert!(doctor.stdout.contains("CLAUDE.md was left alone") && doctor.stdout.contains("is UTF-16"), "{doctor}");
    }
}
