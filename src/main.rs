//! Freezes the surroundings, runs, and turns the answer into the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let env = si::Env::from_process();
    #[allow(clippy::disallowed_methods, reason = "arguments enter here and nowhere else")]
    let args = std::env::args_os().collect();
    ExitCode::from(si::run(args, &env))
}
