//! The configuration commands through the real binary: what is shown, what is written, and what is left alone.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

const FILE: &str = ".claude/session-intelligence.json";

fn sandbox(config: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home.join(FILE), config);
    sandbox
}

fn config(sandbox: &Sandbox) -> String {
    sandbox.read(sandbox.home.join(FILE))
}

fn si(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.si(args.iter().copied()).run()
}

fn slash(sandbox: &Sandbox, line: &str) -> Output {
    sandbox.si(["slash"]).stdin(format!("{line}\n")).run()
}

#[test]
fn without_yes_the_difference_is_the_answer() {
    let sandbox = Sandbox::new();
    let output = si(&sandbox, &["set", "compact.threshold", "75"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, "not written (add --yes)\n"));
    assert!(output.stdout.contains("+++ ") && output.stdout.contains("+    \"threshold\": 75\n"), "{output}");
    assert!(!sandbox.home.join(FILE).exists());
}

#[test]
fn several_keys_make_one_difference_and_one_write_and_the_rest_stays_byte_for_byte() {
    let before = "{\n\t\"zeta\": 12345678901234567890,\n\t\"compact\": {\"threshold\":  9},\n\t\"mine\": [1,2],\n\t\"statusline\": {}\n}";
    let sandbox = sandbox(before);
    let words = [
        "set",
        "Task length",
        "30",
        "compact.threshold=1_0",
        "statusline.zones.yellow",
        "150k",
        "taskChange.minTokens",
        "1.5m",
        "--yes",
    ];
    let output = si(&sandbox, &words);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(output.stdout.matches("+++ ").count(), 1);
    assert!(output.stdout.contains("need not be restarted"), "{output}");
    let after = config(&sandbox);
    assert!(
        after.starts_with(
            "{\n\t\"zeta\": 12345678901234567890,\n\t\"compact\": {\"threshold\":  10},\n\t\"mine\": [1,2],\n"
        ),
        "{after}"
    );
    assert!(!after.ends_with('\n'), "a missing last line break is the user's");
    let value: Value = serde_json::from_str(&after).unwrap();
    assert_eq!(value["statusline"], json!({"maxTaskLength": 30, "zones": {"yellow": 150_000}}));
    assert_eq!(value["taskChange"]["minTokens"], 1_500_000);
    assert_eq!(si(&sandbox, &["get", "yellow zone"]).stdout, "150000\n");
    let again = si(&sandbox, &words);
    assert!(again.stdout.starts_with("Nothing to change"), "{again}");
    assert_eq!(config(&sandbox), after);
}

#[test]
fn values_that_cannot_be_used_are_refused_together_and_nothing_is_written() {
    let sandbox = sandbox("{}\n");
    for (words, said) in [
        (
            &["compact.threshold", "soon"][..],
            "compact.threshold cannot be \"soon\": it takes a whole number from 1 to 10k, for example 50",
        ),
        (&["compact.threshold", "-5"], "cannot be \"-5\""),
        (
            &["shape.scoring", "best", "compact.autoblock", "maybe"],
            "; compact.autoblock cannot be \"maybe\": it takes true or false",
        ),
        (&["compact", "5"], "compact is a section"),
        (&["statusline.zones", r#"{"yellow":"x"}"#], "statusline.zones.yellow cannot be"),
        (&["a..b", "1"], "is not a key"),
    ] {
        let output = sandbox.si(["set"].iter().chain(words).chain(&["--yes"]).copied()).run();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{words:?}");
        assert!(output.stderr.contains(said), "{words:?}: {output}");
        assert_eq!(output.stderr.lines().count(), 1, "{output}");
    }
    for words in [
        &["set"][..],
        &["set", "compact.threshold"],
        &["set", "compact.threshold", "5", "debug.quiet"],
        &["get"],
        &["reset"],
    ] {
        assert_eq!(si(&sandbox, words).code, 64, "{words:?}");
    }
    assert_eq!(config(&sandbox), "{}\n");
}

#[test]
fn a_key_that_is_not_known_is_named_once_and_kept() {
    let sandbox = sandbox("{}\n");
    let output = si(&sandbox, &["set", "compact.treshold", "5k", "--yes"]);
    assert_eq!(output.code, 0);
    assert!(
        output.stderr.contains("compact.treshold is not a known key")
            && output.stderr.contains("did you mean compact.threshold?"),
        "{output}"
    );
    assert_eq!(si(&sandbox, &["get", "compact.treshold"]).stdout, "5000\n");
    let reset = si(&sandbox, &["reset", "all", "--yes"]);
    assert!(reset.stdout.starts_with("Nothing to change"), "{reset}");
    assert_eq!(si(&sandbox, &["reset", "compact.treshold", "--yes"]).code, 0);
    assert_eq!(si(&sandbox, &["reset", "compact.treshold", "--yes"]).code, 1);
}

#[test]
fn a_file_that_does_not_parse_is_never_touched() {
    for (text, at) in [
        ("{\"compact\": {},}", "line 1, column 16"),
        ("// mine\n{}", "line 1, column 1"),
        ("[1]", "something else than one JSON object"),
        ("\u{feff}{}", "byte order mark"),
        ("{\"a\": tru", "line 1"),
    ] {
        let sandbox = sandbox(text);
        sandbox.write(&sandbox.home.join(".claude/statusline-intel.json"), r#"{"separator":"|"}"#);
        for words in
            [&["set", "compact.threshold", "5", "--yes"][..], &["reset", "all", "--yes"], &["migrate", "--yes"]]
        {
            let output = si(&sandbox, words);
            assert_eq!(output.code, 1, "{words:?} on {text}: {output}");
            assert!(output.stderr.contains(at), "{words:?} on {text}: {output}");
            assert_eq!(config(&sandbox), text);
        }
        let show = si(&sandbox, &["show"]);
        assert_eq!(show.code, 0);
        assert!(show.stderr.contains("does not parse"), "{show}");
        let doctor = si(&sandbox, &["doctor"]);
        assert!(doctor.stdout.contains("FAIL  configuration"), "{doctor}");
    }
}

#[test]
fn a_disk_that_takes_nothing_loses_nothing() {
    let before = "{\n  \"compact\": { \"threshold\": 9 }\n}\n";
    let sandbox = sandbox(before);
    let script = format!("ulimit -f 0; exec {} set compact.threshold 10 --yes", env!("CARGO_BIN_EXE_si"));
    let output = Command::new("sh")
        .args(["-c", &script])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", &sandbox.home)
        .env("TMPDIR", &sandbox.tmp)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("si: write "), "{output:?}");
    assert_eq!(config(&sandbox), before);
    let left: Vec<_> =
        std::fs::read_dir(sandbox.home.join(".claude")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["session-intelligence.json"], "nothing half-written stays");
}

#[test]
fn settings_written_at_the_same_time_are_all_kept() {
    let sandbox = sandbox("{}\n");
    let keys = [
        "compact.threshold",
        "statusline.maxTaskLength",
        "shape.maxEntries",
        "toolArchive.maxPerSession",
        "taskChange.minTokens",
        "statusline.prevTimeoutMs",
        "shape.gitNexus.limit",
        "taskChange.transcriptTurns",
    ];
    std::thread::scope(|scope| {
        for key in keys {
            let sandbox = &sandbox;
            scope.spawn(move || assert_eq!(si(sandbox, &["set", key, "99", "--yes"]).code, 0));
        }
    });
    for key in keys {
        assert_eq!(si(&sandbox, &["get", key]).stdout, "99\n", "{key}");
    }
}

#[test]
fn a_link_to_the_file_stays_a_link() {
    let sandbox = Sandbox::new();
    let (target, link) = (sandbox.root().join("dotfiles.json"), sandbox.home.join(FILE));
    sandbox.write(&target, "{}\n");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(si(&sandbox, &["set", "compact.threshold", "5", "--yes"]).code, 0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(sandbox.read(&target).contains("\"threshold\": 5"));
}

#[test]
fn reset_brings_the_default_back_and_says_what_stands_in_its_way() {
    let sandbox = sandbox(
        r#"{"$schema":"s","compact":{"threshold":9,"autoblock":false},"statusline":{"zones":{"red":500000}},"mine":1}"#,
    );
    assert_eq!(si(&sandbox, &["reset", "compact.threshold", "--yes"]).code, 0);
    assert_eq!(si(&sandbox, &["get", "compact.threshold"]).stdout, "50\n");
    assert_eq!(si(&sandbox, &["reset", "statusline", "--yes"]).code, 0);
    assert_eq!(config(&sandbox), r#"{"$schema":"s","compact":{"autoblock":false},"mine":1}"#);
    let output = sandbox.si(["reset", "*", "--yes"]).var("CLAUDE_COMPACT_AUTOBLOCK", "0").run();
    assert_eq!(config(&sandbox), r#"{"$schema":"s","mine":1}"#);
    assert!(
        output.stderr.contains("note: compact.autoblock is false, from the variable CLAUDE_COMPACT_AUTOBLOCK"),
        "{output}"
    );
}

#[test]
fn migrate_folds_the_older_file_in_and_the_newer_one_wins() {
    let sandbox = sandbox(r#"{"statusline":{"separator":" / ","zones":{"red":500000}}}"#);
    sandbox.write(
        &sandbox.home.join(".claude/statusline-intel.json"),
        r#"{"separator":" | ","maxTaskLength":33,"zones":{"red":1,"yellow":2},"own":9007199254740993}"#,
    );
    let shown = si(&sandbox, &["migrate"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, "not written (add --yes)\n"));
    assert_eq!(si(&sandbox, &["migrate", "--yes"]).code, 0);
    let value: Value = serde_json::from_str(&config(&sandbox)).unwrap();
    assert_eq!(
        value["statusline"],
        json!({"separator": " / ", "zones": {"red": 500_000, "yellow": 2}, "maxTaskLength": 33, "own": 9_007_199_254_740_993_u64})
    );
    assert!(si(&sandbox, &["migrate", "--yes"]).stdout.starts_with("Nothing to migrate"));
    assert!(si(&Sandbox::new(), &["migrate"]).stdout.starts_with("Nothing to migrate: there is no "));
}

#[test]
fn the_form_marks_what_differs_and_its_values_stand_right_aligned() {
    let sandbox = sandbox(r#"{"statusline":{"maxTaskLength":33,"zones":{"red":450000}}}"#);
    let form = si(&sandbox, &["config"]).stdout;
    let line = |label: &str| form.lines().find(|line| line.trim_start().starts_with(label)).unwrap().to_string();
    assert!(line("Task length").ends_with(" 33 *"), "{form}");
    assert!(line("Red zone").ends_with(" 450k *"), "{form}");
    assert!(line("Yellow zone").ends_with(" 200k"), "{form}");
    let ends = ["Task length", "Red zone"].map(|label| line(label).chars().count());
    assert_eq!(ends[0], ends[1]);
    let all: Value = serde_json::from_str(&si(&sandbox, &["config", "--json"]).stdout).unwrap();
    let red = all[0]["keys"].as_array().unwrap().iter().find(|key| key["key"] == "statusline.zones.red").unwrap();
    assert_eq!(
        (&red["changed"], &red["value"], &red["source"]),
        (&json!(true), &json!(450_000), &json!("from session-intelligence.json"))
    );
    let schema: Value = serde_json::from_str(&si(&sandbox, &["config", "--schema"]).stdout).unwrap();
    assert_eq!(schema["properties"]["statusline"]["properties"]["maxTaskLength"]["default"], 70);
    let shown: Value = serde_json::from_str(&si(&sandbox, &["show"]).stdout).unwrap();
    assert_eq!(shown["statusline"]["zones"]["red"], 450_000);
}

#[test]
fn explain_tells_value_source_and_how_to_change_it() {
    let sandbox = sandbox("{}");
    let output = sandbox.si(["explain", "compact.threshold"]).var("COMPACT_THRESHOLD", "80").run();
    for piece in
        ["80 (from the variable COMPACT_THRESHOLD)", "default   50", "from 1 to 10k", "si set compact.threshold 50"]
    {
        assert!(output.stdout.contains(piece), "{piece}: {output}");
    }
    assert!(si(&sandbox, &["explain"]).stdout.lines().count() > 70);
    assert_eq!(
        si(&sandbox, &["explain", "compact.treshold"]).stderr,
        "si: compact.treshold is not a known key; did you mean compact.threshold?\n"
    );
}

#[test]
fn a_slash_command_answers_in_words_whatever_was_typed() {
    let sandbox = sandbox("{}\n");
    for (line, code, out, err) in [
        ("get compact.threshold", 0, "50", ""),
        (r#"set "Task length" 40"#, 0, "+    \"maxTaskLength\": 40", "not written (add --yes)"),
        ("get don't (x) * $HOME `id`", 0, "", "error: unexpected argument"),
        ("get nope", 0, "", "si: nope is not a known key"),
        ("frobnicate", 0, "", "error: unrecognized subcommand"),
        ("hook PreCompact", 0, "", "si: hook is not for people to call"),
        ("slash", 0, "", "si: slash is not for people to call"),
        ("statusline", 0, "", "statusline --preview"),
        ("", 0, "Usage: si", ""),
        ("help", 0, "Usage: si", ""),
        ("help set", 0, "Usage: si set", ""),
    ] {
        let output = slash(&sandbox, line);
        assert_eq!(output.code, code, "{line}: {output}");
        assert!(output.stdout.contains(out) && output.stderr.contains(err), "{line}: {output}");
    }
    assert_eq!(config(&sandbox), "{}\n");
    let output = slash(&sandbox, "set statusline.separator ' | ' compact.autoblock off --yes");
    assert!(output.stdout.contains("Written to"), "{output}");
    assert_eq!(slash(&sandbox, "get statusline.separator").stdout, " | \n");
}

#[test]
fn the_environment_beats_what_is_set_and_the_user_hears_of_it() {
    let sandbox = sandbox("{}\n");
    let output =
        sandbox.si(["set", "statusline.separator", "|", "--yes"]).var("CLAUDE_STATUSLINE_SEP_INLINE", "-").run();
    assert!(output.stderr.contains("from the variable CLAUDE_STATUSLINE_SEP_INLINE"), "{output}");
    let output = si(&sandbox, &["set", "statusline.fields", "model,tokens", "statusline.preset", "minimal", "--yes"]);
    assert!(output.stderr.contains("statusline.fields is set and beats the preset"), "{output}");
    let output = si(&sandbox, &["set", "statusline.zones.yellow", "350k", "statusline.zones.orange", "340k", "--yes"]);
    assert!(output.stderr.contains("note: statusline.zones.orange counts as 350000"), "{output}");
}

#[test]
fn wrong_types_everywhere_crash_no_lane() {
    let text = r#"{"statusline":{"preset":17,"fields":"tokens","zones":{"yellow":"100k","orange":null,"red":-5},"prices":[],
        "serviceHealth":{"a":1},"perProject":7,"contextCap":"big","separator":null,"maxTaskLength":-3,"colors":"no"},"compact":"on",
        "taskChange":[],"shape":{"rootDirDepth":99,"preserveGlobs":"a/**","scoring":"best","warmScoreCutoff":7,"maxEntries":-1},
        "toolArchive":{"thresholdChars":"many","maxPerSession":-1,"ttlDays":null},"debug":1,"hooks":0,"learn":"x","pins":[]}"#;
    let sandbox = sandbox(text);
    let payload = json!({"session_id": "s", "cwd": sandbox.cwd, "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x"}, "prompt": "hello", "source": "startup"});
    for hook in ["SessionStart", "PreCompact", "PostToolUse", "UserPromptSubmit"] {
        assert_eq!(sandbox.hook(hook, &payload).run().code, 0, "{hook}");
    }
    let line = sandbox.si(["statusline"]).stdin(payload.to_string()).run();
    assert!(line.code == 0 && !line.stdout.contains("config!") && !line.stdout.contains("NaN"), "{line}");
    let doctor = si(&sandbox, &["doctor"]);
    for path in ["statusline.preset", "statusline.zones.yellow", "shape.rootDirDepth", "toolArchive.thresholdChars"] {
        assert!(doctor.stdout.contains(&format!("session-intelligence.json: {path} is ")), "{path}: {doctor}");
    }
    for section in ["compact", "taskChange", "debug", "hooks"] {
        assert!(doctor.stdout.contains(&format!("session-intelligence.json: {section} is ")), "{section}: {doctor}");
    }
    assert!(
        doctor.stdout.contains("compact is \"on\", and so none of its keys is set; it takes a JSON object"),
        "{doctor}"
    );
    assert!(!doctor.stdout.contains("not a known key"), "{doctor}");
}

#[test]
fn a_hook_that_is_turned_off_does_nothing_at_all() {
    let sandbox =
        sandbox(r#"{"hooks":{"sessionStart":false,"preCompact":false,"postToolUse":false,"userPromptSubmit":false}}"#);
    let payload = json!({"session_id": "s", "cwd": sandbox.cwd, "tool_name": "Read", "tool_input": {"file_path": "/a/b"}, "tool_response": "x".repeat(9000), "tool_use_id": "t", "prompt": "hello", "source": "startup"});
    for hook in [
        "SessionStart",
        "bootstrap",
        "pin-inject",
        "PreCompact",
        "PostToolUse",
        "token-budget",
        "tool-archive",
        "suggest-compact",
        "UserPromptSubmit",
    ] {
        let output = sandbox.hook(hook, &payload).run();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{hook}");
    }
    assert_eq!(std::fs::read_dir(&sandbox.tmp).unwrap().count(), 0);
    let left: Vec<_> =
        std::fs::read_dir(sandbox.home.join(".claude")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["session-intelligence.json"]);
}

#[test]
fn what_is_no_file_to_edit_is_left_alone_and_doctor_says_so() {
    let sandbox = Sandbox::new();
    let path = sandbox.home.join(FILE);
    std::fs::create_dir(&path).unwrap();
    let set = si(&sandbox, &["set", "compact.threshold", "5", "--yes"]);
    assert!(set.code == 1 && set.stderr.contains("no regular file"), "{set}");
    assert!(si(&sandbox, &["doctor"]).stdout.contains("session-intelligence.json: cannot be read"));
    std::fs::remove_dir(&path).unwrap();
    sandbox.write(&path, b"{\"compact\":{\"threshold\":7},\"a\":\"\xff\"}");
    assert_eq!(si(&sandbox, &["get", "compact.threshold"]).stdout, "7\n");
    let set = si(&sandbox, &["set", "compact.threshold", "5", "--yes"]);
    assert!(set.code == 1 && set.stderr.contains("not UTF-8"), "{set}");
    assert!(si(&sandbox, &["doctor"]).stdout.contains("holds bytes that are not UTF-8"));
}

#[test]
fn a_field_that_does_not_exist_is_named_when_it_is_set() {
    let output = si(&Sandbox::new(), &["set", "statusline.fields", "tokens,newline,brunch"]);
    assert!(
        output.stderr.contains("statusline.fields names brunch, which is no field; did you mean branch?"),
        "{output}"
    );
}

#[test]
fn dropping_the_built_in_secrets_is_said_and_can_be_undone() {
    let sandbox = Sandbox::new();
    let said = si(&sandbox, &["set", "shape.dropGlobs", r#"["[bad","**/.env"]"#, "--yes"]).stderr;
    assert!(said.contains("note: shape.dropGlobs: \"[bad\" holds brackets"), "{said}");
    assert!(
        said.contains("**/.env.*, **/*secret*, **/credentials*, **/*.pem, **/*.key of it are not covered"),
        "{said}"
    );
    let doctor = si(&sandbox, &["doctor"]).stdout;
    for piece in ["shape.dropGlobs: \"[bad\" holds brackets", "of it are not covered any more"] {
        assert!(doctor.lines().any(|line| line.starts_with("warn") && line.contains(piece)), "{piece}: {doctor}");
    }
    let fix = said.lines().find_map(|line| line.split_once("to keep them: si ")).unwrap().1;
    let mut words = shlex::split(fix).unwrap();
    words.push("--yes".into());
    let kept = si(&sandbox, &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(kept.code == 0 && !kept.stderr.contains("not covered"), "{kept}");
    let list = si(&sandbox, &["get", "shape.dropGlobs"]).stdout;
    assert!(["**/*.key", "**/.env", "[bad"].iter().all(|glob| list.contains(glob)), "{list}");
    // What a project has is added to the rest; and another key holds globs as well.
    let own = si(&sandbox, &["set", "shape.perProject./w.dropGlobs", r#"["x/"]"#, "shape.preserveGlobs", r#"["~/y"]"#]);
    assert!(!own.stderr.contains("not covered") && own.stderr.matches("note: ").count() == 2, "{own}");
}

#[test]
fn a_new_file_names_a_schema_that_is_there() {
    let schema = |sandbox: &Sandbox| sandbox.read(sandbox.home.join(".claude/session-intelligence.schema.json"));
    let by_set = Sandbox::new();
    assert_eq!(si(&by_set, &["set", "compact.threshold", "75", "--yes"]).code, 0);
    let file: Value =
        serde_json::from_str(&by_set.read(by_set.home.join(".claude/session-intelligence.json"))).unwrap();
    assert_eq!(file["$schema"], "./session-intelligence.schema.json");
    assert_eq!(schema(&by_set), si(&by_set, &["config", "--schema"]).stdout);

    let by_start = Sandbox::new();
    by_start.hook("SessionStart", &json!({"session_id": "s", "cwd": by_start.cwd, "source": "startup"})).run();
    assert_eq!(schema(&by_start), schema(&by_set));

    let by_install = Sandbox::new();
    let path = by_install.home.join(".claude/session-intelligence.schema.json");
    assert!(si(&by_install, &["install", "--dry-run"]).stdout.contains(&format!("would write {}", path.display())));
    assert!(!path.exists());
    assert_eq!(si(&by_install, &["install"]).code, 0);
    assert_eq!(schema(&by_install), schema(&by_set));
    by_install.write(&path, "of an older version");
    assert_eq!(si(&by_install, &["install"]).code, 0);
    assert_eq!(schema(&by_install), schema(&by_set));
    assert!(si(&by_install, &["install"]).stdout.contains("nothing to change"));
    assert_eq!(si(&by_install, &["uninstall", "--purge"]).code, 0);
    assert!(!path.exists());
}

#[test]
fn a_key_that_is_given_twice_is_one_change() {
    let sandbox = Sandbox::new();
    let output = si(&sandbox, &["set", "compact.treshold", "5", "compact.treshold", "6", "--yes"]);
    assert_eq!(output.stderr.matches("is not a known key").count(), 1, "{output}");
    assert_eq!(si(&sandbox, &["get", "compact.treshold"]).stdout, "6\n");
    let output = si(&sandbox, &["set", "statusline.fields", "tokenz", "Fields", "tokenz,model", "--yes"]);
    assert_eq!(output.stderr.matches("which is no field").count(), 1, "{output}");
    assert_eq!(output.stdout.matches("\"tokenz\"").count(), 1, "{output}");
}

#[test]
fn migrating_takes_over_what_can_be_used_alone() {
    let sandbox = Sandbox::new();
    let older = r#"{"fields": "model", "maxTaskLength": 55, "preset": "fancy", "zones": {"yellow": "much", "red": 500000}, "prices": 7, "mine": 1}"#;
    sandbox.write(&sandbox.home.join(".claude/statusline-intel.json"), older);
    let output = si(&sandbox, &["migrate", "--yes"]);
    let file: Value =
        serde_json::from_str(&sandbox.read(sandbox.home.join(".claude/session-intelligence.json"))).unwrap();
    assert_eq!(file["statusline"], json!({"maxTaskLength": 55, "zones": {"red": 500_000}, "mine": 1}), "{output}");
    for (key, value) in
        [("fields", "\"model\""), ("preset", "\"fancy\""), ("zones.yellow", "\"much\""), ("prices", "7")]
    {
        let said = format!("note: {key} is {value}, but takes ");
        assert!(output.stderr.contains(&said), "{said}: {output}");
    }
    let again = si(&sandbox, &["migrate", "--yes"]);
    assert!(again.stdout.contains("Nothing else to migrate"), "{again}");
}

#[test]
fn a_temp_folder_that_cannot_be_written_is_named_with_what_to_do() {
    let sandbox = Sandbox::new();
    for command in [&["install"][..], &["uninstall"], &["set", "compact.threshold", "5", "--yes"], &["pin", "x"]] {
        let run = sandbox.si(command.iter().copied()).var("CLAUDE_CODE_SESSION_ID", "s");
        let output = run.var("TMPDIR", "/proc/no-such-folder").run();
        assert_eq!(output.code, 1, "{command:?}: {output}");
        let advice = "/proc/no-such-folder cannot be written: point TMPDIR at a folder of yours";
        assert!(output.stderr.contains(advice) && !output.stderr.contains("try again"), "{command:?}: {output}");
        assert_eq!(output.stderr.lines().count(), 1, "{output}");
    }
}

#[test]
fn help_is_a_command_too() {
    let sandbox = Sandbox::new();
    for (words, same) in [(&["help"][..], &["--help"][..]), (&["help", "set"], &["set", "--help"])] {
        let (help, same) = (si(&sandbox, words), si(&sandbox, same));
        assert_eq!((help.code, help.stdout), (0, same.stdout), "{words:?}");
    }
    assert_eq!(si(&sandbox, &["help", "nope"]).code, 64);
}

#[test]
fn a_file_that_does_not_parse_is_said_by_whatever_shows_values() {
    let sandbox = sandbox("{ not json");
    for args in [
        &["show"][..],
        &["config"],
        &["config", "--json"],
        &["get", "compact.threshold"],
        &["get", "compact"],
        &["explain", "compact.threshold"],
        &["explain"],
    ] {
        let output = si(&sandbox, args);
        assert_eq!(output.code, 0, "{args:?}: {output}");
        assert!(output.stderr.contains("session-intelligence.json does not parse"), "{args:?}: {output}");
        assert_eq!(output.stderr.lines().count(), 1, "{args:?}: {output}");
    }
}

#[test]
fn nothing_to_change_says_what_there_was_nothing_of() {
    let sandbox = sandbox("{}\n");
    let empty = si(&sandbox, &["set", "statusline", "{}", "--yes"]);
    assert_eq!(empty.stdout, "Nothing to change: no key stands in what is given for statusline.\n");
    let reset = si(&sandbox, &["reset", "all", "--yes"]);
    assert_eq!(reset.stdout, "Nothing to change: no known key is set in the file.\n");
    let one = si(&sandbox, &["reset", "compact.threshold", "--yes"]);
    assert_eq!(one.stdout, "Nothing to change: compact.threshold is not set in the file.\n");
}

#[test]
fn zones_that_are_raised_to_the_one_before_them_are_named() {
    let sandbox = sandbox("{}\n");
    let output = si(&sandbox, &["set", "statusline.zones.yellow", "500000", "--yes"]);
    let note = |name: &str, key: &str| {
        format!("note: statusline.zones.{name} counts as 500000 too: no zone begins before statusline.zones.{key}\n")
    };
    assert_eq!(output.stderr, note("orange", "yellow") + &note("red", "yellow"), "{output}");
    let output = si(&sandbox, &["set", "statusline.zones.red", "900000", "--yes"]);
    assert_eq!(output.stderr, "", "{output}");
    let output = si(&sandbox, &["set", "statusline.zones.orange", "600000", "--yes"]);
    assert_eq!(output.stderr, "", "{output}");
}
