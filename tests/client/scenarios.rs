//! The scenarios. Each starts in a fresh home and asserts on what the client sent to the API and on the disk.

use std::path::Path;

use serde_json::{Value, json};

use crate::api::{Request, Turn};
use crate::compaction;
use crate::screen::{self, Screen};
use crate::world::{Client, REPOSITORY, World};

/// How a scenario ended, if it did not panic.
pub enum Outcome {
    Passed,
    Skipped(&'static str),
}

/// A scenario: its name, and what drives the client through it.
pub type Scenario = (&'static str, fn(&Client) -> Outcome);

/// All scenarios.
pub const ALL: [Scenario; 7] = [
    ("a_session_from_install_to_uninstall", a_session_from_install_to_uninstall),
    ("guidance_stays_the_same_and_the_task_resumes", compaction::guidance_stays_the_same_and_the_task_resumes),
    ("parallel_calls_and_subagents_are_counted", parallel_calls_and_subagents_are_counted),
    ("slash_commands_pass_every_word_through", slash_commands_pass_every_word_through),
    ("the_status_line_fits_80_120_and_200_columns", the_status_line_fits_80_120_and_200_columns),
    ("the_banner_comes_to_the_screen", compaction::the_banner_comes_to_the_screen),
    ("the_plugin_alone_and_beside_the_installer", the_plugin_alone_and_beside_the_installer),
];

fn read(path: &Path) -> Value {
    json!({"file_path": path})
}

/// A project with a history: a dozen files in `src/`, changed just now, and in `old/`, not changed for years.
fn project(world: &World) {
    let fill = |folder: &str, line: &str| {
        for index in 0..12 {
            world.write(&world.cwd.join(format!("{folder}/f{index}.rs")), &line.repeat(400 + index));
        }
    };
    world.git(&["init", "-q"]);
    fill("old", "legacy code\n");
    world.git(&["add", "-A"]);
    world.git_at("2020-01-01T00:00:00Z", &["commit", "-q", "-m", "feat: the first parser"]);
    fill("src", "fn parse() -> Option<Date> { None }\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "feat: dates in the parser (#12)"]);
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

fn history(world: &World) -> Vec<Value> {
    let text = world.read(&world.claude("logs/compact-history.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn a_session_from_install_to_uninstall(client: &Client) -> Outcome {
    let world = World::new(client);
    project(&world);
    let settings = world.claude("settings.json");
    let mark = world.root().join("user-hook-ran");
    // A file as users have them: odd indentation, a hook of their own, no line end.
    let before = format!(
        "{{\n   \"cleanupPeriodDays\": 3650,\n   \"hooks\": {{\n      \"Stop\": [{{\"hooks\": [{{\"type\": \"command\", \"command\": \"touch {}\"}}]}}]\n   }}\n}}",
        mark.display()
    );
    world.write(&settings, &before);
    world.si(&["install"]);
    let installed = world.read(&settings);

    // The first prompt: session start sets the project up, and the user's own hook goes on running.
    let run = world.start(vec![Turn::say("Ready.")], "Let us improve the parser of dates in src.");
    let sid = run.session.clone();
    assert!(mark.exists(), "the user's own hook did not run");
    assert!(world.state(&format!("claude-ctx-shape-{sid}.session.json")).contains("proj"), "no session anchor");
    assert!(world.read(&world.cwd.join("CLAUDE.md")).contains("<!-- BEGIN session-intelligence:rules -->"));
    assert!(world.read(&world.project().join("session-context.md")).contains("dates in the parser"));
    assert_eq!(world.read(&settings), installed, "a session start changed the settings");

    // Tools: read in old/ first, then long in src/, so that old/ is cold at the compaction.
    let [old, src] = ["old", "src"].map(|folder| move |index: usize| format!("{folder}/f{index}.rs"));
    let call = |id: &str, file: String| Turn::call(id, "Read", read(&world.cwd.join(file)));
    let long = "for i in $(seq 1 400); do echo \"line $i of the long answer\"; done";
    let mut turns = vec![call("o0", old(0)).at(30_000), call("o1", old(1)).at(40_000)];
    turns.extend((0..10).map(|index| call(&format!("s{index}"), src(index)).at(60_000 + index as u64 * 10_000)));
    turns.push(Turn::call("long", "Bash", json!({"command": long, "description": "a long answer"})).at(170_000));
    turns.push(Turn::say("Read them all.").at(175_000));
    let run = world.go_on(turns, "Read the code.");
    assert_eq!(run.session, sid);
    assert!(!run.last().contains("hook blocking error"), "feedback while everything is green: {}", run.last());
    assert_eq!(world.state(&format!("claude-tool-count-{sid}")), "13");
    let answer: String = (1..=400).map(|i| format!("line {i} of the long answer\n")).collect();
    let archived = world.si(&["expand", "toolu_long"]);
    assert!(archived.trim_end().ends_with(answer.trim_end()), "the archived result differs: {archived}");

    // Zones: nothing for yellow, once for orange, once for red.
    let turns = vec![
        call("y", src(1)).at(210_000),
        call("a", src(2)).at(310_000),
        call("b", src(3)).at(320_000),
        call("c", src(4)).at(410_000),
        call("d", src(5)).at(420_000),
        Turn::say("Still here.").at(425_000),
    ];
    let run = world.go_on(turns, "Go on with the parser.");
    let feedback: Vec<usize> =
        run.turns().iter().map(|request| count(&request.text(), "hook blocking error")).collect();
    // The client may write the row with the new usage a moment after it starts the hook: then the next call tells.
    assert!(feedback.is_sorted() && feedback[1] == 0, "feedback before orange: {feedback:?}");
    assert_eq!((feedback[3], feedback[5]), (1, 2), "feedback once for orange and once for red: {feedback:?}");

    // Pins as the model sets them: one Bash call that knows its session by itself.
    let pin = "Keep (this) * exactly: $HOME and `ticks`, it's \"quoted\" — ü";
    let command = format!("{} pin - <<'END'\n{pin}\nEND", env!("CARGO_BIN_EXE_si"));
    let turns = vec![
        Turn::call("pin", "Bash", json!({"command": command, "description": "pin it"})).at(426_000),
        Turn::say("Pinned.").at(427_000),
    ];
    world.go_on(turns, "Pin this.");
    assert!(world.read(&world.claude(&format!("smartcompact/{sid}.md"))).contains(pin));

    // The first compaction: guidance in the request for the summary, the user's words beside it.
    let run = world.go_on(vec![], "/compact keep the decisions");
    let asked = run.summary();
    for part in
        ["keep the decisions", "OBSERVED CONTEXT SHAPE (auto-generated from tool usage):", "PRESERVE (recently active"]
    {
        assert!(asked.contains(part), "{part:?} is not in the request for the summary");
    }
    let preserve = &asked[asked.find("PRESERVE (recently active").unwrap()..];
    let (kept, dropped) = preserve
        .split_once("SAFE TO DROP")
        .unwrap_or_else(|| panic!("no cold directories in the guidance: {preserve}"));
    assert!(kept.contains("src") && !kept.contains("old") && dropped.contains("old"), "{preserve}");
    let first = history(&world);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["sid"], *sid);
    assert!(first[0]["tokens"].as_u64().unwrap() > 400_000, "{first:?}");

    // Afterwards: the pin word for word and the resume block, then regret for what was called cold.
    let turns = vec![
        call("r0", old(0)).at(40_000),
        call("r1", old(2)).at(45_000),
        call("r2", src(2)).at(50_000),
        Turn::say("Back to work.").at(55_000),
    ];
    let run = world.go_on(turns, "Where were we?");
    let context = run.turns()[0].text();
    assert!(context.contains(pin), "the pin did not come back word for word: {context}");
    let snapshot: Value = serde_json::from_str(&world.state(&format!("claude-compact-snapshot-{sid}.json"))).unwrap();
    assert_eq!(snapshot["regretHits"].as_array().unwrap().len(), 2, "{snapshot}");
    assert!(!world.project().join(".si-handoff.json").exists(), "the hand-off was not consumed");

    // The second compaction closes the first window; pins come back again.
    world.go_on(vec![], "/compact once more");
    let second = history(&world);
    assert_eq!(second.len(), 2);
    assert!(second[0]["regretHits"].as_u64() == Some(2) || second[0]["regretCount"].as_u64() == Some(2), "{second:?}");
    let run = world.go_on(vec![Turn::say("Yes.").at(30_000)], "Do you still know the pin?");
    assert!(run.turns()[0].text().contains(pin), "the pin did not survive the second compaction");

    // Uninstalled: the settings are as they were to the byte, and nothing of ours runs any more.
    world.si(&["uninstall"]);
    assert_eq!(world.read(&settings), before);
    let calls = world.state(&format!("claude-tool-count-{sid}"));
    world.go_on(vec![call("u", src(6)).at(31_000), Turn::say("Done.").at(32_000)], "One more file.");
    assert_eq!(world.state(&format!("claude-tool-count-{sid}")), calls, "a hook ran after the uninstall");
    assert!(!world.claude("commands/si.md").exists());
    assert!(!world.cwd.join("CLAUDE.md").exists(), "the block in CLAUDE.md stayed");
    assert!(world.claude(&format!("smartcompact/{sid}.md")).exists(), "the pins went with the uninstall");
    Outcome::Passed
}

fn parallel_calls_and_subagents_are_counted(client: &Client) -> Outcome {
    let world = World::new(client);
    project(&world);
    world.si(&["install"]);
    let file = |index: usize| read(&world.cwd.join(format!("src/f{index}.rs")));
    let parallel = (1..12)
        .fold(Turn::call("p0", "Read", file(0)), |turn, index| turn.and(&format!("p{index}"), "Read", file(index)));
    let run = world.start(vec![parallel, Turn::say("All twelve.")], "Read all files at once.");
    let sid = &run.session;
    assert_eq!(world.state(&format!("claude-tool-count-{sid}")), "12");
    let shape = world.state(&format!("claude-ctx-shape-{sid}.jsonl"));
    assert_eq!(shape.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 12, "{shape}");
    let tokens = world.state(&format!("claude-token-budget-{sid}"));

    // A subagent's calls are the session's calls, but neither its tokens nor its shape, and it gets no advice.
    let task = json!({"description": "look", "prompt": "Read a file.", "subagent_type": "general-purpose", "run_in_background": false});
    let turns = vec![
        Turn::call("agent", "Agent", task),
        Turn::call("sub", "Read", file(3)).at(450_000),
        Turn::say("The file is fine.").at(450_000),
        Turn::say("The subagent is done."),
    ];
    let run = world.go_on(turns, "Let a subagent look.");
    assert!(run.requests.iter().all(|request| !request.text().contains("hook blocking error")));
    assert_eq!(world.state(&format!("claude-tool-count-{sid}")), "14");
    let after = world.state(&format!("claude-ctx-shape-{sid}.jsonl"));
    assert!(!after[shape.len()..].contains("f3.rs"), "{after}");
    let [before, after] =
        [tokens, world.state(&format!("claude-token-budget-{sid}"))].map(|t| t.parse::<u64>().unwrap());
    assert!(after - before < 2_000, "{before} -> {after}: the subagent's reading was counted into this context");
    Outcome::Passed
}

fn slash_commands_pass_every_word_through(client: &Client) -> Outcome {
    let world = World::new(client);
    // A program under a path that a shell and a YAML reader would both stumble over.
    let folder = world.root().join("My Apps (1) #2: it's");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("si");
    std::fs::copy(env!("CARGO_BIN_EXE_si"), &program).unwrap();
    let output = world.command(&program).arg("install").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let set = "/si set statusline.separator ' (*) $HOME `id` ' --yes";
    // Without the flag that skips permissions: the command file itself allows the program.
    world.api.script([]);
    let output = world.run(&["-p", set]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("permission"), "{said}");
    let config = world.read(&world.claude("session-intelligence.json"));
    assert!(config.contains("\" (*) $HOME `id` \""), "{config}");
    assert!(said.contains("Done."), "{said}");
    assert_eq!(world.api.take().len(), 1);
    // What the program says beside its answer reaches the model too.
    for (typed, answer) in [
        ("/si set compact.threshold 75", "not written (add --yes)"),
        ("/si get compact.treshold", "compact.treshold is not a known key"),
        ("/si frobnicate", "unrecognized subcommand"),
    ] {
        let output = world.run(&["-p", typed]);
        assert!(output.status.success(), "{typed}: {}", String::from_utf8_lossy(&output.stdout));
        let asked: Vec<String> = world.api.take().iter().map(Request::text).collect();
        assert!(asked.iter().any(|text| text.contains(answer)), "{typed}: {asked:#?}");
    }
    Outcome::Passed
}

fn the_plugin_alone_and_beside_the_installer(client: &Client) -> Outcome {
    let mut world = World::new(client);
    project(&world);
    let plugin = world.root().join("a plugin");
    for name in ["hooks/hooks.json", "commands/si.md", "commands/smartcompact.md", "install.sh"]
        .into_iter()
        .chain([".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"])
    {
        world.write(&plugin.join(name), &world.read(&Path::new(REPOSITORY).join(name)));
    }
    let plugin = plugin.to_str().unwrap().to_owned();
    for args in [
        &["plugin", "validate", REPOSITORY][..],
        &["plugin", "marketplace", "add", &plugin],
        &["plugin", "install", "session-intelligence@session-intelligence"],
    ] {
        let output = world.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
    // Only what the system itself offers: no si anywhere.
    world.path = "/usr/bin:/bin".into();
    if Path::new("/usr/bin/si").exists() || Path::new("/bin/si").exists() {
        return Outcome::Skipped("a program called si is in /usr/bin");
    }
    let file = read(&world.cwd.join("src/f0.rs"));
    let script = |id: &str| vec![Turn::call(id, "Read", file.clone()), Turn::say("Read.")];

    // No program yet: the user is told once, nothing else happens.
    world.api.script(script("a"));
    let output =
        world.run(&["-p", "--verbose", "--output-format", "stream-json", "--dangerously-skip-permissions", "Read it."]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("install.sh"), "the user was not told how to get the program: {said}");
    assert!(
        world.api.take().iter().all(|request| !request.text().contains("install.sh")),
        "the hint disturbed the session"
    );

    // With the program in ~/.local/bin the plugin's hooks fire, once for each call.
    let local = world.home.join(".local/bin");
    std::fs::create_dir_all(&local).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_si"), local.join("si")).unwrap();
    let run = world.start(script("b"), "Read it.");
    let counted = |session: &str| world.state(&format!("claude-tool-count-{session}"));
    assert_eq!(counted(&run.session), "1");
    let settings = world.read(&world.claude("settings.json"));
    assert!(settings.contains("/.local/bin/si statusline"), "session start did not wire the status line: {settings}");

    // The installer beside it adds no second set of hooks.
    let installed = || world.command(&local.join("si")).arg("install").output().unwrap();
    assert!(installed().status.success());
    assert!(!world.read(&world.claude("settings.json")).contains("post-tool-use"));
    let run = world.go_on(script("c"), "Read it again.");
    assert_eq!(counted(&run.session), "2");

    // Where both fire all the same, a call counts once.
    let mut settings: Value = serde_json::from_str(&world.read(&world.claude("settings.json"))).unwrap();
    let command = format!("{}/si hook post-tool-use", local.display());
    settings["hooks"] = json!({"PostToolUse": [{"hooks": [{"type": "command", "command": command}]}]});
    world.write(&world.claude("settings.json"), &settings.to_string());
    let run = world.go_on(script("d"), "And again.");
    assert_eq!(counted(&run.session), "3");

    // Taken out, the status line is gone and stays gone, though the plugin's session start still runs.
    let output = world.command(&local.join("si")).arg("uninstall").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    world.go_on(script("e"), "Once more.");
    let settings = world.read(&world.claude("settings.json"));
    assert!(!settings.contains("statusline") && !settings.contains("post-tool-use"), "{settings}");
    Outcome::Passed
}

/// A sample session on the screen, 312,000 tokens into its context; `with` sees the screen once it stands still.
pub fn sample<T>(client: &Client, columns: usize, with: impl FnOnce(&World, &Screen<'_>, String) -> T) -> T {
    let world = World::new(client);
    project(&world);
    world.write(&world.cwd.join("src/f0.rs"), "fn parse() -> Option<Date> { todo() }\n");
    world.si(&["install"]);
    let file = |index: usize| read(&world.cwd.join(format!("src/f{index}.rs")));
    world.api.script([
        Turn::call("a", "Read", file(1)).at(180_000),
        Turn::call("b", "Read", file(2)).at(240_000),
        Turn::say("The parser reads dates now.").at(312_000),
    ]);
    // What si prints is noted, to be compared with what the client makes of it.
    let mut settings: Value = serde_json::from_str(&world.read(&world.claude("settings.json"))).unwrap();
    let command = settings["statusLine"]["command"].as_str().unwrap().to_owned();
    settings["statusLine"]["command"] = json!(format!("{command} | tee {}", world.root().join("rows").display()));
    world.write(&world.claude("settings.json"), &settings.to_string());
    let screen = Screen::open(&world, columns, "Let us improve the parser of dates in src.");
    let text = screen.wait("the context figure", |text| text.contains("reads dates now.") && text.contains("312k/1M"));
    with(&world, &screen, text)
}

fn the_status_line_fits_80_120_and_200_columns(client: &Client) -> Outcome {
    if !screen::available() {
        return Outcome::Skipped("tmux is not installed");
    }
    for columns in [80, 120, 200] {
        sample(client, columns, |world, _, text| {
            let printed = without_colours(&world.read(&world.root().join("rows")));
            let rows: Vec<&str> = printed.lines().map(str::trim).filter(|row| !row.is_empty()).collect();
            assert!(rows.iter().any(|row| row.contains("312k/1M")), "no tokens at {columns} columns:\n{text}");
            // The client may write hints of its own at the right of a row.
            for row in rows {
                assert!(
                    text.lines().any(|line| line.trim_start().starts_with(row)),
                    "{row:?} is cut at {columns} columns:\n{text}"
                );
            }
        });
    }
    Outcome::Passed
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or(part, |(_, rest)| rest))
}
