//! The real Claude Code, driven against a stand-in API: does what si says and writes reach the model, the user and the
//! disk?
//!
//! `cargo test --test client` runs every scenario with every client it finds: the program that `SI_CLIENT` names, or
//! those below `tests/client/node_modules` (`.ci/run` installs them). Without a client it says so and passes. An
//! argument that is no option selects scenarios by a part of their name.
//!
//! `-- --report` prints which payload and transcript fields are new, `-- --screen COLUMNS` a screen of a sample session;
//! `report.sh` and `tmux.sh` call them.

#![allow(clippy::disallowed_methods, reason = "the tests start programs and make files")]
#![allow(clippy::print_stdout, reason = "this is a program of its own")]

mod api;
mod compaction;
mod report;
mod scenarios;
mod screen;
mod world;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

use world::Client;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| args.iter().any(|arg| arg == option);
    let wanted = args.iter().find(|arg| !arg.starts_with('-')).map_or("", String::as_str);
    if has("--list") {
        for (name, _) in scenarios::ALL {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let clients = Client::find();
    if clients.is_empty() {
        println!(
            "client: skipped, no Claude Code here: set SI_CLIENT to its program, or run .ci/run, which installs it"
        );
        return ExitCode::SUCCESS;
    }
    if has("--report") {
        for client in &clients {
            report::print(client);
        }
        return ExitCode::SUCCESS;
    }
    if has("--screen") {
        let columns = wanted.parse().unwrap_or(120);
        println!("{}", scenarios::sample(&clients[clients.len() - 1], columns, |_, screen, _| screen.coloured()));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for client in &clients {
        for (name, scenario) in scenarios::ALL.iter().filter(|(name, _)| name.contains(wanted)) {
            let begun = Instant::now();
            // The message of a panic is printed where it happens.
            let word = match catch_unwind(|| scenario(client)) {
                Ok(scenarios::Outcome::Passed) => "ok".to_owned(),
                Ok(scenarios::Outcome::Skipped(why)) => format!("skipped, {why}"),
                Err(_) => {
                    failed += 1;
                    "FAILED".to_owned()
                }
            };
            println!("client {} {name} ... {word} ({:.1} s)", client.version, begun.elapsed().as_secs_f64());
        }
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
