//! What the status line survives: odd input, odd files, odd names.

use super::*;

#[test]
fn whatever_comes_on_standard_input_a_row_is_printed() {
    let sandbox = Sandbox::new();
    let deep = format!("{{\"model\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    for stdin in
        ["", "  \n", "{nope", "5", "null", "[]", "\"x\"", "{\"session_id\":", "\u{feff}{}", "\0\0", deep.as_str()]
    {
        let output = sandbox.si(["statusline"]).stdin(stdin).var("NO_COLOR", "1").run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{stdin:?}");
        assert!(output.stdout.starts_with("▰▱▱▱ idle\n"), "{stdin:?}: {output}");
    }
    let bad_bytes = sandbox.si(["statusline"]).stdin(b"{\"session_id\":\"\xff\xfeabc\"}".to_vec()).run();
    assert!(bad_bytes.code == 0 && bad_bytes.stdout.contains("abc"), "{bad_bytes}");
}

#[test]
fn a_leaf_of_a_wrong_type_harms_no_other_cell() {
    let sandbox = Sandbox::new();
    let all: Vec<&str> = si::statusline::fields::FIELDS.iter().map(|field| field.name).collect();
    let good = payload(
        &sandbox,
        json!({
            "transcript_path": "/nonexistent/t.jsonl", "output_style": {"name": "concise"},
            "workspace": {"current_dir": "/w", "git_worktree": "wt"}, "effort": {"level": "low"}, "pr": {"number": 4},
            "cost": {"total_cost_usd": 1.5, "total_duration_ms": 5_000_000},
            "context_window": {"context_window_size": 1_000_000, "current_usage": usage(1, 2, 300_000, 4)},
            "prompt_cache": {"ttl": "5m", "expires_at": 1, "recache_tokens_if_cold": 5},
            "rate_limits": {"five_hour": {"used_percentage": 42, "resets_at": sandbox.now_ms / 1000 + 600}},
        }),
    );
    let fields = all.join(",");
    for key in good.as_object().unwrap().keys() {
        for wrong in [json!(null), json!(true), json!(-1), json!("x"), json!([{}]), json!({"a": []}), json!(1e300)] {
            let mut bad = good.clone();
            bad[key] = wrong.clone();
            let output = redraw(&sandbox, &fields, &bad, &[("NO_COLOR", "1")]);
            for (owner, cell) in [("session_id", "sid:5e55a0b1"), ("model", "Opus 4.8"), ("context_window", "300k/1M")]
            {
                let shown = output.stdout.contains(cell);
                assert!(owner == key || shown, "{key}: {wrong}: {output}");
            }
            for nonsense in ["NaN", "inf", "null", "undefined", "-1"] {
                assert!(!output.stdout.contains(nonsense), "{key}: {wrong}: {output}");
            }
        }
    }
}

/// A figure beyond all sense is absent; one that was written as text counts, whatever it says.
#[test]
fn absurd_numbers_are_absent() {
    let sandbox = Sandbox::new();
    let now = sandbox.now_ms / 1000;
    let quota = |percent: Value, resets: Value| json!({"rate_limits": {"five_hour": {"used_percentage": percent, "resets_at": resets}}});
    let window = |size: Value| json!({"context_window": {"context_window_size": size, "current_usage": usage(0, 0, 300_000, 0)}});
    let used = |tokens: Value| json!({"context_window": {"context_window_size": 1_000_000, "current_usage": {"input_tokens": tokens}}});
    let huge: Value = serde_json::from_str("18446744073709551615").unwrap();
    for (fields, extra, cell) in [
        ("blockUsage", quota(json!(1e308), json!(now + 630)), "claude"),
        ("blockUsage", quota(json!(-5), json!(now + 630)), "claude"),
        ("blockUsage", quota(json!(-0.0), json!(now + 630)), "b:0% r:10m"),
        ("blockUsage", quota(json!("47"), json!(now + 630)), "b:47% r:10m"),
        ("blockUsage", quota(json!(47), json!(1e14)), "b:47%"),
        ("blockUsage", quota(json!(104), Value::Null), "b:104%"),
        ("cost", json!({"cost": {"total_cost_usd": -1}}), "claude"),
        ("cost", json!({"cost": {"total_cost_usd": 1e300}}), "claude"),
        ("cost", json!({"cost": {"total_cost_usd": "2.5"}}), "$2.50"),
        ("session", json!({"cost": {"total_duration_ms": -60_000}}), "claude"),
        ("session", json!({"cost": {"total_duration_ms": 1e300}}), "claude"),
        ("session", json!({"cost": {"total_duration_ms": "NaN"}}), "claude"),
        ("session", json!({"cost": {"total_duration_ms": "120000"}}), "2m"),
        ("contextPct", window(json!("1000000")), "ctx:30%"),
        ("contextPct", window(json!(1e300)), "ctx:30%"),
        ("contextPct", window(json!(-5)), "ctx:30%"),
        ("tokens", used(json!(1e14)), "▰▱▱▱ idle"),
        ("tokens", used(huge.clone()), "▰▱▱▱ idle"),
        ("pr", json!({"pr": {"number": huge}}), "claude"),
        ("pr", json!({"pr": {"number": "7"}}), "PR #7"),
        (
            "cacheTtl",
            json!({"prompt_cache": {"ttl": "5m", "expires_at": now + 90, "recache_tokens_if_cold": 1e300}}),
            "ttl:1m",
        ),
        ("cacheTtl", json!({"prompt_cache": {"ttl": "5m", "expires_at": 1e300}}), "claude"),
    ] {
        assert_eq!(shows(&sandbox, fields, extra.clone()), cell, "{extra}");
    }
}

#[test]
fn standard_input_that_stays_open_is_not_waited_for() {
    let sandbox = Sandbox::new();
    for (document, row) in [("{\"session_id\":\"abcdefgh-1\"}", "sid:abcdefgh\n"), ("{\"session_id\":\"ab", "claude\n")]
    {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_si"))
            .arg("statusline")
            .env_clear()
            .env("HOME", &sandbox.home)
            .env("TMPDIR", &sandbox.tmp)
            .env("CLAUDE_STATUSLINE_FIELDS", "sessionId")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(document.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), row);
        assert!(output.status.success() && begun.elapsed() < Duration::from_secs(10));
        drop(stdin);
    }
}

#[test]
fn a_transcript_that_is_missing_a_folder_or_unreadable_leaves_its_cells_empty() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.tmp.join("locked.jsonl"), "x");
    std::fs::set_permissions(sandbox.tmp.join("locked.jsonl"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let fifo = sandbox.tmp.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [sandbox.tmp.join("none.jsonl"), sandbox.tmp.clone(), sandbox.tmp.join("locked.jsonl"), fifo] {
        let fields = "tokens,cost,tokenFlow,compactAge,thinking,session,sessionId";
        let rows = shows(&sandbox, fields, json!({"transcript_path": path}));
        assert_eq!(rows, "▰▱▱▱ idle · sid:5e55a0b1", "{}", path.display());
    }
}

#[test]
fn a_home_or_a_temp_folder_that_is_missing_or_read_only_costs_no_cell() {
    let sandbox = Sandbox::new();
    let extra = current(usage(1, 2, 300_000, 4));
    let gone = sandbox.root().join("gone/deeper");
    let frozen = sandbox.root().join("frozen");
    std::fs::create_dir_all(frozen.join(".claude")).unwrap();
    std::fs::set_permissions(&frozen, std::fs::Permissions::from_mode(0o555)).unwrap();
    for (home, tmp) in [(&gone, &sandbox.tmp), (&frozen, &frozen), (&sandbox.home, &gone), (&gone, &gone)] {
        let vars = [("HOME", home.to_str().unwrap()), ("TMPDIR", tmp.to_str().unwrap()), ("NO_COLOR", "1")];
        let output = redraw(&sandbox, "tokens,sessionId", &payload(&sandbox, extra.clone()), &vars);
        assert!(output.stdout.ends_with(" 300k/1M (30%) · sid:5e55a0b1\n"), "{output}");
    }
    let relative = redraw(&sandbox, "tokens", &payload(&sandbox, extra), &[("HOME", "relative")]);
    assert!(relative.stdout.contains("300k"), "{relative}");
}

#[test]
fn hostile_names_reach_no_terminal() {
    let sandbox = Sandbox::new();
    let dir = sandbox.home.join("work/evil\u{202e}\u{7}dir");
    sandbox.repo(&dir, &json!({"commits": [{"files": {"a": "1"}, "message": "fix: \u{1b}]52;c;aGk=\u{7}x\u{200b}y"}]}));
    // git refuses such names, so HEAD is written by hand, as somebody else may have.
    std::fs::write(dir.join(".git/HEAD"), "ref: refs/heads/ma\u{1b}[31min\u{9b}2J\u{feff}\n").unwrap();
    let extra = json!({
        "cwd": dir, "session_id": "\u{1b}[2Jabcdef", "model": {"display_name": "Op\u{1b}]0;x\u{7}us\r\n"},
        "output_style": {"name": "con\u{0}cise"}, "effort": {"level": "hi\u{1b}[5mgh"}, "pr": {"number": 1, "review_state": "\u{1b}c"},
        "workspace": {"git_worktree": "w\u{202e}t"},
    });
    let output = redraw(
        &sandbox,
        "model,project,cwd,branch,sessionId,outputStyle,effort,pr,worktree,task",
        &payload(&sandbox, extra),
        &[("NO_COLOR", "1")],
    );
    let row = output.stdout.trim_end_matches('\n');
    assert!(!row.contains(text::is_unsafe), "{row:?}");
    assert!(row.contains("evildir") && row.contains("ma[31min") && row.contains("effort:hi[5mgh"), "{row:?}");
}

#[test]
fn a_separator_cannot_carry_control_characters() {
    let sandbox = Sandbox::new();
    config(&sandbox, json!({"fields": ["model", "sessionId"], "separator": "\u{1b}[2J|\n"}));
    assert_eq!(shows(&sandbox, "", json!({})), "Opus 4.8[2J| sid:5e55a0b1");
}
