//! What each field shows, and where its figure comes from.

use super::*;

#[test]
fn tokens_are_whole_thousands_beside_a_bar_that_is_rounded_down() {
    let sandbox = Sandbox::new();
    for (tokens, cell) in [
        (950, "▰▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱ 950/1M (0%)"),
        (425_300, "▰▰▰▰▰▰▰▰▱▱▱▱▱▱▱▱▱▱▱▱ 425k/1M (43%)"),
        (499_999, "▰▰▰▰▰▰▰▰▰▱▱▱▱▱▱▱▱▱▱▱ 500k/1M (50%)"),
        (999_500, "▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▱ 1M/1M (100%)"),
        (1_250_000, "▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰▰ 1.25M/1M (125%)"),
    ] {
        assert_eq!(shows(&sandbox, "tokens", current(usage(0, 0, tokens, 5))), cell);
    }
}

#[test]
fn the_percentage_alone_is_of_the_window_in_the_colour_of_the_zone() {
    let sandbox = Sandbox::new();
    assert_eq!(paints(&sandbox, "contextPct", current(usage(0, 0, 425_300, 5))), "\x1b[31mctx:43%\x1b[0m");
    assert_eq!(shows(&sandbox, "contextPct", json!({})), "claude");
}

#[test]
fn thinking_and_prefix_are_whole_thousands() {
    let sandbox = Sandbox::new();
    let mut told = usage(1, 3_000, 120_000, 40_000);
    told["output_tokens_details"] = json!({"thinking_tokens": 32_400});
    let extra = transcript(&sandbox, &[reply(&sandbox, "a", 60, told)]);
    assert_eq!(shows(&sandbox, "thinking,cacheTokens", extra), "think:32k · prefix:120k/3k");
}

#[test]
fn cache_writes_flow_in_and_only_cache_reads_are_cached() {
    let sandbox = Sandbox::new();
    let extra = transcript(&sandbox, &[reply(&sandbox, "a", 60, usage(1, 20, 300, 4_000))]);
    assert_eq!(shows(&sandbox, "tokenFlow", extra), "4.3k ↓21 ↑4.0k c300");
}

#[test]
fn only_what_warns_is_coloured() {
    let sandbox = Sandbox::new();
    sandbox.repo(&sandbox.cwd, &json!({"commits": [{"files": {"a": "1\n"}}], "dirty": {"a": "2\n"}}));
    sandbox.settle_git(&sandbox.cwd);
    for (field, extra, cell) in [
        ("dirty", json!({}), "\x1b[2m±1\x1b[0m"),
        ("diffstat", json!({}), "\x1b[2m(+1,-1)\x1b[0m"),
        ("outputStyle", json!({"output_style": {"name": "concise"}}), "\x1b[2mstyle:concise\x1b[0m"),
        ("cacheHit", current(usage(0, 90, 10, 1)), "\x1b[2;31mcache:10%\x1b[0m"),
        ("effort", json!({"effort": {"level": "high"}}), "\x1b[2meffort:high\x1b[0m"),
    ] {
        assert_eq!(paints(&sandbox, field, extra), cell, "{field}");
    }
}

#[test]
fn an_old_compaction_is_red_from_two_hours_on() {
    for (age_s, cell) in [(7_150, "\x1b[2mcompact:1hr 59m ago\x1b[0m"), (7_230, "\x1b[31mcompact:2hr ago\x1b[0m")] {
        let sandbox = Sandbox::new();
        let rows = [reply(&sandbox, "a", age_s + 9, usage(1, 1, 1, 1)), boundary(&sandbox, age_s, 9_000)];
        assert_eq!(paints(&sandbox, "compactAge", transcript(&sandbox, &rows)), cell);
    }
}

#[test]
fn a_compaction_of_another_session_says_nothing_about_this_one() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home.join(".claude/session-data/compaction-log.txt"), "x\n");
    let line = json!({"t": sandbox.now_ms - 60_000, "sid": "another", "cwd": sandbox.cwd, "tokens": 250_000});
    sandbox.write(&sandbox.home.join(".claude/logs/compact-history.jsonl"), format!("{line}\n"));
    let extra = transcript(&sandbox, &[reply(&sandbox, "a", 60, usage(1, 1, 1, 1))]);
    assert_eq!(shows(&sandbox, "compactAge,compactCost", extra), "claude");
}

#[test]
fn money_is_counted_in_the_transcript_and_told_by_the_client_only_without_one() {
    let sandbox = Sandbox::new();
    let told = json!({"total_cost_usd": 541.37});
    assert_eq!(shows(&sandbox, "cost,costSaved", json!({"cost": told})), "$541.37 · c$541.37");
    let rows = [
        reply(&sandbox, "a", 4_000, usage(0, 0, 2_000_000, 0)),
        boundary(&sandbox, 3_800, 9_000),
        reply(&sandbox, "b", 60, usage(0, 0, 1_000_000, 40_000)),
    ];
    let mut extra = transcript(&sandbox, &rows);
    extra["cost"] = told;
    let cells = shows(&sandbox, "cost,costSaved,cacheSaved,compactCost,compactions,burn", extra);
    assert_eq!(cells, "$2.50 · c$2.50 / s$13.50 · saved:$13.50 · c$1.50 / s$4.50 · 1 compaction · $1.50/hr");
}

#[test]
fn trivial_sums_are_left_out() {
    let sandbox = Sandbox::new();
    let extra = transcript(&sandbox, &[reply(&sandbox, "a", 60, usage(100, 0, 1_000, 10))]);
    assert_eq!(shows(&sandbox, "costSaved,compactCost,cacheSaved,burn", extra), "claude");
}

#[test]
fn the_output_style_is_its_name() {
    let sandbox = Sandbox::new();
    let style = json!({"output_style": {"name": "explanatory"}});
    assert_eq!(shows(&sandbox, "outputStyle,model", style), "style:explanatory · Opus 4.8 · explanatory");
    assert_eq!(shows(&sandbox, "model", json!({"output_style": {"name": "default"}})), "Opus 4.8");
}

#[test]
fn the_folder_of_the_workspace_stands_in_for_the_working_folder() {
    let sandbox = Sandbox::new();
    let dir = sandbox.home.join("work/orchid");
    sandbox.repo(&dir, &json!({"branch": "trunk", "commits": [{"files": {"a": "1\n"}}]}));
    let extra = json!({"cwd": null, "workspace": {"current_dir": dir}});
    assert_eq!(shows(&sandbox, "project,cwd,branch", extra), "orchid · ~/work/orchid · trunk");
}

#[test]
fn fields_that_need_the_task_load_it() {
    let sandbox = Sandbox::new();
    sandbox.repo(&sandbox.cwd, &json!({"commits": [{"files": {"a": "1"}, "message": "fix #4821 cookie"}]}));
    assert_eq!(shows(&sandbox, "issue", json!({})), "#4821");
    assert_eq!(shows(&sandbox, "emoji", json!({})), "🐛");
}

#[test]
fn the_issue_is_the_branchs_else_the_one_that_the_notes_name() {
    let sandbox = Sandbox::new();
    let extra = transcript(&sandbox, &[]);
    let notes = PathBuf::from(extra["transcript_path"].as_str().unwrap()).with_file_name("session-context.md");
    for (task, issue) in [
        ("type: fix — login\nissue: #164", "#164"),
        ("type: fix — login, see #3\nIssue: 164", "#164"),
        ("- **Issue:** GH-164\n- login loops", "#164"),
        ("type: fix — login\nissue: (#number, or none)", "claude"),
        ("type: fix — login\nissue: none", "claude"),
    ] {
        sandbox.write(&notes, format!("## Current Task\n{task}\n"));
        assert_eq!(shows(&sandbox, "issue", extra.clone()), issue, "{task}");
    }
    sandbox.write(&notes, "## Current Task\ntype: fix — login\nissue: #164\n");
    sandbox.repo(&sandbox.cwd, &json!({"branch": "feat/12-x", "commits": [{"files": {"a": "1"}}]}));
    assert_eq!(shows(&sandbox, "issue", extra), "#12");
}

#[test]
fn a_task_takes_as_many_columns_as_it_may() {
    let sandbox = Sandbox::new();
    let extra = transcript(&sandbox, &[]);
    let notes = PathBuf::from(extra["transcript_path"].as_str().unwrap()).with_file_name("session-context.md");
    config(&sandbox, json!({"maxTaskLength": 20}));
    for task in
        ["fix the login loop of the old client", "修复旧客户端的登录循环并补上测试用例", "🔥🔥🔥🔥🔥🔥🔥🔥🔥🔥🔥🔥"]
    {
        sandbox.write(&notes, format!("## Current Task\n{task}\n"));
        let shown = shows(&sandbox, "task", extra.clone());
        assert!(shown.ends_with('…') && (18..=20).contains(&text::width(&shown)), "{shown}");
    }
}

#[test]
fn a_task_is_shown_as_written_until_it_is_stale() {
    let sandbox = Sandbox::new();
    let mut extra = transcript(&sandbox, &[]);
    let notes = PathBuf::from(extra["transcript_path"].as_str().unwrap()).with_file_name("session-context.md");
    sandbox.write(&notes, "## Current Task\ntype: feat — statusline v2\n");
    assert_eq!(shows(&sandbox, "task", extra.clone()), "feat — statusline v2");
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(13 * 3600);
    std::fs::File::options().append(true).open(&notes).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(shows(&sandbox, "task", extra.take()), "feat — statusline v2 (stale)");
}

#[test]
fn only_the_estimate_is_marked() {
    let sandbox = Sandbox::new();
    assert_eq!(shows(&sandbox, "tokens", json!({})), "▰▱▱▱ idle");
    sandbox.write(&sandbox.tmp.join(format!("claude-token-budget-{SESSION}")), "1200");
    assert_eq!(shows(&sandbox, "tokens", json!({})), "▰▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱▱ ~1k/1M (0%)");
    let rows = [reply(&sandbox, "a", 60, usage(1_000, 0, 249_000, 5))];
    let extra = transcript(&sandbox, &rows);
    assert!(shows(&sandbox, "tokens", extra.clone()).ends_with(" 250k/1M (25%)"));
    config(&sandbox, json!({"tokenSource": "estimate"}));
    assert!(shows(&sandbox, "tokens", extra.clone()).ends_with(" ~1k/1M (0%)"));
    config(&sandbox, json!({"tokenSource": "transcript"}));
    assert_eq!(shows(&sandbox, "tokens", json!({})), "▰▱▱▱ idle");
}

#[test]
fn after_a_compaction_its_own_figure_counts_until_the_next_reply() {
    let sandbox = Sandbox::new();
    let rows = [reply(&sandbox, "a", 60, usage(1_000, 0, 249_000, 5)), boundary(&sandbox, 30, 2_896)];
    let mut extra = transcript(&sandbox, &rows);
    extra["context_window"] = json!({"current_usage": usage(0, 0, 0, 0), "context_window_size": 1_000_000});
    assert!(shows(&sandbox, "tokens", extra).ends_with(" 3k/1M (0%)"));
}

#[test]
fn the_window_is_the_clients_unless_what_is_used_proves_it_wrong() {
    let sandbox = Sandbox::new();
    let cell = |id: &str, window: Value| {
        let extra = json!({"model": {"id": id}, "context_window": window});
        shows(&sandbox, "tokens", extra).rsplit(' ').nth(1).unwrap().to_string()
    };
    let window = |tokens, size: u64| json!({"current_usage": usage(0, 0, tokens, 5), "context_window_size": size});
    assert_eq!(cell("claude-opus-4-8", window(150_000, 200_000)), "150k/200k");
    assert_eq!(cell("nobody-knows", window(150_000, 1_000_000)), "150k/1M");
    assert_eq!(cell("claude-opus-4-8", window(360_236, 200_000)), "360k/1M");
    assert_eq!(cell("claude-haiku-4-5", json!({"current_usage": usage(0, 0, 150_000, 5)})), "150k/200k");
    config(&sandbox, json!({"contextCap": 100_000}));
    assert_eq!(cell("claude-opus-4-8", window(150_000, 200_000)), "150k/100k");
}

#[test]
fn where_the_client_names_no_model_the_window_is_that_of_the_one_that_replied() {
    let sandbox = Sandbox::new();
    let extra = transcript(&sandbox, &[reply(&sandbox, "m1", 60, usage(0, 0, 100_000, 5))]);
    let row = std::fs::read_to_string(extra["transcript_path"].as_str().unwrap()).unwrap();
    let model = serde_json::from_str::<Value>(&row).unwrap()["message"]["model"].clone();
    let window = si::client::pricing::lookup(model.as_str().unwrap()).window;
    assert_eq!(window, 1_000_000, "not what an unknown model has");
    for unnamed in [json!(null), json!({}), json!("opus"), json!({"id": null})] {
        let mut extra = extra.clone();
        extra["model"] = unnamed;
        assert!(shows(&sandbox, "tokens", extra.clone()).ends_with("100k/1M (10%)"), "{extra}");
    }
}

#[test]
fn sums_over_the_session_are_not_the_context() {
    let sandbox = Sandbox::new();
    let mut extra = transcript(&sandbox, &[reply(&sandbox, "m1", 60, usage(12, 345, 79_643, 50))]);
    extra["context_window"] = json!({"total_input_tokens": 330_050, "context_window_size": 200_000});
    assert!(shows(&sandbox, "tokens", extra).ends_with("80k/200k (40%)"));
}

#[test]
fn a_cache_that_is_about_to_expire_says_what_a_cold_turn_costs() {
    let sandbox = Sandbox::new();
    let cell = |in_s: i64, ttl: &str, tokens: Value| {
        let expires = sandbox.now_ms / 1000 + in_s;
        let cache = json!({"warm": in_s > 0, "ttl": ttl, "expires_at": expires, "recache_tokens_if_cold": tokens});
        shows(&sandbox, "cacheTtl", json!({"prompt_cache": cache}))
    };
    assert_eq!(cell(280, "5m", json!(100_000)), "claude");
    assert_eq!(cell(100, "5m", json!(100_000)), "ttl:1m cold:$0.63");
    assert_eq!(cell(800, "1h", json!(100_000)), "ttl:13m cold:$1.00");
    assert_eq!(cell(-5, "5m", json!(100_000)), "cold:$0.63");
    assert_eq!(cell(-5, "5m", Value::Null), "cold");
}

#[test]
fn what_newer_clients_tell_has_fields_of_its_own() {
    let sandbox = Sandbox::new();
    let extra = json!({
        "effort": {"level": "high"}, "pr": {"number": 164, "review_state": "changes_requested"},
        "workspace": {"git_worktree": "orchid-bar"},
    });
    assert_eq!(shows(&sandbox, "effort,worktree,pr", extra), "effort:high · wt:orchid-bar · PR #164 changes requested");
    let merge_request = json!({"pr": {"number": 12, "url": "https://x", "kind": "mr"}});
    assert_eq!(shows(&sandbox, "pr", merge_request), "MR !12");
    assert_eq!(shows(&sandbox, "effort,worktree,pr", json!({"effort": 5, "pr": {}, "workspace": []})), "claude");
}

#[test]
fn commits_ahead_and_behind_are_those_of_the_upstream() {
    let sandbox = Sandbox::new();
    let origin = sandbox.root().join("origin");
    sandbox.repo(&origin, &json!({"commits": [{"files": {"a": "1"}}, {"files": {"a": "2"}}]}));
    let dir = sandbox.root().join("clone");
    let [from, to] = [&origin, &dir].map(|path| path.to_str().unwrap());
    sandbox.git(sandbox.root(), &["clone", "-q", from, to], &[]);
    assert_eq!(shows(&sandbox, "aheadBehind", json!({"cwd": dir})), "claude");
    sandbox.git(&dir, &["reset", "-q", "--hard", "HEAD~1"], &[]);
    sandbox.git(&dir, &["commit", "-q", "--allow-empty", "-m", "x"], &[]);
    sandbox.settle_git(&dir);
    assert_eq!(shows(&sandbox, "aheadBehind", json!({"cwd": dir})), "⇡1 ⇣1");
}
