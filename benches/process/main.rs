//! Times whole processes against `/bin/true`, in interleaved pairs, on data that `scripts/bench.sh` makes.
//!
//! `cargo bench --bench process -- DATA [--pairs N] [--only WORD] [--peer NAME=COMMAND]… [--markdown FILE]`
//!
//! `scenarios` says what is measured against a floor, `peers` sets si beside other status lines.
//!
//! What it shows: wall time from spawn to exit, page cache warm, each run of the measured command next to one of the
//! floor, so that a drift of the machine falls on both; and the peak memory of the largest run. What it does not show:
//! a cold disk, a loaded machine, or the terminal's own drawing.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod peers;
mod scenarios;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One thing that is measured: what happens before each run (untimed), and the run.
struct Scenario<'a> {
    name: String,
    /// Arguments of the measured program.
    args: Vec<String>,
    /// The program; si itself when none.
    program: Option<Vec<String>>,
    /// Makes the standard input of run `n` and brings the files into the state it needs.
    prepare: Box<dyn Fn(usize) -> Vec<u8> + 'a>,
    /// What it is paired with; `/bin/true` when none.
    floor: Option<Vec<String>>,
    /// The floor's own standard input; that of the measured program when none.
    floor_input: Option<Box<dyn Fn(usize) -> Vec<u8> + 'a>>,
    cwd: PathBuf,
    pairs: usize,
}

struct Figures {
    name: String,
    median: Duration,
    p99: Duration,
    floor: Duration,
    ratio: f64,
    peak_kib: u64,
    pairs: usize,
}

struct Bench {
    data: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    si: PathBuf,
}

const SESSION: &str = "5e5510a1-be9c-4a11-9d3f-000000000048";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)).cloned();
    let Some(data) = args.first().filter(|arg| !arg.starts_with("--")) else {
        eprintln!(
            "usage: cargo bench --bench process -- DATA [--pairs N] [--only WORD] [--peer NAME=COMMAND] [--markdown FILE]"
        );
        return;
    };
    let pairs = value("--pairs").and_then(|n| n.parse().ok()).unwrap_or(300);
    let only = value("--only").unwrap_or_default();
    let peers: Vec<(String, Vec<String>)> = args
        .iter()
        .zip(args.iter().skip(1))
        .filter(|(flag, _)| *flag == "--peer")
        .filter_map(|(_, spec)| spec.split_once('='))
        .map(|(name, command)| (name.to_string(), command.split_whitespace().map(String::from).collect()))
        .collect();
    let data = fs::canonicalize(data).expect("the data folder exists (scripts/bench.sh makes it)");
    let bench = Bench::new(&data);
    let mut table = String::from(
        "| what | median ms | p99 ms | floor ms | ratio | peak MiB | pairs |\n|---|---|---|---|---|---|---|\n",
    );
    print!("{table}");
    for scenario in bench.scenarios(pairs) {
        if !scenario.name.contains(&only) {
            continue;
        }
        let f = bench.measure(&scenario);
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let row = format!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {} |\n",
            f.name,
            ms(f.median),
            ms(f.p99),
            ms(f.floor),
            f.ratio,
            f.peak_kib as f64 / 1024.0,
            f.pairs
        );
        print!("{row}");
        let _ = std::io::stdout().flush();
        table.push_str(&row);
    }
    if !peers.is_empty() && "peers".contains(&only) {
        let rows = peers::compare(&bench, &peers, (pairs / 6).max(5));
        print!("\n{rows}");
        table.push('\n');
        table.push_str(&rows);
    }
    if let Some(path) = value("--markdown") {
        fs::write(path, table).unwrap();
    }
}

impl Bench {
    fn new(data: &Path) -> Bench {
        let home = data.join("home");
        let tmp = data.join("tmp");
        fs::create_dir_all(home.join(".claude/projects/p")).unwrap();
        fs::create_dir_all(&tmp).unwrap();
        let si = std::env::var_os("SI_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_si")), PathBuf::from);
        Bench { data: data.into(), home, tmp, si }
    }

    fn repo(&self) -> PathBuf {
        self.data.join("repo")
    }

    /// A private copy of the transcript of about `mib` MiB.
    fn transcript(&self, mib: u32) -> PathBuf {
        let copy = self.home.join(format!(".claude/projects/p/{SESSION}-{mib}.jsonl"));
        let source = self.data.join(format!("t{mib}/{SESSION}.jsonl"));
        if fs::metadata(&copy).map(|meta| meta.len()).ok() != fs::metadata(&source).map(|meta| meta.len()).ok() {
            fs::copy(source, &copy).expect("scripts/bench.sh has made the transcripts");
        }
        copy
    }

    fn forget(&self) {
        for entry in fs::read_dir(&self.tmp).unwrap().flatten() {
            let path = entry.path();
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }

    fn statusline_payload(&self, mib: u32) -> Vec<u8> {
        let text = fs::read_to_string(self.data.join(format!("t{mib}/stdin.json"))).expect("stdin.json of the data");
        let mut payload: serde_json::Value = serde_json::from_str(&text).unwrap();
        payload["transcript_path"] = self.transcript(mib).to_str().unwrap().into();
        payload["cwd"] = self.repo().to_str().unwrap().into();
        payload["workspace"]["current_dir"] = payload["cwd"].clone();
        payload.to_string().into_bytes()
    }

    fn hook_payload(&self, event: &str, run: usize, response_bytes: usize) -> Vec<u8> {
        let mut payload = serde_json::json!({
            "session_id": SESSION, "transcript_path": self.transcript(48), "cwd": self.repo(), "hook_event_name": event,
        });
        let extra = match event {
            "PostToolUse" => serde_json::json!({
                "tool_name": "Bash", "tool_use_id": format!("toolu_bench{run:06}"),
                "tool_input": {"command": "cargo test --workspace", "description": "Run the tests"},
                "tool_response": {"stdout": prose(response_bytes), "stderr": "", "interrupted": false, "isImage": false},
            }),
            "UserPromptSubmit" => serde_json::json!({
                "prompt": format!("please rewrite the billing service in d012/f00012.rs and add an endpoint with tests, take {run}"),
            }),
            "PreCompact" => serde_json::json!({"trigger": "auto", "custom_instructions": ""}),
            _ => serde_json::json!({"source": "startup", "model": "claude-opus-4-8"}),
        };
        payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        payload.to_string().into_bytes()
    }

    /// A call of the tool Read in the session `name`, with a result of 2 KB.
    fn read_call(&self, name: &str, run: usize) -> Vec<u8> {
        let file = self.repo().join(format!("d{:03}/f{:05}.rs", run % 400, run % 10_000));
        let payload = serde_json::json!({
            "session_id": name, "transcript_path": self.transcript(1), "cwd": self.repo(), "hook_event_name": "PostToolUse",
            "tool_name": "Read", "tool_use_id": format!("toolu_{name}{run:09}"), "tool_input": {"file_path": file},
            "tool_response": {"type": "text", "file": {"filePath": file, "content": prose(2 << 10), "numLines": 20}},
        });
        payload.to_string().into_bytes()
    }

    /// Makes `calls` calls in the session `name`, from none.
    fn live(&self, name: &str, calls: usize) {
        for entry in fs::read_dir(&self.tmp).unwrap().flatten() {
            if entry.file_name().to_string_lossy().contains(name) {
                let path = entry.path();
                let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
        let input = self.data.join("input-before");
        for run in 0..calls {
            fs::write(&input, self.read_call(name, run)).unwrap();
            self.run(&[self.si_text(), "hook".into(), "post-tool-use".into()], &input, &self.repo(), &[]);
        }
    }

    fn si_text(&self) -> String {
        self.si.to_str().unwrap().into()
    }

    /// Runs a command to its end, and says how long that took.
    fn run(&self, command: &[String], input: &Path, cwd: &Path, vars: &[(&str, &str)]) -> Duration {
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]).env_clear().current_dir(cwd);
        child
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("TMPDIR", &self.tmp)
            .env("COLUMNS", "160")
            .env("LANG", "C.UTF-8")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .envs(vars.iter().copied());
        child.stdin(File::open(input).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        child.status().unwrap_or_else(|error| panic!("{}: {error}", command[0]));
        begun.elapsed()
    }

    /// Appends one more turn of about 30 KB with a message id of its own.
    fn append_turn(&self, transcript: &Path, run: usize) {
        let now = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now())
            .format("%Y-%m-%dT%H:%M:%S%.3fZ")
            .to_string();
        let body = prose(13_000);
        let usage = serde_json::json!({
            "input_tokens": 3, "output_tokens": 300, "cache_creation_input_tokens": 1200, "cache_read_input_tokens": 90_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1200, "ephemeral_1h_input_tokens": 0},
        });
        let id = format!("msg_bench{}{run:06}", std::process::id());
        let mut lines = String::new();
        for content in [
            serde_json::json!({"type": "text", "text": "Looking."}),
            serde_json::json!({"type": "tool_use", "id": id, "name": "Read", "input": {}}),
        ] {
            let row = serde_json::json!({
                "isSidechain": false, "type": "assistant", "timestamp": now, "sessionId": SESSION, "uuid": format!("{id}-{}", lines.len()),
                "message": {"id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": [content], "usage": usage},
            });
            writeln!(lines, "{row}").unwrap();
        }
        let row = serde_json::json!({
            "isSidechain": false, "type": "user", "timestamp": now, "sessionId": SESSION,
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": body}]},
            "toolUseResult": {"type": "text", "file": {"content": body}},
        });
        writeln!(lines, "{row}").unwrap();
        File::options().append(true).open(transcript).unwrap().write_all(lines.as_bytes()).unwrap();
    }

    /// The transcript's copy as it is, grown by earlier turns.
    fn transcript_kept(&self, mib: u32) -> PathBuf {
        self.home.join(format!(".claude/projects/p/{SESSION}-{mib}.jsonl"))
    }

    fn measure(&self, scenario: &Scenario<'_>) -> Figures {
        let program: Vec<String> = scenario.program.clone().unwrap_or_else(|| vec![self.si.to_str().unwrap().into()]);
        let floor = scenario.floor.clone().unwrap_or_else(|| vec!["/bin/true".into()]);
        let program: Vec<String> = program.into_iter().chain(scenario.args.iter().cloned()).collect();
        let (input, floor_input) = (self.data.join("input"), self.data.join("input-floor"));
        let vars: &[_] =
            if scenario.name.contains("tokens alone") { &[("CLAUDE_STATUSLINE_FIELDS", "tokens")] } else { &[] };
        let ours_once = || self.run(&program, &input, &scenario.cwd, vars);
        let floor_once = || self.run(&floor, &floor_input, &scenario.cwd, vars);
        let (mut ours, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..scenario.pairs + 3 {
            fs::write(&input, (scenario.prepare)(n)).unwrap();
            let of_floor = scenario.floor_input.as_ref().unwrap_or(&scenario.prepare);
            if scenario.floor_input.is_some() || n == 0 {
                fs::write(&floor_input, of_floor(n)).unwrap();
            }
            let (a, b) = if n % 2 == 0 {
                let a = ours_once();
                (a, floor_once())
            } else {
                let b = floor_once();
                (ours_once(), b)
            };
            if n >= 3 {
                ours.push(a);
                floors.push(b);
                ratios.push(a.as_secs_f64() / b.as_secs_f64());
            }
        }
        ours.sort();
        floors.sort();
        ratios.sort_by(f64::total_cmp);
        fs::write(&input, (scenario.prepare)(999_999)).unwrap();
        Figures {
            name: scenario.name.clone(),
            median: ours[ours.len() / 2],
            p99: ours[ours.len() * 99 / 100],
            floor: floors[floors.len() / 2],
            ratio: ratios[ratios.len() / 2],
            peak_kib: self.peak_kib(&program, &input, &scenario.cwd),
            pairs: scenario.pairs,
        }
    }

    /// Peak memory of one more run, as GNU time reports it (its own process is small); 0 where it is not installed.
    fn peak_kib(&self, program: &[String], input: &Path, cwd: &Path) -> u64 {
        let output = Command::new("/usr/bin/time")
            .args(["-f", "peak=%M"])
            .args(program)
            .env_clear()
            .current_dir(cwd)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("TMPDIR", &self.tmp)
            .stdin(File::open(input).unwrap())
            .stdout(Stdio::null())
            .output();
        let Ok(output) = output else { return 0 };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().rev().find_map(|line| line.strip_prefix("peak=")?.trim().parse().ok()).unwrap_or(0)
    }
}

fn line_kept(bench: &Bench, mib: u32) -> Vec<u8> {
    let text = fs::read_to_string(bench.data.join(format!("t{mib}/stdin.json"))).unwrap();
    let mut payload: serde_json::Value = serde_json::from_str(&text).unwrap();
    payload["transcript_path"] = bench.transcript_kept(mib).to_str().unwrap().into();
    payload["cwd"] = bench.repo().to_str().unwrap().into();
    payload["workspace"]["current_dir"] = payload["cwd"].clone();
    payload.to_string().into_bytes()
}

/// Text of `n` bytes that looks like a build log.
fn prose(n: usize) -> String {
    let line = "   Compiling serde_json v1.0.150 (registry) -> warning: unused \"import\" at src/lib.rs:42\n";
    line.chars().cycle().take(n).collect()
}
