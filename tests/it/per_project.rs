//! What the configuration commands show in a folder that has blocks of its own.

use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

/// The configuration file, with blocks for the sandbox's working folder.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let here = sandbox.cwd.to_str().unwrap();
    let config = json!({
        "statusline": {"maxTaskLength": 50, "fields": ["cwd"], "perProject": {here: {"maxTaskLength": 20, "preset": "minimal"}}},
        "shape": {"rootDirDepth": 2, "preserveGlobs": ["docs/**"],
            "perProject": {here: {"rootDirDepth": 3, "preserveGlobs": ["plans/**"], "maxEntries": "many"}}}
    });
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), config.to_string());
    sandbox
}

fn si(sandbox: &Sandbox, args: &[&str]) -> Output {
    sandbox.si(args.iter().copied()).run()
}

#[test]
fn every_command_shows_what_holds_in_this_folder() {
    let sandbox = sandbox();
    let here = sandbox.cwd.to_str().unwrap();
    let get = |key: &str| si(&sandbox, &["get", key]).stdout.trim_end().to_string();
    assert_eq!((get("statusline.maxTaskLength"), get("shape.rootDirDepth")), ("20".into(), "3".into()));
    assert_eq!(get("shape.preserveGlobs"), r#"["docs/**","plans/**"]"#);
    assert!(!get("statusline.fields").contains("cwd"));
    let shown: Value = serde_json::from_str(&si(&sandbox, &["show"]).stdout).unwrap();
    assert_eq!((&shown["statusline"]["maxTaskLength"], &shown["shape"]["rootDirDepth"]), (&json!(20), &json!(3)));
    assert_eq!(shown["statusline"]["perProject"][here]["maxTaskLength"], 20, "the blocks are still shown");
    assert_eq!(shown["shape"]["perProject"][here]["rootDirDepth"], 3);
    let form: Value = serde_json::from_str(&si(&sandbox, &["config", "--json"]).stdout).unwrap();
    let keys = form.as_array().unwrap().iter().flat_map(|section| section["keys"].as_array().unwrap());
    let sources: Vec<(String, String)> =
        keys.map(|key| (key["key"].as_str().unwrap().into(), key["source"].as_str().unwrap().into())).collect();
    let source = |wanted: &str| sources.iter().find(|(key, _)| key == wanted).unwrap().1.clone();
    for key in ["maxTaskLength", "preset", "fields"] {
        assert_eq!(source(&format!("statusline.{key}")), format!("from statusline.perProject.{here}"));
    }
    assert_eq!(source("shape.rootDirDepth"), format!("from shape.perProject.{here}"));
    assert_eq!(source("shape.maxEntries"), "built-in", "a value that cannot be used is no source");
    assert_eq!(source("statusline.perProject"), "from session-intelligence.json");
}

#[test]
fn explain_names_the_block_and_elsewhere_the_file() {
    let sandbox = sandbox();
    let here = sandbox.cwd.to_str().unwrap();
    let explained = si(&sandbox, &["explain", "statusline.maxTaskLength"]);
    assert!(explained.stdout.contains(&format!("20 (from statusline.perProject.{here})\n")), "{explained}");
    let fields = sandbox.si(["explain", "statusline.fields"]).var("CLAUDE_STATUSLINE_PRESET", "standard").run();
    assert!(fields.stdout.contains("(from the variable CLAUDE_STATUSLINE_PRESET)\n"), "{fields}");
    let elsewhere = sandbox.si(["explain", "statusline.maxTaskLength"]).cwd(&sandbox.home).run();
    assert!(elsewhere.stdout.contains("50 (from session-intelligence.json)\n"), "{elsewhere}");
    // A session that moved on still has the block of where it began.
    let anchor = json!({"sessionId": "s1", "cwd": here});
    sandbox.write(&sandbox.tmp.join("claude-ctx-shape-s1.session.json"), anchor.to_string());
    let run = sandbox.si(["get", "statusline.maxTaskLength"]).cwd(&sandbox.home);
    assert_eq!(run.var("CLAUDE_CODE_SESSION_ID", "s1").run().stdout, "20\n");
}

#[test]
fn a_value_that_a_block_hides_is_pointed_out() {
    let sandbox = sandbox();
    let here = sandbox.cwd.to_str().unwrap();
    let output = si(&sandbox, &["set", "statusline.maxTaskLength", "60", "--yes"]);
    assert_eq!(
        (output.code, output.stderr),
        (0, format!("note: here statusline.maxTaskLength is 20, from statusline.perProject.{here}\n"))
    );
    let config: Value =
        serde_json::from_str(&sandbox.read(sandbox.home.join(".claude/session-intelligence.json"))).unwrap();
    assert_eq!(config["statusline"]["maxTaskLength"], 60);
    assert_eq!(config["statusline"]["perProject"][here]["maxTaskLength"], 20);
    let output = si(&sandbox, &["set", "statusline.separator", "|", "--yes"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}
