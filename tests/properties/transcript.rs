//! Transcripts: however one grows, reading it bit by bit gives what reading it whole gives, and that is what counting
//! its rows by hand gives; and what is dug out of it may be shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use si::Env;
use si::client::json::{self, Object, Raw};
use si::client::totals::{self, Session, Totals};
use si::client::usage::Usage;
use si::client::{thinking, transcript};
use si::config::Prices;
use si::memory::recall::{self, replay, words::Word};
use si::store::{Sid, Store};

use super::{assert_printable, dice, in_world};

/// The session whose transcript it is.
pub const OWN: &str = "5e55a0b1-0000-4000-8000-000000000001";
/// As many messages are remembered from one reading to the next.
const REMEMBERED: usize = 64;
/// The most that a token count may be for sums to be compared.
const SANE: u64 = 1 << 40;

/// The input is a transcript.
pub fn check(data: &[u8]) {
    in_world(|env| {
        let path = env.home.as_deref().expect("a home").join(format!("{OWN}.jsonl"));
        let whole = in_pieces(env, &path, data);
        by_hand(&path, data, whole.as_ref());
        dug_out(&path, data);
    });
}

fn update(env: &Env, sid: &str, path: &Path) -> Option<Totals> {
    let session = Session { sid: &Sid::new(sid), id: Some(OWN), transcript: path, compacted_ms: None };
    totals::update(&Store::new(env), env, session, &Prices::default())
}

/// Appends the transcript in pieces, cut anywhere, reads it after each, and compares with one reading at the end.
fn in_pieces(env: &Env, path: &Path, data: &[u8]) -> Option<Totals> {
    let mut roll = dice(data);
    let mut cuts: Vec<usize> = (0..roll(6)).map(|_| roll(data.len() + 1)).collect();
    cuts.push(data.len());
    cuts.sort_unstable();
    let mut file = std::fs::File::create(path).expect("a file");
    let (mut from, mut pieces) = (0, None);
    for to in cuts {
        file.write_all(&data[from..to]).expect("it is written");
        pieces = update(env, "pieces", path);
        from = to;
    }
    let whole = update(env, "whole", path);
    if data.iter().filter(|byte| **byte == b'\n').count() < REMEMBERED {
        assert_eq!(pieces, whole, "{}", data.escape_ascii());
    }
    assert_eq!(update(env, "whole", path), whole, "a second reading changes nothing");
    whole
}

/// What counting row by row with a plain reader gives.
#[derive(Default)]
struct Count {
    by_id: HashMap<String, (Usage, bool)>,
    nameless: Vec<(Usage, bool)>,
    own_seen: bool,
    compactions: u64,
    /// The size of the context by the last row that tells it.
    context: Option<u64>,
    /// Whether all rows were such that there is one answer.
    sure: bool,
}

impl Count {
    fn of(data: &[u8]) -> Count {
        let mut count = Count { sure: true, ..Count::default() };
        let unfinished = data.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        for (at, line) in data.split(|byte| *byte == b'\n').map(|line| (line.as_ptr(), line)) {
            let holds = |needle: &str| memchr::memmem::find(line, needle.as_bytes()).is_some();
            let wanted = holds("\"usage\"") || holds("\"compact_boundary\"");
            if wanted || holds(OWN) {
                match Object::parse(&json::decode(line)) {
                    Some(row) => count.row(&row, wanted, holds(OWN) && at != unfinished.as_ptr()),
                    // What is no JSON may be read as far as it looks like a row, or not at all.
                    None => count.sure = false,
                }
            }
        }
        count
    }

    fn row(&mut self, row: &Object<'_>, wanted: bool, names_own: bool) {
        let named =
            |object: &Object<'_>, key: &str| object.str(key).filter(|name| !name.is_empty()).map(Cow::into_owned);
        let session = named(row, "sessionId");
        let own = session.as_deref() == Some(OWN);
        self.own_seen |= own && names_own;
        let sidechain = row.get("isSidechain").and_then(Raw::bool) == Some(true);
        if !wanted {
            return;
        }
        if row.str("subtype").as_deref() == Some("compact_boundary") {
            if !sidechain {
                self.compactions += 1;
                self.context = row.at(&["compactMetadata", "postTokens"]).and_then(Raw::u64);
            }
            return;
        }
        let message = row.get("message").and_then(Raw::object).unwrap_or_default();
        let Some(usage) = message.get("usage").and_then(Raw::object) else { return };
        if !matches!(row.str("type").as_deref(), None | Some("assistant" | "user")) {
            return;
        }
        let usage = Usage::parse(&usage);
        if message.str("model").as_deref() == Some("<synthetic>") {
            return;
        }
        if !sidechain && usage.context() > 0 {
            self.context = Some(usage.context());
        }
        if usage.total() == 0 {
            return;
        }
        self.sure &= usage.total() < SANE;
        self.own_seen |= own;
        let counted = (usage, own || session.is_none());
        match named(&message, "id").or_else(|| named(row, "uuid")) {
            Some(id) => drop(self.by_id.insert(id, counted)),
            None => self.nameless.push(counted),
        }
    }

    /// Input, output, cache writes and reads of the rows that count.
    fn sums(&self) -> [u64; 4] {
        let all = self.by_id.values().chain(&self.nameless).filter(|(_, own)| *own || !self.own_seen);
        all.fold([0; 4], |[input, output, writes, reads], (usage, _)| {
            [input + usage.input, output + usage.output, writes + usage.cache_creation, reads + usage.cache_read]
        })
    }
}

fn by_hand(path: &Path, data: &[u8], whole: Option<&Totals>) {
    let count = Count::of(data);
    assert_eq!(whole.is_some(), !data.is_empty());
    let Some(whole) = whole.filter(|_| count.sure) else { return };
    let usage = whole.session.usage();
    let sums = [usage.input, usage.output, usage.cache_creation, usage.cache_read];
    assert_eq!(sums, count.sums(), "{}", data.escape_ascii());
    assert_eq!(whole.compactions, count.compactions, "{}", data.escape_ascii());
    let tail = transcript::tail(path).expect("it can be read");
    assert_eq!(tail.context(), count.context, "{}", data.escape_ascii());
}

/// What a person is shown of it.
fn dug_out(path: &Path, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let topic: Vec<Word> = text.split(|c: char| !c.is_alphanumeric()).filter_map(Word::new).take(3).collect();
    let found = recall::search(path, &topic, true);
    assert!(found.hits.len() <= recall::SNIPPETS && found.hits.len() <= found.messages);
    for hit in &found.hits {
        assert_printable("who speaks", &hit.who);
        assert_printable("a snippet", &hit.snippet);
        assert!(
            !hit.snippet.contains('\n') && si::text::utf16_len(&hit.snippet) <= recall::SNIPPET,
            "{:?}",
            hit.snippet
        );
    }
    let _ = recall::compactions(path);
    for id in text.split('"').filter(|word| word.starts_with("toolu")).take(3) {
        let _ = replay::tool_result(path, id);
    }
    let thought = thinking::recent(path, thinking::RECENT_TURNS, thinking::SCAN_BYTES);
    assert!(thought.recent <= thought.total && (thought.turns == 0) == thought.last_turn_ago.is_none());
    let _ = transcript::first_timestamp_ms(path);
    let _ = transcript::first_usage_after(path, 0, |_| true);
}
