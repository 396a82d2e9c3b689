//! Whose entries are whose, and what an edit leaves alone.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use super::entries::{Owner, hook_owner, register, unregister, words};
use super::statusline::{Current, Wiring, current, give_back, take, wire};
use super::*;

struct Home {
    _root: tempfile::TempDir,
    env: Env,
}

impl Home {
    fn new() -> Home {
        let root = tempfile::tempdir().unwrap();
        let mut env = Env::for_tests(root.path());
        env.exe = Some("/opt/si/bin/si".into());
        Home { _root: root, env }
    }

    fn store(&self) -> Store<'_> {
        Store::new(&self.env)
    }

    fn path(&self) -> PathBuf {
        self.env.in_claude("settings.json").unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.env.in_claude(name).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[allow(clippy::disallowed_methods, reason = "tests make files")]
        std::fs::write(path, text).unwrap();
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn install(&self) -> Result<Edit> {
        change(&self.env, self.store(), |settings, state| {
            register(&self.env, settings, Path::new("/opt/si/bin/si"))?;
            take(&self.env, settings, state, Path::new("/opt/si/bin/si")).map(drop)
        })
    }

    fn uninstall(&self) -> Edit {
        change(&self.env, self.store(), |settings, state| {
            unregister(&self.env, settings, false);
            give_back(&self.env, settings, state).map(drop)
        })
        .unwrap()
    }

    fn state(&self, key: &str) -> Option<Value> {
        read_state(self.store()).get(key).cloned()
    }
}

#[test]
fn only_commands_that_run_our_binary_are_ours() {
    let home = Home::new();
    for (command, owner) in [
        ("/usr/local/bin/si hook session-start", Owner::Ours),
        ("'/My Apps (1)/it'\\''s/si' hook PreCompact", Owner::Ours),
        ("si hook tool-archive", Owner::Ours),
        ("exec si hook pre-compact", Owner::Ours),
        ("CLAUDE_INTEL_DEBUG=1 si hook pre-compact", Owner::Ours),
        ("node \"$HOME/.claude/scripts/hooks/si-pre-compact.js\"", Owner::Original),
        ("node ${CLAUDE_PLUGIN_ROOT}/hooks/si-bootstrap.js", Owner::Original),
        ("node /x/smartcompact/hooks/pin-inject.js", Owner::Original),
        ("node /x/other/pin-inject.js", Owner::User),
        ("node /home/me/si-playground/hook.js", Owner::User),
        ("/opt/mem/si-notes/load.sh hook", Owner::User),
        ("echo si hook session-start", Owner::User),
        ("si statusline", Owner::User),
        ("si hook", Owner::User),
        ("/opt/tool/si hook notify", Owner::User),
        ("python3 audit.py --skip si-token-budget.js", Owner::User),
        ("node audit.js si-token-budget.js", Owner::User),
        ("", Owner::User),
    ] {
        assert_eq!(hook_owner(&home.env, &words(command).unwrap()), owner, "{command}");
    }
    assert_eq!(words("echo 'open"), None);
}

#[test]
fn installing_and_uninstalling_gives_every_file_back_to_the_byte() {
    for before in [
        "{}",
        "{\"model\":\"opus\"}",
        "\u{feff}{\n\t\"zeta\": 12345678901234567890123.50,\n\t\"alpha\": {\"é\": \"\\u00fc\"},\n\t\"hooks\": {\n\t\t\"Stop\": [{\"hooks\": []}]\n\t}\n}",
        "{\r\n   \"statusLine\" : {\"command\": \"caf\\u00e9 --x\", \"type\": \"command\", \"padding\": 2}\r\n}\r\n\r\n",
        "{ \"statusLine\": null, \"hooks\": {\"PostToolUse\": [ {\"matcher\": \"Edit\", \"hooks\": [ {\"type\": \"command\", \"command\": \"/opt/fmt/run.sh\"} ]} ]} }",
        "{\n  \"statusLine\": \"odd\"\n}\n",
        "{\n\"a\": 1,\n\"a\": 2\n}",
    ] {
        let home = Home::new();
        home.put("settings.json", before);
        assert!(home.install().unwrap().changed());
        let installed = home.text();
        assert!(!home.install().unwrap().changed(), "twice changes nothing: {before}");
        let tree: Value = serde_json::from_str(&installed).unwrap();
        assert_eq!(tree["statusLine"]["command"], "/opt/si/bin/si statusline");
        for event in ["SessionStart", "PreCompact", "PostToolUse", "UserPromptSubmit"] {
            let ours = tree["hooks"][event].as_array().unwrap().last().unwrap();
            assert!(ours["hooks"][0]["command"].as_str().unwrap().starts_with("/opt/si/bin/si hook "), "{installed}");
            assert!(ours.get("matcher").is_none());
        }
        assert!(home.uninstall().changed());
        assert_eq!(home.text(), before.trim_start_matches('\u{feff}'), "but for a byte order mark");
        assert_eq!(home.state("wiredStatuslinePrev"), None);
        assert!(!home.uninstall().changed());
    }
}

#[test]
fn a_foreign_entry_in_our_group_stays() {
    let home = Home::new();
    home.install().unwrap();
    let mut settings = read(&home.env).unwrap();
    settings.push(&["hooks", "PreCompact", "0", "hooks"], &json!({"type": "command", "command": "/x/y.sh"})).unwrap();
    home.put("settings.json", &String::from_utf8(settings.to_bytes()).unwrap());
    home.uninstall();
    let tree: Value = serde_json::from_str(&home.text()).unwrap();
    assert_eq!(tree, json!({"hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": "/x/y.sh"}]}]}}));
}

#[test]
fn an_entry_of_ours_is_brought_up_to_date_where_it_stands() {
    let home = Home::new();
    home.put(
        "settings.json",
        r#"{"hooks": {"PostToolUse": [
  {"matcher": "*", "hooks": [{"type": "command", "command": "/old/si hook post-tool-use", "timeout": 3}]},
  {"hooks": [{"type": "command", "command": "user.sh"}]},
  {"hooks": [{"type": "command", "command": "si", "args": ["hook", "tool-archive"]}]}
], "Stop": [{"hooks": [{"type": "command", "command": "si hook stop"}]}]}}"#,
    );
    home.install().unwrap();
    let tree: Value = serde_json::from_str(&home.text()).unwrap();
    assert_eq!(
        tree["hooks"]["PostToolUse"],
        json!([
            {"matcher": "*", "hooks": [{"type": "command", "command": "/opt/si/bin/si hook post-tool-use", "timeout": 3}]},
            {"hooks": [{"type": "command", "command": "user.sh"}]}
        ])
    );
    assert_eq!(tree["hooks"].get("Stop"), None);
}

#[test]
fn the_javascript_original_is_replaced_and_its_former_status_line_taken_over() {
    let home = Home::new();
    let chain = home.env.in_claude("scripts/si-statusline-chain.sh").unwrap();
    home.put(
        "settings.json",
        &json!({
            "statusLine": {"type": "command", "command": chain, "padding": 0},
            "hooks": {
                "SessionStart": [{"id": "si:bootstrap", "hooks": [{"type": "command", "command": "node \"$HOME/.claude/scripts/hooks/si-bootstrap.js\""}]}],
                "PreCompact": [{"hooks": [
                    {"type": "command", "command": "mine.sh"},
                    {"type": "command", "command": "node ~/.claude/scripts/hooks/si-pre-compact.js"}
                ]}]
            }
        })
        .to_string(),
    );
    for (script, stored, want) in [
        ("#!/bin/bash\nPREV_STATUSLINE='it'\\''s $HOME'\nX=1\n", "", "it's $HOME"),
        ("PREV_STATUSLINE=__PREV_STATUSLINE__\n", "", ""),
        ("PREV_STATUSLINE='printf \"a\\\\nb\"'\n", "printf \"a\\nb\"", "printf \"a\\nb\""),
        ("PREV_STATUSLINE='edited by hand'\n", "npx ccstatusline", "edited by hand"),
        ("PREV_STATUSLINE='$HOME/sl \nPREV_STATUSLINE=__PREV_STATUSLINE__'\n", "$HOME/sl $$ $&", "$HOME/sl $$ $&"),
        ("PREV_STATUSLINE='broken\n", "npx ccstatusline", "npx ccstatusline"),
        ("PREV_STATUSLINE=''\n", "", ""),
    ] {
        home.put("scripts/si-statusline-chain.sh", script);
        let state: State = serde_json::from_value(json!({"wiredStatuslinePrev": stored})).unwrap();
        let want = Current::Original(Some(want.to_owned()).filter(|text| !text.is_empty()));
        assert_eq!(current(&home.env, &read(&home.env).unwrap(), &state), want, "{script}");
    }
    home.put("scripts/si-statusline-chain.sh", "PREV_STATUSLINE='bar --x'\n");
    home.install().unwrap();
    let tree: Value = serde_json::from_str(&home.text()).unwrap();
    assert_eq!(home.state("wiredStatuslinePrev"), Some(json!("bar --x")));
    assert_eq!(tree["hooks"]["SessionStart"].as_array().unwrap().len(), 1);
    assert_eq!(tree["hooks"]["PreCompact"][0]["hooks"], json!([{"type": "command", "command": "mine.sh"}]));
    assert!(!home.text().contains(".js"));
    home.uninstall();
    let tree: Value = serde_json::from_str(&home.text()).unwrap();
    assert_eq!(tree["statusLine"], json!({"type": "command", "command": "bar --x", "padding": 0}));
}

#[test]
fn a_status_line_script_of_anybody_is_not_the_originals() {
    let home = Home::new();
    home.put(
        "settings.json",
        r#"{"statusLine": {"type": "command", "command": "bash ~/.claude/statusline-chain.sh"}}"#,
    );
    let settings = read(&home.env).unwrap();
    home.put("statusline-chain.sh", "PREV_STATUSLINE=x\necho mine\n");
    assert_eq!(current(&home.env, &settings, &State::new()), Current::User);
    home.put("statusline-chain.sh", "PREV_STATUSLINE=x\nINTEL=statusline-intel.js\n");
    assert_eq!(current(&home.env, &settings, &State::new()), Current::Original(Some("x".into())));
}

#[test]
fn a_session_start_wires_once_and_never_over_the_users_own() {
    let home = Home::new();
    let wire = || wire(&home.env, home.store()).unwrap();
    assert_eq!(wire(), Wiring::Wired);
    assert_eq!(wire(), Wiring::Left);
    let real = home.env.in_claude("si").unwrap();
    home.put("si", "");
    let mut moved = home.env.clone();
    moved.exe = Some(real.clone());
    assert_eq!(super::statusline::wire(&moved, Store::new(&moved)).unwrap(), Wiring::Wired);
    assert!(home.text().contains(real.to_str().unwrap()));
    assert_eq!(wire(), Wiring::Left, "another copy of ours that works is left alone");
    home.put("settings.json", "{}");
    assert_eq!(wire(), Wiring::Left, "the user removed it");

    let home = Home::new();
    home.put("settings.json", r#"{"statusLine": {"type": "command", "command": "mine"}}"#);
    assert_eq!(super::statusline::wire(&home.env, home.store()).unwrap(), Wiring::Left);
    home.put("settings.json", "{");
    assert!(super::statusline::wire(&home.env, home.store()).is_err());

    let home = Home::new();
    home.put(".si-bootstrap-state", r#"{"uninstalledAt": "2026-01-01T00:00:00.000Z", "x": 1}"#);
    assert_eq!(super::statusline::wire(&home.env, home.store()).unwrap(), Wiring::Left);
}

#[test]
fn a_file_that_does_not_parse_is_never_written() {
    for (text, place) in [
        ("{\n  \"a\": 1,\n}", "line 3, column 1"),
        ("[]", "not a JSON object"),
        ("{\"hooks\": []}", "hooks is not an object"),
    ] {
        let home = Home::new();
        home.put("settings.json", text);
        let error = format!("{:#}", home.install().unwrap_err());
        assert!(error.contains(place) && error.contains("settings.json"), "{error}");
        assert_eq!(home.text(), text);
        assert_eq!(home.store().read(StateFile::Bootstrap), None);
    }
}

#[test]
fn links_and_modes_stay() {
    let home = Home::new();
    home.put("dot/real.json", "{\"model\": 1}");
    symlink("dot/real.json", home.path()).unwrap();
    let real = home.env.in_claude("dot/real.json").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    home.install().unwrap();
    assert!(std::fs::symlink_metadata(home.path()).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o444)).unwrap();
    let before = home.text();
    let state = home.store().read(StateFile::Bootstrap);
    let error = change(&home.env, home.store(), |settings, state| {
        unregister(&home.env, settings, false);
        give_back(&home.env, settings, state).map(drop)
    });
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("settings.json is read-only"), "{error}");
    assert_eq!(home.text(), before);
    assert_eq!(home.store().read(StateFile::Bootstrap), state);
}

#[test]
fn a_write_of_another_program_in_between_is_not_lost() {
    let home = Home::new();
    home.put("settings.json", "{}");
    let mut first = true;
    change(&home.env, home.store(), |settings, _| {
        if std::mem::take(&mut first) {
            home.put("settings.json", "{\"theirs\": true}");
        }
        Ok(settings.set(&["ours"], &json!(1))?)
    })
    .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&home.text()).unwrap(), json!({"theirs": true, "ours": 1}));
}
