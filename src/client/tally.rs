//! The sums behind the totals: each message once, by model, for the session, since the last compaction, and by minute.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::transcript::Boundary;
use super::usage::Usage;
use crate::store::records::totals::{BoundaryRecord, ByModel, Counted, Detail, Sums, Tokens};
use crate::text::cut_utf16;

/// How many of the last messages are stored.
const KEPT: usize = 64;
/// How many are remembered within one pass; a transcript of 200 MB has about 12,000 messages.
const REMEMBERED: usize = 16 << 10;
/// Models that are told apart, the last of them standing for all others.
const MODELS: usize = 64;
const MODEL_CHARS: usize = 200;

const MINUTE_MS: i64 = 60_000;
const HOUR: i64 = 60;

/// A row that counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// A reply of the API.
    Used(Reply),
    /// A compaction of the conversation.
    Compacted(Boundary),
}

/// What a reply used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// A hash of the message's id; none when it has none and so counts by itself.
    pub id: Option<u64>,
    pub usage: Usage,
    pub model: String,
    /// Whether the row names this session, names another, or none.
    pub own: Option<bool>,
    pub at_ms: Option<i64>,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the transcript: its place in the file says whether it came before a compaction.
    Transcript,
    /// In a subagent's file, known by a hash of its name: its time says that.
    Agent(u32),
}

/// Counts rows in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The sums; `recent` in it is filled when they are stored.
    pub detail: Detail,
    seen: HashMap<u64, (u64, Counted)>,
    next: u64,
    now_minute: i64,
}

impl Tally {
    /// Goes on from what was stored; `now_ms` is the moment that the last hour ends at.
    pub fn resume(mut detail: Detail, now_ms: i64) -> Tally {
        let recent = std::mem::take(&mut detail.recent);
        let mut tally = Tally { detail, now_minute: now_ms.div_euclid(MINUTE_MS), ..Tally::default() };
        for counted in recent {
            tally.remember(counted);
        }
        for sums in [&mut tally.detail.own, &mut tally.detail.foreign] {
            sums.minutes.retain(|minute, _| *minute > tally.now_minute - HOUR);
        }
        tally
    }

    pub fn add(&mut self, event: Event, source: Source) {
        match event {
            Event::Used(reply) => self.count(reply, source),
            Event::Compacted(boundary) if source == Source::Transcript => {
                self.detail.compactions += 1;
                self.detail.own.since.clear();
                self.detail.foreign.since.clear();
                self.detail.boundary = Some(record_of(boundary));
            }
            Event::Compacted(_) => {} // a subagent's own
        }
    }

    fn count(&mut self, reply: Reply, source: Source) {
        self.detail.own_seen |= reply.own == Some(true);
        let counted = Counted {
            id: reply.id.unwrap_or_default(),
            source: match source {
                Source::Transcript => 0,
                Source::Agent(name) => name,
            },
            model: self.model(&reply.model),
            own: reply.own != Some(false),
            epoch: self.epoch(reply.at_ms, source),
            // A clock that was ahead counts as now.
            minute: reply
                .at_ms
                .map(|at| at.div_euclid(MINUTE_MS).min(self.now_minute))
                .filter(|minute| *minute > self.now_minute - HOUR),
            tokens: tokens_of(&reply.usage),
        };
        if let Some((_, old)) = reply.id.and_then(|id| self.seen.remove(&id)) {
            self.apply(&old, u64::wrapping_sub);
        }
        self.apply(&counted, u64::wrapping_add);
        if reply.id.is_some() {
            self.remember(counted);
        }
    }

    /// The number of the compaction that a row came after, 0 for none; none if it came before the last one.
    fn epoch(&self, at_ms: Option<i64>, source: Source) -> Option<u64> {
        let last = match (&self.detail.boundary, source) {
            (Some(_), Source::Transcript) => None,
            (Some(boundary), Source::Agent(_)) => boundary.at_ms,
            (None, _) => self.detail.compacted_ms,
        };
        let before = last.is_some_and(|last| at_ms.is_none_or(|at| at < last));
        (!before).then_some(self.detail.compactions)
    }

    /// Adds a message to every sum it belongs to, or takes it back. Sums wrap, so that what is taken back is what was
    /// added even where a hostile count runs over.
    fn apply(&mut self, counted: &Counted, change: fn(u64, u64) -> u64) {
        let current = self.detail.compactions;
        let sums = if counted.own { &mut self.detail.own } else { &mut self.detail.foreign };
        let change = |sums: &mut ByModel| {
            let sum = sums.entry(counted.model).or_default();
            for (sum, tokens) in sum.iter_mut().zip(counted.tokens) {
                *sum = change(*sum, tokens);
            }
            if *sum == Tokens::default() {
                sums.remove(&counted.model);
            }
        };
        change(&mut sums.session);
        if counted.epoch == Some(current) {
            change(&mut sums.since);
        }
        if let Some(minute) = counted.minute.filter(|minute| *minute > self.now_minute - HOUR) {
            let by_model = sums.minutes.entry(minute).or_default();
            change(by_model);
            if by_model.is_empty() {
                sums.minutes.remove(&minute);
            }
        }
    }

    fn model(&mut self, name: &str) -> usize {
        let name = cut_utf16(name, MODEL_CHARS);
        let models = &mut self.detail.models;
        models.iter().position(|known| known == name).unwrap_or_else(|| {
            if models.len() < MODELS {
                models.push(if models.len() < MODELS - 1 { name.to_owned() } else { String::new() });
            }
            models.len() - 1
        })
    }

    fn remember(&mut self, counted: Counted) {
        self.next += 1;
        self.seen.insert(counted.id, (self.next, counted));
        if self.seen.len() > 2 * REMEMBERED {
            let oldest = self.next - REMEMBERED as u64;
            self.seen.retain(|_, (order, _)| *order > oldest);
        }
    }

    /// What is stored: the sums, and the last messages, among them the last one of as many files as half of them allows,
    /// since that is the one that another row may follow.
    pub fn into_detail(mut self) -> Detail {
        let mut all: Vec<(u64, Counted)> = self.seen.into_values().collect();
        all.sort_unstable_by_key(|(order, _)| std::cmp::Reverse(*order));
        let mut files = HashSet::new();
        let (last, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, counted)| files.len() < KEPT / 2 && files.insert(counted.source));
        let room = KEPT - last.len();
        let mut kept: Vec<_> = last.into_iter().chain(others.into_iter().take(room)).collect();
        kept.sort_unstable_by_key(|(order, _)| *order);
        self.detail.recent = kept.into_iter().map(|(_, counted)| counted).collect();
        self.detail
    }
}

/// The sums that are shown: this session's own rows, or all of them if none names this session.
pub(crate) fn shown(detail: &Detail, now_ms: i64) -> (ByModel, ByModel, ByModel) {
    let all = !detail.own_seen;
    let foreign = Some(&detail.foreign).filter(|_| all);
    let parts: Vec<&Sums> = std::iter::once(&detail.own).chain(foreign).collect();
    let oldest = now_ms.div_euclid(MINUTE_MS) - HOUR;
    let minutes =
        |sums: &Sums| sums.minutes.iter().filter(|(at, _)| **at > oldest).map(|(_, sum)| sum.clone()).collect();
    (
        merge(parts.iter().map(|sums| sums.session.clone()).collect()),
        merge(parts.iter().map(|sums| sums.since.clone()).collect()),
        merge(parts.iter().flat_map(|sums| -> Vec<ByModel> { minutes(sums) }).collect()),
    )
}

fn merge(parts: Vec<ByModel>) -> ByModel {
    let mut sums: BTreeMap<usize, Tokens> = BTreeMap::new();
    for (model, tokens) in parts.into_iter().flatten() {
        for (sum, tokens) in sums.entry(model).or_default().iter_mut().zip(tokens) {
            *sum = sum.saturating_add(tokens);
        }
    }
    sums
}

fn tokens_of(usage: &Usage) -> Tokens {
    let one_hour = usage.cache_creation_1h.min(usage.cache_creation);
    [usage.input, usage.output, usage.cache_creation - one_hour, one_hour, usage.cache_read]
}

/// The sums of a model as a usage.
pub(crate) fn usage_of(tokens: Tokens) -> Usage {
    let [input, output, five_minutes, one_hour, cache_read] = tokens;
    Usage { input, output, cache_read, ..Usage::default() }.with_writes(0, (five_minutes, one_hour))
}

fn record_of(boundary: Boundary) -> BoundaryRecord {
    let Boundary { at_ms, pre_tokens, post_tokens, trigger } = boundary;
    BoundaryRecord { at_ms, pre_tokens, post_tokens, trigger }
}
