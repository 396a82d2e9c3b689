//! The claims of docs/SECURITY.md that no other test proves, and that each claim of it names tests that are there.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::properties::TARGETS;
use crate::support::{Output, Sandbox};

const SID: &str = "5e55a0b1-0000-4000-8000-000000000002";
/// Words that stand in prompts, tool calls, results and files of the session below, and nowhere else.
const SAID: &str = "xylophone-9173";

fn transcript(sandbox: &Sandbox) -> PathBuf {
    let encoded = si::client::project::encode(&sandbox.cwd);
    sandbox.home.join(format!(".claude/projects/{encoded}/{SID}.jsonl"))
}

fn payload(sandbox: &Sandbox, call: usize) -> Value {
    json!({
        "session_id": SID, "transcript_path": transcript(sandbox), "cwd": sandbox.cwd, "source": "startup",
        "trigger": "manual", "custom_instructions": format!("keep {SAID}"),
        "prompt": format!("please look at what {SAID} does in src/a.ts and write a test for it, then a release"),
        "model": {"id": "claude-opus-4-8", "display_name": "Opus"},
        "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": 190_000}},
        "tool_name": "Bash", "tool_use_id": format!("toolu_{call}"),
        "tool_input": {"command": format!("grep {SAID} src/a.ts")},
        "tool_response": {"stdout": format!("{SAID}\n").repeat(3000), "stderr": ""},
    })
}

/// A whole session in a repository, with everything on that is on by default, and the debug log besides: `start` makes
/// the run of each call from its words.
fn session(sandbox: &Sandbox, start: impl Fn(&[&str]) -> Output) {
    let row = json!({"type": "assistant", "sessionId": SID, "timestamp": sandbox.env().iso(sandbox.now_ms),
        "message": {"id": "m1", "model": "claude-opus-4-8", "content": [{"type": "text", "text": SAID}],
        "usage": {"input_tokens": 190_000, "output_tokens": 5}}});
    sandbox.write(&transcript(sandbox), format!("{row}\n"));
    for args in [
        &["hook", "session-start"][..],
        &["statusline"],
        &["hook", "user-prompt-submit"],
        &["hook", "post-tool-use"],
        &["hook", "pre-compact"],
        &["statusline"],
        &["pin", "--session", SID, SAID],
        &["set", "compact.threshold", "60", "--yes"],
        &["refresh", "git", sandbox.cwd.to_str().unwrap()],
        &["status"],
        &["doctor"],
        &["tail"],
        &["recover", "--session", SID, SAID],
        &["expand", "toolu_1"],
    ] {
        let output = start(args);
        assert!(matches!(output.code, 0 | 2) || args == ["doctor"], "{args:?}: {output}");
    }
}

fn repo(sandbox: &Sandbox) {
    sandbox.repo(
        &sandbox.cwd,
        &json!({"commits": [{"message": "feat: a", "files": {"src/a.ts": "1\n"}}], "dirty": {"src/a.ts": "2\n"}}),
    );
}

fn direct<'s>(sandbox: &'s Sandbox) -> impl Fn(&[&str]) -> Output + use<'s> {
    move |args| {
        let run = sandbox.si(args.iter().map(ToString::to_string)).stdin(payload(sandbox, 1).to_string());
        run.var("CLAUDE_SESSION_ID", SID).run()
    }
}

/// Files and folders below `folder`.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.symlink_metadata().unwrap().is_dir() {
            all.extend(everything(&path));
        }
        all.push(path);
    }
    all
}

#[test]
fn whatever_the_mask_everything_that_a_session_leaves_is_private() {
    let sandbox = Sandbox::new();
    repo(&sandbox);
    // What others made stands as they made it: the client's own folders, the project's CLAUDE.md.
    let theirs = |path: &Path| {
        path.starts_with(&sandbox.cwd) || transcript(&sandbox).starts_with(path) || path.ends_with("settings.json")
    };
    session(&sandbox, |args| {
        let words = args.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" ");
        let script = format!("umask 000; exec \"$SI\" {words}");
        let run = sandbox.program("sh", ["-c", &script]).var("SI", env!("CARGO_BIN_EXE_si"));
        run.var("CLAUDE_SESSION_ID", SID).stdin(payload(&sandbox, 1).to_string()).run()
    });
    let all = [everything(&sandbox.tmp), everything(&sandbox.home)].concat();
    let ours: Vec<_> = all.iter().filter(|path| !theirs(path)).collect();
    assert!(ours.len() > 15, "{ours:?}");
    for path in ours {
        let meta = path.symlink_metadata().unwrap();
        let (mode, most) = (meta.permissions().mode() & 0o777, if meta.is_dir() { 0o700 } else { 0o600 });
        assert_eq!(mode & !most, 0, "{} has mode {mode:o}", path.display());
    }
}

#[test]
fn the_log_holds_nothing_that_was_said() {
    let sandbox = Sandbox::new();
    repo(&sandbox);
    sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), r#"{"debug": {"enabled": true}}"#);
    session(&sandbox, direct(&sandbox));
    let logs: String = everything(&sandbox.home.join(".claude/logs"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .map(|path| sandbox.read(path))
        .collect();
    assert!(logs.lines().count() > 3, "{logs}");
    assert!(!logs.contains(SAID), "{logs}");
}

/// Everything that git may be told to run by a repository, as the repository's config says it.
fn traps(evil: &str) -> String {
    format!(
        "[core]\n\tfsmonitor = {evil}\n\tpager = {evil}\n\teditor = {evil}\n\tsshCommand = {evil}\n\tgitProxy = {evil}\n\
         \taskPass = {evil}\n\thooksPath = {evil}-hooks\n\tattributesFile = attributes\n\
         [diff]\n\texternal = {evil}\n[diff \"bad\"]\n\tcommand = {evil}\n\ttextconv = {evil}\n\
         [filter \"bad\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n\
         [gpg]\n\tprogram = {evil}\n[log]\n\tshowSignature = true\n[credential]\n\thelper = {evil}\n\
         [alias]\n\tstatus = !{evil}\n\tdiff = !{evil}\n\tlog = !{evil}\n[pager]\n\tstatus = {evil}\n\tlog = {evil}\n\
         [remote \"origin\"]\n\turl = ext::{evil}\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\
         \tuploadpack = {evil}\n[protocol]\n\tallow = always\n[extensions]\n\tpartialClone = origin\n"
    )
}

#[test]
fn a_hostile_repository_runs_nothing_through_any_lane() {
    let sandbox = Sandbox::new();
    repo(&sandbox);
    let canary = sandbox.root().join("canary");
    let evil = sandbox.root().join("evil");
    sandbox.write_program(&evil, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", canary.display()));
    sandbox.write(&sandbox.cwd.join(".gitattributes"), "* filter=bad diff=bad\n");
    // An object that is missing: a partial clone would fetch it.
    let blob = sandbox.git(&sandbox.cwd, &["rev-parse", "HEAD:src/a.ts"], &[]);
    std::fs::remove_file(sandbox.cwd.join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    let config = sandbox.cwd.join(".git/config");
    sandbox.write(&config, sandbox.read(&config) + &traps(evil.to_str().unwrap()));
    for hook in ["post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman", "post-checkout"] {
        for folder in [sandbox.cwd.join(".git/hooks"), sandbox.root().join("evil-hooks")] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(&evil, folder.join(hook)).unwrap();
        }
    }
    // Programs that si starts by name, planted where a careless search would find them.
    for name in ["git", "curl", "claude", "bash", "sh", "si", "security"] {
        std::fs::copy(&evil, sandbox.cwd.join(name)).unwrap();
    }
    sandbox.write(
        &sandbox.home.join(".claude/session-intelligence.json"),
        r#"{"taskChange": {"semanticFallback": true}, "statusline": {"preset": "verbose"}}"#,
    );
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    session(&sandbox, |args| {
        let run = sandbox.si(args.iter().map(ToString::to_string)).stdin(payload(&sandbox, 1).to_string());
        run.var("CLAUDE_SESSION_ID", SID).var("PATH", &path).run()
    });
    assert!(!canary.exists(), "{}", sandbox.read(&canary));
    // The trap does work: an unguarded git steps into it.
    let status = Command::new("git")
        .args(["-C", sandbox.cwd.to_str().unwrap(), "status", "--porcelain"])
        .env_clear()
        .envs(sandbox.base_vars())
        .output()
        .unwrap();
    assert!(canary.exists(), "{status:?}");
}

/// Everything that could speak to a network, by name, in a folder in front of PATH: each notes that it was started.
#[test]
fn by_default_nothing_is_sent() {
    let sandbox = Sandbox::new();
    repo(&sandbox);
    let (tools, canary) = (sandbox.root().join("tools"), sandbox.root().join("canary"));
    for name in ["curl", "wget", "claude", "ssh", "nc", "npm", "node", "security"] {
        let tool = tools.join(name);
        sandbox.write_program(&tool, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", canary.display()));
    }
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    session(&sandbox, |args| {
        let run = sandbox.si(args.iter().map(ToString::to_string)).stdin(payload(&sandbox, 1).to_string());
        run.var("CLAUDE_SESSION_ID", SID).var("PATH", &path).run()
    });
    assert!(!canary.exists(), "{}", sandbox.read(&canary));
}

#[test]
fn si_itself_opens_no_connection() {
    let sandbox = Sandbox::new();
    repo(&sandbox);
    let trace = |args: &[&str]| {
        let record = sandbox.root().join("trace");
        let head = [
            "-f",
            "-qq",
            "-e",
            "trace=socket,connect,execve",
            "-o",
            record.to_str().unwrap(),
            env!("CARGO_BIN_EXE_si"),
        ];
        let run = sandbox.program("strace", head.iter().chain(args).map(ToString::to_string));
        let output = run.var("CLAUDE_SESSION_ID", SID).stdin(payload(&sandbox, 1).to_string()).run();
        (output, std::fs::read_to_string(record).unwrap_or_default())
    };
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !traced.is_ok_and(|output| output.status.success()) {
        println!("skipped: no strace(1) here, or it may trace nothing");
        return;
    }
    session(&sandbox, |args| {
        let (output, calls) = trace(args);
        // strace(1) follows what is detached, too.
        assert!(!calls.contains("AF_INET") && !calls.contains("curl"), "{args:?}: {calls}");
        output
    });
}

#[test]
fn no_dependency_speaks_to_a_network() {
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let names: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    assert!(names.len() > 20 && names.contains(&"libgit2-sys"));
    for name in names {
        let speaks =
            ["openssl", "libssh2", "curl", "reqwest", "ureq", "hyper", "rustls", "tokio", "native-tls", "isahc"];
        assert!(!speaks.iter().any(|part| name.starts_with(part)), "{name}");
    }
}

/// Sources of the package, by path from its root.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["src", "tests"].into_iter().flat_map(|folder| everything(&root.join(folder)));
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
        .map(|path| {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn programs_are_started_in_one_place() {
    let places: Vec<String> = sources()
        .into_iter()
        .filter(|(name, text)| name.starts_with("src/") && text.contains("Command::new("))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(places, ["src/process.rs"]);
}

/// Each claim of docs/SECURITY.md ends in the names of the tests that prove it; each of them must be there.
#[test]
fn every_claim_names_tests_that_are_there() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/SECURITY.md")).unwrap();
    let sources = sources();
    let fuzz: BTreeSet<String> = TARGETS.iter().map(|target| format!("fuzz::{}", target.name)).collect();
    let mut seen = 0;
    for (at, line) in page.lines().enumerate() {
        if line.starts_with("- ") {
            let more = page.lines().skip(at + 1).take_while(|more| !more.is_empty() && !more.starts_with("- "));
            assert!(more.collect::<String>().contains("Proof: "), "no proof: {line}");
        }
    }
    for name in page.split("Proof: ").skip(1).flat_map(|rest| {
        let end = rest.find("\n- ").into_iter().chain(rest.find("\n\n")).min().unwrap_or(rest.len());
        rest[..end].split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    }) {
        let function = format!("fn {name}()");
        let takes = format!("fn {name}(");
        let is_test = sources.iter().any(|(_, text)| {
            text.find(&function).or_else(|| text.find(&takes)).is_some_and(|at| text[..at].trim_end().ends_with(']'))
        });
        assert!(is_test || fuzz.contains(&name), "docs/SECURITY.md names {name}, which is no test");
        seen += 1;
    }
    assert!(seen > 40, "{seen} proofs were found");
}
