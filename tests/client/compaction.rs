//! A session that moves from one part of a project to another, and its compactions.

use std::path::Path;

use serde_json::{Value, json};

use crate::api::Turn;
use crate::scenarios::Outcome;
use crate::screen::{self, Screen};
use crate::world::{Client, Run, World};

fn read(world: &World, id: &str, file: &str) -> Turn {
    Turn::call(id, "Read", json!({"file_path": world.cwd.join(file)}))
}

/// The guidance in the request for a summary, up to the sentence that closes it.
fn guidance(run: &Run) -> String {
    let asked = run.summary();
    let from = asked.find("COMPACTION GUIDANCE (from session-context.md):").unwrap_or_else(|| panic!("{asked}"));
    let closing = "resumes the task.";
    let to = asked[from..].find(closing).unwrap_or_else(|| panic!("{asked}"));
    asked[from..from + to + closing.len()].to_owned()
}

fn history(world: &World) -> Vec<Value> {
    let text = world.read(&world.claude("logs/compact-history.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Rows of the transcript that the client shows the user itself.
fn system_rows(transcript: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(transcript).unwrap();
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter(|row| matches!(row["type"].as_str(), Some("system" | "attachment")))
        .map(|row| row.to_string())
        .collect()
}

pub fn guidance_stays_the_same_and_the_task_resumes(client: &Client) -> Outcome {
    let world = World::new(client);
    for file in ["src/auth/session.ts", "src/auth/cookie.ts", "src/billing/ledger.ts", "src/billing/invoice.ts"] {
        world.write(&world.cwd.join(file), &format!("// {file}\nexport const x = 1;\n"));
    }
    world.git(&["init", "-q"]);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "feat: auth and billing"]);
    world.si(&["install"]);
    let notes = world.project().join("session-context.md");
    let run = world.start(vec![Turn::say("Ready.")], "First the login, then the invoices.");
    let transcript = world.project().join(format!("{}.jsonl", run.session));
    assert!(world.read(&notes).contains("type: feat — feat: auth and billing"));
    world.write(
        &notes,
        "## Current Task\ntype: bug-fix — rounding of invoices\n\n## Key Decisions\n- totals stay in cents\n",
    );

    let mut turns = Vec::new();
    for n in 0..26u64 {
        let file = match (n < 10, n % 2) {
            (true, 0) => "src/auth/session.ts",
            (true, _) => "src/auth/cookie.ts",
            (false, 0) => "src/billing/ledger.ts",
            (false, _) => "src/billing/invoice.ts",
        };
        turns.push(read(&world, &format!("a{n}"), file).at(30_000 + n * 12_000));
    }
    turns.push(Turn::say("Both are read.").at(320_000));
    world.go_on(turns, "Look at both.");

    // The first compaction: the user's notes, and the right directories under each heading.
    let first = world.go_on(vec![], "/compact keep the decision");
    assert!(first.summary().contains("keep the decision"));
    let text = guidance(&first);
    for part in [
        "type: bug-fix — rounding of invoices",
        "- totals stay in cents",
        "DOMAIN SHIFT DETECTED: src/auth → src/billing",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let preserve = text.split("PRESERVE (recently active, still in use):\n").nth(1).unwrap_or_default();
    assert!(preserve.starts_with("  - src/billing\n"), "{text}");
    let dropped = text.split("SAFE TO DROP (untouched for most of the session):\n").nth(1).unwrap_or_default();
    assert!(dropped.starts_with("  - src/auth\n"), "{text}");
    let banner = "Resuming: bug-fix — rounding of invoices";
    let shown = system_rows(&transcript);
    assert!(shown.iter().any(|row| row.contains(banner)), "the banner was not shown: {shown:#?}");

    // The next turn has the resume block; the work goes on in the same directory.
    let turns = vec![
        read(&world, "b0", "src/billing/ledger.ts").at(40_000),
        read(&world, "b1", "src/billing/invoice.ts").at(60_000),
        Turn::say("Rounded.").at(61_000),
    ];
    let run = world.go_on(turns, "c");
    let context = run.turns()[0].text();
    for part in ["SESSION RESUME", banner, "Carry on in that same reply", "- src/billing"] {
        assert!(context.contains(part), "{part:?} is not in the next turn's context:\n{context}");
    }
    let second = world.go_on(vec![], "/compact");
    assert_eq!(guidance(&second), text, "the same work, other bytes");

    // What was called safe to drop is needed again: the next compaction finds that in the history.
    let turns = vec![
        read(&world, "c0", "src/auth/session.ts").at(30_000),
        read(&world, "c1", "src/billing/ledger.ts").at(50_000),
        Turn::say("Checked.").at(51_000),
    ];
    world.go_on(turns, "Does the session still expire?");
    world.go_on(vec![], "/compact");
    let entries = history(&world);
    assert_eq!(entries.len(), 3, "{entries:#?}");
    assert_eq!(entries[0]["droppedDirs"], json!(["src/auth"]));
    let stamped = |entry: &Value| entry["regretCount"].as_f64().unwrap_or(0.0);
    assert_eq!((stamped(&entries[0]), stamped(&entries[1])), (0.0, 1.0), "{entries:#?}");
    assert!(entries[1]["regretDirs"].to_string().contains("src/auth"), "{entries:#?}");
    Outcome::Passed
}

/// The banner as a person sees it, right after `/compact`.
pub fn the_banner_comes_to_the_screen(client: &Client) -> Outcome {
    if !screen::available() {
        return Outcome::Skipped("tmux is not installed");
    }
    let world = World::new(client);
    world.write(&world.cwd.join("src/billing/ledger.ts"), "export const x = 1;\n");
    world.git(&["init", "-q"]);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "feat: billing"]);
    world.si(&["install"]);
    world.write(&world.project().join("session-context.md"), "## Current Task\ntype: bug-fix — rounding of invoices\n");
    world.api.script([read(&world, "a", "src/billing/ledger.ts").at(30_000), Turn::say("It is read now.").at(40_000)]);
    let screen = Screen::open(&world, 120, "Round the invoices.");
    screen.wait("the first answer", |text| text.contains("It is read now."));
    screen.type_in("/compact");
    screen.wait("the banner", |text| text.contains("Resuming: bug-fix — rounding of invoices"));
    Outcome::Passed
}
