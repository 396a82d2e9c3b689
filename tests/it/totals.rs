//! Totals of transcripts that grow, change hands, shrink, or are no transcripts.

use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use si::client::totals::{self, Session, Totals};
use si::client::transcript;
use si::client::usage::Usage;
use si::config::Prices;
use si::store::{Sid, StateFile, Store};

use crate::support::Sandbox;

const OWN: &str = "5e55a0b1-0000-4000-8000-000000000001";
const OTHER: &str = "5e55a0b2-0000-4000-8000-000000000002";

/// A session whose transcript is made by a test.
struct Made {
    sandbox: Sandbox,
    sid: Sid,
    transcript: PathBuf,
    prices: Prices,
    compacted_ms: Option<i64>,
}

impl Made {
    fn new() -> Made {
        let sandbox = Sandbox::new();
        let transcript = sandbox.home.join(format!(".claude/projects/-w/{OWN}.jsonl"));
        sandbox.write(&transcript, "");
        // A dollar per token of each kind, in cents that tell them apart.
        let price = |cents: f64| Some(cents * 1e4);
        let prices =
            Prices { input: price(100.0), cache_creation: price(10.0), cache_read: price(1.0), output: price(0.1) };
        Made { sandbox, sid: Sid::new(OWN), transcript, prices, compacted_ms: None }
    }

    fn agent(&self, name: &str) -> PathBuf {
        self.transcript.with_extension("").join("subagents").join(name)
    }

    fn append(&self, text: &str) {
        self.append_to(&self.transcript, text);
    }

    fn append_to(&self, path: &PathBuf, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn update(&self) -> Option<Totals> {
        let env = self.sandbox.env();
        let (sid, transcript, compacted_ms) = (&self.sid, self.transcript.as_path(), self.compacted_ms);
        let session = Session { sid, id: Some(OWN), transcript, compacted_ms };
        totals::update(&Store::new(&env), &env, session, &self.prices)
    }

    fn cost(&self) -> f64 {
        self.update().unwrap().session.cost(&self.prices)
    }

    fn stored(&self) -> Value {
        let env = self.sandbox.env();
        Store::new(&env).read_json(StateFile::Totals(&self.sid)).unwrap_or_default()
    }
}

/// A reply that used `input` tokens, as one line.
fn reply(id: &str, input: u64) -> Value {
    json!({
        "type": "assistant", "isSidechain": false, "uuid": format!("u-{id}"), "sessionId": OWN,
        "message": {"id": id, "role": "assistant", "model": "claude-opus-4-8", "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": input, "output_tokens": 0}},
    })
}

fn with(mut row: Value, key: &str, value: Value) -> Value {
    match key.split_once('.') {
        Some((outer, inner)) => row[outer][inner] = value,
        None => row[key] = value,
    }
    row
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn boundary(at: &str) -> Value {
    json!({"type": "system", "subtype": "compact_boundary", "timestamp": at, "sessionId": OWN,
        "compactMetadata": {"trigger": "manual", "preTokens": 250_050, "postTokens": 2896}})
}

fn ago(made: &Made, seconds: i64) -> Value {
    made.sandbox.env().iso(made.sandbox.now_ms - seconds * 1000).into()
}

#[test]
fn rows_of_one_message_count_once_and_the_last_one_wins() {
    let made = Made::new();
    made.append(&lines(&[reply("m1", 1), reply("m1", 2), reply("m2", 10), reply("m1", 3)]));
    assert_eq!(made.cost(), 13.0);
    // Also across the end of what was read before, and when the count falls.
    made.append(&lines(&[reply("m2", 5)]));
    assert_eq!(made.cost(), 8.0);
    // A row without a message id counts by its own id; one without any counts each time.
    let nameless = with(reply("x", 100), "message.id", Value::Null);
    let unknown = with(nameless.clone(), "uuid", Value::Null);
    made.append(&lines(&[nameless.clone(), nameless, unknown.clone(), unknown]));
    assert_eq!(made.cost(), 308.0);
    // An empty id is none.
    let empty = |uuid: &str| with(with(reply(uuid, 1000), "message.id", "".into()), "uuid", uuid.into());
    made.append(&lines(&[empty("e1"), empty("e2"), empty("e2"), empty(""), empty("")]));
    assert_eq!(made.cost(), 4308.0);
}

#[test]
fn each_message_is_priced_by_its_own_model() {
    let made = Made::new();
    let million = 1_000_000;
    made.append(&lines(&[
        reply("m1", million),
        with(reply("m2", million), "message.model", "us.anthropic.claude-haiku-4-5-20251001-v1:0".into()),
        with(reply("m3", million), "message.model", "nobody-knows".into()),
    ]));
    let totals = made.update().unwrap();
    assert!((totals.session.cost(&Prices::default()) - (5.0 + 1.0 + 4.0)).abs() < 1e-9);
    // Prices are no part of what is stored: others show others.
    assert_eq!(totals.session.cost(&made.prices), 3e6);
    assert_eq!(made.stored()["cost"], 3e6);
}

#[test]
fn the_stored_file_has_the_keys_of_the_original_and_keeps_those_it_does_not_know() {
    let made = Made::new();
    let usage =
        json!({"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4});
    made.append(&lines(&[with(reply("m1", 0), "message.usage", usage)]));
    made.update().unwrap();
    let mut stored = made.stored();
    let size = std::fs::metadata(&made.transcript).unwrap().len();
    for (key, value) in [("offset", size), ("input", 1), ("output", 2), ("cached", 3), ("creation", 4)] {
        assert_eq!(stored[key], value, "{key}");
    }
    stored["theirs"] = "kept".into();
    let path = made.sandbox.tmp.join(format!("claude-cost-{OWN}"));
    made.sandbox.write(&path, stored.to_string());
    made.append(&lines(&[reply("m2", 1)]));
    made.update().unwrap();
    assert_eq!(made.stored()["theirs"], "kept");
}

#[test]
fn a_whole_row_without_its_line_break_counts_and_only_once() {
    let made = Made::new();
    let rows = lines(&[reply("m1", 1), reply("m2", 10)]);
    made.append(rows.trim_end());
    assert_eq!(made.cost(), 11.0);
    let first = reply("m1", 1).to_string().len() as u64 + 1;
    assert_eq!(made.stored()["offset"], first);
    made.append("\n");
    assert_eq!(made.cost(), 11.0);
    let next = reply("m3", 100).to_string();
    made.append(&next[..next.len() / 2]);
    assert_eq!(made.cost(), 11.0);
    made.append(&next[next.len() / 2..]);
    assert_eq!(made.cost(), 111.0);
    made.append("\r\n");
    assert_eq!(made.cost(), 111.0);
}

#[test]
fn a_transcript_that_was_replaced_or_cut_is_read_from_its_start() {
    let made = Made::new();
    made.append(&lines(&[reply("m1", 1), reply("m2", 10)]));
    assert_eq!(made.cost(), 11.0);
    // Shorter.
    std::fs::write(&made.transcript, lines(&[reply("m3", 2)])).unwrap();
    assert_eq!(made.cost(), 2.0);
    // Longer, in the same file.
    std::fs::write(&made.transcript, lines(&[reply("m4", 3), reply("m5", 30), reply("m6", 300)])).unwrap();
    assert_eq!(made.cost(), 333.0);
    // Longer, the same up to the offset, but another file.
    let grown = std::fs::read_to_string(&made.transcript).unwrap() + &lines(&[reply("m7", 3000)]);
    std::fs::remove_file(&made.transcript).unwrap();
    made.append(&grown);
    assert_eq!(made.cost(), 3333.0);
    // In the same file, its rows as long as they were and with the same end.
    let alike = |last: u64| {
        let tail = |row: Value| with(row, "version", "9".repeat(64).into());
        lines(&[tail(reply("n1", 1)), tail(reply("n2", last))])
    };
    std::fs::write(&made.transcript, alike(10)).unwrap();
    assert_eq!(made.cost(), 11.0);
    std::fs::write(&made.transcript, alike(50) + &lines(&[reply("n3", 100)])).unwrap();
    assert_eq!(made.cost(), 151.0);
}

#[test]
fn what_is_no_transcript_has_no_totals() {
    let made = Made::new();
    assert!(made.update().is_none(), "empty");
    std::fs::remove_file(&made.transcript).unwrap();
    assert!(made.update().is_none(), "missing");
    std::fs::create_dir(&made.transcript).unwrap();
    assert!(made.update().is_none(), "a folder");
    std::fs::remove_dir(&made.transcript).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &made.transcript, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(made.update().is_none(), "a pipe that nobody writes to");
    assert!(transcript::tail(&made.transcript).is_none());
    assert_eq!(made.stored(), Value::Null);
}

#[test]
fn damaged_rows_cost_nothing_but_themselves() {
    let made = Made::new();
    let mut bytes = b"\xef\xbb\xbf".to_vec();
    bytes.extend(lines(&[reply("m1", 1)]).into_bytes());
    bytes.extend(b"\xff\xfe\"usage\"\n\n{\"message\":{\"usage\":5}}\nnull\n{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_tok\n");
    bytes.extend(lines(&[reply("m2", 10)]).replace("\"x\"", "\"\\ud83d\"").replace('\n', "\r\n").into_bytes());
    let long = with(reply("m3", 100), "message.content", json!([{"type": "text", "text": "x".repeat(3 << 20)}]));
    bytes.extend(lines(&[long]).into_bytes());
    bytes.extend(lines(&[reply("m4", 1000)]).replace("claude", "\u{1}").into_bytes());
    std::fs::write(&made.transcript, bytes).unwrap();
    assert_eq!(made.cost(), 1111.0);
}

#[test]
fn rows_behind_what_a_killed_writer_left_on_their_line_count() {
    let made = Made::new();
    let [one, two, three] = [1, 10, 100].map(|input| reply(&format!("m{input}"), input).to_string());
    let first_as_the_client_has_it = |row: &str| row.replacen('{', "{\"parentUuid\":null,", 1);
    let (one, two) = (first_as_the_client_has_it(&one), first_as_the_client_has_it(&two));
    made.append(&format!("{}{one}\n{}{two}{three}\n", &two[..two.len() / 2], "\0".repeat(20)));
    assert_eq!(made.cost(), 111.0);
    let latest = transcript::tail(&made.transcript).unwrap().latest.unwrap();
    assert_eq!(latest.usage.input, 100);
}

#[test]
fn nothing_that_the_client_made_up_counts() {
    let made = Made::new();
    made.append(&lines(&[
        reply("m1", 7),
        with(reply("m2", 100), "message.model", "<synthetic>".into()),
        reply("m1", 0),
        json!({"type": "progress", "data": {"message": {"message": {"id": "m9", "usage": {"input_tokens": 5}}}}}),
        json!({"type": "user", "toolUseResult": {"usage": {"input_tokens": 5}}, "message": {"content": "\"usage\""}}),
    ]));
    assert_eq!(made.cost(), 7.0);
}

#[test]
fn subagents_count_inline_and_in_their_files_but_once() {
    let made = Made::new();
    let side = |id: &str, input| with(reply(id, input), "isSidechain", true.into());
    made.append(&lines(&[reply("m1", 1), side("s1", 10)]));
    made.append_to(&made.agent("agent-a.jsonl"), &lines(&[side("s1", 10), side("s2", 100)]));
    made.append_to(&made.agent("notes.txt"), &lines(&[side("s9", 5)]));
    assert_eq!(made.cost(), 111.0);
    assert_eq!(made.cost(), 111.0);
    // Each file goes on from its own offset, and a message that is still being written is known when it goes on.
    made.append_to(&made.agent("agent-a.jsonl"), &lines(&[side("s2", 200), side("s3", 1000)]));
    made.append_to(&made.agent("agent-b.jsonl"), lines(&[side("s4", 10_000)]).trim_end());
    assert_eq!(made.cost(), 11_211.0);
    made.append_to(&made.agent("agent-b.jsonl"), "\n");
    assert_eq!(made.cost(), 11_211.0);
    // The agents of a workflow lie in a folder of their run.
    made.append_to(&made.agent("workflows/run-1/agent-a.jsonl"), &lines(&[side("w1", 100_000), side("s1", 10)]));
    made.append_to(&made.agent("workflows/run-2/agent-a.jsonl"), &lines(&[side("w2", 200_000)]));
    assert_eq!(made.cost(), 311_211.0);
    assert_eq!(made.cost(), 311_211.0);
    std::fs::remove_dir_all(made.agent("workflows")).unwrap();
    // A file that is gone has cost what it has; one that was rewritten is counted anew.
    std::fs::remove_file(made.agent("agent-b.jsonl")).unwrap();
    assert_eq!(made.cost(), 311_211.0);
    std::fs::write(made.agent("agent-a.jsonl"), lines(&[side("s5", 2)])).unwrap();
    assert_eq!(made.cost(), 13.0);
}

#[test]
fn rows_that_a_fork_copied_were_paid_elsewhere() {
    let made = Made::new();
    let copied = |id: &str, input| with(reply(id, input), "sessionId", OTHER.into());
    made.append(&lines(&[copied("m1", 1), copied("m2", 10)]));
    assert_eq!(made.cost(), 11.0, "no row is this session's own: all count");
    made.append(&lines(&[json!({"type": "mode", "mode": "normal", "sessionId": OWN})]));
    assert_eq!(made.cost(), 0.0, "the session has begun and not yet paid");
    made.append(&lines(&[reply("m3", 100), with(reply("m4", 1000), "sessionId", Value::Null)]));
    assert_eq!(made.cost(), 1100.0);
    made.append(&lines(&[with(reply("m5", 10_000), "sessionId", "".into())]));
    assert_eq!(made.cost(), 11_100.0, "an empty id names no other session");
    made.append(&lines(&[reply("m6", 1000)]));
    assert_eq!(transcript::tail(&made.transcript).unwrap().context(), Some(1000));
}

#[test]
fn rows_of_another_session_cost_nothing_wherever_they_come_last() {
    let mode = json!({"type": "mode", "mode": "normal", "sessionId": OWN});
    let foreign = lines(&[with(reply("m1", 1), "sessionId", OTHER.into())]);
    let made = Made::new();
    made.append(&lines(std::slice::from_ref(&mode)));
    made.append(foreign.trim_end());
    assert_eq!(made.cost(), 0.0, "in a row that is still being written");
    made.append("\n");
    assert_eq!(made.cost(), 0.0);
    let made = Made::new();
    made.append(&lines(&[mode]));
    made.append_to(&made.agent("agent-a.jsonl"), &foreign);
    assert_eq!(made.cost(), 0.0, "in a subagent's file");
    assert_eq!(made.cost(), 0.0);
}

#[test]
fn since_the_last_compaction_of_this_very_session() {
    let mut made = Made::new();
    made.append(&lines(&[reply("m1", 1)]));
    assert_eq!(made.update().unwrap().since_compaction, None);
    let at = made.sandbox.now_ms - 330_000;
    made.append(&lines(&[boundary(ago(&made, 330).as_str().unwrap()), reply("m2", 10)]));
    let side = |id: &str, seconds| {
        let row = with(reply(id, 100), "isSidechain", true.into());
        with(row, "timestamp", ago(&made, seconds))
    };
    made.append_to(
        &made.agent("agent-a.jsonl"),
        &lines(&[side("s1", 400), with(side("s2", 300), "message.usage.x", 1.into())]),
    );
    let totals = made.update().unwrap();
    assert_eq!(totals.since_compaction.unwrap().cost(&made.prices), 110.0);
    assert_eq!((totals.compactions, totals.compacted_ms), (1, Some(at)));
    assert_eq!(totals.boundary.unwrap().post_tokens, Some(2896));
    let since: Value =
        serde_json::from_str(&made.sandbox.read(made.sandbox.tmp.join(format!("claude-cost-sincecompact-{OWN}"))))
            .unwrap();
    assert_eq!(
        (&since["compactMs"], &since["cost"], &since["offset"]),
        (&json!(at), &json!(110.0), &made.stored()["offset"])
    );
    // A second one starts again; a subagent's own is none; another session's history is none of ours.
    made.compacted_ms = Some(5);
    let sub = with(boundary("2026-01-01T00:00:00.000Z"), "isSidechain", true.into());
    made.append(&lines(&[boundary(ago(&made, 20).as_str().unwrap()), sub, reply("m3", 7)]));
    let totals = made.update().unwrap();
    assert_eq!((totals.compactions, totals.since_compaction.unwrap().cost(&made.prices)), (2, 7.0));
}

#[test]
fn other_evidence_of_a_compaction_counts_where_the_transcript_tells_of_none() {
    let mut made = Made::new();
    let at = |id: &str, seconds| with(reply(id, 1), "timestamp", ago(&made, seconds));
    made.append(&lines(&[at("m1", 900), at("m2", 500), at("m3", 100)]));
    assert_eq!(made.update().unwrap().since_compaction, None);
    for (seconds, cost) in [(600, 2.0), (200, 1.0), (10, 0.0)] {
        let compacted_ms = Some(made.sandbox.now_ms - seconds * 1000);
        made.compacted_ms = compacted_ms;
        let totals = made.update().unwrap();
        assert_eq!((totals.compacted_ms, totals.compactions), (compacted_ms, 0));
        assert_eq!(totals.since_compaction.unwrap().cost(&made.prices), cost, "{seconds}");
        assert_eq!(totals.session.cost(&made.prices), 3.0);
    }
    // One who has no such evidence does not take it away from one who has.
    made.compacted_ms = None;
    assert!(made.update().unwrap().compacted_ms.is_some());
}

#[test]
fn the_last_hour_ends_now() {
    let made = Made::new();
    let at = |id: &str, seconds| with(reply(id, 1), "timestamp", ago(&made, seconds));
    made.append(&lines(&[at("m1", 4000), at("m2", 3000), at("m3", 60), at("m4", -9000), reply("m5", 1)]));
    let totals = made.update().unwrap();
    assert_eq!(totals.last_hour.cost(&made.prices), 3.0, "a clock that was ahead counts as now, no time as never");
    made.append(&lines(&[at("m3", 30), at("m3", 4000)]));
    assert_eq!(made.update().unwrap().last_hour.cost(&made.prices), 2.0);
}

#[test]
fn totals_of_the_original_are_taken_over_as_they_stand() {
    let made = Made::new();
    made.append(&lines(&[reply("m1", 1), boundary("2026-01-01T00:00:00.000Z"), reply("m2", 10)]));
    let size = std::fs::metadata(&made.transcript).unwrap().len();
    let path = made.sandbox.tmp.join(format!("claude-cost-{OWN}"));
    let theirs = json!({"offset": size, "cost": 42.5, "saved": 7, "input": 3, "output": 4, "cached": 5, "creation": 6});
    made.sandbox.write(&path, theirs.to_string());
    assert_eq!(made.cost(), 42.5);
    assert_eq!(made.sandbox.read(&path), theirs.to_string());
    made.append(&lines(&[reply("m2", 12), reply("m3", 100)]));
    let totals = made.update().unwrap();
    assert_eq!(
        totals.session.usage(),
        Usage { input: 3 + 2 + 100, output: 4, cache_read: 5, cache_creation: 6, ..Usage::default() }
    );
    assert_eq!(totals.session.cost(&made.prices), 42.5 + 102.0);
    assert_eq!(totals.compactions, 1);
    // An offset that is not past a line break, or past the end, is none of this file's.
    for offset in [json!(size - 3), json!(99_999_999), json!("12"), json!(-1), json!(0)] {
        made.sandbox.write(&path, json!({"offset": offset, "cost": 42.5}).to_string());
        assert_eq!(made.cost(), 1.0 + 12.0 + 100.0, "{offset}");
    }
}

#[test]
fn a_session_that_another_process_reads_at_the_same_time_is_counted_once() {
    let made = Made::new();
    let env = made.sandbox.env();
    let store = Store::new(&env);
    made.append(&lines(&[reply("m1", 1)]));
    let guard = store.lock(StateFile::Totals(&made.sid)).unwrap();
    assert_eq!(made.cost(), 1.0);
    assert_eq!(made.stored(), Value::Null, "nothing is written without the lock");
    drop(guard);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let made = &made;
            scope.spawn(move || {
                for i in 0..50 {
                    made.append(&lines(&[reply(&format!("t{n}-{i}"), 10)]));
                    made.update().unwrap();
                }
            });
        }
    });
    assert_eq!(made.cost(), 2001.0);
    made.append(&lines(&[reply("last", 1)]));
    // A program that another test starts at this moment holds our lock until it runs; then the next redraw stores.
    let stored = (0..500).any(|_| {
        assert_eq!(made.cost(), 2002.0);
        std::thread::sleep(std::time::Duration::from_millis(10));
        made.stored()["input"] == 2002
    });
    assert!(stored, "{}", made.stored());
}

#[test]
fn a_temp_folder_that_cannot_be_written_costs_nothing_but_time() {
    let mut made = Made::new();
    made.append(&lines(&[reply("m1", 1)]));
    let file = made.sandbox.root().join("no-folder");
    std::fs::write(&file, "").unwrap();
    made.sandbox.tmp = file;
    assert_eq!((made.cost(), made.cost()), (1.0, 1.0));
}

/// What is shown of a session. Dollars are rounded to a millionth, since sums of floats depend on their order.
fn figures(made: &Made) -> Value {
    let totals = made.update().unwrap_or_default();
    let spent = |spent: &totals::Spent| {
        let cost = (spent.cost(&Prices::default()) * 1e6).round();
        json!([format!("{:?}", spent.usage()), cost])
    };
    json!([
        spent(&totals.session),
        totals.since_compaction.as_ref().map(spent),
        spent(&totals.last_hour),
        totals.compactions,
        totals.boundary.is_some(),
    ])
}

/// One step in the life of a session, for the property below.
#[derive(Debug, Clone)]
enum Step {
    Reply { id: u8, input: u64, own: bool, side: bool, model: u8 },
    Agent { file: u8, id: u8, input: u64 },
    Compaction,
    Other(u16),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<u8>(), 0..1000u64, prop::bool::weighted(0.9), any::<bool>(), 0..3u8)
            .prop_map(|(id, input, own, side, model)| Step::Reply { id: id % 40, input, own, side, model }),
        3 => (0..3u8, any::<u8>(), 0..1000u64).prop_map(|(file, id, input)| Step::Agent { file, id: id % 40, input }),
        1 => Just(Step::Compaction),
        2 => (0..2000u16).prop_map(Step::Other),
    ]
}

impl Step {
    /// The row of this step, taken `n` steps after the first, and the file that it goes to.
    fn row(&self, made: &Made, n: usize) -> (PathBuf, String) {
        let at = ago(made, 7200 - n as i64 * 60);
        let (path, row) = match self {
            Step::Reply { id, input, own, side, model } => {
                let row = with(reply(&format!("m{id}"), *input), "isSidechain", (*side).into());
                let row = with(row, "sessionId", if *own { OWN } else { OTHER }.into());
                let model = ["claude-opus-4-8", "claude-haiku-4-5", "gpt"][usize::from(*model)];
                (made.transcript.clone(), with(row, "message.model", model.into()))
            }
            Step::Agent { file, id, input } => {
                let row = with(reply(&format!("m{id}"), *input), "isSidechain", true.into());
                (made.agent(&format!("agent-{file}.jsonl")), row)
            }
            Step::Compaction => (made.transcript.clone(), boundary("")),
            Step::Other(length) => (
                made.transcript.clone(),
                json!({"type": "user", "message": {"content": "\"usage\"".repeat(usize::from(*length))}}),
            ),
        };
        (path, format!("{}\n", with(row, "timestamp", at)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// However a session is cut into appends, reading it after each gives what reading it whole gives. Message ids come
    /// back within the last 64 here, as they do in life. One file grows at a time: in which of two files a message that
    /// is in both was written last cannot be told afterwards.
    #[test]
    fn any_chunking_of_appends_is_one_pass(
        steps in prop::collection::vec(any_step(), 1..50),
        cuts in prop::collection::vec(0.0..1.0f64, 0..40),
    ) {
        let (whole, pieces) = (Made::new(), Made::new());
        // Agents write after the conversation, so that the order of the whole pass is the order of the pieces.
        let of_agent = |(_, step): &(usize, &Step)| matches!(step, Step::Agent { .. });
        let (mut agents, main): (Vec<_>, Vec<_>) = steps.iter().enumerate().partition(of_agent);
        agents.sort_by_key(|(_, step)| match step { Step::Agent { file, .. } => *file, _ => 0 });
        let mut cuts = cuts.iter();
        for (n, step) in main.into_iter().chain(agents) {
            let (path, row) = step.row(&whole, n);
            whole.append_to(&path, &row);
            let (path, row) = step.row(&pieces, n);
            let mut rest = row.as_str();
            while let Some(cut) = cuts.next().filter(|_| !rest.is_empty()) {
                let (piece, left) = rest.split_at((cut * rest.len() as f64) as usize);
                pieces.append_to(&path, piece);
                pieces.update();
                rest = left;
            }
            pieces.append_to(&path, rest);
            pieces.update();
        }
        prop_assert_eq!(figures(&whole), figures(&pieces));
    }
}
