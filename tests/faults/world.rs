//! A session that has been at work for a while: every state file is there, and the user's own files beside them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use si::client::project;
use si::store::{Sid, StateFile};

use crate::support::{Output, Run, Sandbox};

pub const SID: &str = "faults-1";
/// The pin that must survive everything.
pub const PIN: &str = "the parser stays hand-written";
/// What the user wrote into session-context.md and CLAUDE.md.
pub const WORDS: &str = "words of the user, kept to the byte";
/// What the status line ran before si.
pub const FORMER: &str = "echo former";
/// How long any call may take, whatever waits it goes through: they add up to less than half of it, and machines that run
/// tests are busy.
pub const BOUND: Duration = Duration::from_secs(10);

/// The hooks that contain the others, and the status line.
pub const MAIN: [&str; 5] = ["session-start", "pre-compact", "post-tool-use", "user-prompt-submit", "statusline"];
/// Every name of a hook, and the status line.
pub const ALL: [&str; 15] = [
    "session-start",
    "pre-compact",
    "post-tool-use",
    "user-prompt-submit",
    "statusline",
    "bootstrap",
    "pin-inject",
    "token-budget",
    "tool-archive",
    "suggest-compact",
    "task-change",
    "SessionStart",
    "PreCompact",
    "PostToolUse",
    "UserPromptSubmit",
];

/// The names to try where there are many cases: all of them on request.
pub fn names() -> &'static [&'static str] {
    if std::env::var("SI_FAULTS").is_ok_and(|size| size == "full") { &ALL } else { &MAIN }
}

/// A number from a variable, for the size of a test.
pub fn size(name: &str, short: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// A sandbox with a repository, a transcript and files of the user's, in which a session runs.
pub struct World {
    pub sandbox: Sandbox,
    pub sid: Sid,
    pub enc: String,
}

impl World {
    /// Before the session's first call.
    pub fn fresh() -> World {
        let sandbox = Sandbox::new();
        let enc = project::encode(&sandbox.cwd);
        let commits = json!([
            {"files": {"src/auth/login.ts": "1\n", "src/ui/form.ts": "1\n"}, "message": "feat: log in", "age_s": 90_000},
            {"files": {"src/auth/login.ts": "2\n", "src/ui/form.ts": "2\n"}, "message": "fix: log in", "age_s": 9000},
        ]);
        sandbox.repo(&sandbox.cwd, &json!({"branch": "main", "commits": commits}));
        let world = World { sid: Sid::new(SID), sandbox, enc };
        let claude = world.sandbox.home.join(".claude");
        let settings = json!({"theme": "dark", "statusLine": {"type": "command", "command": FORMER}});
        for (path, text) in [
            (claude.join("settings.json"), settings.to_string()),
            (claude.join("session-intelligence.json"), json!({"toolArchive": {"thresholdChars": 500}}).to_string()),
            (claude.join("statusline-intel.json"), "{}".into()),
            (claude.join("logs/deploy-breadcrumb"), "gateway 2026-01-02T03:04:05.000Z\n".into()),
            (world.path(StateFile::SessionContext(&world.enc)), format!("## Current Task\n{WORDS}\n")),
            (world.sandbox.cwd.join("CLAUDE.md"), format!("{WORDS}\n")),
        ] {
            world.sandbox.write(&path, text);
        }
        world.write_transcript(120_000);
        world
    }

    /// After a good many calls of all kinds.
    pub fn busy() -> World {
        let world = World::fresh();
        let installed = world.sandbox.si(["install"]).run();
        assert_eq!(installed.code, 0, "{installed}");
        world.pin(PIN);
        for name in ["session-start", "statusline", "post-tool-use", "pre-compact", "post-tool-use", "post-tool-use"] {
            world.expect(name, "a world in order");
        }
        for name in ["user-prompt-submit", "statusline"] {
            world.expect(name, "a world in order");
        }
        let now = world.sandbox.now_ms;
        for (state, text) in [
            (StateFile::QuotaCache, json!({"sessionUsage": 12, "fetchedAt": now}).to_string()),
            (StateFile::QuotaLock, json!({"t": now}).to_string()),
            (StateFile::Health("web"), format!("200 {now}")),
            (StateFile::ZonesAnnounced, json!({"/w": {"yellow": 1, "orange": 2, "red": 3}}).to_string()),
        ] {
            world.sandbox.write(&world.path(state), text);
        }
        world
    }

    /// Where a file of this session is.
    pub fn path(&self, state: StateFile<'_>) -> PathBuf {
        state.path(&self.sandbox.env()).unwrap()
    }

    /// Every file that si keeps, in this session and project.
    pub fn state_files(&self) -> Vec<PathBuf> {
        use StateFile::*;
        let (sid, cwd) = (&self.sid, &self.sandbox.cwd);
        let anchors = si::watch::anchors::file_key(cwd);
        let prefix = si::compaction::prefix::file_key(cwd.to_str().unwrap());
        let tree = si::store::key::sha256_hex(cwd.to_str().unwrap().as_bytes(), 16);
        let states = [
            TokenBudget(sid),
            ToolCount(sid),
            ToolSeen(sid),
            ZoneState(sid),
            TaskChange(sid),
            Shape(sid),
            Rollup(sid),
            SessionAnchor(sid),
            Snapshot(sid),
            Prefix(&prefix),
            Anchors(&anchors),
            Totals(sid),
            TotalsSinceCompact(sid),
            Health("web"),
            QuotaCache,
            QuotaLock,
            Archived(sid, "toolu_1"),
            ArchiveIndex(sid),
            ContextWindow(sid),
            WorkTree(&tree),
            Config,
            LegacyConfig,
            Bootstrap,
            History,
            ZonesAnnounced,
            Deploy,
            CompactionLog,
            SessionContext(&self.enc),
            ClaudeMd(cwd),
            Handoff(&self.enc),
            Pins(sid),
            Settings,
        ];
        let pending = [TokenBudget(sid), ToolCount(sid)]
            .map(|state| PathBuf::from(format!("{}.pending", self.path(state).display())));
        states.into_iter().map(|state| self.path(state)).chain(pending).collect()
    }

    /// The session's transcript, with this many tokens in context.
    pub fn write_transcript(&self, tokens: u64) {
        let iso = |ago_s: i64| self.sandbox.env().iso(self.sandbox.now_ms - ago_s * 1000);
        let row = |n: u64, ago_s, tokens: u64| {
            json!({"type": "assistant", "sessionId": SID, "timestamp": iso(ago_s), "message": {"id": format!("msg_{n}"),
                "model": "claude-opus-4-1[1m]", "usage": {"input_tokens": 10, "output_tokens": 20,
                "cache_read_input_tokens": tokens, "cache_creation_input_tokens": 5}}})
        };
        let rows: String = (0..20).map(|n| format!("{}\n", row(n, 600 - n as i64, tokens + n))).collect();
        self.sandbox.write(&self.transcript(), rows);
    }

    pub fn transcript(&self) -> PathBuf {
        self.sandbox.home.join(".claude/projects").join(&self.enc).join(format!("{SID}.jsonl"))
    }

    pub fn pin(&self, text: &str) {
        let output = self.sandbox.si(["pin", "--session", SID, text]).run();
        assert_eq!(output.code, 0, "{output}");
    }

    /// What the client sends; `n` tells one tool call from another.
    pub fn payload(&self, n: u64) -> Value {
        let cwd = &self.sandbox.cwd;
        let file = if n.is_multiple_of(2) { "src/auth/login.ts" } else { "src/ui/form.ts" };
        json!({
            "session_id": SID, "transcript_path": self.transcript(), "cwd": cwd, "hook_event_name": "Any",
            "source": "startup", "trigger": "manual", "custom_instructions": "keep the parser",
            "prompt": "please go on with the log-in form and what the session does there",
            "tool_name": "Read", "tool_use_id": format!("toolu_{n}"), "tool_input": {"file_path": cwd.join(file)},
            "tool_response": {"type": "text", "file": {"content": format!("line {n}\n").repeat(100)}},
            "model": {"id": "claude-opus-4-1[1m]", "display_name": "Opus"},
            "workspace": {"current_dir": cwd, "project_dir": cwd},
            "context_window": {"context_window_size": 1_000_000, "current_usage": {"input_tokens": 120_000}},
            "cost": {"total_cost_usd": 1.5, "total_duration_ms": 60_000},
        })
    }

    /// Describes a call by its name, with a tool call that was not there before.
    pub fn call(&self, name: &str) -> Run<'_> {
        self.sandbox.si(words(name)).stdin(self.next_payload())
    }

    /// The same as a payload alone.
    pub fn next_payload(&self) -> String {
        use std::sync::atomic::{AtomicU64, Ordering};
        static CALLS: AtomicU64 = AtomicU64::new(1);
        self.payload(CALLS.fetch_add(1, Ordering::Relaxed)).to_string()
    }

    /// Makes a call and checks that the host was not disturbed.
    pub fn expect(&self, name: &str, what: &str) -> Output {
        let output = self.call(name).run();
        polite(name, what, &output);
        output
    }

    /// How many tool calls are counted.
    pub fn counted(&self) -> u64 {
        std::fs::read_to_string(self.path(StateFile::ToolCount(&self.sid))).map_or(0, |text| text.parse().unwrap())
    }
}

/// The arguments of a call.
pub fn words(name: &str) -> Vec<&str> {
    if name == "statusline" { vec![name] } else { vec!["hook", name] }
}

/// What a call owes its host, whatever happens: exit 0, nothing on stderr, on stdout nothing or one JSON object; plain
/// text before a compaction; at least one row of a status line; and soon. The suggestion to compact (exit 2) and the
/// task-change hint are the two texts that may stand on stderr.
pub fn polite(name: &str, what: &str, output: &Output) {
    let said = || format!("{name}, {what}: {output}");
    let object = serde_json::from_str::<Value>(&output.stdout).ok().filter(Value::is_object);
    let suggests = matches!(name, "post-tool-use" | "PostToolUse" | "suggest-compact");
    let hint = matches!(name, "user-prompt-submit" | "UserPromptSubmit" | "task-change");
    match output.code {
        0 if hint && !output.stderr.is_empty() => {
            let told = object.as_ref().and_then(|object| object["systemMessage"].as_str());
            assert_eq!(told, Some(output.stderr.trim_end()), "{}", said());
        }
        0 => assert_eq!(output.stderr, "", "{}", said()),
        2 => assert!(suggests && output.stdout.is_empty() && output.stderr.contains("/compact"), "{}", said()),
        _ => panic!("{}", said()),
    }
    match name {
        "statusline" => assert!(!output.stdout.trim().is_empty(), "{}", said()),
        "pre-compact" | "PreCompact" => {}
        _ => assert!(output.stdout.is_empty() || object.is_some(), "{}", said()),
    }
    assert!(output.elapsed < BOUND, "{name}, {what}: took {:?}", output.elapsed);
}

/// Every file below a folder with its content, links and other odd things as nothing.
pub fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    // One that is gone meanwhile belongs to a detached refresh.
                    found.extend(std::fs::read(&path).map(|bytes| (path, bytes)));
                }
                _ => found.push((path, Vec::new())),
            }
        }
    }
    found
}
