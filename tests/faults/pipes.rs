//! Hosts that write slowly, never close the pipe, or do not read.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::support::Output;
use crate::world::{ALL, BOUND, World, polite, words};

/// How long a process may take before it counts as hanging.
const HANG: Duration = Duration::from_secs(20);

fn start(world: &World, name: &str, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_si"));
    command.args(words(name)).env_clear().envs(world.sandbox.base_vars()).current_dir(&world.sandbox.cwd);
    command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap()
}

/// Waits for the end of a process that may hang, and kills it then.
fn finish(name: &str, mut child: Child, begun: Instant) -> Output {
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > HANG {
            child.kill().unwrap();
            panic!("{name} hung");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let elapsed = begun.elapsed();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    // A detached refresh holds no pipe of ours, so these end.
    child.stdout.take().map(|mut pipe| pipe.read_to_string(&mut stdout).unwrap());
    child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut stderr).unwrap());
    Output { code: status.code().unwrap_or(-1), stdout, stderr, elapsed }
}

/// Makes a call with a host that writes `step` bytes every few milliseconds and never closes the pipe.
fn dribble(world: &World, name: &str, what: &str, text: &str, step: usize) -> Output {
    let begun = Instant::now();
    let mut child = start(world, name, Stdio::piped(), Stdio::piped(), Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for part in text.as_bytes().chunks(step) {
                if stdin.write_all(part).is_err() {
                    break; // it was given up
                }
                std::thread::sleep(Duration::from_millis(3));
            }
            stdin // open until the other side has ended
        });
        let output = finish(name, child, begun);
        drop(writer.join().unwrap());
        output
    });
    polite(name, what, &output);
    output
}

#[test]
fn a_host_that_dribbles_and_never_closes_is_answered() {
    let world = World::busy();
    for name in ALL {
        let before = world.counted();
        let text = world.next_payload();
        dribble(&world, name, "a slow host", &text, 64);
        let counts = matches!(name, "post-tool-use" | "PostToolUse" | "token-budget");
        assert_eq!(world.counted(), before + u64::from(counts), "{name}");
    }
}

#[test]
fn a_host_that_stops_in_the_middle_or_says_nothing_is_given_up() {
    let world = World::busy();
    let before = world.counted();
    let text = world.next_payload();
    std::thread::scope(|scope| {
        for names in ALL.chunks(4) {
            let (world, text) = (&world, &text);
            scope.spawn(move || {
                for name in names {
                    for (what, text) in [("half a document", &text[..text.len() / 2]), ("no document", "")] {
                        let output = dribble(world, name, what, text, 256);
                        assert!(*name == "statusline" || output.stdout.is_empty(), "{name}, {what}: {output}");
                    }
                }
            });
        }
    });
    assert_eq!(world.counted(), before);
}

#[test]
fn a_host_that_closed_its_pipes_or_gave_full_ones_is_not_waited_for() {
    let world = World::busy();
    for name in ALL {
        for (what, redirect) in [
            ("stdout closed", ">&-"),
            ("both closed", ">&- 2>&-"),
            ("everything closed", "<&- >&- 2>&-"),
            ("stdout on a full device", ">/dev/full"),
            ("both on a full device", ">/dev/full 2>&1"),
        ] {
            let script = format!("exec \"$SI\" {} {redirect}", words(name).join(" "));
            let run = world.sandbox.program("sh", ["-c", &script]).var("SI", env!("CARGO_BIN_EXE_si"));
            let output = run.stdin(world.next_payload()).run();
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{name}, {what}: {output}");
            assert!(output.elapsed < BOUND, "{name}, {what}: {:?}", output.elapsed);
        }
    }
}

/// A pipe with not a byte of room, whose reader sleeps.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn a_host_that_does_not_read_is_given_up() {
    let world = World::busy();
    for name in ALL {
        let (_reader, writer) = full_pipe();
        let begun = Instant::now();
        let mut child = start(&world, name, Stdio::piped(), writer.into(), Stdio::piped());
        child.stdin.take().unwrap().write_all(world.next_payload().as_bytes()).unwrap();
        let output = finish(name, child, begun);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{name}: {output}");
        assert!(output.elapsed < BOUND, "{name}: {:?}", output.elapsed);
    }
}

/// The suggestion to compact is the one long text on stderr.
#[test]
fn a_suggestion_that_nobody_reads_is_given_up() {
    let world = World::busy();
    world.write_transcript(990_000);
    let (_reader, writer) = full_pipe();
    let begun = Instant::now();
    let mut child = start(&world, "post-tool-use", Stdio::piped(), Stdio::piped(), writer.into());
    child.stdin.take().unwrap().write_all(world.next_payload().as_bytes()).unwrap();
    let output = finish("post-tool-use", child, begun);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output}");
    assert!(output.elapsed < BOUND, "{:?}", output.elapsed);
}
