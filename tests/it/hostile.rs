//! Hooks are guests: whatever comes in and whatever the disk is like, they exit with 0, print nothing harmful, and are
//! done soon. Every hook name against every hostile input and every hostile world.
//!
//! Read-only and full places are made with mounts in a namespace of their own, since tests often run as root, whom no
//! permission stops. Where the system gives no such namespace these cases are skipped, and say so.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Output, Sandbox};

const HOOKS: [&str; 10] = [
    "session-start",
    "pre-compact",
    "post-tool-use",
    "user-prompt-submit",
    "bootstrap",
    "pin-inject",
    "token-budget",
    "tool-archive",
    "suggest-compact",
    "task-change",
];

const SID: &str = "hostile-1";

/// A payload that every hook finds something in.
fn payload(sandbox: &Sandbox) -> Value {
    json!({
        "session_id": SID, "transcript_path": sandbox.tmp.join("t.jsonl"), "cwd": sandbox.cwd,
        "hook_event_name": "Any", "source": "startup", "trigger": "manual", "custom_instructions": "keep the parser",
        "prompt": "please look at src/auth/login.ts and at what the session does there",
        "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "cat big", "path": sandbox.cwd},
        "tool_response": {"stdout": "line\n".repeat(2000), "stderr": "", "interrupted": false},
    })
}

/// What a hook owes its host in every case.
fn polite(hook: &str, what: &str, output: &Output) {
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{hook}, {what}: {output}");
    let plain_text = hook == "pre-compact";
    let object = serde_json::from_str::<Value>(&output.stdout).is_ok_and(|reply| reply.is_object());
    assert!(output.stdout.is_empty() || object || plain_text, "{hook}, {what}: {output}");
    assert!(output.elapsed < Duration::from_secs(10), "{hook}, {what}: {:?}", output.elapsed);
}

fn each_hook(what: &str, prepare: impl Fn(&Sandbox) + Sync, run: impl Fn(&Sandbox, &str) -> Output + Sync) {
    std::thread::scope(|scope| {
        for hook in HOOKS {
            let (prepare, run) = (&prepare, &run);
            scope.spawn(move || {
                let sandbox = Sandbox::new();
                prepare(&sandbox);
                polite(hook, what, &run(&sandbox, hook));
            });
        }
    });
}

fn with_payload(sandbox: &Sandbox, hook: &str) -> Output {
    sandbox.hook(hook, &payload(sandbox)).run()
}

fn log(sandbox: &Sandbox) -> String {
    let logs = std::fs::read_dir(sandbox.home.join(".claude/logs")).into_iter().flatten().flatten();
    logs.map(|log| sandbox.read(log.path())).collect()
}

#[test]
fn input_that_is_no_payload_is_answered_by_silence_and_a_line_in_the_log() {
    let whole = payload(&Sandbox::new()).to_string();
    let cases: [(&str, Vec<u8>); 9] = [
        ("empty", Vec::new()),
        ("blank", b" \n\t".into()),
        ("not JSON", b"{nope".into()),
        ("null", b"null".into()),
        ("a list", b"[]".into()),
        ("text", b"\"x\"".into()),
        ("cut off", whole.as_bytes()[..whole.len() / 2].into()),
        ("bad bytes", b"\xff\xfe{\"a\":\x00".into()),
        ("20 MB of nothing", vec![b'x'; 20 << 20]),
    ];
    for (what, stdin) in &cases {
        each_hook(
            what,
            |_| {},
            |sandbox, hook| {
                let output = sandbox.si(["hook", hook]).stdin(stdin.clone()).run();
                assert_eq!(output.stdout, "", "{hook}, {what}: {output}");
                assert!(log(sandbox).contains("not one JSON object"), "{hook}, {what}: {}", log(sandbox));
                output
            },
        );
    }
}

#[test]
fn odd_payloads_harm_nobody() {
    let big = "y".repeat(20 << 20);
    let deep = format!("{{\"session_id\":\"{SID}\",\"tool_response\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    each_hook("deep nesting", |_| {}, |sandbox, hook| sandbox.si(["hook", hook]).stdin(deep.clone()).run());
    each_hook(
        "20 MB of result",
        |_| {},
        |sandbox, hook| {
            let mut payload = payload(sandbox);
            payload["tool_response"]["stdout"] = json!(big);
            sandbox.hook(hook, &payload).run()
        },
    );
    each_hook(
        "a lone surrogate and bad bytes",
        |_| {},
        |sandbox, hook| {
            let text = payload(sandbox).to_string().replace("keep the parser", "\\ud83d \\u0000");
            let mut bytes = text.into_bytes();
            let at = bytes.windows(4).position(|part| part == b"line").unwrap();
            bytes[at] = 0xff;
            sandbox.si(["hook", hook]).stdin(bytes).run()
        },
    );
    each_hook(
        "an unknown flag",
        |_| {},
        |sandbox, hook| sandbox.si(["hook", hook, "--no-such-flag", "x"]).stdin(payload(sandbox).to_string()).run(),
    );
}

#[test]
fn an_event_that_is_not_known_is_no_error() {
    for name in ["Stop", "NoSuchEvent", "", "--help-me", "../x"] {
        let sandbox = Sandbox::new();
        let output = sandbox.si(["hook", name]).stdin(payload(&sandbox).to_string()).run();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""), "{name}: {output}");
    }
}

#[test]
fn a_leaf_of_a_wrong_type_harms_nobody() {
    let leaves = payload(&Sandbox::new());
    for wrong in [Value::Null, json!(7), json!({"a": [1]}), json!([{"b": 2}]), json!("")] {
        for leaf in leaves.as_object().unwrap().keys() {
            each_main_hook(&format!("{leaf} = {wrong}"), |sandbox, hook| {
                let mut payload = payload(sandbox);
                payload[leaf] = wrong.clone();
                sandbox.hook(hook, &payload).run()
            });
        }
    }
}

/// Only the hooks that contain the others, where there are many cases.
fn each_main_hook(what: &str, run: impl Fn(&Sandbox, &str) -> Output + Sync) {
    std::thread::scope(|scope| {
        for hook in &HOOKS[..4] {
            let run = &run;
            scope.spawn(move || polite(hook, what, &run(&Sandbox::new(), hook)));
        }
    });
}

#[test]
fn ids_from_outside_name_no_file_elsewhere() {
    let long = "z".repeat(5000);
    for id in ["../../../../escape", "/abs/escape", "..", ".", "a\0b", "x/y\\z", "", "ünï", "con\n", long.as_str()] {
        each_main_hook(id, |sandbox, hook| {
            let mut payload = payload(sandbox);
            payload["session_id"] = json!(id);
            payload["tool_use_id"] = json!(id);
            payload["transcript_path"] = json!(sandbox.home.join(".claude/projects/../../../../escape.jsonl"));
            let output = sandbox.hook(hook, &payload).run();
            let mut strays = Vec::new();
            let allowed = [&sandbox.tmp, &sandbox.home, &sandbox.cwd];
            outside(sandbox.root(), &allowed, &mut strays);
            assert!(strays.is_empty(), "{hook}, {id:?}: {strays:?}");
            output
        });
    }
    assert!(!Path::new("/abs/escape").exists());
}

/// Files below `folder` that are in none of `allowed`.
fn outside(folder: &Path, allowed: &[&PathBuf], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if allowed.iter().any(|allowed| path.starts_with(allowed)) {
            continue;
        }
        if path.is_dir() { outside(&path, allowed, found) } else { found.push(path) }
    }
}

/// Every file that a hook may touch, so that something can be planted there.
fn records(sandbox: &Sandbox) -> Vec<PathBuf> {
    let own = [
        "token-budget-{}",
        "tool-count-{}",
        "tool-seen-{}",
        "compact-state-{}",
        "task-change-{}",
        "ctx-shape-{}.jsonl",
        "ctx-shape-{}.rollup.json",
        "ctx-shape-{}.session.json",
        "compact-snapshot-{}.json",
        "cost-{}",
        "tool-archive-{}",
        "context-window-{}",
        "cost-sincecompact-{}",
        "tool-count-{}.pending",
        "token-budget-{}.pending",
        "tool-count-{}.lock",
        "tool-archive-{}.lock",
        "cost-{}.lock",
        "task-change-{}.lock",
    ];
    let shared = [".si-bootstrap-state", "logs/compact-history.jsonl", "session-data/compaction-log.txt"];
    let temp = own.map(|name| sandbox.tmp.join(format!("claude-{}", name.replace("{}", SID))));
    temp.into_iter().chain(shared.map(|name| sandbox.home.join(".claude").join(name))).collect()
}

fn plant(sandbox: &Sandbox, plant: impl Fn(&Path)) {
    for path in records(sandbox) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        plant(&path);
    }
}

#[test]
fn planted_links_are_not_followed() {
    let victim = |sandbox: &Sandbox| sandbox.root().join("victim");
    let prepare = |sandbox: &Sandbox| {
        sandbox.write(&victim(sandbox), "theirs");
        plant(sandbox, |path| symlink(victim(sandbox), path).unwrap());
    };
    each_hook("links", prepare, |sandbox, hook| {
        let output = with_payload(sandbox, hook);
        assert_eq!(sandbox.read(victim(sandbox)), "theirs", "{hook}");
        output
    });
}

#[test]
fn fifos_and_folders_in_the_place_of_records_are_not_waited_for() {
    let fifos = |sandbox: &Sandbox| {
        let status = Command::new("mkfifo")
            .args(records(sandbox).iter().filter(|path| {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                true
            }))
            .status()
            .unwrap();
        assert!(status.success());
    };
    each_hook("FIFOs", fifos, with_payload);
    each_hook("folders", |sandbox| plant(sandbox, |path| std::fs::create_dir_all(path).unwrap()), with_payload);
}

#[test]
fn a_repository_that_never_answers_is_given_up() {
    // What git opens whatever it is: a pipe there holds it for ever, as a disk that is gone does.
    for place in [".git/config", ".git/packed-refs", ".git/objects/info/commit-graph"] {
        let prepare = |sandbox: &Sandbox| {
            sandbox.repo(&sandbox.cwd, &json!({"commits": [{"files": {"a": "1"}, "message": "feat: one"}]}));
            let place = sandbox.cwd.join(place);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&place);
            assert!(Command::new("mkfifo").arg(place).status().unwrap().success());
        };
        each_hook(place, prepare, with_payload);
        let sandbox = Sandbox::new();
        prepare(&sandbox);
        let fields = ("CLAUDE_STATUSLINE_FIELDS", "project,branch,dirty,diffstat,task");
        let run = sandbox.si(["statusline"]).stdin(payload(&sandbox).to_string()).var(fields.0, fields.1);
        let output = run.var("NO_COLOR", "1").run();
        assert!(output.stdout.starts_with("proj · main"), "{place}: {output}");
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{place}: {output}");
    }
}

#[test]
fn a_limit_to_the_size_of_files_ends_nobody() {
    // In blocks of 512 bytes or of a kilobyte: nothing can be written, some records, all records but not the log.
    for limit in [0, 1, 8] {
        let script = |lane: &str| format!("ulimit -f {limit}; exec \"$SI\" {lane}");
        let run = |sandbox: &Sandbox, lane: &str| {
            let run = sandbox.program("sh", ["-c", &script(lane)]).var("SI", env!("CARGO_BIN_EXE_si"));
            run.stdin(payload(sandbox).to_string()).run()
        };
        let logged = |sandbox: &Sandbox| {
            let day = sandbox.env().local(sandbox.now_ms).format("%F").to_string();
            let log = sandbox.home.join(format!(".claude/logs/session-intel-{day}.log"));
            sandbox.write(&log, "x\n".repeat(20_000));
        };
        each_hook(&format!("ulimit -f {limit}"), logged, |sandbox, hook| run(sandbox, &format!("hook {hook}")));
        let sandbox = Sandbox::new();
        logged(&sandbox);
        let output = run(&sandbox, "statusline");
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{limit}: {output}");
        assert!(output.stdout.contains("proj"), "{limit}: {output}");
    }
}

#[test]
fn corrupt_records_read_as_absent() {
    for (what, bytes) in [
        ("nothing", &b""[..]),
        ("bad bytes", b"\x00\xff{\"a\""),
        ("other JSON", b"[1,null,\"x\"]\n"),
        ("numbers", b"99999999999999999999999"),
        ("wrong leaves", br#"{"t":"x","cwd":5,"roots":7,"callsSince":{},"regretHits":"no","rolledThroughTok":-9e99}"#),
    ] {
        each_hook(what, |sandbox| plant(sandbox, |path| sandbox.write(path, bytes)), with_payload);
    }
}

#[test]
fn a_foreign_file_is_neither_read_nor_written() {
    let mut probe = Command::new("id");
    if probe.arg("-u").output().unwrap().stdout.trim_ascii() != b"0" {
        println!("skipped: only root can give files away");
        return;
    }
    let prepare = |sandbox: &Sandbox| {
        plant(sandbox, |path| {
            sandbox.write(path, "77");
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        });
    };
    each_hook("foreign files", prepare, |sandbox, hook| {
        let before: Vec<_> = records(sandbox).iter().map(|path| std::fs::metadata(path).unwrap()).collect();
        let output = with_payload(sandbox, hook);
        use std::os::unix::fs::MetadataExt;
        for (path, before) in records(sandbox).iter().zip(before) {
            let same = std::fs::metadata(path).is_ok_and(|now| now.ino() == before.ino());
            assert!(!same || std::fs::read(path).unwrap() == b"77", "{hook}: {}", path.display());
        }
        output
    });
}

#[test]
fn a_held_lock_is_given_up_and_the_count_left_for_later() {
    each_hook(
        "held locks",
        |_| {},
        |sandbox, hook| {
            let names = ["tool-count-hostile-1", "tool-archive-hostile-1", "task-change-hostile-1", "cost-hostile-1"];
            let held: Vec<File> = names
                .map(|name| {
                    let file = File::create(sandbox.tmp.join(format!("claude-{name}.lock"))).unwrap();
                    fs2::FileExt::lock_exclusive(&file).unwrap();
                    file
                })
                .into();
            let output = with_payload(sandbox, hook);
            drop(held);
            if hook == "post-tool-use" {
                assert_eq!(sandbox.read(sandbox.tmp.join("claude-tool-count-hostile-1.pending")), "1\n");
                let next = json!({"session_id": SID, "cwd": sandbox.cwd, "tool_name": "X", "tool_use_id": "toolu_2"});
                sandbox.hook(hook, &next).run();
                assert_eq!(sandbox.read(sandbox.tmp.join("claude-tool-count-hostile-1")), "2");
            }
            output
        },
    );
}

/// Runs a hook in a namespace where `mounts` was carried out by a shell first; none where there are no namespaces.
fn in_namespace(sandbox: &Sandbox, mounts: &str, hook: &str) -> Option<Output> {
    if !Command::new("unshare")
        .args(["-rm", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("skipped: no mount namespace here");
        return None;
    }
    let script = format!("{mounts}\nexec \"$SI\" hook {hook}");
    Some(
        sandbox
            .program("unshare", ["-rm", "sh", "-ec", &script])
            .var("SI", env!("CARGO_BIN_EXE_si"))
            .stdin(payload(sandbox).to_string())
            .run(),
    )
}

#[test]
fn a_read_only_or_full_place_changes_no_answer() {
    let full = "fill() { mount -t tmpfs -o size=16k tmpfs \"$1\"; cat /dev/zero > \"$1/fill\" 2>/dev/null || :; }";
    let cases = [
        ("read-only temp folder", "mount -t tmpfs -o ro tmpfs \"$TMPDIR\"".to_string()),
        ("read-only config folder", "mount -t tmpfs -o ro tmpfs \"$HOME/.claude\"".to_string()),
        ("read-only home", "mount -t tmpfs -o ro tmpfs \"$HOME\"".to_string()),
        (
            "everything read-only",
            "mount -t tmpfs -o ro tmpfs \"$HOME\"; mount -t tmpfs -o ro tmpfs \"$TMPDIR\"".to_string(),
        ),
        ("full temp folder", format!("{full}; fill \"$TMPDIR\"")),
        ("full config folder", format!("{full}; fill \"$HOME/.claude\"")),
        ("everything full", format!("{full}; fill \"$HOME\"; fill \"$TMPDIR\"")),
    ];
    for (what, mounts) in &cases {
        for hook in HOOKS {
            let sandbox = Sandbox::new();
            let Some(output) = in_namespace(&sandbox, mounts, hook) else { return };
            polite(hook, what, &output);
        }
    }
}

#[test]
fn a_home_that_is_missing_or_odd_changes_no_answer() {
    for home in ["", "relative/home", "/nonexistent/home", "/dev/null"] {
        each_hook(
            &format!("HOME={home}"),
            |_| {},
            |sandbox, hook| {
                // Without HOME the user database names one: a temp folder hides the real one from the test.
                let config = sandbox.home.join(".claude");
                let named = home.is_empty() || home.starts_with("relative");
                let run = sandbox.hook(hook, &payload(sandbox)).var("HOME", home);
                if named { run.var("CLAUDE_CONFIG_DIR", config.to_str().unwrap()).run() } else { run.run() }
            },
        );
    }
}

#[test]
fn a_temp_folder_that_is_gone_or_no_folder_changes_no_answer() {
    each_hook("gone", |sandbox| std::fs::remove_dir_all(&sandbox.tmp).unwrap(), with_payload);
    let file = |sandbox: &Sandbox| {
        std::fs::remove_dir_all(&sandbox.tmp).unwrap();
        sandbox.write(&sandbox.tmp, "a file");
    };
    each_hook("a file", file, with_payload);
}

#[test]
fn a_working_folder_that_was_deleted_changes_no_answer() {
    each_hook(
        "deleted",
        |_| {},
        |sandbox, hook| {
            let gone = sandbox.root().join("gone");
            std::fs::create_dir(&gone).unwrap();
            let mut payload = payload(sandbox);
            payload["cwd"] = json!(gone);
            let script = format!("rmdir '{}'; exec \"$SI\" hook {hook}", gone.display());
            sandbox
                .program("sh", ["-c", &script])
                .cwd(&gone)
                .var("SI", env!("CARGO_BIN_EXE_si"))
                .stdin(payload.to_string())
                .run()
        },
    );
}

#[test]
fn a_host_that_closed_the_pipes_is_not_argued_with() {
    each_hook(
        "closed pipes",
        |_| {},
        |sandbox, hook| {
            let script = format!("exec \"$SI\" hook {hook} >&- 2>&-");
            sandbox
                .program("sh", ["-c", &script])
                .var("SI", env!("CARGO_BIN_EXE_si"))
                .stdin(payload(sandbox).to_string())
                .run()
        },
    );
}
