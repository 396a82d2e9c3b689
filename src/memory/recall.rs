//! Recall: what was said before, dug out of the raw transcript, which a compaction never shortens.
//!
//! The ranking is simple: messages that hold all the words come first, then those with more hits, then the newer ones.
//! A transcript can be hundreds of megabytes, so a row is parsed only if a word may be in it, and of a message no more is
//! kept than a snippet.

pub mod replay;
pub mod rows;
pub mod words;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::client::json::{self, Object, Raw};
use crate::client::transcript;
use crate::env;
use crate::text;
use rows::{Part, Role, Said};
use words::Word;

/// How many snippets are kept.
pub const SNIPPETS: usize = 10;
/// The longest snippet, in UTF-16 units.
pub const SNIPPET: usize = 240;
/// How much of a snippet stands before its first hit, in characters.
const LEAD: usize = 60;
/// How many hits of a part are looked at for the best place of its snippet.
const PLACES: usize = 200;

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// The best messages, best first; at most [`SNIPPETS`].
    pub hits: Vec<Hit>,
    /// Messages with at least one word.
    pub messages: usize,
    /// Messages with all words.
    pub with_all: usize,
    /// Compactions in the transcript.
    pub compactions: u64,
    /// Rows that were too long to be searched ([`transcript::LONGEST_LINE`]).
    pub too_long: u64,
}

/// One message that was found.
#[derive(Debug, Clone, Default)]
pub struct Hit {
    /// Who speaks, as text for the reader.
    pub who: String,
    /// When, epoch milliseconds.
    pub at_ms: Option<i64>,
    /// The compaction round it was said in, 1 before the first compaction; 0 in a subagent's own transcript.
    pub round: u64,
    /// How often the words stand in it.
    pub count: usize,
    /// Whether all of them do.
    pub all: bool,
    /// The text around a hit, in one line, cut and safe to show.
    pub snippet: String,
}

/// How many compactions a transcript holds.
pub fn compactions(path: &Path) -> u64 {
    let mark = memmem::Finder::new("compact_boundary");
    let mut count = 0;
    transcript::each_line(path, |line| {
        count += u64::from(mark.find(line).is_some() && is_boundary(line));
        ControlFlow::Continue(())
    });
    count
}

/// Whether a line marks a compaction of the main conversation.
fn is_boundary(line: &[u8]) -> bool {
    let text = json::decode(line);
    let Some(row) = Object::parse(&text) else { return false };
    let is = |key: &str, value: &str| row.str(key).is_some_and(|text| text == value);
    let sidechain = row.get("isSidechain").and_then(Raw::bool) == Some(true);
    is("type", "system") && is("subtype", "compact_boundary") && !sidechain
}

/// The transcripts of a session's subagents, by name.
pub fn subagents(transcript: &Path) -> Vec<PathBuf> {
    transcript::subagents(transcript).into_iter().map(|(_, path)| path).collect()
}

/// Looks for `words` in a transcript; with `all`, in what its subagents said too.
pub fn search(path: &Path, words: &[Word], all: bool) -> Found {
    let mut search = Search { words, sidechains: all, ..Search::new(words) };
    search.file(path, "");
    search.found.compactions = search.round - 1;
    if all {
        for path in subagents(path) {
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            search.file(&path, &format!("subagent {}, ", text::sanitize(name.trim_start_matches("agent-"))));
        }
    }
    search.finish()
}

struct Search<'w> {
    words: &'w [Word],
    sidechains: bool,
    found: Found,
    round: u64,
    /// What was found already: forks and retries write the same text again.
    seen: HashSet<u64>,
    /// The model's message whose rows are being read.
    open: Option<(String, Message)>,
    /// The best messages so far with their ranks, best first.
    best: Vec<(Rank, Hit)>,
    serial: u64,
}

/// All words, number of hits, time, place in the file.
type Rank = (bool, usize, i64, u64);

/// What is known of a message so far.
#[derive(Debug, Default)]
struct Message {
    /// Hits of each word.
    counts: Vec<usize>,
    /// How many different words the snippet's part holds.
    covered: usize,
    hit: Hit,
    serial: u64,
}

impl<'w> Search<'w> {
    fn new(words: &'w [Word]) -> Search<'w> {
        Search {
            words,
            sidechains: false,
            found: Found::default(),
            round: 1,
            seen: HashSet::new(),
            open: None,
            best: Vec::new(),
            serial: 0,
        }
    }

    fn file(&mut self, path: &Path, who: &str) {
        let mark = memmem::Finder::new("compact_boundary");
        // The rounds of a subagent are not those of the conversation.
        let main = who.is_empty();
        let too_long = transcript::each_line(path, |line| {
            if self.words.iter().any(|word| word.may_be_in(line)) {
                self.row(line, who);
            }
            self.round += u64::from(main && mark.find(line).is_some() && is_boundary(line));
            ControlFlow::Continue(())
        });
        self.found.too_long += too_long;
        self.close();
    }

    fn row(&mut self, line: &[u8], who: &str) {
        let text = json::decode(line);
        let Some(said) = Said::of(&text) else { return };
        if said.sidechain && !self.sidechains {
            return;
        }
        let assistant = !matches!(said.parts.first(), None | Some(Part { role: Role::User | Role::Result(_), .. }));
        let id = said.message.filter(|_| assistant);
        let mut message = match self.open.take() {
            Some((open, message)) if Some(open.as_str()) == id => message,
            Some(other) if id.is_none() => {
                // A tool's answer stands between two rows of the message that called it.
                self.open = Some(other);
                Message::default()
            }
            other => {
                self.open = other;
                self.close();
                Message::default()
            }
        };
        message.counts.resize(self.words.len(), 0);
        for part in &said.parts {
            self.part(part, &said, who, &mut message);
        }
        match id {
            Some(id) => self.open = Some((id.to_string(), message)),
            None => self.rank(message),
        }
    }

    fn part(&mut self, part: &Part<'_>, said: &Said<'_>, who: &str, message: &mut Message) {
        let mut counts = vec![0; self.words.len()];
        let mut places: Vec<(Range<usize>, usize)> = Vec::new();
        for (n, word) in self.words.iter().enumerate() {
            let mut at = 0;
            while let Some(hit) = word.find(&part.text, at) {
                at = hit.end;
                counts[n] += 1;
                if counts[n] <= PLACES {
                    places.push((hit, n));
                }
            }
        }
        if places.is_empty() || !self.is_new(part) {
            return;
        }
        message.counts.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count);
        if message.hit.count == 0 {
            self.serial += 1;
            message.serial = self.serial;
        }
        let hit = &mut message.hit;
        hit.count = message.counts.iter().sum();
        hit.all = message.counts.iter().all(|count| *count > 0);
        let at_ms = said.timestamp.and_then(env::parse_iso);
        let covered = counts.iter().filter(|count| **count > 0).count();
        let rank = (hit.all, hit.count, at_ms.unwrap_or(0), message.serial);
        let worth = self.best.len() < SNIPPETS || self.best.last().is_some_and(|(worst, _)| rank > *worst);
        if covered > message.covered && worth {
            message.covered = covered;
            hit.at_ms = at_ms;
            hit.round = if who.is_empty() { self.round } else { 0 };
            hit.who =
                format!("{}{}", if said.sidechain && who.is_empty() { "subagent, " } else { who }, name(&part.role));
            hit.snippet = snippet(&part.text, &mut places);
        }
    }

    fn is_new(&mut self, part: &Part<'_>) -> bool {
        let mut hasher = DefaultHasher::new();
        part.text.hash(&mut hasher);
        self.seen.insert(hasher.finish())
    }

    fn close(&mut self) {
        if let Some((_, message)) = self.open.take() {
            self.rank(message);
        }
    }

    fn rank(&mut self, message: Message) {
        let hit = message.hit;
        if hit.count == 0 {
            return;
        }
        self.found.messages += 1;
        self.found.with_all += usize::from(hit.all);
        let rank: Rank = (hit.all, hit.count, hit.at_ms.unwrap_or(0), message.serial);
        let at = self.best.partition_point(|(other, _)| *other > rank);
        if at < SNIPPETS && !hit.snippet.is_empty() {
            self.best.insert(at, (rank, hit));
            self.best.truncate(SNIPPETS);
        }
    }

    fn finish(mut self) -> Found {
        self.found.hits = self.best.into_iter().map(|(_, hit)| hit).collect();
        self.found
    }
}

fn name(role: &Role<'_>) -> String {
    match role {
        Role::User => "user".into(),
        Role::Assistant => "assistant".into(),
        Role::Thinking => "assistant, thinking".into(),
        Role::Call(tool) => format!("assistant, calling {}", text::sanitize(tool)),
        Role::Result("") => "tool result".into(),
        Role::Result(id) => format!("tool result {}", text::sanitize(id)),
    }
}

/// The text around the place where most different words stand together, in one line of at most [`SNIPPET`] units.
fn snippet(part: &str, places: &mut [(Range<usize>, usize)]) -> String {
    places.sort_by_key(|(hit, _)| hit.start);
    let room = SNIPPET - LEAD;
    let different = |from: usize| {
        let near = places[from..].iter().take_while(|(hit, _)| hit.end <= places[from].0.start + room);
        near.map(|(_, word)| word).collect::<HashSet<_>>().len()
    };
    // Of equals, the first.
    let best = (0..places.len()).rev().max_by_key(|at| different(*at)).unwrap_or(0);
    let hit = places[best].0.start;
    let (lead, cut) = lead(&part[..hit]);
    let after: String = one_line(part[hit..].chars().take(SNIPPET * 4)).into_iter().collect();
    let whole = format!("{}{lead}{after}", if cut { "…" } else { "" });
    text::cut(&text::sanitize(whole.trim()), SNIPPET).into_owned()
}

/// What of the text before a hit is shown, from a word's start if one is near, and whether there is more of it.
fn lead(before: &str) -> (String, bool) {
    let near: Vec<char> = before.chars().rev().take(LEAD * 4).collect();
    let near_bytes: usize = near.iter().map(|c| c.len_utf8()).sum();
    let line = one_line(near.into_iter().rev());
    let cut = near_bytes < before.len() || line.len() > LEAD;
    let kept: String = line[line.len().saturating_sub(LEAD)..].iter().collect();
    match kept.split_once(' ') {
        Some((torn, rest)) if cut && torn.chars().count() < LEAD / 2 => (rest.into(), cut),
        _ => (kept, cut),
    }
}

/// Characters with white space collapsed.
fn one_line(chars: impl Iterator<Item = char>) -> Vec<char> {
    let mut out: Vec<char> = Vec::new();
    for c in chars {
        match c.is_whitespace() {
            true if out.last() == Some(&' ') => {}
            true => out.push(' '),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
