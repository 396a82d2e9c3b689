//! The previous status line command beside ours.

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
    assert_eq!(with_command(&sandbox, "printf '\\x1b[2J\\x1b[31mred\\x1b[0m\\a'", &[]), "Opus 4.8\n\x1b[31mred\x1b[0m");
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
