//! Explain, preview, project blocks, and what is left for the hooks.

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
    // A working folder that drifted, before the session's start is on record.
    let drifted = json!({"cwd": "/elsewhere", "workspace": {"current_dir": "/elsewhere", "project_dir": project}});
    assert_eq!(shows(&sandbox, "", drifted), "sid:5e55a0b1");
    let other = json!({"cwd": project, "workspace": {"current_dir": project, "project_dir": "/elsewhere"}});
    assert_eq!(shows(&sandbox, "", other), "Opus 4.8");
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
