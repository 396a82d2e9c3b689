//! Times the reading of transcripts inside one process, on files that `benches/gen.py transcript` makes.
//!
//! `cargo bench --bench transcript -- TRANSCRIPT… [--runs N]`
//!
//! What it shows: the first pass for the totals and one that finds nothing new, medians, page cache warm, and the peak
//! memory of this process. What it does not show: the start of a process, which `process` measures.

#![allow(clippy::disallowed_methods, clippy::print_stdout, missing_docs)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use si::client::totals::{self, Session};
use si::client::transcript;
use si::config::Config;
use si::store::{Sid, StateFile, Store};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let runs = args.iter().position(|arg| arg == "--runs").and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(15);
    let files = args.iter().filter(|arg| arg.ends_with(".jsonl")).map(PathBuf::from);
    for file in files {
        measure(&file, runs);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    println!("{}", peak.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn measure(file: &Path, runs: usize) {
    let scratch = tempfile::tempdir().unwrap();
    let mut env = si::Env::for_tests(scratch.path());
    env.now_ms = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
    let (store, sid) = (Store::new(&env), Sid::new("bench"));
    let id = file.file_stem().and_then(|stem| stem.to_str());
    let session = Session { sid: &sid, id, transcript: file, compacted_ms: None };
    let prices = Config::default().statusline.prices;
    let megabytes = std::fs::metadata(file).unwrap().len() as f64 / 1e6;

    let first = median(runs, || {
        let _ = std::fs::remove_file(store.path(StateFile::Totals(&sid)).unwrap());
        time(|| totals::update(&store, &env, session, &prices))
    });
    let again = median(runs * 20, || time(|| totals::update(&store, &env, session, &prices)));
    let tail = median(runs * 20, || time(|| transcript::tail(file)));
    let totals = totals::stored(&store, &env, &sid).unwrap();
    println!(
        "{}: {megabytes:.1} MB, ${:.4}, {} compactions; first pass {first:.1?} ({:.0} MB/s); nothing new {again:.1?}; tail {tail:.1?}",
        file.display(),
        totals.session.cost(&prices),
        totals.compactions,
        megabytes / first.as_secs_f64(),
    );
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    std::hint::black_box(work());
    begun.elapsed()
}

fn median(runs: usize, mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..runs).map(|_| run()).collect();
    times.sort_unstable();
    times[runs / 2]
}
