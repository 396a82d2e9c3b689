//! Disks that are full, read-only, or emptied between two calls.
//!
//! Full and read-only places are mounts in a namespace of their own: tests often run as root, whom no mode stops. Where
//! the system gives no such namespace the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::kept::Kept;
use crate::support::Output;
use crate::world::{ALL, World, names, polite, words};

/// Runs every call in a namespace in which `mounts` was carried out by a shell, `again` before each call, and returns
/// what each one said. `$HOME` and `$TMPDIR` are copied to `seen/home` and `seen/tmp` at the end. None where there are
/// no namespaces.
fn in_namespace(world: &World, mounts: &str, again: &str) -> Option<Vec<(&'static str, Output)>> {
    let flags = ["-m", "-rm"].into_iter().find(|flags| {
        let mut tried = Command::new("unshare");
        tried.args([flags, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).stdout(Stdio::null()).stderr(Stdio::null());
        tried.status().is_ok_and(|status| status.success())
    });
    let Some(flags) = flags else {
        println!("skipped: no mount namespace here");
        return None;
    };
    let out = world.sandbox.root().join("out");
    let mut script = format!("exec 2>&1\n{FILL}\n{mounts}\n");
    for (n, name) in ALL.iter().enumerate() {
        let base = out.join(n.to_string());
        world.sandbox.write(&base.with_extension("in"), world.next_payload());
        let (base, words) = (base.display(), words(name).join(" "));
        script += &format!(
            "{again}\nbegun=$(date +%s%N); set +e\n\"$SI\" {words} <{base}.in >{base}.out 2>{base}.err\n\
             echo $? $(($(date +%s%N) - begun)) >{base}.rc; set -e\n"
        );
    }
    let seen = world.sandbox.root().join("seen");
    script += &format!("mkdir {0}\ncp -a \"$HOME\" {0}/home\ncp -a \"$TMPDIR\" {0}/tmp\n", seen.display());
    let run = world.sandbox.program("unshare", [flags, "sh", "-ec", &script]).var("SI", env!("CARGO_BIN_EXE_si"));
    let ran = run.within(Duration::from_secs(120)).run();
    assert_eq!(ran.code, 0, "{ran}\n{script}");
    let read = |n: usize, end: &str| world.sandbox.read(out.join(format!("{n}.{end}")));
    let outputs = ALL.iter().enumerate().map(|(n, name)| {
        let told = read(n, "rc");
        let (code, nanos) = told.trim().split_once(' ').unwrap();
        let elapsed = Duration::from_nanos(nanos.parse().unwrap());
        (*name, Output { code: code.parse().unwrap(), stdout: read(n, "out"), stderr: read(n, "err"), elapsed })
    });
    Some(outputs.collect())
}

/// `hold DIR`: a tmpfs of 1 MB in its place, with what was there in it; `fill DIR`: not a byte is left on it.
const FILL: &str = r#"
hold() { cp -a "$1" "$1.was"; mount -t tmpfs -o size=1m,mode=700 tmpfs "$1"; cp -a "$1.was/." "$1"; }
fill() { cat /dev/zero >>"$1/fill" 2>/dev/null || :; }
freeze() { mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; }
"#;

/// Where a file of the world was copied to.
fn seen(world: &World, path: &Path) -> PathBuf {
    let root = world.sandbox.root();
    match path.strip_prefix(root) {
        Ok(below) if !path.starts_with(&world.sandbox.cwd) => root.join("seen").join(below),
        _ => path.to_path_buf(),
    }
}

#[test]
fn full_and_read_only_disks_lose_nothing_and_change_no_answer() {
    let cases = [
        ("a full home", "hold \"$HOME\"", "fill \"$HOME\""),
        ("a full temp folder", "hold \"$TMPDIR\"", "fill \"$TMPDIR\""),
        ("everything full", "hold \"$HOME\"; hold \"$TMPDIR\"", "fill \"$HOME\"; fill \"$TMPDIR\""),
        ("a disk that fills up", "hold \"$HOME\"; hold \"$TMPDIR\"", ""),
        ("a read-only home", "freeze \"$HOME\"", ""),
        ("a read-only temp folder", "freeze \"$TMPDIR\"", ""),
        ("everything read-only", "freeze \"$HOME\"; freeze \"$TMPDIR\"", ""),
    ];
    for (what, mounts, again) in cases {
        let world = World::busy();
        let kept = Kept::of(&world);
        let Some(outputs) = in_namespace(&world, mounts, again) else { return };
        for (name, output) in &outputs {
            polite(name, what, output);
        }
        kept.check_at(what, |path| seen(&world, path));
        let leftovers = crate::world::tree(&world.sandbox.root().join("seen"));
        let leftovers: Vec<&PathBuf> = leftovers
            .iter()
            .map(|(path, _)| path)
            .filter(|path| path.extension().is_some_and(|end| end == "tmp"))
            .collect();
        assert!(leftovers.is_empty(), "{what}: half-written files stayed: {leftovers:?}");
    }
}

/// Disks have room again, and the session goes on as if nothing had been.
#[test]
fn after_a_full_disk_counting_goes_on() {
    let world = World::busy();
    let before = world.counted();
    let again = "fill \"$HOME\"; fill \"$TMPDIR\"";
    if in_namespace(&world, "hold \"$HOME\"; hold \"$TMPDIR\"", again).is_none() {
        return;
    }
    // The mounts are gone with the namespace: what lies below them is as it was.
    world.expect("post-tool-use", "room again");
    assert_eq!(world.counted(), before + 1);
}

#[test]
fn a_temp_folder_that_is_emptied_between_calls_costs_only_what_was_in_it() {
    let world = World::busy();
    let kept = Kept::of(&world);
    let empty = || {
        for entry in std::fs::read_dir(&world.sandbox.tmp).unwrap().flatten() {
            // A detached refresh may be at work in there.
            let _ = std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path()));
        }
    };
    for name in ALL {
        empty();
        world.expect(name, "an empty temp folder");
    }
    empty();
    for n in 1..=3 {
        world.expect("post-tool-use", "an empty temp folder");
        assert_eq!(world.counted(), n);
    }
    kept.check_where("an empty temp folder", |path| !path.starts_with(&world.sandbox.tmp));
}

#[test]
fn a_temp_folder_that_is_emptied_during_calls_disturbs_nobody() {
    let world = World::busy();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in std::fs::read_dir(&world.sandbox.tmp).into_iter().flatten().flatten() {
                    let _ = std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path()));
                }
                std::thread::yield_now();
            }
        });
        for name in names().iter().chain(names()) {
            world.expect(name, "a temp folder that is being emptied");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Not every file system can exchange two names: there a rename does.
#[test]
fn a_file_system_that_cannot_exchange_names_will_do() {
    if Command::new("strace").args(["-o", "/dev/null", "true"]).status().map_or(true, |status| !status.success()) {
        println!("skipped: no strace here");
        return;
    }
    let world = World::busy();
    let kept = Kept::of(&world);
    let before = world.counted();
    for name in names() {
        let strace = ["-f", "-q", "-o", "/dev/null", "-e", "inject=renameat2:error=EINVAL", env!("CARGO_BIN_EXE_si")];
        let args = strace.into_iter().chain(words(name));
        let output = world.sandbox.program("strace", args).stdin(world.next_payload()).run();
        polite(name, "no exchange", &output);
    }
    let counting = names().iter().filter(|name| matches!(**name, "post-tool-use" | "PostToolUse" | "token-budget"));
    assert_eq!(world.counted(), before + counting.count() as u64);
    kept.check("no exchange");
    let files = crate::world::tree(&world.sandbox.tmp);
    let leftovers = files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "tmp"));
    assert_eq!(leftovers.count(), 0);
}
