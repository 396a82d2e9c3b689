//! `si status`: what is installed, what this session is doing, where the zones are, and what else works on tokens.

use std::path::Path;

use anyhow::Result;

use super::Terminal;
use super::installation::{self, Installation};
use super::session::{self, Session, SessionArgs};
use crate::client::settings::entries;
use crate::client::settings::statusline::Current;
use crate::client::{totals, transcript};
use crate::compaction::history;
use crate::config::{Config, KEYS, tree};
use crate::env::Env;
use crate::memory::{archive, pins};
use crate::statusline::previous;
use crate::store::records::compaction_log::Snapshot;
use crate::store::{Sid, StateFile, Store};
use crate::text;
use crate::watch::{budget, shape, zones};

/// Arguments of `si status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which session
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Prints the report. It reads alone.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let env = terminal.env;
    let config = Config::load(env);
    writeln!(terminal.out, "si {}, {}", env!("CARGO_PKG_VERSION"), program(env))?;
    heading(terminal, "Installation")?;
    installed(terminal, &config)?;
    // Without a session the rest is still worth showing; a session that was named must be one.
    let session = match session::choose(env, &args.session) {
        Ok(session) => Some(session),
        Err(error) if args.session.session.is_some() => return Err(error),
        Err(_) => None,
    };
    heading(terminal, "Session")?;
    let (anchor, sid) = match &session {
        Some(session) => (counters(terminal, &config, session)?, session.sid.clone()),
        None => {
            row(terminal, "session", "none was found for this folder")?;
            (env.cwd.clone(), Sid::new(""))
        }
    };
    heading(terminal, "Zones in force")?;
    let window = session.as_ref().and_then(|session| window(Store::new(env), &config, session));
    limits(terminal, &config, &anchor, &sid, window)?;
    heading(terminal, "Ecosystem")?;
    let partners = installation::partners(env);
    if partners.is_empty() {
        row(terminal, "none", "no other tool for saving tokens was found")?;
    }
    for (name, place) in partners {
        row(terminal, name, &place)?;
    }
    Ok(())
}

fn heading(terminal: &mut Terminal<'_>, title: &str) -> Result<()> {
    Ok(writeln!(terminal.out, "\n{title}")?)
}

fn row(terminal: &mut Terminal<'_>, name: &str, value: &str) -> Result<()> {
    Ok(writeln!(terminal.out, "  {name:<17} {value}")?)
}

fn program(env: &Env) -> String {
    env.exe.as_ref().map_or_else(|| "its place is not known".into(), |path| path.display().to_string())
}

fn installed(terminal: &mut Terminal<'_>, config: &Config) -> Result<()> {
    let env = terminal.env;
    let found = Installation::read(env);
    if let Some(fault) = &found.fault {
        row(terminal, "settings", fault)?;
    }
    for event in entries::events() {
        let places: Vec<String> = found.ours(event).map(|hook| hook.place.clone()).collect();
        let text = if places.is_empty() { "not registered (si install)".into() } else { places.join(", ") };
        row(terminal, event, &text)?;
    }
    for (event, places) in found.duplicates() {
        row(
            terminal,
            "twice",
            &format!("{event} is answered from {}; each call still counts once", places.join(" and ")),
        )?;
    }
    for hook in found.hooks.iter().filter(|hook| hook.owner == entries::Owner::Original) {
        let command = text::sanitize(&hook.command).into_owned();
        row(terminal, "original", &format!("{} in {}: {command}", hook.event, hook.place))?;
    }
    for plugin in &found.originals {
        row(terminal, "original", &format!("the plugin {plugin} is enabled"))?;
    }
    let previous = previous::command(env, Store::new(env), config);
    let line = match (&found.statusline, previous) {
        (Current::Ours(_), _) if !config.statusline.enabled => "ours, and turned off (statusline.enabled)".into(),
        (Current::Ours(_), None) => "our rows".into(),
        (Current::Ours(_), Some(command)) => format!("our rows, then: {}", text::sanitize(&command)),
        (Current::None, _) => "none (si install)".into(),
        (Current::Original(_), _) => "the JavaScript original's (si install)".into(),
        (Current::User, _) => "another program's (si install puts ours before it)".into(),
    };
    row(terminal, "status line", &line)?;
    let path = Store::new(env).path(StateFile::Config);
    let set = KEYS.iter().filter(|key| tree::source(env, key) == tree::Source::File).count();
    let text = match (&config.broken, path) {
        (Some(broken), _) => format!("{} does not parse: {}", broken.path.display(), broken.why),
        (None, Some(path)) if path.is_file() => format!("{}, {set} of {} keys set", path.display(), KEYS.len()),
        (None, Some(path)) => format!("{}, not there: the defaults hold", path.display()),
        (None, None) => "no configuration folder: HOME is not set".into(),
    };
    row(terminal, "configuration", &text)
}

/// Prints the session's counters; returns where it started, else the working folder.
fn counters(terminal: &mut Terminal<'_>, config: &Config, session: &Session) -> Result<std::path::PathBuf> {
    let env = terminal.env;
    let store = Store::new(env);
    let sid = &session.sid;
    row(terminal, "session", session.describe().trim_start_matches("session "))?;
    let anchor = shape::anchor(store, sid).map(|anchor| std::path::PathBuf::from(anchor.cwd));
    let anchor = anchor.filter(|path| path.is_absolute()).unwrap_or_else(|| env.cwd.clone());
    row(terminal, "started in", &text::sanitize(&anchor.to_string_lossy()))?;
    let tail = session.transcript.as_deref().and_then(transcript::tail);
    let limits = zones::in_force(env, store, config, &anchor, sid, window(store, config, session));
    let zone = |tokens: u64| limits.zone(tokens).name();
    let context = match (tail.as_ref().and_then(transcript::Tail::context), budget::estimate(store, sid)) {
        (Some(tokens), _) => format!("{}, {}", text::tokens_whole(tokens), zone(tokens)),
        (None, 0) => "not known".into(),
        (None, tokens) => format!("~{}, {} (estimated)", text::tokens_whole(tokens), zone(tokens)),
    };
    row(terminal, "context", &context)?;
    let calls = store.read_count(StateFile::ToolCount(sid), budget::COUNT_RANGE);
    row(terminal, "tool calls", &calls.map_or_else(|| "none counted".into(), |calls| calls.to_string()))?;
    spent(terminal, config, session)?;
    if let Some(snapshot) = store.read_json::<Snapshot>(StateFile::Snapshot(sid)) {
        let hits = snapshot.regret_hits.len();
        row(
            terminal,
            "regret window",
            &format!("open since {} calls, {hits} dropped folders touched again", snapshot.calls_since),
        )?;
    }
    if let Some(count) = pins::count(&store, sid) {
        let off = if config.pins.enabled { "" } else { ", turned off (pins.enabled)" };
        row(terminal, "pins", &format!("{count}{off}"))?;
    }
    let archived = archive::list(&store, sid).len();
    let off = if config.tool_archive.enabled { "" } else { ", turned off (toolArchive.enabled)" };
    row(terminal, "archive", &format!("{archived} tool results{off}"))?;
    Ok(anchor)
}

/// Prints what the session cost, brought up to date where there is a transcript.
fn spent(terminal: &mut Terminal<'_>, config: &Config, session: &Session) -> Result<()> {
    let env = terminal.env;
    let store = Store::new(env);
    let prices = &config.statusline.prices;
    let totals = match &session.transcript {
        Some(path) => {
            let asked = totals::Session {
                sid: &session.sid,
                id: Some(&session.id),
                transcript: path,
                compacted_ms: history::last_of(store, &session.sid),
            };
            totals::update(&store, env, asked, prices)
        }
        None => totals::stored(&store, env, &session.sid),
    };
    let Some(totals) = totals else { return row(terminal, "cost", "not known") };
    let (cost, saved) = (totals.session.cost(prices), totals.session.saved(prices));
    row(terminal, "cost", &format!("{}, cache hits saved {}", text::money(cost), text::money(saved)))?;
    let last = totals.compacted_ms.map(|at| match text::ago(env.now_ms - at) {
        now if now == "now" => "just now".to_string(),
        ago => ago,
    });
    let text = match (totals.compactions, last) {
        // The transcript gets its row when the summary is there.
        (0, Some(last)) => format!("the first began {last}, and is not in the transcript yet"),
        (n, Some(last)) => format!("{n}, the last {last}"),
        (n, None) => n.to_string(),
    };
    row(terminal, "compactions", &text)
}

/// The context window of a session as its hooks know it.
fn window(store: Store<'_>, config: &Config, session: &Session) -> Option<u64> {
    let tail = session.transcript.as_deref().and_then(transcript::tail);
    let used = tail.as_ref().and_then(transcript::Tail::context).unwrap_or(0);
    let model = tail.as_ref().and_then(|tail| tail.latest.as_ref()).map(|latest| latest.model.as_str());
    zones::window(store, config, &session.sid, model, used)
}

fn limits(terminal: &mut Terminal<'_>, config: &Config, anchor: &Path, sid: &Sid, window: Option<u64>) -> Result<()> {
    let store = Store::new(terminal.env);
    let limits = zones::in_force(terminal.env, store, config, anchor, sid, window);
    for (name, from) in [("yellow", limits.yellow), ("orange", limits.orange), ("red", limits.red)] {
        row(terminal, name, &format!("from {}", text::tokens_whole(from)))?;
    }
    let set = config.for_project(anchor).statusline.zones.set;
    let base = match set {
        [false, false, false] => "the defaults",
        _ => "statusline.zones",
    };
    let window = window.map(|window| format!(", for a window of {}", text::tokens_whole(window))).unwrap_or_default();
    let source = match &limits.adaptive {
        Some(adaptive) => {
            let whose = if adaptive.of_project { "of this project" } else { "of all projects" };
            let cost = if adaptive.cost_tightened { "; orange comes earlier, for this session costs much" } else { "" };
            format!("learned from {} compactions {whose}, starting at {base}{window}{cost}", adaptive.samples)
        }
        None if !config.learn.enabled => format!("{base}{window}; learning is turned off (learn.enabled)"),
        None => {
            let n = history::read(store).len();
            let s = if n == 1 { "" } else { "s" };
            format!("{base}{window}; {n} compaction{s} in the history, too few to learn from")
        }
    };
    row(terminal, "from", &source)
}
