//! Before a compaction: guidance for the summarizer, and what is remembered of the moment.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Call, Reply};
use crate::client::project::{self, Folder};
use crate::client::{totals, transcript};
use crate::compaction::follow_ups::Sources;
use crate::compaction::guidance::{self, Guidance, Memory};
use crate::compaction::session_context::{self, SessionContext};
use crate::compaction::{bootstrap, handoff, history, prefix, regret};
use crate::env::parse_iso;
use crate::git::{self, DirtyFile, HOOK_DEADLINE};
use crate::store::StateFile;
use crate::store::records::compaction::BootstrapState;
use crate::store::records::compaction_log::{HistoryEntry, Snapshot};
use crate::store::records::shape::{Rollup, SessionAnchor, ShapeEntry};
use crate::watch::anchors::{self, Query};
use crate::watch::bands::{self, Analysis};
use crate::watch::glob::Globs;
use crate::watch::{budget, rollup, shape};

const SOURCE: &str = "pre-compact";

/// Writes the guidance, and notes the compaction: log, history, snapshot, rollup, fingerprint and handoff. What cannot be
/// noted is missing later and changes nothing of the guidance.
pub fn run(call: &Call<'_>) -> Result<Reply> {
    if !call.config.hooks.pre_compact {
        return Ok(Reply::silent());
    }
    let recorded = shape::anchor(call.store, &call.sid);
    let (anchor, _) = shape::resolve_call(call, recorded.as_ref(), None);
    let anchor_path = Path::new(&anchor);
    let resumes = call.config.r#continue.after_compact && call.payload.session_id().is_some();
    std::thread::scope(|scope| {
        // git reads the whole work tree: meanwhile everything else is done.
        let dirty = scope.spawn(|| {
            if resumes { git::dirty_files(call.env, anchor_path, HOOK_DEADLINE) } else { None }.unwrap_or_default()
        });
        let folder = project::folder(call.env, call.payload, Some(anchor_path));
        let context = folder.as_ref().map(|folder| session_context::read(call.store, &folder.enc)).unwrap_or_default();
        let moment = Moment { call, recorded, anchor: &anchor, folder, context };
        let reading = moment.read();
        let guidance = moment.guidance(reading.analysis.as_ref(), resumes);
        moment.log(&guidance);
        let steps: [(&str, Result<()>); 5] = [
            ("the compaction was not logged", moment.append_log()),
            ("the compaction is not in the history", moment.remember(&reading, &guidance)),
            ("the shape log was not rolled up", moment.roll_up(&reading)),
            ("the guidance was not compared with the last one", moment.compare(&guidance)),
            ("the sections' ages were not noted", moment.note_sections()),
        ];
        let dirty = dirty.join().unwrap_or_default();
        let handed_over = if resumes { moment.hand_over(&reading, &guidance, &dirty) } else { Ok(()) };
        for (what, result) in steps.into_iter().chain([("no handoff was written", handed_over)]) {
            if let Err(error) = result {
                call.log.warn(SOURCE, what, json!({"error": format!("{error:#}")}));
            }
        }
        moment.renew_anchors();
        Ok(Reply::guidance(guidance.text))
    })
}

/// A session at the moment of its compaction.
struct Moment<'c, 'a> {
    call: &'c Call<'a>,
    recorded: Option<SessionAnchor>,
    anchor: &'c str,
    folder: Option<Folder>,
    context: SessionContext,
}

/// What its shape log shows.
struct Reading {
    settings: shape::Settings,
    entries: Vec<ShapeEntry>,
    anchored: Vec<String>,
    missed: Vec<String>,
    analysis: Option<Analysis>,
}

impl Moment<'_, '_> {
    fn query(&self) -> Query<'static> {
        let settings = &self.call.config.shape.git_nexus;
        Query::new(settings.since_days, settings.limit)
    }

    fn read(&self) -> Reading {
        let call = self.call;
        let settings = shape::Settings::of(call.config, self.anchor);
        let anchored = if call.config.shape.git_nexus.enabled {
            anchors::protecting(call.env, call.store, Path::new(self.anchor), &self.query())
        } else {
            Vec::new()
        };
        let missed = history::missed(&history::read(call.store), self.anchor);
        let entries = shape::last(call.store, &call.sid, settings.max_entries);
        let rolled = if call.config.shape.persist_across_compacts { rollup::read(call.store, &call.sid) } else { None };
        let options = settings.options(self.anchor, &anchored, &missed, rolled.as_ref());
        let analysis = bands::analyse(&entries, &options);
        Reading { settings, entries, anchored, missed, analysis }
    }

    fn guidance(&self, analysis: Option<&Analysis>, resumes: bool) -> Guidance {
        let call = self.call;
        let memory_dir = self.folder.as_ref().map(Folder::memory);
        let sources = self.folder.as_ref().map(Sources::of);
        let day = call.env.local(call.env.now_ms).format("%Y-%m-%d");
        let short: String = call.sid.as_str().chars().take(8).collect();
        let note = format!("project_session_{day}_{short}.md");
        let memory = memory_dir.as_deref().zip(sources.as_ref()).filter(|_| call.config.compact.memory_offload);
        guidance::write(&guidance::Input {
            context: &self.context,
            context_path: sources.as_ref().map_or(Path::new("session-context.md"), |sources| &sources.context),
            now_ms: call.env.now_ms,
            analysis,
            memory: memory.map(|(dir, sources)| Memory { dir, sources, note: &note }),
            resumes,
            stable: call.config.compact.stable_prefix,
        })
    }

    fn log(&self, guidance: &Guidance) {
        let meta = json!({"sections": guidance.sections, "dropped": guidance.dropped.len()});
        self.call.log.info(SOURCE, "injected hints", meta);
    }

    fn append_log(&self) -> Result<()> {
        let moment = self.call.env.local(self.call.env.now_ms).format("%Y-%m-%d %H:%M:%S");
        self.call.store.append(StateFile::CompactionLog, &format!("[{moment}] Context compaction triggered"))
    }

    /// One line of the history, and the snapshot that the calls to come are compared with.
    fn remember(&self, reading: &Reading, guidance: &Guidance) -> Result<()> {
        let call = self.call;
        if !call.config.learn.enabled {
            return Ok(());
        }
        let transcript = call.payload.transcript_path();
        let told = transcript.as_deref().and_then(|path| transcript::tail(path)?.context());
        let estimate = || Some(budget::estimate(call.store, &call.sid)).filter(|tokens| *tokens > 0);
        let tokens = told.or_else(estimate).map(|tokens| tokens as f64);
        let id = call.payload.session_id();
        let session = transcript.as_deref().map(|transcript| totals::Session {
            sid: &call.sid,
            id: id.as_deref(),
            transcript,
            compacted_ms: None,
        });
        let prices = &call.config.statusline.prices;
        let cost = session.and_then(|session| totals::update(&call.store, call.env, session, prices));
        let cost = cost.map(|totals| totals.session.cost(prices));
        let names = |band: fn(&Analysis) -> &[bands::Root]| {
            reading.analysis.as_ref().map_or_else(Vec::new, |analysis| guidance::names(band(analysis), false))
        };
        let (hot_dirs, warm_dirs) = (names(|analysis| &analysis.hot), names(|analysis| &analysis.warm));
        let entry = HistoryEntry {
            t: call.env.now_ms,
            sid: call.sid.to_string(),
            cwd: self.anchor.into(),
            tokens,
            cost,
            hot_dirs: hot_dirs.clone(),
            warm_dirs: warm_dirs.clone(),
            dropped_dirs: guidance.dropped.clone(),
            had_shift: reading.analysis.as_ref().is_some_and(|analysis| analysis.shift.is_some()),
            ..HistoryEntry::default()
        };
        let snapshot = Snapshot {
            t: Some(call.env.now_ms),
            tokens,
            cost,
            hot_dirs,
            warm_dirs,
            dropped_dirs: guidance.dropped.clone(),
            ..Snapshot::default()
        };
        let guard = call.store.lock(StateFile::Snapshot(&call.sid))?;
        history::append(&guard, &entry)?;
        regret::open(&guard, &call.sid, &snapshot)
    }

    /// Carries the directories over to the next compaction. Where that is turned off, only how far the budget had come is
    /// noted, for the estimate of what is in context.
    fn roll_up(&self, reading: &Reading) -> Result<()> {
        let (call, now_ms) = (self.call, self.call.env.now_ms);
        if reading.entries.is_empty() {
            return Ok(());
        }
        let guard = call.store.lock(StateFile::Rollup(&call.sid))?;
        if call.config.shape.persist_across_compacts {
            let options = reading.settings.options(self.anchor, &reading.anchored, &reading.missed, None);
            rollup::roll(&guard, &call.sid, &reading.entries, &options, now_ms)?;
            return Ok(());
        }
        let last = reading.entries.iter().map(|entry| entry.tok).max().unwrap_or(0);
        let rolled = Rollup { rolled_through_tok: last, updated_at: now_ms, ..Rollup::default() };
        guard.write_json(StateFile::Rollup(&call.sid), &rolled)
    }

    fn compare(&self, guidance: &Guidance) -> Result<()> {
        if !self.call.config.compact.stable_prefix {
            return Ok(());
        }
        let compared = prefix::compare(self.call.env, self.call.store, self.anchor, &guidance.text)?;
        if let Some(drift) = compared.drift {
            let meta =
                json!({"prev": drift.previous, "next": compared.hash, "ageS": drift.age_s, "lines": drift.lines});
            self.call.log.info(SOURCE, "the stable prefix changed", meta);
        }
        Ok(())
    }

    fn note_sections(&self) -> Result<()> {
        let Some(folder) = self.folder.as_ref().filter(|_| self.context.modified_ms.is_some()) else { return Ok(()) };
        let guard = self.call.store.lock(StateFile::Bootstrap)?;
        let before = guard.read_or_set_aside::<BootstrapState>(StateFile::Bootstrap)?.unwrap_or_default();
        let mut state = before.clone();
        bootstrap::note_sections(self.call.store, folder, &mut state);
        if state == before { Ok(()) } else { guard.write_json(StateFile::Bootstrap, &state) }
    }

    /// Leaves what the next start of this session resumes with.
    fn hand_over(&self, reading: &Reading, guidance: &Guidance, dirty: &[DirtyFile]) -> Result<()> {
        let call = self.call;
        let (Some(folder), Some(id)) = (&self.folder, call.payload.session_id()) else { return Ok(()) };
        let noted = self.recorded.as_ref().and_then(|anchor| parse_iso(anchor.started_at.as_deref()?));
        let from_transcript = || transcript::first_timestamp_ms(&call.payload.transcript_path()?);
        let hot = reading.analysis.as_ref().map_or_else(Vec::new, |analysis| guidance::names(&analysis.hot, false));
        let head = git::head(call.env, Path::new(self.anchor), git::HOOK_DEADLINE);
        let made = handoff::gather(
            call.env,
            folder,
            &handoff::Input {
                session_id: &id,
                anchor: self.anchor,
                started_ms: noted.or_else(from_transcript),
                context: &self.context,
                head: head.as_ref(),
                dirty,
                secret: &Globs::new(&reading.settings.secret),
                hot_dirs: &hot,
                dropped_dirs: &guidance.dropped,
            },
        );
        match made {
            Some(handoff) => handoff::write(call.store, folder, &handoff),
            None => {
                call.log.info(SOURCE, "nothing to resume", Value::Null);
                Ok(())
            }
        }
    }

    fn renew_anchors(&self) {
        let settings = &self.call.config.shape.git_nexus;
        if settings.enabled && settings.refresh_on_compact {
            anchors::renew(self.call.env, self.call.store, Path::new(self.anchor), &self.query());
        }
    }
}
