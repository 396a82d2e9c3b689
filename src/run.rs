//! The lanes and their error policy. This is the only code that knows exit codes.
//!
//! | lane | success | any fault | deliberate |
//! | --- | --- | --- | --- |
//! | hook | 0, stdout empty or one document | 0, both streams empty, one log line | 2 with text on stderr: feedback |
//! | status line | 0, at least one row | 0, that cell missing, or the row `claude` | — |
//! | terminal | 0 | 1, one sentence on stderr; usage 64 | — |
//!
//! The lane is chosen by the first argument before clap sees anything: clap's own usage error exits 2, and 2 from a hook
//! means "feedback" or "block".

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::commands::screen::Screen;
use crate::commands::{Terminal, Usage};
use crate::env::Env;
use crate::hooks::{self, Reply};
use crate::log::Log;
use crate::{cli, commands, statusline};

const OK: u8 = 0;
const FAILED: u8 = 1;
const FEEDBACK: u8 = 2;
const USAGE: u8 = 64;

/// What the status line shows when it has nothing to show.
const MARKER: &str = "claude";

/// What a pipe takes without blocking once it says that it is ready (`PIPE_BUF` of Linux, more than that of others).
const PIPE_STEP: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };
/// How long a host that does not read is waited for, in seconds.
const WRITE_PATIENCE_S: i64 = 2;

/// Runs one call; `args` starts with the program's name. Returns the exit code.
pub fn run(args: Vec<OsString>, env: &Env) -> u8 {
    match args.get(1).and_then(|arg| arg.to_str()) {
        Some("hook") if !asks_help(&args[2..]) => {
            hook_lane(args.get(2).and_then(|arg| arg.to_str()).unwrap_or(""), env)
        }
        Some("statusline") if !asks_help(&args[2..]) => line_lane(&args[2..], env),
        _ => terminal_lane(&args, env),
    }
}

fn asks_help(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--help" || arg == "-h")
}

fn hook_lane(name: &str, env: &Env) -> u8 {
    let reply = guarded(|| hooks::run(name, env)).unwrap_or_else(|fault| {
        Log::new(env, None, false, false).error("hook", &fault, json!({"hook": name}));
        Reply::silent()
    });
    let (stdout, stderr) = reply.streams();
    if let Some(text) = stdout {
        let _ = write_stdout(text.as_bytes()); // a host that closed the pipe wants no answer
    }
    if let Some(text) = stderr {
        let _ = write_bounded(std::io::stderr().lock(), text.as_bytes());
    }
    if reply.is_feedback() { FEEDBACK } else { OK }
}

fn line_lane(args: &[OsString], env: &Env) -> u8 {
    let rows = guarded(|| statusline::run(args, env)).unwrap_or_else(|fault| {
        Log::new(env, None, false, false).error("statusline", &fault, Value::Null);
        String::new()
    });
    let rows = if rows.trim().is_empty() { MARKER } else { rows.trim_end_matches('\n') };
    let _ = write_stdout(format!("{rows}\n").as_bytes());
    OK
}

/// Runs a lane's work so that an error or a panic becomes one sentence, and nothing of it is printed.
fn guarded<T>(work: impl FnOnce() -> anyhow::Result<T>) -> Result<T, String> {
    std::panic::set_hook(Box::new(|_| {}));
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| panic.downcast_ref::<String>().cloned());
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

fn terminal_lane(args: &[OsString], env: &Env) -> u8 {
    if let [_, flag] = args
        && (flag == "--version" || flag == "-V")
    {
        // Installers and checks ask for it often; the whole command line need not be described for it.
        let version = concat!("si ", env!("CARGO_PKG_VERSION"), "\n");
        return if write_stdout(version.as_bytes()).is_ok() { OK } else { FAILED };
    }
    let cli = match cli::Cli::read(args.to_vec()) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render();
            if error.use_stderr() {
                let _ = write!(Screen::new(std::io::stderr(), true), "{text}");
                return USAGE;
            }
            let mut out = std::io::stdout().lock();
            let written = out.write_all(text.to_string().as_bytes()).and_then(|()| out.flush());
            return if written.is_ok() { OK } else { FAILED };
        }
    };
    let mut out = Screen::new(std::io::BufWriter::new(std::io::stdout().lock()), env.tty.stdout);
    // Remarks are for people, wherever they go.
    let mut err = Screen::new(std::io::stderr(), true);
    let mut terminal = Terminal { env, out: &mut out, err: &mut err };
    let result = commands::run(&mut terminal, cli.command).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => OK,
        Err(error) if is_broken_pipe(&error) => OK,
        Err(error) => {
            let usage = error.downcast_ref::<Usage>().is_some();
            let _ = out.flush();
            let _ = writeln!(Screen::new(std::io::stderr(), true), "si: {error:#}");
            if usage { USAGE } else { FAILED }
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe))
}

fn write_stdout(bytes: &[u8]) -> std::io::Result<()> {
    write_bounded(std::io::stdout().lock(), bytes)
}

/// Writes an answer as far as the host takes it. A pipe that nobody empties is given up: a hook that waits for its reader
/// is one more process that hangs.
fn write_bounded(mut out: impl Write + AsFd, bytes: &[u8]) -> std::io::Result<()> {
    for part in bytes.chunks(PIPE_STEP) {
        let wait = Timespec { tv_sec: WRITE_PATIENCE_S, tv_nsec: 0 };
        // An error is left to the write that follows.
        if poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&wait)).is_ok_and(|ready| ready == 0) {
            return Err(ErrorKind::TimedOut.into());
        }
        out.write_all(part)?;
        out.flush()?;
    }
    Ok(())
}
