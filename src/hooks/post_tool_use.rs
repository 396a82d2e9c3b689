//! After every tool call: what it put into the context is counted, its result archived, and a compaction suggested when
//! the context has risen into a zone that calls for one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use super::{Call, Reply};
use crate::client::{project, totals, transcript};
use crate::compaction::{history, regret};
use crate::git;
use crate::memory::archive;
use crate::store::records::shape::ShapeEntry;
use crate::store::{Guard, StateFile};
use crate::watch::suggestion::{self, Move, Suggestion};
use crate::watch::zones::{self, Limits, Zone};
use crate::watch::{anchors, bands, budget, phase, rollup, root_dir, seen, shape};

const BUDGET: &str = "token-budget";
const SUGGEST: &str = "suggest-compact";

/// Everything after a tool call, in one process: one lock, one look at the transcript's end.
pub fn run(call: &Call<'_>) -> Result<Reply> {
    let turn = Turn::new(call);
    let context = turn.advises().then(|| turn.context(turn.tokens));
    let (counted, moved) = match call.store.lock(StateFile::ToolCount(&call.sid)) {
        Ok(guard) => {
            let counted = turn.note(BUDGET, turn.count(&guard)).flatten();
            let moved = context.as_ref().and_then(|context| turn.note(SUGGEST, turn.enter(&guard, context)).flatten());
            (counted, moved)
        }
        Err(error) => {
            call.log.warn(BUDGET, "counted later", json!({"why": format!("{error:#}")}));
            turn.note(BUDGET, turn.count_later());
            (None, None)
        }
    };
    turn.after_count(counted.as_ref());
    turn.note("tool-archive", archive::store_response(call));
    let Some(context) = context else { return Ok(Reply::silent()) };
    Ok(turn.reply(&context, moved, counted.map(|counted| counted.calls)))
}

/// Counting and learning alone.
pub fn token_budget(call: &Call<'_>) -> Result<Reply> {
    let turn = Turn::new(call);
    let counted = match call.store.lock(StateFile::ToolCount(&call.sid)) {
        Ok(guard) => turn.count(&guard)?,
        Err(error) => {
            call.log.warn(BUDGET, "counted later", json!({"why": format!("{error:#}")}));
            turn.count_later()?;
            None
        }
    };
    turn.after_count(counted.as_ref());
    if let Some(counted) = counted.filter(|_| turn.main) {
        let [before, now] = [counted.budget.saturating_sub(turn.tokens), counted.budget]
            .map(|budget| turn.zone(budget::in_context(call.store, &call.sid, budget), None).0);
        turn.log_move(Move { from: before, to: now }, counted.budget);
    }
    Ok(Reply::silent())
}

/// Archiving alone.
pub fn tool_archive(call: &Call<'_>) -> Result<Reply> {
    archive::store_response(call)?;
    Ok(Reply::silent())
}

/// The suggestion alone.
pub fn suggest_compact(call: &Call<'_>) -> Result<Reply> {
    let turn = Turn::new(call);
    if !turn.advises() {
        return Ok(Reply::silent());
    }
    let context = turn.context(0);
    let moved = turn.enter(&call.store.lock(StateFile::ZoneState(&call.sid))?, &context)?;
    let calls = call.store.read_count(StateFile::ToolCount(&call.sid), budget::COUNT_RANGE);
    Ok(turn.reply(&context, moved, calls))
}

/// One tool call, and what is known of it without a lock.
struct Turn<'c, 'a> {
    call: &'c Call<'a>,
    /// Whether the main conversation made it: a subagent's input and output are in a context of their own.
    main: bool,
    tool: String,
    tokens: u64,
    /// Where the session started, and whether that is recorded.
    anchor: (String, shape::Source),
    settings: shape::Settings,
    /// What is appended to the shape log, but for the budget.
    entry: Option<ShapeEntry>,
}

/// What counting a call came to.
struct Counted {
    calls: u64,
    budget: u64,
}

/// The context as it is now.
struct Context {
    /// 0 where nothing is known.
    tokens: u64,
    /// Whether they are the estimate.
    estimated: bool,
    /// None where nothing can be said.
    zone: Option<Zone>,
    /// None where the tokens are below any limit.
    limits: Option<Limits>,
}

impl<'c, 'a> Turn<'c, 'a> {
    fn new(call: &'c Call<'a>) -> Turn<'c, 'a> {
        let payload = call.payload;
        let main = !payload.from_subagent();
        let tool = payload.tool_name().unwrap_or_default().into_owned();
        let touched = budget::touched(payload).filter(|_| main);
        let recorded = shape::anchor(call.store, &call.sid);
        let file = touched.as_ref().map(|(path, _)| path.as_ref());
        let anchor = shape::resolve_call(call, recorded.as_ref(), file);
        let settings = shape::Settings::of(call.config, &anchor.0);
        let phase = if main { phase::of_call(&tool, payload.tool_input(), payload.tool_response()) } else { None };
        let root = touched.as_ref().map(|(path, kind)| root_dir::root_of(path, *kind, settings.depth, Some(&anchor.0)));
        let root = root.filter(|root| !root.is_empty());
        let entry = (root.is_some() || phase.is_some()).then(|| ShapeEntry {
            t: call.env.now_ms,
            tok: 0,
            tool: Some(tool.clone()).filter(|tool| !tool.is_empty()),
            file: touched.filter(|_| root.is_some()).map(|(path, _)| path.into_owned()),
            root,
            event: phase.map(|phase| phase.name().into()),
        });
        let tokens = if main { budget::call_tokens(payload) } else { 0 };
        Turn { call, main, tool, tokens, anchor, settings, entry }
    }

    /// A part's result, its fault in the log: one part that fails does not take the others with it.
    fn note<T>(&self, part: &str, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.call.log.error(part, &format!("{error:#}"), json!({"tool": self.tool}))).ok()
    }

    fn anchor(&self) -> &Path {
        Path::new(&self.anchor.0)
    }

    /// Counts the call and logs where it landed; none when it was counted before.
    fn count(&self, guard: &Guard<'_>) -> Result<Option<Counted>> {
        let (call, sid) = (self.call, &self.call.sid);
        if !seen::remember(guard, sid, call.payload.tool_use_id().as_deref())? {
            return Ok(None);
        }
        let calls = guard.add(StateFile::ToolCount(sid), 1, budget::COUNT_RANGE)?;
        if !self.main {
            return Ok(Some(Counted { calls, budget: 0 }));
        }
        let budget = guard.add(StateFile::TokenBudget(sid), self.tokens, budget::BUDGET_RANGE)?;
        if self.anchor.1 == shape::Source::Payload {
            shape::heal_anchor(guard, call.env, sid, self.anchor())?;
        }
        if let Some(entry) = &self.entry {
            let entry = ShapeEntry { tok: budget as i64, ..entry.clone() };
            shape::append(guard, sid, &entry, self.settings.max_entries)?;
        }
        Ok(Some(Counted { calls, budget }))
    }

    /// Leaves the counts for the next holder of the lock.
    fn count_later(&self) -> Result<()> {
        self.call.store.leave_pending(StateFile::ToolCount(&self.call.sid), 1)?;
        if self.tokens > 0 {
            self.call.store.leave_pending(StateFile::TokenBudget(&self.call.sid), self.tokens)?;
        }
        Ok(())
    }

    /// What follows a count: the regret window, and the word to git's answer that files may have changed.
    fn after_count(&self, counted: Option<&Counted>) {
        let call = self.call;
        if matches!(self.tool.as_str(), "Edit" | "MultiEdit" | "Write" | "NotebookEdit" | "Bash") {
            let touched = budget::touched(call.payload).map(|(path, _)| PathBuf::from(&*path));
            let folder = touched.filter(|path| path.is_absolute()).and_then(|path| Some(path.parent()?.to_path_buf()));
            let folder = folder.or_else(|| call.payload.cwd()).unwrap_or_else(|| self.anchor().to_path_buf());
            git::mark_stale(call.env, call.store, &folder);
        }
        let open = call.store.path(StateFile::Snapshot(&call.sid)).is_some_and(|path| path.exists());
        if counted.is_some() && self.main && open {
            self.note(BUDGET, self.regret());
        }
    }

    fn regret(&self) -> Result<()> {
        let call = self.call;
        let root = self.entry.as_ref().and_then(|entry| entry.root.as_deref());
        let transcript = call.payload.transcript_path();
        let guard = call.store.lock(StateFile::Snapshot(&call.sid))?;
        let tool = Some(self.tool.as_str()).filter(|tool| !tool.is_empty());
        let touch = regret::Touch { now_ms: call.env.now_ms, root, tool, input: call.payload.tool_input() };
        let outcome = regret::watch(&guard, &call.sid, &touch, transcript.as_deref())?;
        drop(guard);
        if let Some((band, weight)) = outcome.hit.filter(|(band, _)| *band != regret::Band::Hot) {
            call.log.info(BUDGET, "post-compact regret", json!({"root": root, "band": band.name(), "weight": weight}));
        }
        if outcome.closed {
            call.log.info(BUDGET, "regret window closed", json!({}));
        }
        Ok(())
    }

    /// Whether this call may bring advice.
    fn advises(&self) -> bool {
        self.main && self.call.config.compact.autoblock
    }

    /// The context now: the transcript's word, else the estimate and `uncounted`, what is about to be added to it.
    fn context(&self, uncounted: u64) -> Context {
        let call = self.call;
        let source = call.config.statusline.token_source.as_str();
        let transcript = call.payload.transcript_path();
        let tail = transcript.as_deref().and_then(transcript::tail);
        let told = tail.as_ref().filter(|_| source != "estimate").and_then(transcript::Tail::context);
        let tokens = told.unwrap_or_else(|| match source {
            "transcript" => 0,
            _ => budget::estimate(call.store, &call.sid) + uncounted,
        });
        // An estimate that no window can hold tells of one giant result, of which the model saw a part.
        if told.is_none() && tokens > zones::LARGEST_WINDOW {
            return Context { tokens: 0, estimated: true, zone: None, limits: None };
        }
        let model = tail.as_ref().and_then(|tail| tail.latest.as_ref()).map(|latest| latest.model.as_str());
        let (zone, limits) = self.zone(tokens, model);
        Context { tokens, estimated: told.is_none(), zone: Some(zone), limits }
    }

    /// The zone of a token count, in the window of `model` where nobody told the window.
    fn zone(&self, tokens: u64, model: Option<&str>) -> (Zone, Option<Limits>) {
        let call = self.call;
        let window = zones::window(call.store, call.config, &call.sid, model, tokens);
        if zones::is_below_all(call.config, window, tokens) && !call.config.learn.announce {
            return (Zone::Green, None);
        }
        let limits = zones::in_force(call.env, call.store, call.config, self.anchor(), &call.sid, window);
        (limits.zone(tokens), Some(limits))
    }

    fn enter(&self, guard: &Guard<'_>, context: &Context) -> Result<Option<Move>> {
        context.zone.map_or(Ok(None), |zone| suggestion::enter(guard, &self.call.sid, zone))
    }

    fn log_move(&self, moved: Move, tokens: u64) {
        if moved.from != moved.to {
            let message = format!("zone transition {} → {}", moved.from.name(), moved.to.name());
            self.call.log.info(BUDGET, &message, json!({ "cumulative": tokens }));
        }
    }

    /// The answer: a suggestion for the model where one is due, advisories for the user.
    fn reply(&self, context: &Context, moved: Option<Move>, calls: Option<u64>) -> Reply {
        let call = self.call;
        let git = &call.config.shape.git_nexus;
        let anchored = anchors::Query::new(git.since_days, git.limit);
        if git.enabled {
            anchors::keep_counted(call.env, call.store, self.anchor(), &anchored);
        }
        if let Some(moved) = moved {
            self.log_move(moved, context.tokens);
            if moved.to > moved.from {
                let level = if moved.is_due() { crate::log::Level::Warn } else { crate::log::Level::Info };
                let meta = json!({"tokenBudget": context.tokens, "count": calls});
                call.log.write(level, SUGGEST, &format!("suggestion: {}-zone", moved.to.name()), meta);
            }
        }
        let news = context.limits.as_ref().filter(|_| call.config.learn.announce).and_then(|limits| {
            let news = zones::announce(call.store, Some(&self.anchor.0), limits, call.env.now_ms);
            self.note(SUGGEST, news).flatten()
        });
        if let (Some(moved), Some(limits)) = (moved.filter(|moved| moved.is_due()), &context.limits) {
            let text = self.suggestion(moved.to, context.tokens, limits, news.is_some());
            if call.config.compact.feedback != "context" {
                // Beside feedback the client reads nothing: what else there is to say waits or stands in it.
                return Reply::feedback(text);
            }
            return Reply::context("PostToolUse", Some(text), self.notices(context, calls, news));
        }
        match self.notices(context, calls, news) {
            Some(text) => Reply::context("PostToolUse", None, Some(text)),
            None => Reply::silent(),
        }
    }

    /// What the user alone is told.
    fn notices(&self, context: &Context, calls: Option<u64>, news: Option<zones::News>) -> Option<String> {
        let threshold = self.call.config.compact.threshold;
        let (size, zone) = ((context.tokens, context.estimated), context.zone.unwrap_or_default());
        let advisory = calls.and_then(|calls| suggestion::advisory(calls, threshold, size, zone));
        let announcement = news.and_then(|news| suggestion::announcement(context.limits.as_ref()?, news.first));
        let lines: Vec<String> = [advisory, announcement].into_iter().flatten().collect();
        Some(lines.join("\n")).filter(|text| !text.is_empty())
    }

    fn suggestion(&self, zone: Zone, tokens: u64, limits: &Limits, announce: bool) -> String {
        let call = self.call;
        let stable = call.config.compact.stable_prefix;
        let cost =
            || totals::stored(&call.store, call.env, &call.sid).map(|t| t.session.cost(&call.config.statusline.prices));
        let memory =
            || project::folder(call.env, call.payload, Some(self.anchor())).map(|folder| folder.dir.join("memory"));
        let text = Suggestion {
            zone,
            tokens,
            cost: if stable { None } else { cost() },
            observed: self.diagnosis().map_or_else(String::new, |analysis| analysis.one_line(stable)),
            memory: call.config.compact.memory_offload.then(memory),
            limits,
            announce,
            stable,
        };
        text.text()
    }

    fn diagnosis(&self) -> Option<bands::Analysis> {
        let call = self.call;
        let git = &call.config.shape.git_nexus;
        let anchored = if git.enabled {
            anchors::protecting(call.env, call.store, self.anchor(), &anchors::Query::new(git.since_days, git.limit))
        } else {
            Vec::new()
        };
        let missed = history::missed(&history::read(call.store), &self.anchor.0);
        let persist = call.config.shape.persist_across_compacts;
        let rolled = if persist { rollup::read(call.store, &call.sid) } else { None };
        let entries = shape::last(call.store, &call.sid, self.settings.max_entries);
        bands::analyse(&entries, &self.settings.options(&self.anchor.0, &anchored, &missed, rolled.as_ref()))
    }
}
