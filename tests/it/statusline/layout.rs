//! How rows fit the terminal.

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
            assert!(rows.len() <= breaks + 1 && output.stdout.contains("/1M (51%)"), "{preset} {columns}: {output}");
            let widest = rows.iter().map(|row| text::width(row)).max().unwrap();
            assert!(widest + 4 <= columns.parse().unwrap(), "{preset} {columns}: {output}");
        }
    }
}
