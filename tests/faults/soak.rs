//! A long day: thousands of calls of all kinds from eight processes at a time, over one session and over fifty. Every
//! call counts once, every file keeps its bound, and the last process needs no more memory than the first.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use si::client::payload::Payload;
use si::store::{Sid, StateFile};
use si::watch::budget;

use crate::support::Output;
use crate::world::{World, polite, size, tree, words};

/// How many processes run at a time.
const WORKERS: u64 = 8;
/// How many processes are measured at each end.
const MEASURED: u64 = 100;
/// What one row of a transcript says.
const OUTPUT_TOKENS: u64 = 20;

/// One kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    /// The same tool call from two registrations at once.
    Twice,
    Subagent,
    Redraw,
    Prompt,
    Compact,
    Start,
    Pin,
}

/// The mix, by the last two digits of a call's number.
fn kind(n: u64) -> Kind {
    match n.wrapping_mul(37) % 100 {
        0..50 => Kind::Tool,
        50..55 => Kind::Twice,
        55..60 => Kind::Subagent,
        60..85 => Kind::Redraw,
        85..93 => Kind::Prompt,
        93..95 => Kind::Compact,
        95..98 => Kind::Start,
        _ => Kind::Pin,
    }
}

/// One session and what was done in it.
struct Session {
    id: String,
    sid: Sid,
    transcript: PathBuf,
    tools: AtomicU64,
    tokens: AtomicU64,
    archived: AtomicU64,
    compactions: AtomicU64,
    pins: AtomicU64,
    rows: AtomicU64,
}

struct Soak {
    world: World,
    sessions: Vec<Session>,
}

impl Soak {
    fn new(sessions: u64) -> Soak {
        let world = World::busy();
        let folder = world.transcript().parent().unwrap().to_path_buf();
        let sessions = (0..sessions).map(|n| {
            let id = format!("soak-{n}");
            let transcript = folder.join(format!("{id}.jsonl"));
            world.sandbox.write(&transcript, "");
            let zero = || AtomicU64::new(0);
            Session {
                sid: Sid::new(&id),
                id,
                transcript,
                tools: zero(),
                tokens: zero(),
                archived: zero(),
                compactions: zero(),
                pins: zero(),
                rows: zero(),
            }
        });
        Soak { sessions: sessions.collect(), world }
    }

    fn payload(&self, session: &Session, n: u64) -> Value {
        let mut payload = self.world.payload(10_000_000 + n);
        payload["session_id"] = json!(session.id);
        payload["transcript_path"] = json!(session.transcript);
        payload["prompt"] = json!(format!("please go on with the log-in form and what session {n} does there"));
        payload
    }

    /// Runs one process; its peak memory in KB where that is wanted.
    fn process(&self, args: &[&str], payload: &Value, measure: bool) -> (Output, u64) {
        let begun = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_si"));
        command.args(args).env_clear().envs(self.world.sandbox.base_vars()).current_dir(&self.world.sandbox.cwd);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let mut peak = 0;
        if measure {
            // The kernel keeps the high-water mark; it is gone with the process, so it is read until then.
            let status = format!("/proc/{}/status", child.id());
            while child.try_wait().unwrap().is_none() {
                let text = std::fs::read_to_string(&status).unwrap_or_default();
                peak = peak.max(high_water(&text).unwrap_or(0));
            }
        }
        let (mut stdout, mut stderr) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = child.wait().unwrap().code().unwrap_or(-1);
        (Output { code, stdout, stderr, elapsed: begun.elapsed() }, peak)
    }

    fn call(&self, name: &str, payload: &Value, measure: bool) -> u64 {
        let (output, peak) = self.process(&words(name), payload, measure);
        // How long a call takes says something about the machine here, which has eight of them to do.
        polite(name, "a long day", &Output { elapsed: Duration::ZERO, ..output });
        peak
    }

    /// Makes the nth call, and notes what must come of it.
    fn one(&self, n: u64, kind: Kind, measure: bool) -> u64 {
        let session = &self.sessions[(n % self.sessions.len() as u64) as usize];
        let mut payload = self.payload(session, n);
        let add = |counter: &AtomicU64, by: u64| {
            counter.fetch_add(by, Ordering::Relaxed);
        };
        let count_tool = |payload: &Value| {
            add(&session.tools, 1);
            add(&session.archived, 1);
            let text = payload.to_string();
            add(&session.tokens, budget::call_tokens(&Payload::parse(&text).unwrap()));
        };
        match kind {
            Kind::Tool => {
                count_tool(&payload);
                let peak = self.call("post-tool-use", &payload, measure);
                self.write_row(session, n);
                peak
            }
            Kind::Twice => {
                count_tool(&payload);
                std::thread::scope(|scope| {
                    scope.spawn(|| self.call("post-tool-use", &payload, false));
                    self.call("PostToolUse", &payload, measure)
                })
            }
            Kind::Subagent => {
                add(&session.tools, 1);
                add(&session.archived, 1);
                payload["agent_id"] = json!("agent-1");
                self.call("post-tool-use", &payload, measure)
            }
            Kind::Redraw => self.call("statusline", &payload, measure),
            Kind::Prompt => self.call("user-prompt-submit", &payload, measure),
            Kind::Compact => {
                add(&session.compactions, 1);
                self.call("pre-compact", &payload, measure)
            }
            Kind::Start => {
                payload["source"] = json!("resume");
                self.call("session-start", &payload, measure)
            }
            Kind::Pin => {
                let text = format!("pin number {n} of a long day");
                let (output, peak) = self.process(&["pin", "--session", &session.id, &text], &Value::Null, measure);
                // A lock that cannot be had in time is told.
                assert!(output.code == 0 || output.stderr.contains("holds"), "{output}");
                add(&session.pins, u64::from(output.code == 0));
                peak
            }
        }
    }

    /// The client writes while si reads.
    fn write_row(&self, session: &Session, n: u64) {
        let row = json!({"type": "assistant", "sessionId": session.id, "timestamp": "2026-01-02T03:04:05.000Z",
            "message": {"id": format!("msg_{n}"), "model": "claude-opus-4-1[1m]", "usage": {"input_tokens": 10,
            "output_tokens": OUTPUT_TOKENS, "cache_read_input_tokens": 120_000, "cache_creation_input_tokens": 5}}});
        let mut file = std::fs::File::options().append(true).open(&session.transcript).unwrap();
        file.write_all(format!("{row}\n").as_bytes()).unwrap();
        session.rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Measures processes one after another: the median peak of tool calls and of redraws, in KB.
    fn measure(&self, from: u64) -> [u64; 2] {
        [Kind::Tool, Kind::Redraw].map(|kind| {
            let mut peaks: Vec<u64> =
                (0..MEASURED / 2).map(|n| self.one(from + n * self.sessions.len() as u64, kind, true)).collect();
            peaks.sort_unstable();
            peaks[peaks.len() / 2]
        })
    }

    fn run(&self, calls: u64) {
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= calls {
                            break;
                        }
                        self.one(n, kind(n), false);
                    }
                });
            }
        });
    }

    /// Compares what is stored with what was done.
    fn check_counts(&self) {
        let log = self.log();
        for (at, session) in self.sessions.iter().enumerate() {
            // One call more folds in what is pending.
            self.one(20_000_000 * self.sessions.len() as u64 + at as u64, Kind::Tool, false);
            self.one(20_000_000 * self.sessions.len() as u64 + at as u64, Kind::Redraw, false);
            let read = |state| std::fs::read_to_string(self.world.path(state)).unwrap_or_default();
            let done = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let (id, sid) = (&session.id, &session.sid);
            assert_eq!(read(StateFile::ToolCount(sid)), done(&session.tools).to_string(), "{id}: tool calls");
            assert_eq!(read(StateFile::TokenBudget(sid)), done(&session.tokens).to_string(), "{id}: tokens");
            assert_eq!(
                read(StateFile::Pins(sid)).matches("pin number").count() as u64,
                done(&session.pins),
                "{id}: pins"
            );
            let totals: Value = serde_json::from_str(&read(StateFile::Totals(sid))).unwrap();
            assert_eq!(totals["output"], done(&session.rows) * OUTPUT_TOKENS, "{id}: transcript");
            // What gave a lock up is in the log.
            let mark = si::log::Log::mark(Some(id));
            let missed = |what: &str| log.lines().filter(|line| line.contains(&mark) && line.contains(what)).count();
            let rows = read(StateFile::ArchiveIndex(sid)).lines().count() + missed("tool-archive");
            let most = self.most_archived();
            let (all, whole) = (done(&session.archived) as usize, rows >= most);
            assert!(whole || rows == all, "{id}: {rows} of {all} archived");
        }
        let compactions: u64 = self.sessions.iter().map(|s| s.compactions.load(Ordering::Relaxed)).sum();
        let lines = std::fs::read_to_string(self.world.path(StateFile::CompactionLog)).unwrap().lines().count() as u64;
        let missed = log.lines().filter(|line| line.contains("the compaction was not logged")).count() as u64;
        // One is from before.
        assert_eq!(lines - 1 + missed, compactions, "compactions");
    }

    fn log(&self) -> String {
        let logs = std::fs::read_dir(self.world.sandbox.home.join(".claude/logs")).unwrap().flatten();
        let logs = logs.filter(|file| file.file_name().to_string_lossy().starts_with("session-intel-"));
        logs.map(|file| self.world.sandbox.read(file.path())).collect()
    }

    fn most_archived(&self) -> usize {
        si::config::Config::load(&self.world.sandbox.env()).tool_archive.max_per_session
    }

    /// Checks that every file keeps its bound, and that there is no other.
    fn check_bounds(&self) {
        let world = &self.world;
        for session in &self.sessions {
            let sid = &session.sid;
            for (state, most) in [
                (StateFile::Shape(sid), 200 * 640 + 1000),
                (StateFile::ToolSeen(sid), 20 << 10),
                (StateFile::TaskChange(sid), 50 * 8),
                (StateFile::Rollup(sid), 64 << 10),
                (StateFile::Totals(sid), 64 << 10),
                (StateFile::Snapshot(sid), 64 << 10),
                (StateFile::History, (256 << 10) + 4000),
            ] {
                let size = world.path(state).metadata().map_or(0, |meta| meta.len());
                assert!(size <= most, "{state:?}: {size} of {most} bytes");
            }
            let index = world.path(StateFile::ArchiveIndex(sid));
            let files = std::fs::read_dir(index.parent().unwrap()).unwrap().count();
            assert!(files <= self.most_archived() + 1, "{files} files in the archive of {}", session.id);
        }
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for (path, bytes) in tree(&world.sandbox.tmp).into_iter().chain(tree(&world.sandbox.home.join(".claude/logs")))
        {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(si::store::file::temp_of(name).is_none(), "{name} was left behind");
            assert!(bytes.len() < 6 << 20, "{name}: {} bytes", bytes.len());
            if path.parent() == Some(&world.sandbox.tmp) {
                let kind: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
                *kinds.entry(kind).or_default() += 1;
            }
        }
        let most = self.sessions.len() + 3;
        assert!(kinds.values().all(|files| *files <= most), "{kinds:?}");
    }
}

fn high_water(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn soak(sessions: u64) {
    let calls = size("SI_SOAK", 120) as u64;
    let soak = Soak::new(sessions);
    let begun = Instant::now();
    let first = soak.measure(30_000_000 * sessions);
    soak.run(calls);
    let last = soak.measure(40_000_000 * sessions);
    println!(
        "{calls} calls and redraws from {WORKERS} processes over {sessions} sessions in {:.0?}; peak memory of a tool call \
         {} KB, then {} KB; of a redraw {} KB, then {} KB",
        begun.elapsed(),
        first[0],
        last[0],
        first[1],
        last[1]
    );
    soak.check_counts();
    soak.check_bounds();
    for (first, last) in first.into_iter().zip(last) {
        assert!(last <= first + first / 10 + 256, "peak memory grew from {first} to {last} KB");
    }
}

#[test]
fn a_long_day_in_one_session() {
    soak(1);
}

#[test]
fn a_long_day_in_fifty_sessions() {
    soak(50);
}
