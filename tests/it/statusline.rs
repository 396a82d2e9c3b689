//! The status line through the binary: what it shows, where the figures come from, how it fits, and what it survives.

#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use si::text;

use crate::support::{Output, Sandbox};

const SESSION: &str = "5e55a0b1-0000-4000-8000-000000000001";

/// A payload with a session, a model and the sandbox's project, `extra` laid over it.
fn payload(sandbox: &Sandbox, extra: Value) -> Value {
    let mut payload = json!({
        "session_id": SESSION,
        "cwd": sandbox.cwd,
        "model": {"id": "claude-opus-4-8", "display_name": "Opus 4.8"},
    });
    for (key, value) in extra.as_object().unwrap() {
        payload[key] = value.clone();
    }
    payload
}

fn redraw(sandbox: &Sandbox, fields: &str, payload: &Value, vars: &[(&str, &str)]) -> Output {
    let mut run = sandbox.si(["statusline"]).stdin(payload.to_string());
    if !fields.is_empty() {
        run = run.var("CLAUDE_STATUSLINE_FIELDS", fields);
    }
    for (name, value) in vars {
        run = run.var(name, value);
    }
    let output = run.run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    output
}

/// The rows without colours.
fn shows(sandbox: &Sandbox, fields: &str, extra: Value) -> String {
    let output = redraw(sandbox, fields, &payload(sandbox, extra), &[("NO_COLOR", "1")]);
    output.stdout.trim_end_matches('\n').to_string()
}

/// The rows with colours.
fn paints(sandbox: &Sandbox, fields: &str, extra: Value) -> String {
    redraw(sandbox, fields, &payload(sandbox, extra), &[]).stdout.trim_end_matches('\n').to_string()
}

fn usage(input: u64, creation: u64, read: u64, output: u64) -> Value {
    json!({
        "input_tokens": input, "cache_creation_input_tokens": creation, "cache_read_input_tokens": read,
        "output_tokens": output,
    })
}

fn current(usage: Value) -> Value {
    json!({"context_window": {"current_usage": usage, "context_window_size": 1_000_000}})
}

/// A reply of the main conversation, `age_s` seconds old.
fn reply(sandbox: &Sandbox, id: &str, age_s: i64, usage: Value) -> Value {
    json!({
        "type": "assistant", "sessionId": SESSION, "timestamp": sandbox.env().iso(sandbox.now_ms - age_s * 1000),
        "message": {"id": id, "role": "assistant", "model": "claude-opus-4-8", "content": [], "usage": usage},
    })
}

fn boundary(sandbox: &Sandbox, age_s: i64, post: u64) -> Value {
    json!({
        "type": "system", "subtype": "compact_boundary", "sessionId": SESSION,
        "timestamp": sandbox.env().iso(sandbox.now_ms - age_s * 1000),
        "compactMetadata": {"trigger": "manual", "preTokens": 300_000, "postTokens": post},
    })
}

/// Writes a transcript where the client would and returns its path as a piece of payload.
fn transcript(sandbox: &Sandbox, rows: &[Value]) -> Value {
    let enc = si::client::project::encode(&sandbox.cwd);
    let path = sandbox.home.join(format!(".claude/projects/{enc}/{SESSION}.jsonl"));
    sandbox.write(&path, rows.iter().map(|row| format!("{row}\n")).collect::<String>());
    json!({"transcript_path": path})
}

fn config(sandbox: &Sandbox, statusline: Value) {
    let text = json!({"statusline": statusline}).to_string();
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), text);
}

/// Puts a program in front of the PATH and returns the new PATH.
fn shim(sandbox: &Sandbox, name: &str, script: &str) -> String {
    let bin = sandbox.root().join("bin");
    sandbox.write(&bin.join(name), script);
    std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Waits for a file that a detached process writes.
fn wait_for(path: &Path) -> String {
    let begun = Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ if begun.elapsed() > Duration::from_secs(20) => panic!("{} never came", path.display()),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

mod fields {
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
        assert_eq!(
            shows(&sandbox, "effort,worktree,pr", extra),
            "effort:high · wt:orchid-bar · PR #164 changes requested"
        );
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
}

mod layout {
    use super::*;

    const ALL: &str = "tokens,model,project,branch,cwd,task,sessionId,deploy,cacheHit";

    /// A session in a folder and on a branch with long names, some of them wide.
    fn busy(sandbox: &Sandbox) -> Value {
        let dir = sandbox.home.join("work/プロジェクト-with-a-long-name");
        let branch = "feat/164-a-branch-name-that-goes-on-and-on";
        let message = "修复登录页面的跳转问题 and a subject that is long as well";
        sandbox.repo(&dir, &json!({"branch": branch, "commits": [{"files": {"a": "1\n"}, "message": message}]}));
        let crumb = format!("gateway {}\n", sandbox.env().iso(sandbox.now_ms - 330_000));
        sandbox.write(&sandbox.home.join(".claude/logs/deploy-breadcrumb"), crumb);
        let mut extra = current(usage(12, 345, 424_943, 50));
        extra["cwd"] = json!(dir);
        payload(sandbox, extra)
    }

    #[test]
    fn rows_fit_the_terminal_less_the_clients_columns_and_tokens_always_stay() {
        let sandbox = Sandbox::new();
        let payload = busy(&sandbox);
        for columns in (20..=240).step_by(11) {
            let columns_text = columns.to_string();
            let output = redraw(&sandbox, ALL, &payload, &[("COLUMNS", &columns_text), ("NO_COLOR", "1")]);
            let row = output.stdout.trim_end_matches('\n');
            assert!(row.contains("425k/1M (43%)"), "{columns}: {row}");
            assert!(text::width(row) <= columns - 4, "{columns}: {} columns: {row}", text::width(row));
        }
        let unbounded = redraw(&sandbox, ALL, &payload, &[("NO_COLOR", "1")]).stdout;
        assert!(unbounded.contains("feat/164-a-branch-name-that-goes-on-and-on"), "{unbounded}");
    }

    #[test]
    fn colour_sequences_are_never_cut() {
        let sandbox = Sandbox::new();
        let payload = busy(&sandbox);
        for columns in ["30", "47", "80", "120"] {
            let plain = redraw(&sandbox, ALL, &payload, &[("COLUMNS", columns), ("NO_COLOR", "1")]).stdout;
            let coloured = redraw(&sandbox, ALL, &payload, &[("COLUMNS", columns)]).stdout;
            let mut bare = String::new();
            for (at, piece) in coloured.split("\x1b[").enumerate() {
                let text = if at == 0 { piece } else { piece.split_once('m').unwrap().1 };
                bare.push_str(text);
            }
            assert_eq!(bare, plain);
            assert_eq!(coloured.matches("\x1b[0m").count() * 2, coloured.matches("\x1b[").count(), "{coloured:?}");
        }
    }

    #[test]
    fn rows_without_content_are_left_out() {
        let sandbox = Sandbox::new();
        assert_eq!(shows(&sandbox, "newline,deploy,newline,newline,sessionId,newline", json!({})), "sid:5e55a0b1");
        assert_eq!(shows(&sandbox, "deploy,newline,branch", json!({})), "claude");
    }

    #[test]
    fn an_emoji_stands_close_to_its_neighbour() {
        let sandbox = Sandbox::new();
        sandbox.write(&sandbox.tmp.join(format!("claude-tool-count-{SESSION}")), "150");
        assert_eq!(shows(&sandbox, "emoji,model,emoji2,tools", json!({})), "🟢 Opus 4.8 · 🔧 150 tools");
    }

    #[test]
    fn a_config_that_does_not_parse_is_one_red_cell_at_the_end() {
        let sandbox = Sandbox::new();
        sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), "{\"statusline\": {},}");
        let row = paints(&sandbox, "model,sessionId", json!({}));
        assert!(row.ends_with("\x1b[2msid:5e55a0b1\x1b[0m\x1b[38;5;237m · \x1b[0m\x1b[31mconfig!\x1b[0m"), "{row:?}");
        let narrow = redraw(&sandbox, "model,sessionId,cwd", &payload(&sandbox, json!({})), &[("COLUMNS", "14")]);
        assert!(narrow.stdout.contains("config!"), "{narrow}");
        assert_eq!(shows(&sandbox, "branch", json!({})), "config!");
    }

    #[test]
    fn every_preset_shows_a_whole_session_at_every_width() {
        let sandbox = Sandbox::new();
        let rows = [
            reply(&sandbox, "a", 9_000, usage(5, 90_000, 8_000_000, 9_000)),
            boundary(&sandbox, 4_950, 9_000),
            reply(&sandbox, "b", 60, usage(5, 90_000, 420_000, 9_000)),
        ];
        let mut extra = transcript(&sandbox, &rows);
        extra["cost"] = json!({"total_duration_ms": 241_234_567});
        let payload = payload(&sandbox, extra);
        for (preset, fields) in si::config::PRESETS {
            for columns in ["40", "60", "80", "120", "200"] {
                let vars = [("CLAUDE_STATUSLINE_PRESET", *preset), ("COLUMNS", columns), ("NO_COLOR", "1")];
                let output = redraw(&sandbox, "", &payload, &vars);
                let rows: Vec<&str> = output.stdout.lines().collect();
                let breaks = fields.iter().filter(|field| **field == "newline").count();
                assert!(
                    rows.len() <= breaks + 1 && output.stdout.contains("/1M (51%)"),
                    "{preset} {columns}: {output}"
                );
                let widest = rows.iter().map(|row| text::width(row)).max().unwrap();
                assert!(widest + 4 <= columns.parse().unwrap(), "{preset} {columns}: {output}");
            }
        }
    }
}

mod previous {
    use super::*;

    fn with_command(sandbox: &Sandbox, command: &str, vars: &[(&str, &str)]) -> String {
        config(sandbox, json!({"prevCommand": command, "fields": ["model"], "prevTimeoutMs": 600}));
        let mut all = vec![("NO_COLOR", "1")];
        all.extend_from_slice(vars);
        redraw(sandbox, "", &payload(sandbox, json!({})), &all).stdout.trim_end_matches('\n').to_string()
    }

    #[test]
    fn the_previous_command_runs_beside_ours() {
        let sandbox = Sandbox::new();
        let state = json!({"wiredStatuslinePrev": "echo \"it's $HOME\"; cut -c1-13"});
        sandbox.write(&sandbox.home.join(".claude/.si-bootstrap-state"), state.to_string());
        let rows = shows(&sandbox, "model", json!({}));
        assert_eq!(rows, format!("Opus 4.8\nit's {}\n{{\"session_id\"", sandbox.home.display()));
        // A command that the user set stands in for it, and an empty one takes it away.
        assert_eq!(with_command(&sandbox, "echo mine", &[]), "Opus 4.8\nmine");
        assert_eq!(with_command(&sandbox, "", &[]), "Opus 4.8");
    }

    #[test]
    fn the_switches_are_on_for_any_value_but_empty_and_0() {
        let sandbox = Sandbox::new();
        for (name, value, rows) in [
            ("CLAUDE_STATUSLINE_NO_PREV", "yes", "Opus 4.8"),
            ("CLAUDE_STATUSLINE_NO_PREV", "0", "Opus 4.8\nPREV"),
            ("CLAUDE_STATUSLINE_NO_INTEL", "1", "PREV"),
            ("CLAUDE_STATUSLINE_NO_INTEL", "0", "Opus 4.8\nPREV"),
            ("CLAUDE_STATUSLINE_PREV_FIRST", "1", "PREV\nOpus 4.8"),
            ("CLAUDE_STATUSLINE_PREV_FIRST", "0", "Opus 4.8\nPREV"),
            ("CLAUDE_STATUSLINE_PREV_FIRST", "", "Opus 4.8\nPREV"),
            ("CLAUDE_STATUSLINE_SEP", " || ", "Opus 4.8 || PREV"),
        ] {
            assert_eq!(with_command(&sandbox, "echo PREV", &[(name, value)]), rows, "{name}={value}");
        }
        let both = [("CLAUDE_STATUSLINE_NO_PREV", "1"), ("CLAUDE_STATUSLINE_NO_INTEL", "1")];
        assert_eq!(with_command(&sandbox, "echo PREV", &both), "claude");
    }

    #[test]
    fn a_command_that_fails_hangs_or_floods_costs_its_own_rows_alone() {
        let sandbox = Sandbox::new();
        assert_eq!(with_command(&sandbox, "echo E >&2; echo out; exit 3", &[]), "Opus 4.8\nout");
        assert_eq!(with_command(&sandbox, "/nonexistent/program", &[]), "Opus 4.8");
        assert_eq!(
            with_command(&sandbox, "printf '\\x1b[2J\\x1b[31mred\\x1b[0m\\a'", &[]),
            "Opus 4.8\n\x1b[31mred\x1b[0m"
        );
        let begun = Instant::now();
        assert_eq!(with_command(&sandbox, "sleep 30; echo late", &[]), "Opus 4.8");
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert!(with_command(&sandbox, "yes", &[]).len() < 100 << 10);
    }

    #[test]
    fn a_command_that_comes_back_to_us_does_not_start_itself_again() {
        let sandbox = Sandbox::new();
        let again = format!("echo x >> '{}/count'; {} statusline", sandbox.tmp.display(), env!("CARGO_BIN_EXE_si"));
        assert_eq!(with_command(&sandbox, &again, &[]), "Opus 4.8\nOpus 4.8");
        assert_eq!(sandbox.read(sandbox.tmp.join("count")), "x\n");
    }
}

mod quota {
    use super::*;

    const CURL: &str = "#!/bin/sh\ncat > \"$TMPDIR/curl.stdin\"\necho \"$@\" > \"$TMPDIR/curl.args\"\n";

    fn credentials(sandbox: &Sandbox) {
        let document = json!({"claudeAiOauth": {"accessToken": "sk-ant-oat01-invented"}});
        sandbox.write(&sandbox.home.join(".claude/.credentials.json"), document.to_string());
    }

    fn cache(sandbox: &Sandbox) -> PathBuf {
        sandbox.tmp.join(format!("claude-usage-cache-{}.json", sandbox.env().uid))
    }

    fn block_usage(sandbox: &Sandbox, path: &str, vars: &[(&str, &str)]) -> String {
        let mut all = vec![("NO_COLOR", "1"), ("PATH", path)];
        all.extend_from_slice(vars);
        let output = redraw(sandbox, "blockUsage,weekUsage", &payload(sandbox, json!({})), &all);
        output.stdout.trim_end_matches('\n').to_string()
    }

    #[test]
    fn a_detached_refresh_fills_the_cells_and_no_list_of_processes_shows_the_token() {
        let sandbox = Sandbox::new();
        credentials(&sandbox);
        let resets = sandbox.env().iso(sandbox.now_ms + 4_350_000);
        let body = json!({"five_hour": {"utilization": 47.2, "resets_at": resets}, "seven_day": {"utilization": 31}});
        let path = shim(&sandbox, "curl", &format!("{CURL}printf '%s\\n200' '{body}'\n"));
        assert_eq!(block_usage(&sandbox, &path, &[]), "claude");
        let stored = wait_for(&cache(&sandbox));
        assert!(!stored.contains("invented"), "{stored}");
        assert_eq!(block_usage(&sandbox, &path, &[]), "b:47% r:1hr 12m · w:31%");
        let [args, stdin] = ["args", "stdin"].map(|what| sandbox.read(sandbox.tmp.join(format!("curl.{what}"))));
        assert!(!args.contains("invented") && stdin.contains("Bearer sk-ant-oat01-invented"), "{args} / {stdin}");
    }

    #[test]
    fn a_refusal_keeps_the_last_figures_and_is_not_repeated_at_once() {
        let sandbox = Sandbox::new();
        credentials(&sandbox);
        let path = shim(&sandbox, "curl", &format!("{CURL}printf '{{}}\\n429'\n"));
        let resets = sandbox.env().iso(sandbox.now_ms + 4_350_000);
        let old = json!({"sessionUsage": 12, "sessionResetAt": resets, "fetchedAt": sandbox.now_ms - 200_000});
        let op = json!({
            "op": "write", "base": "tmp", "path": cache(&sandbox).file_name().unwrap().to_str(), "json": old,
            "mtime_ago_s": 200,
        });
        sandbox.setup(&[op]);
        assert_eq!(block_usage(&sandbox, &path, &[]), "b:12% r:1hr 12m");
        wait_for(&sandbox.tmp.join("curl.args"));
        let begun = Instant::now();
        let stored = loop {
            let stored: Value = serde_json::from_str(&sandbox.read(cache(&sandbox))).unwrap();
            if stored["error"] == "rate-limited" {
                break stored;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{stored}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let wait_ms = stored["nextTryAt"].as_i64().unwrap() - sandbox.now_ms;
        assert!((295_000..400_000).contains(&wait_ms), "{wait_ms}");
        std::fs::remove_file(sandbox.tmp.join(format!("claude-usage-lock-{}.json", sandbox.env().uid))).unwrap();
        std::fs::remove_file(sandbox.tmp.join("curl.args")).unwrap();
        assert_eq!(block_usage(&sandbox, &path, &[]), "b:12% r:1hr 12m");
        std::thread::sleep(Duration::from_millis(300));
        assert!(!sandbox.tmp.join("curl.args").exists());
    }

    #[test]
    fn nothing_is_asked_without_a_token_or_against_the_users_word() {
        let sandbox = Sandbox::new();
        let path = shim(&sandbox, "curl", CURL);
        block_usage(&sandbox, &path, &[]);
        credentials(&sandbox);
        block_usage(&sandbox, &path, &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")]);
        config(&sandbox, json!({"quota": false}));
        block_usage(&sandbox, &path, &[]);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!sandbox.tmp.join("curl.args").exists());
    }
}

mod health {
    use super::*;

    #[test]
    fn a_slow_service_never_holds_the_redraw_and_its_answer_is_kept() {
        let sandbox = Sandbox::new();
        let script = "#!/bin/sh\necho x >> \"$TMPDIR/probes\"\nsleep 1\nprintf 204\n";
        let path = shim(&sandbox, "curl", script);
        config(
            &sandbox,
            json!({"serviceHealth": [{"name": "../api", "url": "https://api.example.test/h", "ttlSec": 600}]}),
        );
        let redraw = || {
            let vars = [("NO_COLOR", "1"), ("PATH", path.as_str())];
            redraw(&sandbox, "health", &payload(&sandbox, json!({})), &vars).stdout
        };
        let begun = Instant::now();
        assert_eq!(redraw(), "[○]\n");
        assert!(begun.elapsed() < Duration::from_millis(900), "the redraw waited for the probe");
        wait_for(&sandbox.tmp.join("probes"));
        // While a probe runs no second one starts.
        assert_eq!(redraw(), "[○]\n");
        assert!(wait_for(&sandbox.tmp.join("claude-health-api")).starts_with("204 "));
        assert_eq!(redraw(), "[●]\n");
        assert_eq!(sandbox.read(sandbox.tmp.join("probes")), "x\n");
    }
}

mod bad_input {
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
            for wrong in [json!(null), json!(true), json!(-1), json!("x"), json!([{}]), json!({"a": []}), json!(1e300)]
            {
                let mut bad = good.clone();
                bad[key] = wrong.clone();
                let output = redraw(&sandbox, &fields, &bad, &[("NO_COLOR", "1")]);
                for (owner, cell) in
                    [("session_id", "sid:5e55a0b1"), ("model", "Opus 4.8"), ("context_window", "300k/1M")]
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

    #[test]
    fn standard_input_that_stays_open_is_not_waited_for() {
        let sandbox = Sandbox::new();
        for (document, row) in
            [("{\"session_id\":\"abcdefgh-1\"}", "sid:abcdefgh\n"), ("{\"session_id\":\"ab", "claude\n")]
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
        sandbox.repo(
            &dir,
            &json!({"commits": [{"files": {"a": "1"}, "message": "fix: \u{1b}]52;c;aGk=\u{7}x\u{200b}y"}]}),
        );
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
}

mod modes {
    use super::*;

    #[test]
    fn the_clients_window_is_left_for_the_hooks() {
        let sandbox = Sandbox::new();
        let file = sandbox.tmp.join(format!("claude-context-window-{SESSION}"));
        for size in [200_000, 1_000_000] {
            shows(&sandbox, "model", json!({"context_window": {"context_window_size": size}}));
            assert_eq!(sandbox.read(&file), size.to_string());
        }
        shows(&sandbox, "model", json!({"context_window": {"context_window_size": null}}));
        assert_eq!(sandbox.read(&file), "1000000");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn explain_names_value_source_and_cost_of_each_field() {
        let sandbox = Sandbox::new();
        let rows = [reply(&sandbox, "a", 60, usage(1_000, 0, 249_000, 5))];
        let payload = payload(&sandbox, transcript(&sandbox, &rows));
        let run = sandbox.si(["statusline", "--explain"]).stdin(payload.to_string());
        let output = run.var("CLAUDE_STATUSLINE_FIELDS", "tokens,newline,branch,nope,sessionId").run();
        let lines: Vec<Vec<&str>> = output.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["FIELD", "VALUE", "SOURCE", "MS"]);
        assert_eq!(lines.len(), 5, "{output}");
        assert!(lines[1].contains(&"250k/1M") && lines[1].contains(&"transcript"), "{output}");
        assert_eq!(lines[2][..3], ["branch", "(empty)", "git"]);
        assert_eq!(lines[3], ["nope", "(not", "a", "field)"]);
        assert_eq!(lines[4][..3], ["sessionId", "sid:5e55a0b1", "stdin"]);
        for line in [&lines[1], &lines[2], &lines[4]] {
            assert!(line.last().unwrap().parse::<f64>().is_ok(), "{output}");
        }
    }

    #[test]
    fn preview_shows_the_users_layout_in_each_zone_without_input() {
        let sandbox = Sandbox::new();
        config(&sandbox, json!({"zones": {"yellow": 100_000, "orange": 150_000, "red": 250_000}}));
        let run = sandbox.si(["statusline", "--preview"]).var("COLUMNS", "100").var("NO_COLOR", "1");
        let output = run.var("CLAUDE_STATUSLINE_FIELDS", "zone,tokens,newline,branch").run();
        let blocks: Vec<&str> = output.stdout.trim_end().split("\n\n").collect();
        let want =
            [("▰▱▱▱", "green", "0"), ("▰▰▱▱", "yellow", "100k"), ("▰▰▰▱", "orange", "150k"), ("▰▰▰▰", "red", "250k")];
        assert_eq!(blocks.len(), want.len(), "{output}");
        for (block, (bar, zone, from)) in blocks.iter().zip(want) {
            let lines: Vec<&str> = block.lines().collect();
            assert_eq!(lines[0], format!("{bar} {zone} from {from}"));
            assert!(lines[1].starts_with(&format!("{zone} · ▰")) && lines[2] == "feat/164-statusline", "{output}");
        }
        for (preset, _) in si::config::PRESETS {
            let run = sandbox.si(["statusline", "--preview"]).var("CLAUDE_STATUSLINE_PRESET", preset).run();
            assert!(run.code == 0 && run.stdout.contains("/1M"), "{preset}: {run}");
        }
    }

    #[test]
    fn a_project_block_changes_the_layout_of_its_project_alone() {
        let sandbox = Sandbox::new();
        let project = sandbox.cwd.to_str().unwrap();
        config(&sandbox, json!({"fields": ["model"], "perProject": {project: {"fields": ["sessionId"]}}}));
        assert_eq!(shows(&sandbox, "", json!({})), "sid:5e55a0b1");
        assert_eq!(shows(&sandbox, "", json!({"cwd": "/elsewhere"})), "Opus 4.8");
    }

    #[test]
    fn with_tokens_alone_nothing_else_is_looked_at() {
        let sandbox = Sandbox::new();
        // A transcript and a repository that would both be noticed.
        let rows = [reply(&sandbox, "a", 60, usage(1_000, 0, 249_000, 5))];
        let mut extra = transcript(&sandbox, &rows);
        sandbox.repo(&sandbox.cwd, &json!({"commits": [{"files": {"a": "1\n"}}]}));
        extra["context_window"] = current(usage(0, 0, 425_300, 5))["context_window"].clone();
        shows(&sandbox, "tokens", extra);
        let names: Vec<String> = std::fs::read_dir(&sandbox.tmp)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".lock"))
            .collect();
        assert_eq!(names, [format!("claude-context-window-{SESSION}")]);
    }
}
