//! Into Claude Code and out again: `si install`, `si uninstall`, the plugin's hooks, the scripts around them.

#![allow(clippy::disallowed_methods, reason = "tests start programs and make files")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::support::Sandbox;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const SI: &str = env!("CARGO_BIN_EXE_si");

/// A settings file as people have them: foreign hooks with names that resemble ours, a status line, odd spacing.
const SETTINGS: &str = r#"{
   "model":   "opus",
   "zeta": 10000000000000000000001.50,
   "permissions": {"deny": ["Read(./.env)"]},
   "hooks": {
      "PostToolUse": [
         {
            "matcher": "Edit|Write",
            "hooks": [{"type": "command", "command": "/opt/fmt/run.sh --fix"}, {"type": "command", "command": "node /home/me/si-playground/hook.js"}]
         }
      ],
      "SessionStart": [{"matcher": "compact", "hooks": [{"type": "command", "command": "/opt/mem/si-notes/load.sh", "timeout": 7}]}]
   },
   "statusLine": {"command": "printf '%s\\n' \"it's $HOME\" 'row two & \\1'; head -c 5", "type": "command", "padding": 1},
   "alpha": {"é": "\u00fc"}
}"#;

fn settings(sandbox: &Sandbox) -> PathBuf {
    sandbox.home.join(".claude/settings.json")
}

fn tree(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.read(settings(sandbox))).unwrap()
}

/// The commands of ours that are registered for `event`.
fn ours(sandbox: &Sandbox, event: &str) -> Vec<String> {
    let tree = tree(sandbox);
    let groups = tree["hooks"][event].as_array().cloned().unwrap_or_default();
    let entries = groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default());
    let commands = entries.filter_map(|entry| entry["command"].as_str().map(str::to_owned));
    commands.filter(|command| command.contains(SI)).collect()
}

const EVENTS: [&str; 4] = ["SessionStart", "PreCompact", "PostToolUse", "UserPromptSubmit"];

#[track_caller]
fn assert_done(output: super::support::Output) -> String {
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    output.stdout
}

#[test]
fn install_adds_and_uninstall_gives_back_to_the_byte() {
    let sandbox = Sandbox::new();
    sandbox.write(&settings(&sandbox), SETTINGS);
    std::fs::set_permissions(settings(&sandbox), std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = assert_done(sandbox.si(["install"]).run());
    assert!(said.contains("row two") && said.contains("/smartcompact"), "{said}");
    for event in EVENTS {
        assert_eq!(ours(&sandbox, event).len(), 1, "{event}");
    }
    let installed = sandbox.read(settings(&sandbox));
    let end = installed.find("\"PostToolUse\"").unwrap();
    assert_eq!(installed[..end], SETTINGS[..end]);
    assert_eq!(std::fs::metadata(settings(&sandbox)).unwrap().permissions().mode() & 0o777, 0o644);
    assert!(assert_done(sandbox.si(["install"]).run()).contains("already"));
    assert_eq!(sandbox.read(settings(&sandbox)), installed);

    assert_done(sandbox.si(["uninstall"]).run());
    assert_eq!(sandbox.read(settings(&sandbox)), SETTINGS);
    assert!(!sandbox.home.join(".claude/commands/si.md").exists());
    assert!(assert_done(sandbox.si(["uninstall"]).run()).contains("Nothing of si"));
    assert_eq!(sandbox.read(settings(&sandbox)), SETTINGS);
}

#[test]
fn a_fresh_machine_needs_nothing_before() {
    let sandbox = Sandbox::new();
    std::fs::remove_dir(sandbox.home.join(".claude")).unwrap();
    assert_done(sandbox.si(["install"]).run());
    let tree = tree(&sandbox);
    assert_eq!(tree["statusLine"], json!({"type": "command", "command": format!("{SI} statusline"), "padding": 0}));
    for (event, name) in EVENTS.iter().zip(["session-start", "pre-compact", "post-tool-use", "user-prompt-submit"]) {
        let entry = &tree["hooks"][event][0]["hooks"][0];
        assert_eq!(entry["command"], format!("{SI} hook {name}"));
        assert!(entry["timeout"].as_u64().unwrap() > 0 && entry["statusMessage"].is_string(), "{entry}");
    }
    for (name, call) in [("si.md", "slash"), ("smartcompact.md", "recover -")] {
        let command = sandbox.read(sandbox.home.join(".claude/commands").join(name));
        assert!(command.contains(&format!("allowed-tools: \"Bash({SI}:*)\"\n")), "{command}");
        assert!(command.contains(&format!("\n{SI} {call} <<'SI_END'\n")), "{command}");
        assert!(!command.lines().any(|line| line.starts_with("si ")), "{command}");
    }
    assert_done(sandbox.si(["uninstall"]).run());
    assert_eq!(sandbox.read(settings(&sandbox)), "{}\n");
}

#[test]
fn a_link_to_the_program_is_registered_as_it_was_called_and_outlives_an_upgrade() {
    for (name, by_name) in [("si", false), ("si", true), ("si-next", false)] {
        let sandbox = Sandbox::new();
        sandbox.write(&settings(&sandbox), SETTINGS);
        let versions = ["1.0", "1.1"].map(|version| sandbox.home.join("cellar").join(version).join("si"));
        sandbox.write_program(&versions[0], std::fs::read(SI).unwrap());
        let link = sandbox.home.join("bin").join(name);
        std::fs::create_dir(link.parent().unwrap()).unwrap();
        symlink("../cellar/1.0/si", &link).unwrap();
        let path = format!("{}:/usr/bin:/bin", link.parent().unwrap().display());
        let called = if by_name { name } else { link.to_str().unwrap() };
        let run = |command: &str| assert_done(sandbox.program(called, [command]).var("PATH", &path).run());
        run("install");
        let installed = sandbox.read(settings(&sandbox));
        assert_eq!(installed.matches(&format!("{} ", link.display())).count(), 5, "{installed}");
        assert!(!installed.contains("cellar"), "{installed}");

        std::fs::rename(versions[0].parent().unwrap(), sandbox.home.join("cellar/1.1")).unwrap();
        std::fs::remove_file(&link).unwrap();
        symlink(&versions[1], &link).unwrap();
        assert!(run("install").contains("already"));
        assert_eq!(sandbox.read(settings(&sandbox)), installed);
        // The file itself knows the link to it for its own.
        assert_done(sandbox.program(versions[1].to_str().unwrap(), ["uninstall"]).run());
        assert_eq!(sandbox.read(settings(&sandbox)), SETTINGS);
    }
}

#[test]
fn another_profile_is_set_up_where_the_client_looks() {
    let sandbox = Sandbox::new();
    let profile = sandbox.home.join("work profile");
    let run = |command: &str| sandbox.si([command]).var("CLAUDE_CONFIG_DIR", profile.to_str().unwrap()).run();
    assert_done(run("install"));
    assert!(sandbox.read(profile.join("settings.json")).contains("SessionStart"));
    assert!(!settings(&sandbox).exists());
    assert_done(run("uninstall"));
    assert!(!sandbox.read(profile.join("settings.json")).contains("SessionStart"));
}

#[test]
fn what_does_not_parse_is_refused_with_its_place_and_nothing_is_half_done() {
    for (text, place) in [
        ("{\n  \"model\": \"opus\",\n}\n", "line 3, column 1"),
        ("{\n  // mine\n  \"model\": 1\n}", "line 2, column 3"),
        ("{\"model\": \"op", "line 1, column 14"),
        ("[]", "not a JSON object"),
        ("{\"hooks\": {\"PreCompact\": {}}}", "hooks.PreCompact is not an array"),
        ("{\"enabledPlugins\": 3, \"hooks\": \"none\"}", "hooks is not an object"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write(&settings(&sandbox), text);
        let output = sandbox.si(["install", "--no-claude-md"]).run();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
        assert!(output.stderr.contains("settings.json") && output.stderr.contains(place), "{output}");
        assert_eq!(output.stderr.lines().count(), 1, "{output}");
        assert_eq!(sandbox.read(settings(&sandbox)), text);
        let left: Vec<_> = std::fs::read_dir(sandbox.home.join(".claude")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), "{,}");
    let output = sandbox.si(["install", "--no-claude-md"]).run();
    assert!(output.code == 1 && output.stderr.contains("line 1, column 2"), "{output}");
    assert!(!settings(&sandbox).exists());
}

#[test]
fn a_read_only_file_is_refused_in_one_sentence() {
    let sandbox = Sandbox::new();
    let store = sandbox.root().join("store/settings.json");
    sandbox.write(&store, SETTINGS);
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o444)).unwrap();
    symlink(&store, settings(&sandbox)).unwrap();
    let output = sandbox.si(["install"]).run();
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("settings.json is read-only"), "{output}");
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
    assert_eq!(sandbox.read(&store), SETTINGS);
    for folder in [sandbox.home.join(".claude"), sandbox.root().join("store")] {
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{}", folder.display());
    }
    // Where the whole folder is, the sentence is about the settings all the same.
    let claude = sandbox.home.join(".claude");
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o555)).unwrap();
    let output = sandbox.si(["install"]).run();
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(output.code == 1 && output.stderr.contains("settings.json"), "{output}");
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
    // What would be done can still be seen.
    let output = sandbox.si(["install", "--dry-run"]).run();
    assert!(output.code == 0 && output.stdout.contains("+"), "{output}");
}

#[test]
fn a_slash_command_that_cannot_be_written_does_not_hide_that_the_rest_is_in() {
    let sandbox = Sandbox::new();
    let theirs = sandbox.home.join(".claude/commands/si.md");
    sandbox.write(&theirs, "theirs");
    std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o444)).unwrap();
    let output = sandbox.si(["install"]).run();
    assert_eq!((output.code, output.stderr.lines().count()), (1, 1), "{output}");
    assert!(output.stderr.contains("settings.json but not this slash command: "), "{output}");
    assert!(output.stderr.contains("si.md is read-only"), "{output}");
    assert_eq!(ours(&sandbox, "PreCompact").len(), 1);
    assert_eq!(sandbox.read(&theirs), "theirs");
    assert_done(sandbox.si(["uninstall"]).run());
    assert_eq!(sandbox.read(&theirs), "theirs");
}

#[test]
fn many_installers_and_another_writer_lose_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write(&settings(&sandbox), SETTINGS);
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| sandbox.si(["install"]).run())).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for output in outputs {
        assert_eq!(output.code, 0, "{output}");
    }
    for event in EVENTS {
        assert_eq!(ours(&sandbox, event).len(), 1, "{event}");
    }
    assert_eq!(tree(&sandbox)["alpha"]["é"], "ü");
    let state: Value = serde_json::from_str(&sandbox.read(sandbox.home.join(".claude/.si-bootstrap-state"))).unwrap();
    assert!(state["wiredStatuslinePrev"].as_str().unwrap().contains("row two"), "{state}");
    let left: Vec<String> = std::fs::read_dir(sandbox.home.join(".claude"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_dry_run_shows_and_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write(&settings(&sandbox), SETTINGS);
    let shown = assert_done(sandbox.si(["install", "--dry-run", "--no-claude-md"]).run());
    for line in ["+      \"PreCompact\": [", "commands/si.md", "session-intelligence.json", "+    \"claudeMd\": false"]
    {
        assert!(shown.contains(line), "{line:?} is not in\n{shown}");
    }
    assert_eq!(std::fs::read_dir(sandbox.home.join(".claude")).unwrap().count(), 1);
    assert_done(sandbox.si(["install"]).run());
    assert_eq!(assert_done(sandbox.si(["install", "--dry-run"]).run()), "Nothing to change.\n");
    let shown = assert_done(sandbox.si(["uninstall", "--dry-run"]).run());
    assert!(shown.contains("-      \"PreCompact\": ["), "{shown}");
    assert_eq!(ours(&sandbox, "PreCompact").len(), 1);
}

#[test]
fn what_the_user_does_not_want_is_remembered() {
    let sandbox = Sandbox::new();
    assert_done(sandbox.si(["install", "--no-statusline", "--no-claude-md"]).run());
    assert_eq!(tree(&sandbox).get("statusLine"), None);
    let config: Value =
        serde_json::from_str(&sandbox.read(sandbox.home.join(".claude/session-intelligence.json"))).unwrap();
    assert_eq!(config, json!({"bootstrap": {"statusline": false, "claudeMd": false}}));
    let start = json!({"session_id": "s", "cwd": sandbox.cwd, "hook_event_name": "SessionStart", "source": "startup"});
    sandbox.git(&sandbox.cwd, &["init", "-q"], &[]);
    assert_eq!(sandbox.hook("SessionStart", &start).run().code, 0);
    assert_eq!(tree(&sandbox).get("statusLine"), None);
    assert!(!sandbox.cwd.join("CLAUDE.md").exists());
}

#[test]
fn commands_work_from_a_path_that_needs_quoting() {
    let sandbox = Sandbox::new();
    let program = sandbox.root().join("My Apps (1)/it's/si");
    sandbox.write_program(&program, std::fs::read(SI).unwrap());
    let env = |command: &mut Command| {
        command.env_clear().env("HOME", &sandbox.home).env("TMPDIR", &sandbox.tmp).env("PATH", "/usr/bin:/bin");
        command.current_dir(&sandbox.cwd);
    };
    let mut install = Command::new(&program);
    env(install.arg("install"));
    assert!(install.output().unwrap().status.success());
    let tree = tree(&sandbox);
    for command in [&tree["statusLine"], &tree["hooks"]["SessionStart"][0]["hooks"][0]] {
        let mut shell = Command::new("sh");
        env(shell.args(["-c", command["command"].as_str().unwrap()]).stdin(Stdio::null()));
        let output = shell.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_former_status_line_runs_beside_ours_and_comes_back() {
    let sandbox = Sandbox::new();
    sandbox.write(&settings(&sandbox), SETTINGS);
    assert_done(sandbox.si(["install"]).run());
    let output = sandbox.si(["statusline"]).stdin("{\"session_id\": \"s\"}").run();
    let want = format!("it's {}\nrow two & \\1\n{{\"ses", sandbox.home.display());
    assert!(output.stdout.contains(&want), "{output}");
}

/// The former command is kept as data, word for word, where this user alone can read it: no script is made from it.
#[test]
fn the_former_status_line_is_kept_as_data_and_privately() {
    let sandbox = Sandbox::new();
    sandbox.write(&settings(&sandbox), SETTINGS);
    assert_done(sandbox.si(["install"]).run());
    let state = sandbox.home.join(".claude/.si-bootstrap-state");
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
    let kept: Value = serde_json::from_str(&sandbox.read(&state)).unwrap();
    let before: Value = serde_json::from_str(SETTINGS).unwrap();
    assert_eq!(kept["wiredStatuslinePrev"], before["statusLine"]["command"]);
    assert!(!sandbox.home.join(".claude/scripts").exists());
}

#[test]
fn the_javascript_originals_are_replaced_and_a_dated_copy_is_kept() {
    let sandbox = Sandbox::new();
    let claude = sandbox.home.join(".claude");
    let plugin = |name: &str, script: &str| {
        let folder = claude.join("plugins/cache").join(name);
        let hooks = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": script}]}]}});
        sandbox.write(&folder.join("hooks/hooks.json"), hooks.to_string());
        json!([{"scope": "user", "installPath": folder}])
    };
    let registry = json!({"version": 2, "plugins": {
        "session-intelligence@session-intelligence": plugin("si", "node ${CLAUDE_PLUGIN_ROOT}/hooks/si-bootstrap.js"),
        "smartcompact@smartcompact": plugin("smartcompact", "node ${CLAUDE_PLUGIN_ROOT}/hooks/pin-inject.js"),
    }});
    sandbox.write(&claude.join("plugins/installed_plugins.json"), registry.to_string());
    let before = json!({
        "enabledPlugins": {
            "session-intelligence@session-intelligence": true,
            "smartcompact@smartcompact": true,
            "mine@smartcompact": true,
        },
        "hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": "node ~/.claude/scripts/hooks/si-pre-compact.js"}]}]},
        "statusLine": {"type": "command", "command": "~/.claude/scripts/si-statusline-chain.sh"},
    });
    sandbox.write(&settings(&sandbox), before.to_string());
    sandbox.write(&claude.join("scripts/si-statusline-chain.sh"), "#!/bin/bash\nPREV_STATUSLINE='echo former'\n");
    sandbox.write(&claude.join("commands/si.md"), "the original's\n");
    let said = assert_done(sandbox.si(["install"]).run());

    let tree = tree(&sandbox);
    assert_eq!(
        tree["enabledPlugins"],
        json!({
            "session-intelligence@session-intelligence": false,
            "smartcompact@smartcompact": false,
            "mine@smartcompact": true,
        })
    );
    assert_eq!(tree["hooks"]["PreCompact"].as_array().unwrap().len(), 1);
    assert_eq!(ours(&sandbox, "PreCompact").len(), 1);
    assert!(sandbox.si(["statusline"]).stdin("{}").run().stdout.contains("former"));
    let copies = |folder: &Path, name: &str| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let copies = entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(name));
        copies.map(|entry| sandbox.read(entry.path())).collect()
    };
    assert_eq!(copies(&claude, "settings.json.before-si-"), [before.to_string()]);
    assert_eq!(copies(&claude.join("commands"), "si.md.before-si-"), ["the original's\n"]);
    assert!(said.contains("settings.json.before-si-"), "{said}");
}

/// The dated copies of a slash command file, oldest first.
fn copies(sandbox: &Sandbox, name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sandbox.home.join(".claude/commands")).unwrap().map(|entry| entry.unwrap());
    let start = format!("{name}.before-si-");
    let mut copies: Vec<PathBuf> =
        entries.filter(|it| it.file_name().to_str().unwrap().starts_with(&start)).map(|it| it.path()).collect();
    copies.sort();
    copies
}

#[test]
fn a_slash_command_that_the_user_edited_is_never_lost() {
    let sandbox = Sandbox::new();
    assert_done(sandbox.si(["install"]).run());
    let path = sandbox.home.join(".claude/commands/smartcompact.md");
    let ours = sandbox.read(&path);
    let edited = ours.clone() + "\nAnd be kind.\n";
    sandbox.write(&path, &edited);
    let said = assert_done(sandbox.si(["install"]).run());
    let kept = copies(&sandbox, "smartcompact.md");
    assert_eq!((kept.len(), sandbox.read(&kept[0]), sandbox.read(&path)), (1, edited.clone(), ours));
    assert!(said.contains(kept[0].to_str().unwrap()), "{said}");

    sandbox.write(&path, "Mine: ".to_string() + &edited);
    let shown = assert_done(sandbox.si(["uninstall", "--dry-run"]).run());
    assert!(shown.contains("would keep a copy of your version of") && copies(&sandbox, "smartcompact.md") == kept);
    let said = assert_done(sandbox.si(["uninstall"]).run());
    let kept = copies(&sandbox, "smartcompact.md");
    let texts: Vec<String> = kept.iter().map(|copy| sandbox.read(copy)).collect();
    assert_eq!(texts, [edited.clone(), "Mine: ".to_string() + &edited]);
    assert!(!path.exists() && said.contains(kept[1].to_str().unwrap()), "{said}");
    assert!(copies(&sandbox, "si.md").is_empty());
}

/// A file that another version wrote, or one at another path, differs from ours and is still no work of the user's.
#[test]
fn what_an_earlier_version_wrote_is_replaced_without_a_copy() {
    let sandbox = Sandbox::new();
    let program = ["install", "--program", "/elsewhere/si"];
    assert_done(sandbox.si(program).run());
    assert!(sandbox.read(sandbox.home.join(".claude/commands/si.md")).contains("\n/elsewhere/si slash"));
    assert_done(sandbox.si(["install"]).run());
    assert!(copies(&sandbox, "si.md").is_empty() && copies(&sandbox, "smartcompact.md").is_empty());
    assert_done(sandbox.si(program).run());
    assert_done(sandbox.si(["uninstall"]).run());
    assert!(copies(&sandbox, "si.md").is_empty() && !sandbox.home.join(".claude/commands/si.md").exists());
}

#[test]
fn a_slash_command_that_was_there_before_comes_back() {
    let sandbox = Sandbox::new();
    let path = sandbox.home.join(".claude/commands/si.md");
    for removed in [false, true] {
        sandbox.write(&path, "the user's own\n");
        assert_done(sandbox.si(["install"]).run());
        assert_eq!(copies(&sandbox, "si.md").len(), 1);
        if removed {
            std::fs::remove_file(&path).unwrap();
        }
        let said = assert_done(sandbox.si(["uninstall"]).run());
        assert!(said.contains("si.md is what it was before si again"), "{said}");
        assert_eq!(sandbox.read(&path), "the user's own\n");
        assert!(copies(&sandbox, "si.md").is_empty());
        assert!(assert_done(sandbox.si(["uninstall"]).run()).contains("Nothing of si"));
        assert_eq!(sandbox.read(&path), "the user's own\n");
    }
}

#[test]
fn beside_the_plugin_no_second_set_of_hooks_is_registered() {
    let sandbox = Sandbox::new();
    assert_done(sandbox.si(["install"]).run());
    let mut tree_now = tree(&sandbox);
    tree_now["enabledPlugins"] = json!({"session-intelligence@session-intelligence": true});
    sandbox.write(&settings(&sandbox), tree_now.to_string());
    let output = sandbox.si(["install"]).run();
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.contains("plugin"), "{output}");
    for event in EVENTS {
        assert!(ours(&sandbox, event).is_empty(), "{event}");
    }
    assert!(tree(&sandbox)["statusLine"]["command"].as_str().unwrap().starts_with(SI));
    let output = sandbox.si(["uninstall"]).run();
    assert!(output.stderr.contains("/plugin uninstall"), "{output}");
    let start = json!({"session_id": "s", "cwd": sandbox.cwd, "hook_event_name": "SessionStart", "source": "startup"});
    assert_eq!(sandbox.hook("SessionStart", &start).run().code, 0);
    assert_eq!(tree(&sandbox).get("statusLine"), None, "the plugin's session start put it in again");
}

#[test]
fn the_block_in_claude_md_goes_and_the_rest_of_the_file_stays() {
    let sandbox = Sandbox::new();
    assert_done(sandbox.si(["install"]).run());
    let [mine, empty] = ["mine", "empty"].map(|name| sandbox.root().join("work").join(name));
    sandbox.write(&mine.join("CLAUDE.md"), "# Mine\n");
    for folder in [&mine, &empty] {
        std::fs::create_dir_all(folder).unwrap();
        sandbox.git(folder, &["init", "-q"], &[]);
        let start = json!({"session_id": "s", "cwd": folder, "hook_event_name": "SessionStart", "source": "startup"});
        assert_eq!(sandbox.hook("SessionStart", &start).cwd(folder).run().code, 0);
        assert!(sandbox.read(folder.join("CLAUDE.md")).contains("BEGIN session-intelligence:rules"));
        std::fs::remove_file(sandbox.tmp.join("claude-ctx-shape-s.session.json")).unwrap();
    }
    let shown = assert_done(sandbox.si(["uninstall", "--dry-run"]).run());
    assert!(shown.contains("-<!-- BEGIN session-intelligence:rules -->"), "{shown}");
    assert_done(sandbox.si(["uninstall"]).run());
    assert_eq!(sandbox.read(mine.join("CLAUDE.md")), "# Mine\n");
    assert!(!empty.join("CLAUDE.md").exists());
}

#[test]
fn a_purge_leaves_what_the_user_wrote() {
    let sandbox = Sandbox::new();
    let claude = sandbox.home.join(".claude");
    assert_done(sandbox.si(["install"]).run());
    sandbox.write(&claude.join("smartcompact/s.md"), "a pin");
    sandbox.write(&claude.join("projects/-p/session-context.md"), "mine");
    sandbox.write(&sandbox.tmp.join("claude-tool-count-s"), "3");
    sandbox.write(&sandbox.tmp.join("claude-other"), "theirs");
    assert_done(sandbox.si(["uninstall"]).run());
    assert!(claude.join("smartcompact/s.md").exists());
    assert_done(sandbox.si(["uninstall", "--purge"]).run());
    assert!(!claude.join("smartcompact").exists() && !claude.join(".si-bootstrap-state").exists());
    assert!(!sandbox.tmp.join("claude-tool-count-s").exists() && sandbox.tmp.join("claude-other").exists());
    assert_eq!(sandbox.read(claude.join("projects/-p/session-context.md")), "mine");
}

/// The plugin's hooks, by event.
fn plugin_hooks() -> Value {
    let text = std::fs::read_to_string(Path::new(REPOSITORY).join("hooks/hooks.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["hooks"].clone()
}

#[test]
fn the_plugin_registers_what_the_installer_registers() {
    let sandbox = Sandbox::new();
    assert_done(sandbox.si(["install"]).run());
    let installed = tree(&sandbox)["hooks"].clone();
    let plugin = plugin_hooks();
    assert_eq!(plugin.as_object().unwrap().len(), EVENTS.len());
    for event in EVENTS {
        let [ours, plugins] = [&installed, &plugin].map(|hooks| &hooks[event][0]["hooks"][0]);
        for key in ["type", "timeout", "statusMessage"] {
            assert_eq!(ours[key], plugins[key], "{event} {key}");
        }
        let name = ours["command"].as_str().unwrap().rsplit(' ').next().unwrap().to_owned();
        let command = plugins["command"].as_str().unwrap();
        assert!(command.contains(&format!("exec \"$si\" hook {name};")), "{command}");
    }
}

#[test]
fn the_plugin_finds_the_program_and_becomes_it() {
    let sandbox = Sandbox::new();
    let plugin = sandbox.root().join("the plugin");
    let places = [sandbox.root().join("path"), sandbox.home.join(".local/bin"), plugin.join("bin")];
    for folder in &places {
        std::fs::create_dir_all(folder).unwrap();
    }
    let shell = |event: &str, path: &str| {
        let hooks = plugin_hooks();
        let command = hooks[event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &command]).env_clear().env("PATH", path).env("HOME", &sandbox.home);
        shell.env("CLAUDE_PLUGIN_ROOT", &plugin).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = shell.spawn().unwrap();
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (pid, String::from_utf8(output.stdout).unwrap())
    };
    let path = places[0].to_str().unwrap();
    // Without a program: one line at session start, silence elsewhere.
    let (_, said) = shell("SessionStart", path);
    let said: Value = serde_json::from_str(&said).unwrap();
    let message = said["systemMessage"].as_str().unwrap();
    assert!(message.contains("the plugin/install.sh") && !message.contains('\n'), "{message}");
    for event in &EVENTS[1..] {
        assert_eq!(shell(event, path).1, "");
    }
    // With one: the nearest of the three, in the very process that the client started.
    for (index, folder) in places.iter().enumerate().rev() {
        let program = folder.join("si");
        sandbox.write_program(&program, format!("#!/bin/sh\necho {index} $$ \"$@\"\n"));
        for (event, name) in EVENTS.iter().zip(["session-start", "pre-compact", "post-tool-use", "user-prompt-submit"])
        {
            let (pid, said) = shell(event, path);
            assert_eq!(said, format!("{index} {pid} hook {name}\n"));
        }
    }
}
