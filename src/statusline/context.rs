//! What the fields are made from: each source is found when the first field asks for it, and at most once.
//!
//! A configured field is the only reason to look at anything: with `tokens` alone no repository is opened and no total
//! is read.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;

use super::quota::{self, Quota};
use crate::client::json::{Object, Raw};
use crate::client::payload::{Payload, env_session_id};
use crate::client::totals::{self, Session, Totals};
use crate::client::transcript::{self, Tail};
use crate::client::usage::{self, Usage};
use crate::client::{pricing, project, thinking};
use crate::compaction::{history, session_context};
use crate::config::Config;
use crate::env::Env;
use crate::git;
use crate::memory::pins;
use crate::store::{Sid, StateFile, Store};
use crate::watch::zones::{self, Limits, Zone};
use crate::watch::{budget, shape};

/// More dollars than any session costs, and more milliseconds than any lasts (ten years): what is above is nonsense.
const MAX_COST: f64 = 1.0e6;
const MAX_SESSION_MS: f64 = 3.2e11;

/// The size of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens {
    /// In tokens; more than 0.
    pub count: u64,
    /// Whether it is the estimate of the hooks and not what the client or the transcript says.
    pub estimated: bool,
}

/// What something cost and what cache reads saved on it, in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Money {
    /// Cost.
    pub cost: Option<f64>,
    /// Savings.
    pub saved: Option<f64>,
}

/// The last compaction of the session.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Compaction {
    /// Milliseconds since then.
    pub age_ms: Option<i64>,
    /// What was spent since then.
    pub since: Money,
}

/// The last deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deploy {
    /// What was deployed.
    pub target: String,
    /// Milliseconds since then; not negative.
    pub age_ms: i64,
}

/// What the session is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// In one line.
    pub text: String,
    /// The issue that it names, with the `#`.
    pub issue: Option<String>,
    /// Whether it was written long ago.
    pub stale: bool,
}

/// A value and where it came from, found at most once.
pub type Source<T> = OnceCell<(T, &'static str)>;

/// Everything that is found at most once. A preview and the tests fill in what they want to show.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "named after the functions of Context that read them")]
pub struct Sources {
    pub anchor: Source<Option<PathBuf>>,
    pub usage: Source<Option<Usage>>,
    pub tail: Source<Option<Tail>>,
    pub tokens: Source<Option<Tokens>>,
    pub cap: Source<u64>,
    pub limits: Source<Limits>,
    pub totals: Source<Option<Totals>>,
    pub money: Source<Money>,
    pub flow: Source<Option<Usage>>,
    pub last_hour: Source<Option<f64>>,
    pub compaction: Source<Option<Compaction>>,
    pub compactions: Source<Option<u64>>,
    pub session_ms: Source<Option<f64>>,
    pub thinking: Source<u64>,
    pub tools: Source<u64>,
    pub quota: Source<Quota>,
    pub head: Source<Option<git::Head>>,
    pub work_tree: Source<Option<git::WorkTree>>,
    pub task: Source<Option<Task>>,
    pub deploy: Source<Option<Deploy>>,
    pub pins: Source<Option<usize>>,
}

/// What a field is handed.
pub struct Context<'a> {
    /// The surroundings.
    pub env: &'a Env,
    /// The files.
    pub store: Store<'a>,
    /// The effective configuration.
    pub config: &'a Config,
    /// What the client sent; empty where it sent nothing that can be read.
    pub payload: &'a Payload<'a>,
    /// The session, as file names carry it.
    pub sid: Sid,
    /// What has been found so far.
    pub sources: Sources,
    seen: RefCell<Vec<&'static str>>,
}

impl<'a> Context<'a> {
    /// A context in which nothing has been found yet.
    pub fn new(env: &'a Env, config: &'a Config, payload: &'a Payload<'a>) -> Context<'a> {
        Context {
            env,
            store: Store::new(env),
            config,
            payload,
            sid: payload.sid(env),
            sources: Sources::default(),
            seen: RefCell::default(),
        }
    }

    /// Where the values came from that were asked for since the last call.
    pub fn take_seen(&self) -> Vec<&'static str> {
        let mut seen = self.seen.take();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    fn find<'s, T>(&'s self, source: &'s Source<T>, find: impl FnOnce() -> (T, &'static str)) -> &'s T {
        // What was asked for on the way is part of the answer's own origin.
        let before = self.seen.borrow().len();
        let (value, origin) = source.get_or_init(find);
        let mut seen = self.seen.borrow_mut();
        seen.truncate(before);
        seen.push(origin);
        value
    }

    /// An object of the payload.
    pub fn given(&self, path: &[&str]) -> Option<Raw<'a>> {
        self.seen.borrow_mut().push("stdin");
        self.payload.object().at(path)
    }

    /// A text of the payload; empty counts as absent.
    pub fn given_str(&self, path: &[&str]) -> Option<Cow<'a, str>> {
        self.given(path)?.str().filter(|text| !text.is_empty())
    }

    /// Milliseconds from `at` until now; a moment in the future counts as now.
    pub fn age_ms(&self, at: i64) -> i64 {
        self.env.now_ms.saturating_sub(at).max(0)
    }

    /// The raw session id.
    pub fn session_id(&self) -> Option<Cow<'a, str>> {
        self.seen.borrow_mut().push("stdin");
        self.payload.session_id().or_else(|| env_session_id(self.env).map(Cow::Borrowed))
    }

    /// The working folder as the client spells it.
    pub fn cwd_text(&self) -> Option<Cow<'a, str>> {
        self.given_str(&["cwd"]).or_else(|| self.given_str(&["workspace", "current_dir"]))
    }

    /// The working folder as a path.
    pub fn dir(&self) -> Option<PathBuf> {
        self.payload.cwd()
    }

    /// Where the session started, else where it is now.
    pub fn anchor(&self) -> Option<&PathBuf> {
        let find = || match shape::anchor(self.store, &self.sid) {
            Some(anchor) => (Some(PathBuf::from(anchor.cwd)), "session anchor"),
            None => (self.payload.start_dir(), "stdin"),
        };
        self.find(&self.sources.anchor, find).as_ref()
    }

    fn transcript(&self) -> Option<PathBuf> {
        self.payload.transcript_path()
    }

    fn tail(&self) -> Option<&Tail> {
        let find = || (self.transcript().and_then(|path| transcript::tail(&path)), "transcript");
        self.find(&self.sources.tail, find).as_ref()
    }

    /// The usage that the client says the latest reply of the main conversation had.
    fn current_usage(&self) -> Option<Usage> {
        let usage = self.given(&["context_window", "current_usage"])?.object()?;
        Some(Usage::parse(&usage)).filter(|usage| !usage.is_empty())
    }

    /// The usage of the latest turn.
    pub fn usage(&self) -> Option<&Usage> {
        let find = || match self.current_usage() {
            Some(usage) => (Some(usage), "stdin"),
            None => (self.tail().and_then(|tail| Some(tail.latest.as_ref()?.usage)), "transcript"),
        };
        self.find(&self.sources.usage, find).as_ref()
    }

    /// The size of the context: the client's figure, else the transcript's, else the estimate of the hooks.
    pub fn tokens(&self) -> Option<Tokens> {
        let find = || {
            let source = self.config.statusline.token_source.as_str();
            let exact = |count: u64, from| (Some(Tokens { count, estimated: false }), from);
            if source == "auto"
                && let Some(usage) = self.current_usage()
            {
                return exact(usage.context(), "stdin");
            }
            if source != "estimate"
                && let Some(count) = self.tail().and_then(Tail::context).filter(|&count| count > 0)
            {
                return exact(count, "transcript");
            }
            if source != "transcript"
                && let count @ 1.. = budget::estimate(self.store, &self.sid)
            {
                return (Some(Tokens { count, estimated: true }), "estimate");
            }
            (None, "nothing")
        };
        *self.find(&self.sources.tokens, find)
    }

    /// The client's context window, if it tells one.
    pub fn client_window(&self) -> Option<u64> {
        self.given(&["context_window", "context_window_size"]).and_then(usage::count).filter(|&size| size > 0)
    }

    /// Tokens that count as a full window.
    pub fn cap(&self) -> u64 {
        let find = || {
            let user = self.config.statusline.context_cap;
            let (client, model) = (self.client_window(), self.model());
            let [id, name] = ["id", "display_name"].map(|key| model.as_ref().and_then(|model| model.str(key)));
            let used = self.tokens().map_or(0, |tokens| tokens.count);
            // Where the client names no model, as hooks are told none: the one that wrote the latest reply.
            let told = user.is_some() || client.is_some() || id.is_some() || name.is_some();
            let wrote = || Some(self.tail()?.latest.as_ref()?.model.as_str());
            let id = id.as_deref().or_else(|| if told { None } else { wrote() });
            let cap = pricing::context_cap(user, client, id, name.as_deref(), used);
            let origin = if user.is_some() {
                "config"
            } else if client.is_some() {
                "stdin"
            } else {
                "model table"
            };
            (cap as u64, origin)
        };
        *self.find(&self.sources.cap, find)
    }

    fn model(&self) -> Option<Object<'a>> {
        self.payload.object().get("model")?.object()
    }

    /// The model id; empty where the client names none.
    pub fn model_id(&self) -> Cow<'a, str> {
        self.given_str(&["model", "id"]).unwrap_or_default()
    }

    /// Where the zones begin.
    pub fn limits(&self) -> &Limits {
        let find = || {
            let here = self.anchor().unwrap_or(&self.env.cwd);
            let limits = zones::in_force(self.env, self.store, self.config, here, &self.sid, Some(self.cap()));
            let origin = if limits.adaptive.is_some() { "history" } else { "config" };
            (limits, origin)
        };
        self.find(&self.sources.limits, find)
    }

    /// The zone of the context; none while its size is not known.
    pub fn zone(&self) -> Option<Zone> {
        let tokens = self.tokens()?;
        Some(self.limits().zone(tokens.count))
    }

    fn totals(&self) -> Option<&Totals> {
        let find = || {
            let id = self.payload.session_id();
            let update = |path: PathBuf| {
                let compacted_ms = history::last_of(self.store, &self.sid);
                let session = Session { sid: &self.sid, id: id.as_deref(), transcript: &path, compacted_ms };
                totals::update(&self.store, self.env, session, &self.config.statusline.prices)
            };
            (self.transcript().and_then(update), "transcript")
        };
        self.find(&self.sources.totals, find).as_ref()
    }

    /// What the session cost and saved; the client's own figure where the transcript cannot be read.
    pub fn money(&self) -> Money {
        let find = || match self.totals() {
            Some(totals) => (self.price(&totals.session), "transcript"),
            None => {
                let cost = ["cost", "total_cost_usd"];
                let cost = self.given(&cost).or_else(|| self.given(&cost[1..])).and_then(|raw| raw.amount(MAX_COST));
                (Money { cost, saved: None }, "stdin")
            }
        };
        *self.find(&self.sources.money, find)
    }

    fn price(&self, spent: &totals::Spent) -> Money {
        let prices = &self.config.statusline.prices;
        Money { cost: Some(spent.cost(prices)), saved: Some(spent.saved(prices)) }
    }

    /// Tokens of the whole session.
    pub fn flow(&self) -> Option<&Usage> {
        let find = || (self.totals().map(|totals| totals.session.usage()), "transcript");
        self.find(&self.sources.flow, find).as_ref()
    }

    /// Dollars of the last 60 minutes.
    pub fn last_hour(&self) -> Option<f64> {
        let find = || (self.totals().and_then(|totals| self.price(&totals.last_hour).cost), "transcript");
        *self.find(&self.sources.last_hour, find)
    }

    /// The last compaction of this session; none before the first.
    pub fn compaction(&self) -> Option<Compaction> {
        let find = || {
            let Some(totals) = self.totals() else {
                let at = history::last_of(self.store, &self.sid);
                return (at.map(|at| Compaction { age_ms: Some(self.age_ms(at)), since: Money::default() }), "history");
            };
            let since = totals.since_compaction.as_ref().map(|spent| self.price(spent));
            let age_ms = totals.compacted_ms.map(|at| self.age_ms(at));
            (since.map(|since| Compaction { age_ms, since }), "transcript")
        };
        *self.find(&self.sources.compaction, find)
    }

    /// How many compactions the session has had.
    pub fn compactions(&self) -> Option<u64> {
        let find = || (self.totals().map(|totals| totals.compactions), "transcript");
        *self.find(&self.sources.compactions, find)
    }

    /// How long the session has lasted.
    pub fn session_ms(&self) -> Option<f64> {
        let find = || {
            let path = ["cost", "total_duration_ms"];
            let told = self.given(&path).or_else(|| self.given(&path[1..])).and_then(|raw| raw.amount(MAX_SESSION_MS));
            if let Some(ms) = told.filter(|&ms| ms > 0.0) {
                return (Some(ms), "stdin");
            }
            let first = self.transcript().and_then(|path| transcript::first_timestamp_ms(&path));
            (first.map(|at| self.age_ms(at) as f64), "transcript")
        };
        *self.find(&self.sources.session_ms, find)
    }

    /// Thinking tokens of recent turns.
    pub fn thinking(&self) -> u64 {
        let find = || {
            let recent = |path: PathBuf| thinking::recent(&path, thinking::RECENT_TURNS, thinking::SCAN_BYTES).recent;
            (self.transcript().map_or(0, recent), "transcript")
        };
        *self.find(&self.sources.thinking, find)
    }

    /// Tool calls so far.
    pub fn tools(&self) -> u64 {
        let find = || {
            let count = self.store.read_count(StateFile::ToolCount(&self.sid), budget::COUNT_RANGE);
            (count.unwrap_or(0), "counter")
        };
        *self.find(&self.sources.tools, find)
    }

    /// Both quotas; starts the renewal of the stored answer where that is what counts and it is due.
    pub fn quota(&self) -> Quota {
        let find = || {
            if let Some(quota) = Quota::of_payload(self.payload.object(), self.env.now_ms) {
                return (quota, "stdin");
            }
            let answer = quota::Answer::read(self.store);
            quota::refresh_if_due(self.env, self.store, self.config, answer.as_ref());
            (answer.map(|answer| Quota::of_cache(&answer, self.env.now_ms)).unwrap_or_default(), "quota cache")
        };
        *self.find(&self.sources.quota, find)
    }

    /// Where the work tree stands.
    pub fn head(&self) -> Option<&git::Head> {
        let find = || (self.dir().and_then(|dir| git::head(self.env, &dir, git::LINE_DEADLINE)), "git");
        self.find(&self.sources.head, find).as_ref()
    }

    /// The state of the working tree.
    pub fn work_tree(&self) -> Option<git::WorkTree> {
        let find = || {
            let scan = |head| git::work_tree(self.env, self.store, head, git::LINE_DEADLINE);
            (self.head().and_then(scan), "git")
        };
        *self.find(&self.sources.work_tree, find)
    }

    /// The task: as session-context.md has it, else the subject of the last commit.
    pub fn task(&self) -> Option<&Task> {
        let find = || {
            let folder = project::folder(self.env, self.payload, self.anchor().map(PathBuf::as_path));
            let notes = folder.map(|folder| session_context::read(self.store, &folder.enc));
            if let Some(notes) = notes
                && let Some(text) = session_context::task(&notes)
            {
                let hours = notes.modified_ms.map_or(0.0, |at| self.age_ms(at) as f64 / 3_600_000.0);
                let stale = hours >= self.config.statusline.task_stale_hours;
                let issue = session_context::issue_of_task(&notes.current_task);
                return (Some(Task { text, issue, stale }), "session-context.md");
            }
            let commit = self.head().and_then(|head| git::last_commit(self.env, head, git::LINE_DEADLINE));
            let task = |text: String| Task { issue: session_context::issue_of_task(&text), text, stale: false };
            (commit.map(|commit| task(commit.subject)), "last commit")
        };
        self.find(&self.sources.task, find).as_ref()
    }

    /// The last deploy that a script left a breadcrumb of.
    pub fn deploy(&self) -> Option<&Deploy> {
        let find = || {
            let read = || {
                let text = self.store.read_text(StateFile::Deploy)?;
                let mut words = text.split_whitespace();
                let (target, at) = (words.next()?.to_owned(), self.env.parse_time(words.next()?)?);
                Some(Deploy { target, age_ms: self.age_ms(at) })
            };
            (read(), "breadcrumb")
        };
        self.find(&self.sources.deploy, find).as_ref()
    }

    /// How many pins the session has.
    pub fn pins(&self) -> Option<usize> {
        let find = || (pins::count(&self.store, &self.sid), "pins");
        *self.find(&self.sources.pins, find)
    }
}
