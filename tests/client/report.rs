//! Which fields of payloads and transcripts a client sends, compared with `fields.txt`: `+` marks those that si reads,
//! `-` those that are known and not needed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::api::Turn;
use crate::screen::{self, Screen};
use crate::world::{Client, REPOSITORY, World};

const EVENTS: [&str; 11] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PostCompact",
    "Stop",
    "SubagentStop",
    "Notification",
];

/// Drives a session through everything that si looks at, and prints what is new and what is missing.
pub fn print(client: &Client) {
    let seen = record(client);
    let known = std::fs::read_to_string(Path::new(REPOSITORY).join("tests/client/fields.txt")).unwrap_or_default();
    let fields = |mark: &str| -> BTreeSet<&str> { known.lines().filter_map(|line| line.strip_prefix(mark)).collect() };
    let (read, other) = (fields("+ "), fields("- "));
    let seen: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
    let new: Vec<_> = seen.iter().filter(|field| !read.contains(*field) && !other.contains(*field)).collect();
    let missing: Vec<_> = read.difference(&seen).collect();
    println!(
        "Claude Code {}: {} fields seen; {} of the {} that si reads; {} new.",
        client.version,
        seen.len(),
        read.len() - missing.len(),
        read.len(),
        new.len()
    );
    for (title, fields) in [("New:", new), ("Read by si, but not seen in this session:", missing)] {
        if !fields.is_empty() {
            println!("{title}");
        }
        for field in fields {
            println!("  {field}");
        }
    }
}

fn record(client: &Client) -> BTreeSet<String> {
    let world = World::new(client);
    let folder = world.root().join("payloads");
    std::fs::create_dir_all(&folder).unwrap();
    let recorder = |event: &str| format!("cat > {}/{event}.$$.json", folder.display());
    let hooks =
        EVENTS.map(|event| (event.to_owned(), json!([{"hooks": [{"type": "command", "command": recorder(event)}]}])));
    let hooks: serde_json::Map<String, Value> = hooks.into_iter().collect();
    let line = json!({"type": "command", "command": recorder("StatusLine") + "; echo line"});
    world.write(&world.claude("settings.json"), &json!({"hooks": hooks, "statusLine": line}).to_string());
    world.write(&world.cwd.join("a.txt"), "one\ntwo\n");
    world.git(&["init", "-q"]);

    let file = |name: &str| world.cwd.join(name);
    let bash = |id: &str, command: &str| Turn::call(id, "Bash", json!({"command": command, "description": "run it"}));
    let commit = "git -c user.name=a -c user.email=a@b.c commit -qam 'one commit' --allow-empty";
    let task = json!({"description": "look", "prompt": "Say yes.", "subagent_type": "general-purpose", "run_in_background": false});
    world.start(
        vec![
            bash("b", "echo out; echo err >&2"),
            bash("f", "exit 3"),
            bash("c", commit),
            Turn::call("r", "Read", json!({"file_path": file("a.txt")})),
            Turn::call("e", "Edit", json!({"file_path": file("a.txt"), "old_string": "one", "new_string": "1"})),
            Turn::call("w", "Write", json!({"file_path": file("b.txt"), "content": "new\n"})),
            Turn::call("t", "Agent", task),
            Turn::say("Yes."),
            Turn::say("All done."),
        ],
        "Use every tool.",
    );
    world.go_on(vec![Turn::say("More.")], "Go on.");
    world.go_on(vec![], "/compact keep it");
    world.go_on(vec![Turn::say("Again.")], "Go on after that.");
    if screen::available() {
        world.api.script([Turn::say("Seen on the screen.")]);
        Screen::open(&world, 120, "Show the line.").wait("the answer", |text| text.contains("Seen on the screen."));
    }

    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let event = name.split('.').next().unwrap_or_default();
        // A hook that was killed half-way leaves half a document.
        let Ok(payload) = serde_json::from_slice::<Value>(&std::fs::read(entry.path()).unwrap()) else { continue };
        let event = match payload["tool_name"].as_str() {
            Some(tool) => format!("{event}({tool})"),
            None => event.to_owned(),
        };
        walk(&event, &payload, String::new(), &mut seen);
    }
    for entry in std::fs::read_dir(world.project()).into_iter().flatten().flatten() {
        if entry.path().extension().is_none_or(|end| end != "jsonl") {
            continue;
        }
        for row in world.read(&entry.path()).lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let kind = row["type"].as_str().unwrap_or("?");
            // Bookkeeping rows and tool results are the client's own affair: si skips them.
            if matches!(kind, "user" | "assistant" | "system" | "cost-state") {
                let kind = row["subtype"].as_str().map_or(kind.to_owned(), |subtype| format!("{kind}/{subtype}"));
                walk(&format!("transcript({kind})"), &row, String::new(), &mut seen);
            }
        }
    }
    seen
}

/// Collects the path of every field; the elements of an array share one, and so do the members of an object whose keys
/// are data.
fn walk(place: &str, value: &Value, path: String, seen: &mut BTreeSet<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) if path.ends_with("toolUseResult") || path.ends_with("structuredPatch") => {
            let _ = map; // shapes of tool results are told apart by PostToolUse
            seen.insert(format!("{place} {path}"));
        }
        Value::Object(map) => {
            for (key, value) in map {
                let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && key.len() < 40;
                walk(place, value, below(if plain { key } else { "*" }), seen);
            }
        }
        Value::Array(items) => {
            for item in items {
                walk(place, item, below("[]"), seen);
            }
            seen.insert(format!("{place} {path}"));
        }
        _ => drop(seen.insert(format!("{place} {path}"))),
    }
}
