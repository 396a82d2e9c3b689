//! Logs that another hand let grow to a hundred thousand lines.

use std::path::Path;

use serde_json::json;
use si::store::StateFile;

use crate::world::{ALL, SID, World};

const LINES: i64 = 100_000;

fn fill(world: &World, path: &Path, line: impl Fn(i64) -> String) {
    let text: String = (0..LINES).map(|n| line(n) + "\n").collect();
    world.sandbox.write(path, text);
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(String::from).collect()
}

#[test]
fn logs_of_a_hundred_thousand_lines_hold_nobody_up_and_are_cut_to_their_end() {
    let world = World::busy();
    use StateFile::*;
    let sid = &world.sid;
    let [history, shape, seen, hinted, index] =
        [History, Shape(sid), ToolSeen(sid), TaskChange(sid), ArchiveIndex(sid)].map(|state| world.path(state));
    let now = world.sandbox.now_ms;
    let cwd = &world.sandbox.cwd;
    fill(&world, &history, |n| {
        let dirs = ["src/auth", "src/ui", "docs/design", "tests/it", "scripts"];
        json!({"t": now - LINES + n, "sid": format!("s{n}"), "cwd": cwd, "tokens": 300_000, "cost": 1.5, "hotDirs": dirs,
            "warmDirs": dirs, "droppedDirs": dirs, "hadShift": false, "regretCount": 0})
        .to_string()
    });
    assert!(history.metadata().unwrap().len() > 16 << 20, "more than is ever read");
    fill(&world, &shape, |n| {
        let file = format!("{}/src/area{}/with/a/long/path/to/a/module/of/it/file{n}.ts", cwd.display(), n % 50);
        json!({"t": now - LINES + n, "tok": n, "tool": "Read", "root": format!("src/area{}", n % 50), "file": file,
            "event": null})
        .to_string()
    });
    assert!(shape.metadata().unwrap().len() > 16 << 20, "more than is ever read");
    fill(&world, &seen, |n| format!("old_{n}"));
    fill(&world, &hinted, |n| format!("{n:x}"));
    fill(&world, &index, |n| {
        json!({"id": format!("toolu_x{n}"), "t": now - LINES + n, "tool": "Bash", "chars": 900, "preview": "p"})
            .to_string()
    });
    let before = world.counted();
    for name in ALL {
        let output = world.expect(name, "a hundred thousand lines");
        if name == "pre-compact" {
            assert!(output.stdout.contains("src/area"), "what is in the log is seen: {output}");
        }
    }
    assert_eq!(world.counted(), before + 3);

    let left = lines(&history);
    assert!(left.len() <= 201, "{}", left.len());
    assert!(left.iter().any(|line| line.contains(&format!("\"s{}\"", LINES - 1))), "the newest stay");
    assert!(left.iter().any(|line| line.contains(SID)), "and the compaction of now");
    let left = lines(&shape);
    assert!(left.len() <= 203, "{}", left.len());
    assert!(left.iter().any(|line| line.contains(&format!("file{}.ts", LINES - 1))));
    assert!(lines(&seen).len() < 300, "{}", lines(&seen).len());
    assert!(lines(&hinted).len() <= LINES as usize);
    let most = si::config::Config::load(&world.sandbox.env()).tool_archive.max_per_session;
    let left = lines(&index);
    assert!(left.len() <= most, "{} of {most}", left.len());
    assert!(left.iter().any(|line| line.contains(&format!("toolu_x{}\"", LINES - 1))));
}

#[test]
fn a_debug_log_over_its_size_is_rotated() {
    let world = World::busy();
    let log = si::log::Log::new(&world.sandbox.env(), None, false, false).path().unwrap();
    world.sandbox.write(&log, "old line\n".repeat(700_000));
    world.expect("session-start", "a full debug log");
    let old = log.with_file_name(format!("{}.1", log.file_name().unwrap().to_str().unwrap()));
    assert!(old.metadata().unwrap().len() > 5 << 20);
    assert!(log.metadata().unwrap().len() < 1 << 20);
}
