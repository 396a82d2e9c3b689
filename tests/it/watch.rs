//! What the hooks of every tool call and every prompt do, through the real binary.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Output, Run, Sandbox};

const SID: &str = "11111111-2222-3333-4444-555555555555";

/// A sandbox with one session in it.
struct Session {
    sandbox: Sandbox,
}

impl Session {
    fn new() -> Session {
        Session { sandbox: Sandbox::new() }
    }

    fn config(&self, config: Value) -> &Session {
        self.sandbox.write(&self.sandbox.home.join(".claude/session-intelligence.json"), config.to_string());
        self
    }

    /// A transcript whose latest turn has so many tokens in context.
    fn context(&self, tokens: u64) -> &Session {
        let usage = json!({"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 5});
        let message = json!({"id": "m1", "role": "assistant", "model": "claude-opus-5-5", "usage": usage,
            "content": [{"type": "text", "text": "done"}]});
        let row = json!({"type": "assistant", "isSidechain": false, "sessionId": SID, "message": message,
            "timestamp": "2026-01-02T03:04:05.000Z"});
        self.sandbox.write(&self.transcript(), format!("{row}\n"));
        self
    }

    fn transcript(&self) -> PathBuf {
        self.sandbox.tmp.join("transcript.jsonl")
    }

    fn payload(&self, more: Value) -> Value {
        let mut payload = json!({
            "session_id": SID, "transcript_path": self.transcript(), "cwd": self.sandbox.cwd,
            "hook_event_name": "PostToolUse", "tool_name": "Read",
            "tool_input": {"file_path": self.sandbox.cwd.join("src/auth/a.ts")},
            "tool_response": {"type": "text", "file": {"content": "x".repeat(400)}},
        });
        for (key, value) in more.as_object().unwrap() {
            payload[key] = value.clone();
        }
        payload
    }

    fn describe(&self, event: &str, more: Value) -> Run<'_> {
        self.sandbox.hook(event, &self.payload(more))
    }

    fn tool(&self, more: Value) -> Output {
        self.describe("PostToolUse", more).run()
    }

    fn prompt(&self, prompt: &str) -> Output {
        self.describe("UserPromptSubmit", json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt})).run()
    }

    fn notes(&self, text: &str) -> &Session {
        let enc = si::client::project::encode(&self.sandbox.cwd);
        self.sandbox.write(&self.sandbox.home.join(".claude/projects").join(enc).join("session-context.md"), text);
        self
    }

    fn state(&self, name: &str) -> String {
        std::fs::read_to_string(self.sandbox.tmp.join(format!("claude-{name}"))).unwrap_or_default()
    }

    fn count(&self) -> String {
        self.state(&format!("tool-count-{SID}"))
    }

    fn budget(&self) -> u64 {
        self.state(&format!("token-budget-{SID}")).parse().unwrap_or(0)
    }

    fn shape(&self) -> Vec<Value> {
        let log = self.state(&format!("ctx-shape-{SID}.jsonl"));
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn log(&self) -> String {
        let logs = std::fs::read_dir(self.sandbox.home.join(".claude/logs")).into_iter().flatten().flatten();
        logs.map(|log| self.sandbox.read(log.path())).collect()
    }
}

fn silent(output: &Output) {
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{output}");
}

fn system_message(output: &Output) -> String {
    let reply: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output}"));
    reply["systemMessage"].as_str().unwrap_or("").to_string()
}

#[test]
fn a_result_counts_as_the_client_sends_it_and_a_call_once() {
    let session = Session::new();
    silent(&session.tool(json!({"tool_use_id": "toolu_1"})));
    let once = session.budget();
    let input = json!({"file_path": session.sandbox.cwd.join("src/auth/a.ts")}).to_string();
    assert_eq!(once, 100 + input.len().div_ceil(4) as u64 + 100);
    silent(&session.tool(json!({"tool_use_id": "toolu_1"})));
    assert_eq!((session.count().as_str(), session.budget(), session.shape().len()), ("1", once, 1));
    silent(&session.tool(json!({"tool_use_id": "toolu_2"})));
    silent(&session.tool(json!({"tool_use_id": null})));
    silent(&session.tool(json!({"tool_use_id": null})));
    assert_eq!((session.count().as_str(), session.budget(), session.shape().len()), ("4", 4 * once, 4));
    assert_eq!(session.shape()[0]["root"], "src/auth");
}

#[test]
fn a_commit_is_seen_in_what_git_printed() {
    let session = Session::new();
    let response = json!({"stdout": "[main 1a2b3c4] feat: y", "stderr": "", "interrupted": false});
    silent(
        &session
            .tool(json!({"tool_name": "Bash", "tool_input": {"command": "make release"}, "tool_response": response})),
    );
    assert_eq!((&session.shape()[0]["event"], &session.shape()[0]["root"]), (&json!("commit"), &Value::Null));
}

#[test]
fn a_subagents_call_counts_and_nothing_else() {
    let session = Session::new();
    session.context(310_000);
    silent(&session.tool(json!({"agent_id": "a1", "agent_type": "Explore", "tool_use_id": "toolu_s"})));
    assert_eq!((session.count().as_str(), session.budget(), session.shape().len()), ("1", 0, 0));
    assert_eq!(session.state(&format!("compact-state-{SID}")), "");
    assert_eq!(session.tool(json!({"tool_use_id": "toolu_m"})).code, 2);
}

#[test]
fn paths_are_relative_to_where_the_session_started() {
    let session = Session::new();
    silent(&session.tool(json!({})));
    let drifted = session.sandbox.cwd.join("src");
    silent(&session.tool(json!({"cwd": drifted, "tool_input": {"file_path": drifted.join("b.ts")}})));
    silent(&session.tool(json!({"tool_name": "Grep", "tool_input": {"pattern": "x", "path": drifted.join("auth")}})));
    let roots: Vec<Value> = session.shape().iter().map(|entry| entry["root"].clone()).collect();
    assert_eq!(roots, ["src/auth", "src", "src/auth"]);
}

#[test]
fn a_suggestion_comes_once_per_rise_without_a_figure() {
    let session = Session::new();
    session.context(150_000);
    silent(&session.tool(json!({})));
    let output = session.context(310_000).tool(json!({}));
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output}");
    assert!(output.stderr.contains("/compact") && output.stderr.contains("CLAUDE_COMPACT_AUTOBLOCK=0"), "{output}");
    let without_switch = output.stderr.replace("AUTOBLOCK=0", "").replace(session.sandbox.root().to_str().unwrap(), "");
    let enc = si::client::project::encode(&session.sandbox.cwd);
    assert!(!without_switch.replace(&enc, "").contains(|c: char| c.is_ascii_digit()), "{output}");
    silent(&session.tool(json!({})));
    assert_eq!(session.context(410_000).tool(json!({})).code, 2);
    silent(&session.context(20_000).tool(json!({})));
    assert_eq!(session.context(310_000).tool(json!({})).code, 2);
    assert!(session.log().contains("zone transition green → orange"), "{}", session.log());
}

#[test]
fn the_hook_knows_the_zones_of_the_config() {
    let session = Session::new();
    session.config(json!({"statusline": {"zones": {"yellow": 50_000, "orange": 100_000, "red": 150_000}}}));
    assert_eq!(session.context(120_000).tool(json!({})).code, 2);
    assert_eq!(session.state(&format!("compact-state-{SID}")), "orange");
}

#[test]
fn the_hook_knows_the_window_that_the_status_line_left() {
    let session = Session::new();
    session.sandbox.write(&session.sandbox.tmp.join(format!("claude-context-window-{SID}")), "200000");
    silent(&session.context(149_000).tool(json!({})));
    assert_eq!(session.context(151_000).tool(json!({})).code, 2);
}

/// Without the status line nobody tells the window: then the user's cap counts, else what the model is known for.
#[test]
fn the_hook_knows_the_window_of_the_model() {
    for (model, config, feedback) in [
        ("claude-haiku-4-5-20251001", json!({}), 2),
        ("claude-opus-5-5", json!({}), 0),
        ("claude-opus-5-5", json!({"statusline": {"contextCap": 200_000}}), 2),
    ] {
        let session = Session::new();
        session.config(config).context(185_000);
        let row = session.sandbox.read(session.transcript()).replace("claude-opus-5-5", model);
        session.sandbox.write(&session.transcript(), row);
        assert_eq!(session.tool(json!({})).code, feedback, "{model}");
    }
}

#[test]
fn yellow_is_one_line_in_the_log() {
    let session = Session::new();
    session.context(250_000);
    silent(&session.tool(json!({})));
    silent(&session.tool(json!({})));
    assert_eq!(session.log().matches("suggestion: yellow-zone").count(), 1, "{}", session.log());
}

#[test]
fn switched_off_nothing_is_said_at_all() {
    let session = Session::new();
    session.context(310_000).sandbox.write(&session.sandbox.tmp.join(format!("claude-tool-count-{SID}")), "49");
    silent(&session.describe("PostToolUse", json!({})).var("CLAUDE_COMPACT_AUTOBLOCK", "0").run());
    assert_eq!(session.count(), "50");
}

#[test]
fn advisories_by_calls_go_to_the_user_once_per_step() {
    let session = Session::new();
    let at = |count: &str| session.sandbox.write(&session.sandbox.tmp.join(format!("claude-tool-count-{SID}")), count);
    session.context(260_000);
    at("49");
    let output = session.tool(json!({"tool_use_id": "toolu_50"}));
    assert!(system_message(&output).contains("50 tool calls") && output.stderr.is_empty(), "{output}");
    assert!(!output.stdout.contains("additionalContext"), "{output}");
    silent(&session.tool(json!({"tool_use_id": "toolu_50"})));
    silent(&session.tool(json!({"tool_use_id": "toolu_51"})));
    at("74");
    assert!(system_message(&session.tool(json!({}))).contains("75 tool calls"));
}

#[test]
fn feedback_as_context_looks_like_no_error() {
    let session = Session::new();
    session.config(json!({"compact": {"feedback": "context"}})).context(310_000);
    let output = session.tool(json!({}));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    let reply: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(reply["hookSpecificOutput"]["hookEventName"], "PostToolUse");
    assert!(reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("/compact"));
}

#[test]
fn learnt_zones_are_announced_when_asked_for_and_once() {
    let session = Session::new();
    session.config(json!({"learn": {"announce": true}})).context(50_000);
    let cwd = &session.sandbox.cwd;
    let lines =
        (0..6).map(|n| json!({"t": n, "sid": "h", "cwd": cwd, "tokens": 250_000, "regretCount": 0}).to_string() + "\n");
    session.sandbox.write(&session.sandbox.home.join(".claude/logs/compact-history.jsonl"), lines.collect::<String>());
    let output = session.tool(json!({}));
    assert!(system_message(&output).contains("yellow 145k, orange 225k, red 285k"), "{output}");
    silent(&session.tool(json!({})));
}

#[test]
fn a_touch_of_what_was_dropped_is_noted_and_stamped() {
    let session = Session::new();
    let now = session.sandbox.now_ms;
    let snapshot = json!({"t": now - 1000, "droppedDirs": ["src/auth"], "warmDirs": [], "hotDirs": [], "callsSince": 0,
        "regretHits": [], "softRegretHits": [], "positiveHits": []});
    session
        .sandbox
        .write(&session.sandbox.tmp.join(format!("claude-compact-snapshot-{SID}.json")), snapshot.to_string());
    let history = session.sandbox.home.join(".claude/logs/compact-history.jsonl");
    session.sandbox.write(&history, json!({"t": now - 1000, "sid": SID, "regretCount": 0}).to_string() + "\n");
    for n in 0..31 {
        let bash = json!({"tool_use_id": format!("t{n}"), "tool_name": "Bash", "tool_input": {"command": "ls"}});
        silent(&session.tool(if n == 0 { json!({"tool_use_id": "t"}) } else { bash }));
    }
    assert_eq!(session.state(&format!("compact-snapshot-{SID}.json")), "");
    let entry: Value = serde_json::from_str(session.sandbox.read(&history).trim()).unwrap();
    assert_eq!((&entry["regretCount"], &entry["regretDirs"]), (&json!(1), &json!(["src/auth"])));
}

#[test]
fn a_hint_reaches_user_and_scripts_and_comes_once_per_prompt() {
    let session = Session::new();
    session
        .context(150_000)
        .notes("## Current Task\ntype: bug-fix — login cookie loop\n\n## Key Files\n- src/auth/session.ts\n");
    let (far, other) = (
        "Build a brand new PDF invoice renderer with page numbers in services/pdf/render.py",
        "Write the quarterly newsletter about tulips into marketing/news/autumn.md and translate it",
    );
    let output = session.prompt(far);
    assert_eq!(output.code, 0);
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
    assert!(output.stderr.contains("/clear") && system_message(&output) == output.stderr.trim_end(), "{output}");
    silent(&session.prompt(far));
    assert!(session.prompt(other).stderr.contains("/clear"));
    silent(&session.prompt(far));
    silent(&session.prompt("the login cookie loop in src/auth/session.ts is still there, please look"));
}

#[test]
fn work_in_git_and_talk_are_a_baseline_without_notes() {
    let session = Session::new();
    let far = "Build a brand new PDF invoice renderer with page numbers in services/pdf/render.py please";
    session.context(150_000);
    silent(&session.prompt(far));
    let commits = json!([{"files": {"src/auth/session.ts": "1"}, "message": "x", "age_s": 600}]);
    session.sandbox.repo(&session.sandbox.cwd, &json!({"commits": commits, "dirty": {"lib/new.ts": "2"}}));
    assert!(session.prompt(far).stderr.contains("/clear"));
    silent(&session.prompt("In src/auth/session.ts the second branch should be tested as well, and in lib/new.ts too"));
    let talk = json!({"type": "user", "message": {"content": "look at services/pdf/render.py"}});
    let rows = session.sandbox.read(session.transcript()) + &talk.to_string() + "\n";
    session.sandbox.write(&session.transcript(), rows);
    silent(&session.prompt("Build a brand new PDF invoice renderer with page numbers in services/pdf/render.py now"));
}

#[test]
fn the_files_of_a_new_folder_are_at_hand_each_by_itself() {
    let session = Session::new();
    session.context(150_000).notes("## Current Task\ntype: bug-fix — login cookie loop\n");
    let commits = json!([{"files": {"README.md": "1"}, "message": "x", "age_s": 864_000}]);
    let new = json!({"app/intro/a.ts": "1", "app/intro/deep/b.ts": "2"});
    session.sandbox.repo(&session.sandbox.cwd, &json!({"commits": commits, "dirty": new}));
    let about = |files: &str| {
        let prompt = format!(
            "Give {files} the same easing curve as the parallax of the onboarding has, and let the button fade"
        );
        session.describe("UserPromptSubmit", json!({"prompt": prompt}))
    };
    silent(&about("app/intro/a.ts and ./app/intro/deep/b.ts").run());
    silent(&about(&format!("{}/app/intro/a.ts", session.sandbox.cwd.display())).run());
    let below = session.sandbox.cwd.join("app");
    let prompt = "Give intro/deep/b.ts the same easing curve as the parallax has, and let the button fade";
    silent(&session.describe("UserPromptSubmit", json!({"cwd": below, "session_id": "below", "prompt": prompt})).run());
    assert!(about("app/intro/c.ts").run().stderr.contains("/compact"), "one that is not there is only near");
    assert!(about("lib/c.ts").run().stderr.contains("/clear"));
}

#[test]
fn a_wiped_temp_folder_does_not_make_another_project_of_the_folder_that_the_session_is_in() {
    let session = Session::new();
    session.context(50_000);
    let here = session.sandbox.cwd.clone();
    let below = here.join("packages/web");
    std::fs::create_dir_all(&below).unwrap();
    let file = below.join("src/a.ts");
    let project = session.sandbox.home.join(".claude/projects").join(si::client::project::encode(&here));
    let transcript = project.join(format!("{SID}.jsonl"));
    session.sandbox.write(&transcript, session.sandbox.read(session.transcript()));
    silent(&session.tool(json!({"cwd": below, "tool_input": {"file_path": file}, "transcript_path": transcript})));
    let entry: Value = serde_json::from_str(session.state(&format!("ctx-shape-{SID}.jsonl")).trim()).unwrap();
    assert_eq!(entry["root"], "packages/web");
    let anchor: Value = serde_json::from_str(&session.state(&format!("ctx-shape-{SID}.session.json"))).unwrap();
    assert_eq!(anchor["cwd"], here.to_str().unwrap());
}

#[test]
fn a_session_id_of_a_wrong_type_is_none() {
    let session = Session::new();
    session.context(150_000).notes("## Key Files\n- src/auth/session.ts\n");
    let prompt = "Build a brand new PDF invoice renderer with page numbers in services/pdf/render.py";
    let output = session.describe("UserPromptSubmit", json!({"session_id": {"a": 1}, "prompt": prompt})).run();
    assert!(output.code == 0 && output.stderr.contains("/clear"), "{output}");
    assert!(!session.state("task-change-default").is_empty());
}

/// A `claude` that runs `script`, in a folder for the front of PATH.
fn stand_in(sandbox: &Sandbox, script: &str) -> String {
    let bin = sandbox.root().join("bin");
    sandbox.write_program(&bin.join("claude"), format!("#!/bin/sh\n{script}\n"));
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
}

#[test]
fn a_small_model_may_settle_an_unclear_score_within_its_time() {
    let session = Session::new();
    session.config(json!({"taskChange": {"semanticFallback": true, "semanticTimeoutMs": 1500}})).context(150_000);
    session.notes("## Current Task\nlogin cookie loop\n\n## Key Files\n- src/auth/session.ts\n");
    let unclear = "please also clean up src/auth/tokens.ts so that a refresh happens once and tests cover that path";
    let ask = |script: &str, prompt: &str| {
        let path = stand_in(&session.sandbox, script);
        session.describe("UserPromptSubmit", json!({ "prompt": prompt })).var("PATH", &path).run()
    };
    let record =
        format!("printf '%s\\n' \"$@\" > '{0}/args'; cat > '{0}/stdin'; echo SAME", session.sandbox.root().display());
    silent(&ask(&record, unclear));
    let args = session.sandbox.read(session.sandbox.root().join("args"));
    let want = "--print\n--model\nclaude-haiku-4-5\n--tools\n\n--no-session-persistence\n--setting-sources\n\n";
    assert_eq!(args, want);
    assert!(session.sandbox.read(session.sandbox.root().join("stdin")).contains(unclear));
    for (script, prompt) in [
        ("echo DIFFERENT", format!("{unclear} 1")),
        ("exit 3", format!("{unclear} 2")),
        ("echo SAME; exit 1", format!("{unclear} 3")),
        ("sleep 30", format!("{unclear} 4")),
    ] {
        let output = ask(script, &prompt);
        assert!(output.stderr.contains("/compact"), "{script}: {output}");
        assert!(output.elapsed.as_secs() < 15, "{script} took {:?}", output.elapsed);
    }
}

#[test]
fn sixty_four_hooks_at_once_lose_nothing() {
    let session = Session::new();
    session.config(json!({"compact": {"threshold": 1000}})).context(150_000);
    std::thread::scope(|scope| {
        for n in 0..64 {
            let session = &session;
            scope.spawn(move || {
                let file = session.sandbox.cwd.join(format!("src/auth/f{n}.ts"));
                let response = json!({"type": "text", "file": {"content": format!("line {n}\n").repeat(900)}});
                let id = format!("toolu_{n}");
                silent(
                    &session
                        .tool(json!({"tool_use_id": id, "tool_input": {"file_path": file}, "tool_response": response})),
                );
            });
        }
    });
    // On a machine too busy for all to have had the lock within a second, some left their counts for the next one.
    let later = session.log().matches("counted later").count();
    silent(&session.tool(json!({"tool_use_id": "toolu_last"})));
    assert_eq!(session.count(), "65");
    let shape = session.shape();
    assert_eq!(shape.len() + later, 65);
    let mut budgets: Vec<i64> = shape.iter().map(|entry| entry["tok"].as_i64().unwrap()).collect();
    assert!(budgets.is_sorted());
    budgets.dedup();
    assert_eq!(budgets.len(), shape.len());
    let index = session.state(&format!("tool-archive-{SID}/index.jsonl"));
    assert!(index.lines().all(|row| serde_json::from_str::<Value>(row).is_ok()));
    let not_archived = session.log().lines().filter(|line| line.contains("ERROR tool-archive")).count();
    assert_eq!(index.lines().count() + not_archived, 64);
}
