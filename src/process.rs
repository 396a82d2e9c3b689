//! Every program that si starts, other than git's (`git.rs`): with a deadline, in a process group of its own, killed
//! as a group. Nothing that a repository names is ever started here.

#![allow(clippy::disallowed_methods, reason = "this file is the door that the ban points to")]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::env::Env;

/// Where programs are looked for when there is no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a bounded run needs beyond program and arguments.
#[derive(Debug, Clone, Default)]
pub struct Limits<'a> {
    /// Working folder; the process's own when none.
    pub cwd: Option<&'a Path>,
    /// Bytes on standard input.
    pub stdin: &'a [u8],
    /// Variables set on top of the inherited ones.
    pub set: &'a [(&'a str, &'a OsStr)],
    /// Variables taken away.
    pub unset: &'a [&'a str],
    /// The longest output that is kept, in bytes.
    pub max_output: usize,
    /// How long it may take; then its whole group is killed.
    pub deadline: Duration,
}

/// How a bounded run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Standard output, as far as it was read.
    pub stdout: Vec<u8>,
    /// Exit code; none when killed.
    pub code: Option<i32>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
}

/// Where a program is on `PATH`; none when it is nowhere. Relative entries do not count: the working folder may be
/// somebody else's repository.
pub fn find(env: &Env, name: &str) -> Option<PathBuf> {
    let paths = std::env::split_paths(env.var("PATH").unwrap_or(USUAL_PATH));
    paths
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0))
}

/// The path to register for this program: the one that it was called by, if that leads here. A package manager makes a
/// link of it that outlives an upgrade, where the file it leads to does not. Else the binary itself.
pub fn own_path(env: &Env) -> Option<PathBuf> {
    let exe = env.exe.clone()?;
    let called = env.called.as_deref().and_then(|called| {
        let path = env.cwd.join(placed(env, called)?);
        let plain = path.components().all(|part| part != Component::ParentDir);
        // Taken apart and put together again, `/a/./b` is `/a/b`.
        plain.then(|| path.components().collect::<PathBuf>())
    });
    Some(called.filter(|path| is_same_file(path, &exe)).unwrap_or(exe))
}

/// Whether two paths lead to one file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Runs a program to its end or its deadline, whichever is first. Standard error is discarded.
pub fn run<S: AsRef<OsStr>>(env: &Env, program: &OsStr, args: &[S], limits: &Limits<'_>) -> io::Result<Outcome> {
    run_unless(env, program, args, limits, &|| false)
}

/// Like [`run`], but ends the program as if its deadline had passed as soon as `give_up` says so. It is asked every few
/// milliseconds while the program is silent, so it must be cheap.
pub fn run_unless<S: AsRef<OsStr>>(
    env: &Env,
    program: &OsStr,
    args: &[S],
    limits: &Limits<'_>,
    give_up: &dyn Fn() -> bool,
) -> io::Result<Outcome> {
    let program = placed(env, program).ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    command.env_clear().envs(env.vars().iter().map(|(key, value)| (key, value)));
    for (key, value) in limits.set {
        command.env(key, value);
    }
    for key in limits.unset {
        command.env_remove(key);
    }
    if let Some(cwd) = limits.cwd {
        command.current_dir(cwd);
    }
    let deadline = Instant::now() + limits.deadline;
    let mut child = command.spawn()?;
    feed(&mut child, limits.stdin);
    let result = collect(&mut child, limits.max_output, deadline, give_up);
    if !matches!(&result, Ok(outcome) if !outcome.timed_out) {
        kill_group(&mut child);
    }
    result
}

/// Where a program is that is named as a person would name it: a path stands for itself, a plain name is looked for in
/// the absolute folders of `PATH` alone, since a search by the system would also try a `.` in it.
fn placed(env: &Env, program: &OsStr) -> Option<PathBuf> {
    let path = PathBuf::from(program);
    if path.components().count() > 1 { Some(path) } else { find(env, program.to_str()?) }
}

/// Starts this very binary again with `args`, detached: own group, no standard streams, not waited for.
pub fn detach_self(env: &Env, args: &[OsString]) -> io::Result<()> {
    let exe = env.exe.as_deref().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(exe);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.env_clear().envs(env.vars().iter().map(|(key, value)| (key, value)));
    command.current_dir("/");
    command.spawn().map(drop)
}

fn feed(child: &mut Child, bytes: &[u8]) {
    let Some(mut stdin) = child.stdin.take() else { return };
    if bytes.len() <= 32 << 10 {
        // Fits the pipe: cannot block. A program that does not read its input closes the pipe; that is its right.
        let _ = stdin.write_all(bytes);
    } else {
        let bytes = bytes.to_vec();
        std::thread::spawn(move || stdin.write_all(&bytes));
    }
}

fn collect(child: &mut Child, max_output: usize, deadline: Instant, give_up: &dyn Fn() -> bool) -> io::Result<Outcome> {
    let mut stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut kept = Vec::new();
    let mut buffer = [0; 16 << 10];
    let mut exited = None;
    let mut open = true;
    while open || exited.is_none() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || give_up() {
            return Ok(Outcome { stdout: kept, code: None, timed_out: true });
        }
        if !open {
            exited = child.try_wait()?;
            if exited.is_none() {
                std::thread::sleep(left.min(Duration::from_micros(300)));
            }
            continue;
        }
        // A grandchild may keep the pipe open after the program is gone, so the exit is looked for now and then.
        let pause = left.min(Duration::from_millis(20));
        let wait = Timespec { tv_sec: 0, tv_nsec: pause.as_nanos().min(999_999_999) as _ };
        let ready = poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&wait)).unwrap_or(0) > 0;
        if ready {
            match stdout.read(&mut buffer) {
                Ok(0) => open = false,
                Ok(n) => kept.extend_from_slice(&buffer[..n.min(max_output.saturating_sub(kept.len()))]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        } else {
            exited = child.try_wait()?;
            open = exited.is_none();
        }
    }
    Ok(Outcome { stdout: kept, code: exited.and_then(|status| status.code()), timed_out: false })
}

fn kill_group(child: &mut Child) {
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process_group(pid, Signal::KILL); // gone already is as good
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limits: Limits<'_>) -> Outcome {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path()).with_var("PATH", "/usr/bin:/bin");
        run(&env, OsStr::new("/bin/sh"), &["-c", script], &limits).unwrap()
    }

    #[test]
    fn output_and_code_come_back() {
        let limits = Limits { stdin: b"hi", max_output: 100, deadline: Duration::from_secs(10), ..Limits::default() };
        assert_eq!(sh("cat; exit 3", limits), Outcome { stdout: b"hi".into(), code: Some(3), timed_out: false });
    }

    #[test]
    fn a_program_in_the_working_folder_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let planted = dir.path().join("si-planted");
        std::os::unix::fs::symlink("/bin/sh", &planted).unwrap();
        let limits = Limits { cwd: Some(dir.path()), deadline: Duration::from_secs(10), ..Limits::default() };
        let run_in = |path: &str| {
            let env = Env::for_tests(dir.path()).with_var("PATH", path);
            run(&env, OsStr::new("si-planted"), &["-c", ":"], &limits).map(|outcome| outcome.code)
        };
        for path in [".", "", ":/bin", "./:/bin", "/bin:."] {
            assert_eq!(run_in(path).unwrap_err().kind(), io::ErrorKind::NotFound, "{path:?}");
        }
        assert_eq!(run_in(dir.path().to_str().unwrap()).unwrap(), Some(0));
    }

    #[test]
    fn the_deadline_kills_the_whole_group() {
        let begun = Instant::now();
        let limits = Limits { max_output: 100, deadline: Duration::from_millis(150), ..Limits::default() };
        assert!(sh("echo a; sleep 30 & sleep 30", limits).timed_out);
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipe_is_not_waited_for() {
        let begun = Instant::now();
        let limits = Limits { max_output: 100, deadline: Duration::from_secs(20), ..Limits::default() };
        assert_eq!(sh("echo a; sleep 25 &", limits).stdout, b"a\n");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
