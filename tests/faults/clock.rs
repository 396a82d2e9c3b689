//! Clocks that jump. What is stored carries moments, and a jump must neither lose anything nor freeze it.

use std::time::{Duration, Instant};

use si::store::StateFile;

use crate::kept::Kept;
use crate::world::{ALL, World, polite};

const DAY_MS: i64 = 86_400_000;

fn at(world: &World, name: &str, now_ms: i64) {
    let output = world.call(name).var("SI_NOW", &now_ms.to_string()).run();
    polite(name, &format!("at {now_ms}"), &output);
}

#[test]
fn a_clock_that_jumps_by_a_day_loses_nothing() {
    let world = World::busy();
    let kept = Kept::of(&world);
    let mut counted = world.counted();
    for shift in [DAY_MS, -DAY_MS, 0, DAY_MS] {
        for name in ALL {
            at(&world, name, world.sandbox.now_ms + shift);
            counted += u64::from(matches!(name, "post-tool-use" | "PostToolUse" | "token-budget"));
            assert_eq!(world.counted(), counted, "{name}, {shift}");
        }
        kept.check(&format!("a clock that jumped by {shift} ms"));
    }
}

#[test]
fn no_moment_is_too_odd() {
    let world = World::busy();
    for now_ms in [0, 1, 4_102_444_800_000, 253_402_300_799_000] {
        for name in ALL {
            at(&world, name, now_ms);
        }
        for name in ALL {
            at(&world, name, world.sandbox.now_ms);
        }
    }
}

/// An answer that was stored by a clock a day ahead would otherwise be shown for a day.
#[test]
fn an_answer_about_the_work_tree_from_the_future_is_renewed() {
    let world = World::fresh();
    let show = |now_ms: i64| {
        let run = world.call("statusline").var("CLAUDE_STATUSLINE_FIELDS", "dirty");
        run.var("SI_NOW", &now_ms.to_string()).var("NO_COLOR", "1").run().stdout
    };
    let (now, begun) = (world.sandbox.now_ms, Instant::now());
    let wait_for = |what: &str, now_ms: i64| {
        while !show(now_ms).contains(what) {
            assert!(begun.elapsed() < Duration::from_secs(60), "never {what}: {}", show(now_ms));
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    // CLAUDE.md is there from the start.
    wait_for("±1", now + DAY_MS);
    world.sandbox.write(&world.sandbox.cwd.join("new.txt"), "new\n");
    wait_for("±2", now);
}

/// The regret window counts calls even while the clock says that it has not begun.
#[test]
fn a_window_that_was_opened_in_the_future_closes_after_its_calls() {
    let world = World::busy();
    at(&world, "pre-compact", world.sandbox.now_ms + DAY_MS);
    for _ in 0..31 {
        at(&world, "post-tool-use", world.sandbox.now_ms);
    }
    assert!(!world.path(StateFile::Snapshot(&world.sid)).exists());
}
