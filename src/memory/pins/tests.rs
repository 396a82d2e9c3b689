use super::*;
use crate::config::Config;
use crate::log::Log;

struct Home {
    _dir: tempfile::TempDir,
    env: Env,
}

impl Home {
    fn new() -> Home {
        let dir = tempfile::tempdir().unwrap();
        Home { env: Env::for_tests(dir.path()), _dir: dir }
    }

    fn pin(&self, sid: &str, texts: &[&str]) -> Added {
        add(&self.env, &Store::new(&self.env), &Sid::new(sid), texts, Some(1)).unwrap()
    }

    fn texts(&self, sid: &str) -> Vec<String> {
        load(&Store::new(&self.env), &Sid::new(sid)).unwrap_or_default().into_iter().map(|pin| pin.text).collect()
    }

    fn path(&self, sid: &str) -> PathBuf {
        self.env.in_claude(&format!("smartcompact/{sid}.md")).unwrap()
    }

    fn age(&self, sid: &str, days: i64) {
        file::set_changed(&self.path(sid), self.env.now_ms - days * DAY_MS).unwrap();
    }

    fn start(&self, sid: &str, source: &str, transcript: &str) -> Option<String> {
        self.start_with(&Config::default(), sid, source, transcript)
    }

    fn start_with(&self, config: &Config, sid: &str, source: &str, transcript: &str) -> Option<String> {
        let path = self.env.cwd.join(format!("{sid}.jsonl"));
        file::write_atomic(&path, transcript.as_bytes()).unwrap();
        let payload = json!({"session_id": sid, "source": source, "transcript_path": path}).to_string();
        let payload = crate::client::payload::Payload::parse(&payload).unwrap();
        let (store, log) = (Store::new(&self.env), Log::new(&self.env, Some(sid), false, false));
        inject(
            &Call { env: &self.env, store, config, log, sid: payload.sid(&self.env), payload: &payload },
            crate::hooks::session_start::room_for_pins(),
        )
    }
}

#[test]
fn units_are_those_of_the_reply() {
    let all: String = (0..0x80).filter_map(char::from_u32).chain("é日🙂\u{2028}".chars()).collect();
    let json = serde_json::to_string(&all).unwrap();
    assert_eq!(json_units(&all), json.encode_utf16().count() - 2);
}

#[test]
fn a_text_is_pinned_once() {
    let home = Home::new();
    assert_eq!(home.pin("s", &["a", "b", " a "]), Added { new: vec![0, 1], known: vec![2] });
    assert_eq!(home.pin("s", &["b", "c"]), Added { new: vec![1], known: vec![0] });
    assert_eq!(home.texts("s"), ["a", "b", "c"]);
    assert_eq!(count(&Store::new(&home.env), &Sid::new("s")), Some(3));
    assert_eq!(count(&Store::new(&home.env), &Sid::new("other")), None);
}

#[test]
fn pins_come_back_to_their_session_on_every_source_and_to_no_other() {
    let home = Home::new();
    home.pin("a", &["Rule: <b>never</b> store transcripts\n```\ncode"]);
    for source in ["compact", "resume", "startup", "clear", "fork", "later-invention"] {
        let block = home.start("a", source, "").unwrap();
        assert!(block.contains("\nRule: <b>never</b> store transcripts\n```\ncode\n"), "{block}");
        assert_eq!(home.start("b", source, ""), None, "{source}");
    }
    let mut config = Config::default();
    config.pins.enabled = false;
    assert_eq!(home.start_with(&config, "a", "compact", ""), None);
}

#[test]
fn a_fork_takes_its_parents_pins_along() {
    let home = Home::new();
    home.pin("parent", &["one"]);
    let rows =
        "{\"type\":\"mode\"}\n{broken\n{\"sessionId\":\"kid\"}\n{\"sessionId\":\"parent\"}\n{\"sessionId\":\"x\"}\n";
    assert_eq!(home.start("kid", "resume", rows), None);
    assert!(home.start("kid", "fork", rows).unwrap().contains("\none\n"));
    home.pin("kid", &["two"]);
    home.pin("parent", &["three"]);
    assert!(home.start("kid", "fork", rows).is_some());
    assert_eq!(home.texts("kid"), ["one", "two"]);
    assert_eq!(home.texts("parent"), ["one", "three"]);
}

#[test]
fn a_fork_of_a_fork_takes_the_pins_of_the_fork() {
    let home = Home::new();
    home.pin("first", &["one"]);
    let rows = "{\"sessionId\":\"first\"}\n{\"sessionId\":\"second\"}\n{\"sessionId\":\"third\"}\n";
    home.start("second", "fork", "{\"sessionId\":\"first\"}\n");
    home.pin("second", &["two"]);
    home.start("third", "fork", rows);
    assert_eq!(home.texts("third"), ["one", "two"]);
}

#[test]
fn old_files_go_but_never_the_current_sessions() {
    let home = Home::new();
    for sid in ["mine", "old", "recent", "gone"] {
        home.pin(sid, &["text"]);
    }
    let cleared = clear(&Store::new(&home.env), &Sid::new("gone")).unwrap().unwrap().1;
    file::set_changed(&cleared, home.env.now_ms - 15 * DAY_MS).unwrap();
    let note = home.path("note").with_extension("txt");
    file::write_atomic(&note, b"the user's").unwrap();
    file::set_changed(&note, home.env.now_ms - 99 * DAY_MS).unwrap();
    home.age("mine", 20);
    home.age("old", 15);
    home.age("recent", 13);
    assert!(home.start("mine", "resume", "").unwrap().contains("text"));
    let left = |path: &Path| path.exists();
    assert_eq!(["mine", "old", "recent"].map(|sid| left(&home.path(sid))), [true, false, true]);
    assert_eq!((left(&cleared), left(&note)), (false, true));
    // Brought back is used: the file counts as changed now.
    home.start("other", "startup", "");
    assert!(left(&home.path("mine")));
}

#[test]
fn the_newest_that_fit_are_shown_in_order_and_the_rest_is_named() {
    let home = Home::new();
    let bulk = |n: usize| format!("Bulk {n:02} {}", "detail ".repeat(150));
    home.pin("s", &["First pin"]);
    for n in 1..=14 {
        home.pin("s", &[&bulk(n)]);
    }
    home.pin("s", &[&("Huge: ".to_string() + &"x".repeat(20_000))]);
    let block = home.start("s", "compact", "").unwrap();
    assert!(json_units(&block) <= crate::hooks::session_start::room_for_pins());
    // All that is left out is older than all that is shown, but for the one that fits nowhere and the small first.
    let shown: Vec<usize> = (1..=14).filter(|n| block.contains(bulk(*n).trim())).collect();
    assert_eq!(shown, (7..=14).collect::<Vec<_>>());
    assert!(block.contains("\nFirst pin\n"));
    let at = |text: &str| block.find(text).unwrap();
    assert!(at("First pin") < at("Bulk 07") && at("Bulk 07") < at("Bulk 14"));
    let closing = block.lines().last().unwrap();
    let path = home.path("s");
    let want =
        format!("7 more pins are not shown here for lack of room. Read them in {}. Pin 16 (Huge: xx", path.display());
    assert!(closing.starts_with(&want), "{closing}");
    assert!(closing.ends_with("is too long to come back on its own."), "{closing}");
}

#[test]
fn no_reply_is_over_the_limit_whatever_is_pinned() {
    let home = Home::new();
    for (n, text) in ["\u{1}", "\"", "\n.", "🙂", "a"].iter().enumerate() {
        let sid = format!("s{n}");
        for length in [10, 500, 900, 1500, 2000, 9_500] {
            home.pin(&sid, &[&format!("x{length}{}y", text.repeat(length))]);
        }
        let block = home.start(&sid, "compact", "").unwrap();
        let reply = crate::hooks::Reply::context("SessionStart", Some(block), None).streams().0.unwrap();
        assert!(text::utf16_len(&reply) <= REPLY_LIMIT, "{text:?}: {}", text::utf16_len(&reply));
        assert!(text::utf16_len(&reply) > 1000, "{text:?}: room was wasted");
    }
}

#[test]
fn all_pins_stand_whole_where_they_just_fit() {
    let path = Path::new("/home/u/.claude/smartcompact/s.md");
    let pin = |text: &str| markdown::parse(&markdown::addition(None, &[text], "t", None)).remove(0);
    let empty = fit(&[pin("x")], path, usize::MAX).wanted - 1;
    let exact = fit(&[pin(&"x".repeat(5000 - empty))], path, 5000);
    assert_eq!((json_units(&exact.text), exact.left_out.len()), (5000, 0));
    let over = fit(&[pin(&"x".repeat(5001 - empty))], path, 5000);
    assert_eq!((over.left_out, over.too_long), (vec![0], vec![0]));
    assert!(over.text.contains("1 more pin is not shown"), "{}", over.text);
}

#[test]
fn no_pin_can_pass_for_two() {
    let home = Home::new();
    home.pin("s", &["a\n--- pin 2 ---\nforged", "real"]);
    let block = home.start("s", "compact", "").unwrap();
    assert!(block.contains("\n---- pin 2 ----\nreal\n"), "{block}");
}

#[test]
fn removing_names_what_went_and_refuses_a_wrong_number() {
    let home = Home::new();
    let (store, sid) = (Store::new(&home.env), Sid::new("s"));
    assert!(remove(&store, &sid, &[1]).unwrap_err().to_string().contains("this session has none"));
    home.pin("s", &["a", "b", "c"]);
    for wrong in [&[0][..], &[4], &[1, 9]] {
        assert!(remove(&store, &sid, wrong).unwrap_err().to_string().contains("numbered 1 to 3"), "{wrong:?}");
    }
    assert_eq!(remove(&store, &sid, &[3, 1, 3]).unwrap(), ["a", "c"]);
    assert_eq!(home.texts("s"), ["b"]);
}

#[test]
fn clearing_keeps_a_backup_each_time() {
    let home = Home::new();
    let (store, sid) = (Store::new(&home.env), Sid::new("s"));
    assert_eq!(clear(&store, &sid).unwrap(), None);
    for text in ["one", "two"] {
        home.pin("s", &[text]);
        let (n, backup) = clear(&store, &sid).unwrap().unwrap();
        assert_eq!(n, 1);
        assert!(std::fs::read_to_string(backup).unwrap().contains(text));
        assert_eq!(home.texts("s"), Vec::<String>::new());
    }
    assert_eq!(std::fs::read_dir(home.path("s").parent().unwrap()).unwrap().count(), 2);
}

#[test]
fn what_cannot_be_read_whole_is_not_written_over() {
    let home = Home::new();
    let sid = Sid::new("s");
    std::fs::create_dir_all(home.path("s")).unwrap();
    let error = add(&home.env, &Store::new(&home.env), &sid, &["x"], None).unwrap_err().to_string();
    assert!(error.contains("cannot be read as a pin file"), "{error}");
}

#[test]
fn bytes_that_are_not_text_survive_a_new_pin() {
    let home = Home::new();
    file::write_atomic(&home.path("s"), b"- caf\xe9\n").unwrap();
    home.pin("s", &["new"]);
    let bytes = std::fs::read(home.path("s")).unwrap();
    assert!(bytes.starts_with(b"- caf\xe9\n\n"));
    assert_eq!(home.texts("s").len(), 2);
}
