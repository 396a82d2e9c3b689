use super::*;
use crate::client::payload::Payload;
use crate::config::Config;
use crate::log::Log;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

struct Home {
    _dir: tempfile::TempDir,
    env: Env,
    config: Config,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        Home { env: Env::for_tests(dir.path()), config: Config::built_in(), _dir: dir }
    }

    fn call(&self, payload: serde_json::Value) {
        let text = payload.to_string();
        let payload = Payload::parse(&text).unwrap();
        let (store, sid) = (Store::new(&self.env), payload.sid(&self.env));
        let log = Log::new(&self.env, None, false, false);
        store_response(&Call { env: &self.env, store, config: &self.config, log, payload: &payload, sid }).unwrap();
    }

    fn result(&self, id: &str, body: &str) {
        self.call(
            json!({"session_id": "s", "tool_use_id": id, "tool_name": "T", "tool_input": {}, "tool_response": body}),
        );
    }

    fn ids(&self) -> Vec<String> {
        list(&Store::new(&self.env), &Sid::new("s")).into_iter().map(|entry| entry.row.id).collect()
    }

    fn body(&self, id: &str) -> Option<String> {
        read(&self.env, &Store::new(&self.env), &Sid::new("s"), id).map(|record| record.body)
    }

    fn folder(&self) -> PathBuf {
        self.env.tmp.join("claude-tool-archive-s")
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.folder()).unwrap().count()
    }
}

fn big(word: &str) -> String {
    word.to_string() + &" filler".repeat(700)
}

#[test]
fn what_a_call_answered_is_kept_word_for_word() {
    let home = Home::new();
    let text = big("é🙂 \"quoted\"\n\u{1b}[31m");
    home.call(
        json!({"session_id": "s", "tool_use_id": "a", "tool_name": "Read", "tool_input": {"file_path": "/w/x.rs"},
        "tool_response": {"type": "text", "file": {"content": text}}}),
    );
    assert_eq!(home.body("a"), Some(text));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.folder()), 0o700);
    assert_eq!(["a.json", "index.jsonl"].map(|name| mode(&home.folder().join(name))), [0o600, 0o600]);
}

#[test]
fn secrets_are_never_archived() {
    let mut home = Home::new();
    home.config.shape.drop_globs.push("private/**".into());
    for input in [
        json!({"file_path": "/w/app/.env"}),
        json!({"file_path": "/w/app/secrets/list.txt"}),
        json!({"path": "/w/credentials"}),
        json!({"notebook_path": "/w/key.pem"}),
        json!({"path": "/w", "glob": "*.pem"}),
        json!({"command": "head -3 config/.env.local | sort"}),
        json!({"command": "cat 'private/notes.txt'"}),
        json!({"command": "cat config/.e*"}),
        json!({"command": "cat config/\\.env"}),
    ] {
        home.call(json!({"session_id": "s", "tool_use_id": "x", "tool_name": "T", "cwd": "/w", "tool_input": input,
            "tool_response": big("SECRET")}));
        assert!(!home.folder().exists(), "{input}");
    }
    // A search shows the files it names.
    home.call(json!({"session_id": "s", "tool_use_id": "x", "tool_name": "Grep", "cwd": "/w", "tool_input": {"path": "/w/config"},
        "tool_response": {"mode": "content", "filenames": ["config/.env"], "content": big("SECRET")}}));
    assert!(!home.folder().exists());
    home.call(json!({"session_id": "s", "tool_use_id": "x", "tool_input": {"command": "cat env.rs"}, "tool_response": big("ok")}));
    assert_eq!(home.ids(), ["x"]);
}

#[test]
fn a_secret_is_found_wherever_in_the_input_it_is_named() {
    let home = Home::new();
    for (tool, input) in [
        ("Grep", json!({"pattern": "KEY", "glob": ".env*"})),
        ("Grep", json!({"pattern": "KEY", "path": "/w", "glob": "*.{ts,pem}"})),
        ("Grep", json!({"pattern": "KEY", "glob": "*.PEM"})),
        ("Glob", json!({"pattern": "**/.env*"})),
        ("mcp__fs__read_many", json!({"paths": ["a", "/x/.env"]})),
        ("mcp__fs__read_many", json!({"paths": ["a", "mysecret"]})),
        ("mcp__fs__read", json!({"options": {"files": [{"name": "conf/.env"}]}})),
        ("mcp__fs__read", json!({"what": [["a"], [".ENV"]]})),
        ("mcp__fs__read", json!({"files": {"conf/Credentials.json": {"head": 3}}})),
        ("mcp__fs__read", json!({"path": "/w/my notes/.env"})),
        ("mcp__fs__read", json!({"path": "C:\\\\app\\.env"})),
        ("mcp__fs__read", json!({"paths": "a.rs,.env"})),
        ("mcp__shell__run", json!({"command": ["cat", ".env"]})),
        ("mcp__shell__run", json!({"cmd": "head -3 conf/.env"})),
        ("ReadMcpResourceTool", json!({"server": "fs", "uri": "file:///x/.env"})),
        ("ReadMcpResourceTool", json!({"server": "fs", "uri": "file://localhost/x/%2Eenv"})),
        ("Read", json!({"file_path": "/w/MySecret.txt"})),
        ("Bash", json!({"command": "curl -d @.env x"})),
        ("Bash", json!({"command": "foo -f.env"})),
        ("Bash", json!({"command": "foo --x=@.env"})),
        ("Bash", json!({"command": "cat server.KEY"})),
    ] {
        home.call(json!({"session_id": "s", "tool_use_id": "x", "tool_name": tool, "cwd": "/w", "tool_input": input,
            "tool_response": big("SECRET")}));
        assert!(!home.folder().exists(), "{tool} {input}");
    }
    // The lines of a search begin with the file they are from.
    home.call(json!({"session_id": "s", "tool_use_id": "x", "tool_name": "Grep", "cwd": "/w", "tool_input": {"pattern": "KEY"},
        "tool_response": {"mode": "content", "filenames": [], "content": format!("a.rs:1:KEY\nconf/.env:3:{}", big("KEY=1"))}}));
    assert!(!home.folder().exists());
    // So do those of a command that searches, and a diff names its files.
    let lines = format!("a.rs:1:KEY\n./conf/.env:KEY=1\n{}", big("x"));
    let diff = format!("--- a/a.rs\n+++ b/a.rs\n--- a/.env.prod\n+++ b/.env.prod\n+KEY=1\n{}", big("x"));
    for (command, stdout) in [
        ("grep -r KEY .", &lines),
        ("cd /w && rg KEY | head -50", &lines),
        ("git grep KEY", &lines),
        ("/usr/bin/egrep -r KEY .", &lines),
        ("git log -p -3", &diff),
    ] {
        home.call(json!({"session_id": "s", "tool_use_id": "x", "tool_name": "Bash", "cwd": "/w",
            "tool_input": {"command": command}, "tool_response": {"stdout": stdout}}));
        assert!(!home.folder().exists(), "{command}");
    }
}

#[test]
fn a_call_that_names_more_than_can_be_compared_is_not_kept() {
    let home = Home::new();
    for (count, kept) in [(1000, true), (100_000, false)] {
        for (tool, input) in [
            ("mcp__fs__read", json!({"paths": vec!["a/b.rs"; count]})),
            ("Bash", json!({"command": "cat a.rs ".repeat(count)})),
        ] {
            let id = format!("{tool}-{count}");
            home.call(
                json!({"session_id": "s", "tool_use_id": id, "tool_name": tool, "cwd": "/w", "tool_input": input,
                "tool_response": big("fine")}),
            );
            assert_eq!(home.body(&id).is_some(), kept, "{id}");
        }
    }
}

#[test]
fn an_answer_that_names_more_files_than_can_be_looked_at_is_not_kept() {
    let home = Home::new();
    let names = |count: usize| (0..count).map(|n| format!("src/f{n}.rs")).collect::<Vec<_>>();
    for (count, kept) in [(2000, true), (2001, false)] {
        let lines: String = names(count).iter().map(|name| format!("{name}:1:KEY\n{name}:2:KEY\n")).collect();
        for (tool, answer) in [
            ("Bash", json!({"stdout": lines})),
            ("Grep", json!({"content": lines})),
            ("Glob", json!({"filenames": names(count)})),
        ] {
            let id = format!("{tool}-{count}");
            home.call(json!({"session_id": "s", "tool_use_id": id, "tool_name": tool, "cwd": "/w",
                "tool_input": {"command": "grep -r KEY ."}, "tool_response": answer}));
            assert_eq!(home.body(&id).is_some(), kept, "{id}");
        }
    }
}

#[test]
fn talk_of_secrets_is_none() {
    let home = Home::new();
    let calls = [
        ("Grep", json!({"pattern": "secrets.get", "path": "/w/src", "glob": "*.rs"})),
        ("Grep", json!({"pattern": "KEY", "glob": "!.env* **/*.rs"})),
        ("Task", json!({"prompt": "credentials.json", "description": "find where the .env file is read"})),
        ("WebFetch", json!({"url": "https://example.com/secret-santa", "prompt": "who?"})),
        ("Edit", json!({"file_path": "/w/a.rs", "old_string": "my.secret", "new_string": "x/.env"})),
        ("mcp__db__query", json!({"sql": "select secret from t", "limit": 3, "name": "secret"})),
        ("Bash", json!({"command": "npm i @scope/env", "description": "Install"})),
    ];
    for (at, (tool, input)) in calls.iter().enumerate() {
        home.call(json!({"session_id": "s", "tool_use_id": at.to_string(), "tool_name": tool, "cwd": "/w",
            "tool_input": input, "tool_response": big("fine")}));
        assert_eq!(home.ids().len(), at + 1, "{tool} {input}");
    }
    // Lines of a program that does not search, and of a search that only speaks of secrets.
    for (command, line) in [("cargo build", ".env: not read"), ("grep -r KEY src", "src/a.rs:1:read(\"x/.env: y\")")] {
        let stdout = format!("{line}\n{}", big("fine"));
        home.call(json!({"session_id": "s", "tool_use_id": command, "tool_name": "Bash", "cwd": "/w",
            "tool_input": {"command": command}, "tool_response": {"stdout": stdout}}));
        assert!(home.body(command).is_some(), "{command}");
    }
}

#[test]
fn a_wildcard_stands_for_the_secrets_that_are_there() {
    let home = Home::new();
    let folder = home.env.cwd.join("config");
    let cat = |id: &str, word: &str| {
        home.call(json!({"session_id": "s", "tool_use_id": id, "cwd": home.env.cwd,
            "tool_input": {"command": format!("cat {word}")}, "tool_response": big("text")}));
    };
    file::write_atomic(&folder.join("app.toml"), b"x").unwrap();
    file::write_atomic(&folder.join(".env"), b"x").unwrap();
    cat("a", "config/*");
    cat("b", "config/*.json");
    file::write_atomic(&folder.join("credentials.json"), b"x").unwrap();
    cat("c", "config/*");
    cat("d", &format!("{}/*.json", folder.display()));
    cat("e", "config/*.toml");
    assert_eq!(home.ids(), ["a", "b", "e"]);
}

#[test]
fn switches_and_sizes_are_respected() {
    let mut home = Home::new();
    home.result("small", &"日".repeat(2000));
    home.result("empty", "");
    home.call(json!({"session_id": "s", "tool_use_id": "none"}));
    home.call(json!({"session_id": "s", "tool_response": big("no id")}));
    home.call(json!({"session_id": "s", "tool_use_id": "pic", "tool_response": [{"type": "image", "data": big("x")}]}));
    assert!(!home.folder().exists());
    home.config.tool_archive.threshold_chars = 0;
    home.result("empty", "");
    assert!(!home.folder().exists());
    home.result("one", "x");
    assert_eq!(home.ids(), ["one"]);
    home.config.tool_archive.enabled = false;
    home.result("off", &big("x"));
    assert_eq!(home.ids(), ["one"]);
}

#[test]
fn a_call_that_fires_twice_is_kept_once() {
    let home = Home::new();
    for id in ["a", "a", "b", "a"] {
        home.result(id, &big(id));
    }
    assert_eq!(home.ids(), ["a", "b"]);
    std::fs::remove_file(home.folder().join("a.json")).unwrap();
    assert!(list(&Store::new(&home.env), &Sid::new("s"))[0].missing);
    home.result("a", &big("again"));
    assert_eq!((home.ids().len(), home.body("a")), (2, Some(big("again"))));
}

#[test]
fn ids_that_differ_only_in_what_a_name_cannot_hold_stay_apart() {
    let home = Home::new();
    let long = "x".repeat(100);
    for id in ["toolu_a/b", "toolu_ab", "../toolu_ab", "toolu_a/b", &(long.clone() + "1"), &(long.clone() + "2")] {
        home.result(id, &big(&format!("body of {id}")));
    }
    for id in ["toolu_a/b", "toolu_ab", "../toolu_ab", &(long.clone() + "1"), &(long + "2")] {
        assert!(home.body(id).unwrap().starts_with(&format!("body of {id} ")), "{id}");
    }
    let absurd = "y/".repeat(50_000);
    home.result(&absurd, &big("absurd"));
    assert_eq!(home.body(&absurd), Some(big("absurd")));
    assert!(std::fs::metadata(home.folder().join("index.jsonl")).unwrap().len() < 4000);
    std::fs::remove_file(home.folder().join(home.ids()[1].clone() + ".json")).unwrap();
    home.result("toolu_ab", &big("body of toolu_ab, again"));
    assert_eq!(home.body("toolu_ab"), Some(big("body of toolu_ab, again")));
    assert_eq!(home.ids().len(), 6);
    assert!(home.ids().iter().all(|id| id.len() <= 64));
}

#[test]
fn over_the_cap_the_least_recently_used_goes() {
    let mut home = Home::new();
    home.config.tool_archive.max_per_session = 3;
    for id in ["a", "b", "c"] {
        home.result(id, &big(id));
        home.env.now_ms += 1000;
    }
    assert!(home.body("a").is_some());
    home.env.now_ms += 1000;
    home.result("d", &big("d"));
    assert_eq!(home.ids(), ["a", "c", "d"]);
    home.result("e", &big("e"));
    assert_eq!(home.ids(), ["a", "d", "e"]);
    assert_eq!(home.files(), 4);
}

#[test]
fn an_older_row_of_a_live_record_takes_nothing_along() {
    let home = Home::new();
    let mut config = home.config.tool_archive.clone();
    config.max_per_session = 2;
    home.result("a", &big("a"));
    let index = home.folder().join("index.jsonl");
    let row = std::fs::read_to_string(&index).unwrap();
    file::write_atomic(&index, (row.clone() + &row).as_bytes()).unwrap();
    let response = Response { id: "b", tool: "", input: None, body: Body::plain("b") };
    config.threshold_chars = 1;
    save(&home.env, &Store::new(&home.env), &Sid::new("s"), &config, &response).unwrap();
    assert_eq!(home.ids(), ["a", "b"]);
    assert!(home.body("a").is_some());
}

#[test]
fn what_is_past_its_time_goes_and_records_without_a_row_too() {
    let mut home = Home::new();
    home.result("old", &big("old"));
    let orphan = home.folder().join("orphan.json");
    file::write_atomic(&orphan, b"{}").unwrap();
    file::set_changed(&orphan, home.env.now_ms).unwrap();
    let note = home.folder().join("note.txt");
    file::write_atomic(&note, b"").unwrap();
    file::set_changed(&note, 0).unwrap();
    home.env.now_ms += 8 * 86_400_000;
    home.result("new", &big("new"));
    assert_eq!((home.ids(), home.body("old")), (vec!["new".to_string()], None));
    assert_eq!(prune(&home.env, &Store::new(&home.env), &Sid::new("s"), 7.0).unwrap(), 1);
    assert!(!orphan.exists() && note.exists());
    home.env.now_ms += 8 * 86_400_000;
    assert_eq!(prune(&home.env, &Store::new(&home.env), &Sid::new("s"), 7.0).unwrap(), 1);
    assert_eq!(home.ids(), Vec::<String>::new());
    assert_eq!(prune(&home.env, &Store::new(&home.env), &Sid::new("none"), 7.0).unwrap(), 0);
    assert!(!home.env.tmp.join("claude-tool-archive-none").exists());
}

#[test]
fn a_damaged_index_costs_only_its_damaged_rows() {
    let home = Home::new();
    home.result("a", &big("a"));
    let index = home.folder().join("index.jsonl");
    let row = std::fs::read_to_string(&index).unwrap();
    let odd = r#"{"id":"../../etc/passwd","t":1767323045000,"tool":5,"chars":null}"#;
    file::write_atomic(&index, format!("{{torn\n{odd}\n[]\n{row}{{\"id\":\"half").as_bytes()).unwrap();
    home.result("b", &big("b"));
    let entries = list(&Store::new(&home.env), &Sid::new("s"));
    let seen: Vec<_> = entries.iter().map(|entry| (entry.row.id.as_str(), entry.missing)).collect();
    assert_eq!(seen, [("../../etc/passwd", true), ("a", false), ("b", false)]);
}

#[test]
fn planted_links_and_pipes_are_never_followed() {
    let home = Home::new();
    let victim = home.env.cwd.join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::os::unix::fs::symlink(&victim, home.folder()).unwrap();
    let text = json!({"session_id": "s", "tool_use_id": "a", "tool_response": big("x")}).to_string();
    let payload = Payload::parse(&text).unwrap();
    let log = Log::new(&home.env, None, false, false);
    let store = Store::new(&home.env);
    let call = Call { env: &home.env, store, config: &home.config, log, payload: &payload, sid: Sid::new("s") };
    assert!(store_response(&call).is_err());
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
    std::fs::remove_file(home.folder()).unwrap();

    std::fs::create_dir(home.folder()).unwrap();
    let target = home.env.cwd.join("target");
    file::write_atomic(&target, b"theirs").unwrap();
    std::os::unix::fs::symlink(&target, home.folder().join("a.json")).unwrap();
    let fifo = home.folder().join("b.json");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!((home.body("a"), home.body("b")), (None, None));
    home.result("a", &big("ours"));
    home.result("b", &big("ours too"));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "theirs");
    assert_eq!((home.body("a"), home.body("b")), (Some(big("ours")), Some(big("ours too"))));
}

#[test]
fn a_wiped_temp_folder_is_made_again() {
    let home = Home::new();
    home.result("a", &big("a"));
    std::fs::remove_dir_all(&home.env.tmp).unwrap();
    home.result("b", &big("b"));
    assert_eq!(home.ids(), ["b"]);
}

#[test]
fn sessions_are_found_newest_first() {
    let home = Home::new();
    for sid in ["one", "two"] {
        home.call(json!({"session_id": sid, "tool_use_id": "a", "tool_response": big(sid)}));
    }
    file::write_atomic(&home.env.tmp.join("claude-tool-archive-file"), b"").unwrap();
    let folder = std::fs::File::open(home.env.tmp.join("claude-tool-archive-two")).unwrap();
    folder.set_modified(std::time::UNIX_EPOCH).unwrap();
    let found: Vec<String> = sessions(&home.env).iter().map(|sid| sid.as_str().to_string()).collect();
    assert_eq!(found, ["one", "two"]);
}

#[test]
fn records_that_no_row_names_are_listed_by_what_they_hold() {
    let mut home = Home::new();
    for id in ["a", "b"] {
        home.result(id, &big(id));
        home.env.now_ms += 1000;
    }
    let before = list(&Store::new(&home.env), &Sid::new("s"));
    std::fs::remove_file(home.folder().join("index.jsonl")).unwrap();
    assert_eq!(list(&Store::new(&home.env), &Sid::new("s")), before);
    home.result("c", &big("c"));
    let torn = home.folder().join("b.json");
    file::write_atomic(&torn, &std::fs::read(&torn).unwrap()[..100]).unwrap();
    assert_eq!(home.ids(), ["a", "c"], "what is not whole cannot be replayed");
}
