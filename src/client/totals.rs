//! Totals of a session: what its transcript and its subagents' files add up to, read once and then only where they grew.
//!
//! The stored totals end just past a line break, so that a row is counted when it is whole, and once. Whether the stored
//! offset still belongs to the file is told by its inode and a hash of the bytes before the offset; if not, or if the
//! file is shorter, the reading starts again. Prices are no part of what is stored: they are applied to the sums by model
//! when somebody asks.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lines::{self, Needles};
use super::pieces;
use super::pricing;
use super::row::{NEEDLES, Row, Says};
use super::tally::{self, Event, Reply, Source, Tally};
use super::transcript::{self, Boundary};
use super::usage::Usage;
use crate::config;
use crate::env::Env;
use crate::store::records::totals::{Base, ByModel, Detail, Place, SinceCompactRecord, TotalsRecord};
use crate::store::{Sid, StateFile, Store, file};

/// The bytes before the offset that a file is known by: more than one row, since rows of one session end alike.
const KNOWN_BY: u64 = 4 << 10;

/// Tokens by model, and what they cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spent {
    models: Vec<(String, Usage)>,
    base: Base,
}

impl Spent {
    fn new(sums: ByModel, names: &[String], base: Base) -> Spent {
        let named = |(model, tokens): (usize, _)| Some((names.get(model)?.clone(), tally::usage_of(tokens)));
        Spent { models: sums.into_iter().filter_map(named).collect(), base }
    }

    /// Dollars: each model at its own prices, except where the user set one.
    pub fn cost(&self, user: &config::Prices) -> f64 {
        let cost = |(model, usage): &(String, Usage)| pricing::lookup(model).prices.with(user).cost(usage);
        self.base.cost + self.models.iter().map(cost).sum::<f64>()
    }

    /// Dollars that cache reads saved against the price of uncached input.
    pub fn saved(&self, user: &config::Prices) -> f64 {
        let saved = |(model, usage): &(String, Usage)| pricing::lookup(model).prices.with(user).saved(usage);
        self.base.saved + self.models.iter().map(saved).sum::<f64>()
    }

    /// Tokens of all models together.
    pub fn usage(&self) -> Usage {
        let base = tally::usage_of(self.base.tokens);
        self.models.iter().fold(base, |sum, (_, usage)| sum.plus(usage))
    }
}

/// What a session has used so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// The whole session.
    pub session: Spent,
    /// Since its last compaction; none before the first.
    pub since_compaction: Option<Spent>,
    /// The 60 minutes up to now.
    pub last_hour: Spent,
    /// How many compactions there were.
    pub compactions: u64,
    /// The last of them, as the transcript tells it.
    pub boundary: Option<Boundary>,
    /// When the last compaction was, epoch milliseconds, by whatever evidence there is.
    pub compacted_ms: Option<i64>,
}

impl Totals {
    fn new(detail: &Detail, now_ms: i64) -> Totals {
        let (session, since, last_hour) = tally::shown(detail, now_ms);
        let spent = |sums, base| Spent::new(sums, &detail.models, base);
        let compacted = detail.boundary.is_some() || detail.compacted_ms.is_some();
        Totals {
            session: spent(session, detail.base.unwrap_or_default()),
            since_compaction: compacted.then(|| spent(since, Base::default())),
            last_hour: spent(last_hour, Base::default()),
            compactions: detail.compactions,
            boundary: detail.boundary.clone().map(Boundary::from),
            compacted_ms: compacted_ms(detail),
        }
    }
}

/// The session whose totals are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// Its id as file names carry it.
    pub sid: &'a Sid,
    /// Its id as rows carry it: rows of another session, which a fork copied, were paid there.
    pub id: Option<&'a str>,
    /// Its transcript.
    pub transcript: &'a Path,
    /// When it was compacted last by other evidence, epoch milliseconds: counts where the transcript tells of none. None
    /// leaves it at what was known before.
    pub compacted_ms: Option<i64>,
}

/// Brings the stored totals of a session up to the end of its transcript and returns them. A last row that is complete
/// but for its line break counts in what is returned, not in what is stored. None when the transcript cannot be read or
/// is empty.
///
/// `user` are the prices that the user set; they decide only the dollar figures that are stored for other readers.
pub fn update(store: &Store<'_>, env: &Env, session: Session<'_>, user: &config::Prices) -> Option<Totals> {
    let (file, size) = transcript::open(session.transcript)?;
    if size == 0 {
        return None;
    }
    let agents = agent_files(session.transcript);
    let before = store.read(StateFile::Totals(session.sid));
    let record: Option<TotalsRecord> = before.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
    let mut reading = Reading { session, now_ms: env.now_ms, tally: Tally::default(), unfinished: Vec::new() };
    let grew = reading
        .go_on(record.as_ref(), &file, size, &agents)
        .or_else(|| reading.take_over(record.as_ref()?, &file, size, &agents))
        .or_else(|| reading.start(&file, size, &agents))?;
    let detail = reading.tally.into_detail();
    if grew {
        let record =
            TotalsRecord { extra: record.map(|record| record.extra).unwrap_or_default(), ..TotalsRecord::default() };
        save(store, env, session.sid, before.as_deref(), with_figures(record, &detail, env.now_ms, user), user);
    }
    if reading.unfinished.is_empty() {
        return Some(Totals::new(&detail, env.now_ms));
    }
    let looked = looked_up_to(&detail);
    let mut tally = Tally::resume(detail, env.now_ms);
    for (event, source) in reading.unfinished {
        tally.add(event, source);
    }
    find_own(&mut tally.detail, session.id, &file, looked);
    Some(Totals::new(&tally.detail, env.now_ms))
}

/// The totals as they were last stored, without reading the transcript.
pub fn stored(store: &Store<'_>, env: &Env, sid: &Sid) -> Option<Totals> {
    let record: TotalsRecord = store.read_json(StateFile::Totals(sid))?;
    let detail = match &record.detail {
        Some(detail) if detail.place.offset == record.offset => detail.clone(),
        _ => Detail { base: Some(base_of(&record)), ..Detail::default() },
    };
    Some(Totals::new(&detail, env.now_ms))
}

/// When the last compaction was.
fn compacted_ms(detail: &Detail) -> Option<i64> {
    detail.boundary.as_ref().map_or(detail.compacted_ms, |boundary| boundary.at_ms)
}

/// What the original had counted.
fn base_of(record: &TotalsRecord) -> Base {
    let tokens = [record.input, record.output, record.creation, 0, record.cached];
    Base { cost: record.cost, saved: record.saved, tokens }
}

fn with_figures(record: TotalsRecord, detail: &Detail, now_ms: i64, user: &config::Prices) -> TotalsRecord {
    let session = Totals::new(detail, now_ms).session;
    let usage = session.usage();
    TotalsRecord {
        offset: detail.place.offset,
        cost: session.cost(user),
        saved: session.saved(user),
        input: usage.input,
        output: usage.output,
        cached: usage.cache_read,
        creation: usage.cache_creation,
        detail: Some(detail.clone()),
        ..record
    }
}

/// Stores the totals, unless another process is at it or was: the next reading makes up for it, and none is waited for.
fn save(store: &Store<'_>, env: &Env, sid: &Sid, before: Option<&[u8]>, record: TotalsRecord, user: &config::Prices) {
    let Ok(guard) = store.lock_within(StateFile::Totals(sid), Duration::ZERO) else { return };
    if guard.store().read(StateFile::Totals(sid)).as_deref() != before {
        return;
    }
    // A disk that is full costs the next reading some time, nothing else.
    let _ = guard.write_json(StateFile::Totals(sid), &record);
    let Some(detail) = record.detail else { return };
    if let (Some(compact_ms), Some(since)) = (compacted_ms(&detail), Totals::new(&detail, env.now_ms).since_compaction)
    {
        let since =
            SinceCompactRecord { compact_ms, offset: record.offset, cost: since.cost(user), saved: since.saved(user) };
        let _ = guard.write_json(StateFile::TotalsSinceCompact(sid), &since); // likewise
    }
}

/// One subagent's file as it is now.
struct Agent {
    name: String,
    path: PathBuf,
    size: u64,
    ino: u64,
}

/// The files of the session's subagents, by name.
fn agent_files(transcript: &Path) -> Vec<Agent> {
    let agent = |(name, path): (String, PathBuf)| {
        let meta = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Agent { name, path, size: meta.len(), ino: meta.ino() })
    };
    transcript::subagents(transcript).into_iter().filter_map(agent).collect()
}

/// A pass over what is new.
struct Reading<'a> {
    session: Session<'a>,
    now_ms: i64,
    tally: Tally,
    /// Rows at the ends of files that have no line break yet.
    unfinished: Vec<(Event, Source)>,
}

impl Reading<'_> {
    /// Goes on from stored totals of ours, if they belong to these files; says whether there was anything new.
    fn go_on(&mut self, record: Option<&TotalsRecord>, file: &File, size: u64, agents: &[Agent]) -> Option<bool> {
        let record = record?;
        let detail = record.detail.as_ref().filter(|detail| detail.place.offset == record.offset)?;
        let known = |agent: &Agent| detail.agents.get(&agent.name).is_none_or(|place| is_same_agent(place, agent));
        let compacted_ms = self.session.compacted_ms.or(detail.compacted_ms);
        let moved = detail.boundary.is_none() && detail.compacted_ms != compacted_ms;
        if moved || !is_same(&detail.place, file, size) || !agents.iter().all(known) {
            return None;
        }
        self.tally = Tally::resume(detail.clone(), self.now_ms);
        self.read_all(file, size, agents)
    }

    /// Goes on from totals that the original stored: its figures stand for what it read, which is read once more for all
    /// that it did not keep.
    fn take_over(&mut self, record: &TotalsRecord, file: &File, size: u64, agents: &[Agent]) -> Option<bool> {
        let offset = record.offset;
        let whole = (1..=size).contains(&offset);
        if record.detail.is_some() || !whole || lines::next_line(file, offset, size).ok()? != offset {
            return None;
        }
        self.restart();
        self.read(file, Source::Transcript, 0, offset).ok()?;
        let detail = &mut self.tally.detail;
        detail.base = Some(base_of(record));
        detail.own.session.clear();
        detail.foreign.session.clear();
        detail.place = place(file, offset)?;
        self.read_all(file, size, agents)
    }

    fn start(&mut self, file: &File, size: u64, agents: &[Agent]) -> Option<bool> {
        self.restart();
        self.read_all(file, size, agents)?;
        Some(true)
    }

    fn restart(&mut self) {
        let detail = Detail { compacted_ms: self.session.compacted_ms, ..Detail::default() };
        self.tally = Tally::resume(detail, self.now_ms);
        self.unfinished.clear();
    }

    /// Reads what is new in the transcript and then in the subagents' files; says whether anything was.
    fn read_all(&mut self, file: &File, size: u64, agents: &[Agent]) -> Option<bool> {
        let from = self.tally.detail.place.offset;
        let looked = looked_up_to(&self.tally.detail);
        let end = self.read(file, Source::Transcript, from, size).ok()?;
        let mut grew = end > from;
        if grew {
            self.tally.detail.place = place(file, end)?;
        }
        for agent in agents {
            let from = self.tally.detail.agents.get(&agent.name).map_or(0, |place| place.offset);
            if agent.size == from {
                continue;
            }
            // One that cannot be read now is read when it can.
            let Some((file, size)) = transcript::open(&agent.path) else { continue };
            let source = Source::Agent(hash(agent.name.as_bytes()) as u32 | 1);
            let (Ok(end) | Err(end)) = self.read(&file, source, from, size);
            if let Some(place) = Some(end).filter(|end| *end > from).and_then(|end| place(&file, end)) {
                self.tally.detail.agents.insert(agent.name.clone(), place);
                grew = true;
            }
        }
        find_own(&mut self.tally.detail, self.session.id, file, looked);
        Some(grew)
    }

    /// Counts the rows between two offsets, in the order of the file, and returns the offset past the last whole row; an
    /// error, should the file not be readable to its end, with the offset up to which rows were counted.
    fn read(&mut self, file: &File, source: Source, from: u64, to: u64) -> Result<u64, u64> {
        let own = self.session.id;
        let tally = &mut self.tally;
        let count = |events: Vec<Event>| events.into_iter().for_each(|event| tally.add(event, source));
        let end = pieces::read(file, from, to, |from, to| events(file, from, to, own), count)?;
        if end < to {
            let all = Needles::new(&NEEDLES);
            let unfinished = &mut self.unfinished;
            let add = |line: &[u8]| {
                unfinished.extend(Row::all(line).filter_map(|row| event(row, own)).map(|event| (event, source)));
                ControlFlow::Break(())
            };
            lines::scan_back(file, end, to, &all, add).map_err(|_| end)?;
        }
        Ok(end)
    }
}

/// Up to where rows of the session's own were looked for: nobody does before the first foreign reply.
fn looked_up_to(detail: &Detail) -> u64 {
    if detail.foreign.session.is_empty() { 0 } else { detail.place.offset }
}

/// Looks for a row of the session `own` among those that use nothing, from `looked` to the end of what was read. Only
/// where it decides something: all replies so far name another session. None being the session's own, all would count.
fn find_own(detail: &mut Detail, own: Option<&str>, file: &File, looked: u64) {
    let Some(own) = own.filter(|_| !detail.own_seen && !detail.foreign.session.is_empty()) else { return };
    // A file that cannot be read now leaves it open.
    let _ = lines::scan(file, looked, detail.place.offset, &Needles::new(&[own]), |line| {
        detail.own_seen = Row::all(line).any(|row| row.session.as_deref() == Some(own));
        if detail.own_seen { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
}

/// The rows between two offsets that count, and the offset past the last whole line.
fn events(file: &File, from: u64, to: u64, own: Option<&str>) -> io::Result<(Vec<Event>, u64)> {
    let mut events = Vec::new();
    let end = lines::scan(file, from, to, &Needles::new(&NEEDLES), |line| {
        events.extend(Row::all(line).filter_map(|row| event(row, own)));
        ControlFlow::Continue(())
    })?;
    Ok((events, end))
}

fn event(row: Row<'_>, own: Option<&str>) -> Option<Event> {
    match row.says {
        Says::Used { usage, model } if usage.total() > 0 => Some(Event::Used(Reply {
            id: row.id.map(|id| hash(id.as_bytes())),
            usage,
            model: model.into_owned(),
            own: own.zip(row.session).map(|(own, session)| own == session),
            at_ms: row.at_ms,
        })),
        Says::Compacted(boundary) if !row.sidechain => Some(Event::Compacted(boundary)),
        _ => None,
    }
}

/// By what a file is known that was read up to `offset`.
fn place(file: &File, offset: u64) -> Option<Place> {
    let length = KNOWN_BY.min(offset);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset - length).ok()?;
    Some(Place { offset, ino: file.metadata().ok()?.ino(), hash: format!("{:016x}", hash(&bytes)) })
}

fn is_same(known: &Place, file: &File, size: u64) -> bool {
    known.offset <= size && place(file, known.offset).as_ref() == Some(known)
}

/// A subagent's file that did not grow is taken for the same without being opened.
fn is_same_agent(known: &Place, agent: &Agent) -> bool {
    if agent.size == known.offset {
        return agent.ino == known.ino;
    }
    file::open_user(&agent.path).ok().flatten().is_none_or(|file| is_same(known, &file, agent.size))
}

/// FNV-1a: stable between releases, as what is stored must be.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
