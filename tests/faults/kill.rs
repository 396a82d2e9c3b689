//! Processes that are killed in the middle. No file is torn, no count is lost, and what they leave behind is swept up.
//!
//! Two ways of killing: after a time, as a host or an impatient person does, and, where there is strace, at a system call
//! that changes something, so that every gap between two steps of a write is hit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use si::store::StateFile;

use crate::support::Sandbox;
use crate::world::{SID, World, size, tree, words};

/// The calls of a busy session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Tool,
    /// A tool call that finds a delta that another one left pending.
    Fold,
    Compact,
    Start,
    Pin,
    Set,
    Line,
    Prompt,
}

const STEPS: [Step; 8] =
    [Step::Tool, Step::Compact, Step::Start, Step::Pin, Step::Fold, Step::Set, Step::Line, Step::Prompt];

/// When a process is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    After(Duration),
    /// At its nth system call of this name.
    At(&'static str, u32),
    /// Never, but what it does is written down in this sandbox's `trace`.
    Traced,
    Never,
}

/// System calls that change something, and locks.
const CHANGES: [&str; 12] = [
    "openat",
    "write",
    "writev",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "ftruncate",
    "fchmod",
    "mkdir",
    "flock",
];

struct Session {
    world: World,
    calls: u64,
    killed: usize,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    tools: u64,
    archived: usize,
    compactions: usize,
    pins: usize,
}

impl Session {
    fn new() -> Session {
        let world = World::busy();
        // A long sweep would fill the archive, and then each result would take the place of another.
        let config = json!({"toolArchive": {"thresholdChars": 500, "maxPerSession": 100_000}});
        world.sandbox.write(&world.path(StateFile::Config), config.to_string());
        Session { world, calls: 1_000_000, killed: 0 }
    }

    fn sandbox(&self) -> &Sandbox {
        &self.world.sandbox
    }

    fn read(&self, state: StateFile<'_>) -> String {
        std::fs::read_to_string(self.world.path(state)).unwrap_or_default()
    }

    fn counts(&self) -> Counts {
        let sid = &self.world.sid;
        let rows = |text: String| text.lines().count();
        Counts {
            tools: self.world.counted(),
            archived: rows(self.read(StateFile::ArchiveIndex(sid))),
            compactions: rows(self.read(StateFile::CompactionLog)),
            pins: self.read(StateFile::Pins(sid)).matches("kept across kill ").count(),
        }
    }

    /// Starts one call, killed at a moment, and says whether it got to its end.
    fn attempt(&mut self, step: Step, moment: Moment) -> bool {
        self.calls += 1;
        let n = self.calls;
        if step == Step::Fold {
            self.leave_pending();
        }
        let pin = format!("kept across kill {n}");
        let value = format!("{}", 20 + n % 100);
        let args: Vec<&str> = match step {
            Step::Tool | Step::Fold => words("post-tool-use"),
            Step::Compact => words("pre-compact"),
            Step::Start => words("session-start"),
            Step::Line => words("statusline"),
            Step::Prompt => words("user-prompt-submit"),
            Step::Pin => vec!["pin", "--session", SID, &pin],
            Step::Set => vec!["set", "compact.threshold", &value, "--yes"],
        };
        let si = env!("CARGO_BIN_EXE_si");
        let mut command = match moment {
            Moment::At(name, n) => {
                let mut command = Command::new("strace");
                let inject = format!("inject={name}:signal=KILL:when={n}");
                command.args(["-f", "-q", "-o", "/dev/null", "-e", &inject, si]);
                command
            }
            Moment::Traced => {
                let mut command = Command::new("strace");
                let trace = format!("trace={}", CHANGES.join(","));
                command.args(["-f", "-q", "-e", &trace, "-o"]).arg(self.sandbox().root().join("trace")).arg(si);
                command
            }
            _ => Command::new(si),
        };
        command.args(args).env_clear().envs(self.sandbox().base_vars()).current_dir(&self.sandbox().cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut payload = self.world.payload(n);
        if step == Step::Start {
            payload["source"] = "compact".into();
        }
        let mut child = command.spawn().unwrap();
        // One that is killed before it reads closes the pipe.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.to_string().as_bytes());
        let done = end(child, moment);
        self.killed += usize::from(!done);
        done
    }

    /// The moments at which a call can be killed: each of its system calls that change something, in their order.
    fn moments(&mut self, step: Step) -> Vec<Moment> {
        assert!(self.attempt(step, Moment::Traced));
        let trace = self.sandbox().read(self.sandbox().root().join("trace"));
        let mut seen: BTreeMap<(&str, &'static str), u32> = BTreeMap::new();
        let mut moments = Vec::new();
        for line in trace.lines() {
            // `1234  openat(…`
            let Some((pid, call)) = line.split_once(' ') else { continue };
            let Some(name) = CHANGES.into_iter().find(|name| call.trim_start().starts_with(&format!("{name}("))) else {
                continue;
            };
            let n = seen.entry((pid, name)).or_default();
            *n += 1;
            moments.push(Moment::At(name, *n));
        }
        moments
    }

    /// Has a tool call leave its count for later, since its lock is held.
    fn leave_pending(&mut self) {
        let path = self.sandbox().tmp.join(format!("claude-tool-count-{}.lock", self.world.sid));
        let lock = std::fs::File::options().create(true).append(true).open(path).unwrap();
        fs2::FileExt::lock_exclusive(&lock).unwrap();
        assert!(self.attempt(Step::Tool, Moment::Never));
    }

    /// Makes a call that is killed at a moment, and checks everything that can be known afterwards.
    fn check(&mut self, step: Step, moment: Moment) -> bool {
        let before = self.counts();
        let done = self.attempt(step, moment);
        let what = format!("{step:?} {moment:?}, {}", if done { "done" } else { "killed" });
        if step == Step::Fold {
            // The next call folds in whatever is still pending.
            assert!(self.attempt(Step::Tool, Moment::Never));
        }
        self.whole(&what);
        let after = self.counts();
        let counts = |wanted: bool| usize::from(wanted);
        // Done counts once; killed counts once or not at all.
        let fits =
            |before: usize, after: usize, wanted: bool| after == before + counts(wanted) || (!done && after == before);
        let tool = matches!(step, Step::Tool | Step::Fold);
        // A pending one and the next call come on top of the killed one.
        let extra = if step == Step::Fold { 2 } else { 0 };
        let (tools_before, tools) = (before.tools as usize + extra, after.tools as usize);
        assert!(fits(tools_before, tools, tool), "{what}: {before:?} {after:?}");
        assert!(fits(before.archived + extra, after.archived, tool), "{what}: {before:?} {after:?}");
        assert!(fits(before.compactions, after.compactions, step == Step::Compact), "{what}: {before:?} {after:?}");
        assert!(fits(before.pins, after.pins, step == Step::Pin), "{what}: {before:?} {after:?}");
        if step == Step::Set && done {
            let config: Value = serde_json::from_str(&self.read(StateFile::Config)).unwrap();
            assert_eq!(config["compact"]["threshold"], 20 + self.calls % 100, "{what}");
        }
        done
    }

    /// Checks that no file is torn.
    fn whole(&self, what: &str) {
        let sandbox = self.sandbox();
        let files = tree(&sandbox.tmp).into_iter().chain(tree(&sandbox.home));
        for (path, bytes) in files.filter(|(path, _)| !is_leftover(path)) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let torn = || format!("{what}: {} is torn:\n{text}", path.display());
            let json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
            if name.ends_with(".json") || matches!(name, ".si-bootstrap-state") || name.starts_with("claude-cost-") {
                assert!(name.ends_with(".lock") || json(&text), "{}", torn());
            } else if name.ends_with(".jsonl") {
                assert!(text.is_empty() || text.ends_with('\n'), "{}", torn());
                assert!(text.lines().all(json), "{}", torn());
            } else if name.starts_with("claude-tool-count-") && !name.contains(".") {
                assert!(text.parse::<u64>().is_ok(), "{}", torn());
            } else if name == "compaction-log.txt" {
                assert!(text.lines().all(|line| line.ends_with("Context compaction triggered")), "{}", torn());
            }
        }
        let sid = &self.world.sid;
        for state in
            [StateFile::Pins(sid), StateFile::SessionContext(&self.world.enc), StateFile::ClaudeMd(&sandbox.cwd)]
        {
            assert!(self.read(state).ends_with('\n'), "{what}: {state:?} is torn");
        }
        for row in self.read(StateFile::ArchiveIndex(sid)).lines() {
            let row: Value = serde_json::from_str(row).unwrap();
            let record = self.read(StateFile::Archived(sid, row["id"].as_str().unwrap()));
            let record: Value = serde_json::from_str(&record).unwrap_or_else(|_| panic!("{what}: {row} has no record"));
            assert!(record["body"].as_str().is_some_and(|body| body.len() > 500), "{what}: {record}");
        }
    }

    fn leftovers(&self) -> Vec<PathBuf> {
        let files =
            [&self.sandbox().tmp, &self.sandbox().home, &self.sandbox().cwd].into_iter().flat_map(|dir| tree(dir));
        files.map(|(path, _)| path).filter(|path| is_leftover(path)).collect()
    }
}

fn is_leftover(path: &Path) -> bool {
    si::store::file::temp_of(path.file_name().unwrap().to_str().unwrap()).is_some()
}

/// Ends a process at a moment; says whether it had come to its end by itself.
fn end(mut child: Child, moment: Moment) -> bool {
    if let Moment::After(time) = moment {
        let begun = Instant::now();
        while begun.elapsed() < time {
            std::hint::spin_loop();
        }
        let _ = child.kill(); // it may be over
    }
    let status = child.wait().unwrap();
    assert!(status.success() || status.code().is_none(), "{moment:?}: {status}");
    status.success()
}

#[test]
fn a_kill_at_any_time_tears_nothing_and_loses_no_count() {
    let mut session = Session::new();
    let rounds = size("SI_KILLS", 40).div_ceil(STEPS.len()).max(2);
    for step in STEPS {
        let begun = Instant::now();
        assert!(session.check(step, Moment::Never));
        let took = begun.elapsed();
        for round in 0..rounds {
            // The checks are part of what was measured; a call that is over by then is checked as well.
            session.check(step, Moment::After(took.mul_f64(0.6 * (round as f64 + 0.5) / rounds as f64)));
        }
    }
    println!("{} of {} calls were killed", session.killed, rounds * STEPS.len());
    assert!(session.killed > 0);
    clean_up(session);
}

#[test]
fn a_kill_at_any_system_call_tears_nothing_and_loses_no_count() {
    let mut session = Session::new();
    if Command::new("strace").args(["-o", "/dev/null", "true"]).status().map_or(true, |status| !status.success()) {
        println!("skipped: no strace here");
        return;
    }
    let most = size("SI_KILLS", 40).div_ceil(STEPS.len()).max(2);
    let mut ran = 0;
    for step in STEPS {
        let moments = session.moments(step);
        assert!(moments.len() > 2, "{step:?}: {moments:?}");
        let stride = moments.len().div_ceil(most);
        // Each round begins elsewhere, so that the same call is not hit at the same places only.
        for moment in moments.iter().skip(ran % stride).step_by(stride) {
            session.check(step, *moment);
            ran += 1;
        }
    }
    println!("{} of {ran} calls were killed at a system call", session.killed);
    assert!(session.killed > ran / 2, "{}", session.killed);
    clean_up(session);
}

#[test]
fn kills_among_parallel_calls_lose_no_count() {
    let session = Session::new();
    let before = session.counts();
    let kills = size("SI_KILLS", 40);
    let next = std::sync::atomic::AtomicU64::new(2_000_000);
    let (mut done, mut killed) = (0, 0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                let (session, next) = (&session, &next);
                scope.spawn(move || {
                    let (mut done, mut killed) = (0, 0);
                    for round in 0..kills / 4 {
                        let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let mut command = Command::new(env!("CARGO_BIN_EXE_si"));
                        command.args(words("post-tool-use")).env_clear().envs(session.sandbox().base_vars());
                        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
                        let mut child = command.current_dir(&session.sandbox().cwd).spawn().unwrap();
                        let payload = session.world.payload(n).to_string();
                        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes());
                        let moment = match (round + worker) % 2 {
                            0 => Moment::After(Duration::from_micros(1000 + 40_000 * round as u64 / kills as u64)),
                            _ => Moment::Never,
                        };
                        if end(child, moment) { done += 1 } else { killed += 1 }
                    }
                    (done, killed)
                })
            })
            .collect();
        for worker in workers {
            let (d, k) = worker.join().unwrap();
            done += d;
            killed += k;
        }
    });
    let mut session = session;
    // What is pending is folded in by one more call.
    assert!(session.attempt(Step::Tool, Moment::Never));
    session.whole("parallel kills");
    let after = session.counts();
    println!("{done} calls came to their end, {killed} were killed, {} counted", after.tools - before.tools - 1);
    for (before, after) in [(before.tools, after.tools), (before.archived as u64, after.archived as u64)] {
        let counted = after - before - 1;
        assert!((done..=done + killed).contains(&counted), "{counted} of {done} to {}", done + killed);
    }
}

/// What killed processes left is gone after the sweep of a later day.
fn clean_up(session: Session) {
    let left = session.leftovers().len();
    let later = session.sandbox().now_ms + 2 * 86_400_000;
    let start = session.world.call("session-start").var("SI_NOW", &later.to_string()).run();
    assert_eq!(start.code, 0, "{start}");
    assert_eq!(session.leftovers(), Vec::<PathBuf>::new(), "of {left}");
    println!("{left} leftovers were swept");
}

#[test]
fn leftovers_go_with_everything_else() {
    let world = World::busy();
    let files: Vec<PathBuf> = [
        StateFile::ToolCount(&world.sid),
        StateFile::Settings,
        StateFile::Pins(&world.sid),
        StateFile::SessionContext(&world.enc),
        StateFile::ClaudeMd(&world.sandbox.cwd),
    ]
    .map(|state| {
        let path = world.path(state);
        path.with_file_name(format!(".{}.2000000000.0.tmp", path.file_name().unwrap().to_str().unwrap()))
    })
    .into();
    for path in &files {
        world.sandbox.write(path, "half");
    }
    let output = world.sandbox.si(["uninstall", "--purge"]).run();
    assert_eq!(output.code, 0, "{output}");
    for path in &files {
        assert!(!path.exists(), "{} stays", path.display());
    }
}
