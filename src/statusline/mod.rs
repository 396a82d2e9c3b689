//! The status line: payload in, rows out.
//!
//! A field that fails, even by panicking, costs its own cell and nothing else. Nothing here waits: what is slow is read
//! from the last stored answer and renewed by a detached process, and the previous status line command runs beside the
//! rest, for a bounded time.

pub mod context;
pub mod emoji;
pub mod explain;
pub mod fields;
pub mod health;
pub mod layout;
pub mod preview;
pub mod previous;
pub mod quota;
pub mod style;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::client::payload::Payload;
use crate::client::{json as client_json, stdin};
use crate::config::Config;
use crate::env::Env;
use crate::log::Log;
use crate::store::{StateFile, Store};
use crate::text;
use crate::watch::shape;

use context::Context;
use fields::{Field, NEWLINE};
use layout::{Cell, Row, STAYS};
use style::Role;

/// How long an unfinished document on standard input is waited for.
const STDIN_PATIENCE: Duration = Duration::from_millis(1000);
/// Columns of the terminal that the client keeps for itself.
const CLIENT_COLUMNS: usize = 4;
/// Context windows outside of this are nonsense.
const WINDOWS: std::ops::RangeInclusive<u64> = 1..=1_000_000_000;

/// Renders the rows for the payload on standard input; empty when there is nothing to show.
pub fn run(args: &[OsString], env: &Env) -> Result<String> {
    let asked = |flag: &str| args.iter().any(|arg| arg == flag);
    if asked("--preview") {
        return Ok(preview::render(env, &Config::load(env).for_project(&env.cwd)));
    }
    let bytes = if env.tty.stdin { Vec::new() } else { stdin::read(STDIN_PATIENCE) };
    let text = client_json::decode(&bytes);
    let payload = Payload::parse(&text).unwrap_or_default();
    let config = Config::load(env);
    let config = match project_dir(env, &config, &payload) {
        Some(dir) => config.for_project(&dir),
        None => std::borrow::Cow::Borrowed(&config),
    };
    if asked("--explain") {
        return Ok(explain::render(&Context::new(env, &config, &payload)));
    }
    let Some(command) = previous::command(env, Store::new(env), &config) else {
        return Ok(ours(env, &config, &payload));
    };
    let limit = Duration::from_millis(config.statusline.prev_timeout_ms);
    Ok(std::thread::scope(|scope| {
        let previous = scope.spawn(|| previous::run(env, &command, &bytes, limit));
        let ours = ours(env, &config, &payload);
        previous::join(env, ours, previous.join().unwrap_or_default())
    }))
}

/// The folder whose block of the configuration counts; none where there are no blocks.
fn project_dir(env: &Env, config: &Config, payload: &Payload<'_>) -> Option<std::path::PathBuf> {
    if config.statusline.per_project.is_empty() && config.shape.per_project.is_empty() {
        return None;
    }
    let anchor = shape::anchor(Store::new(env), &payload.sid(env));
    anchor.map(|anchor| anchor.cwd.into()).or_else(|| payload.start_dir())
}

/// Our own rows; empty when they are turned off or show nothing.
fn ours(env: &Env, config: &Config, payload: &Payload<'_>) -> String {
    if !config.statusline.enabled {
        return String::new();
    }
    let ctx = Context::new(env, config, payload);
    leave_window(&ctx);
    render(&ctx, env.columns())
}

/// The rows of a context, fitted to a terminal of `columns`, or not at all.
pub fn render(ctx: &Context<'_>, columns: Option<usize>) -> String {
    let line = &ctx.config.statusline;
    let separator = text::sanitize(&line.separator);
    let width = columns.map(|columns| columns.saturating_sub(CLIENT_COLUMNS).max(1));
    let mut rows: Vec<Vec<Cell>> = vec![Vec::new()];
    for name in &line.fields {
        match (name.as_str(), rows.last_mut()) {
            (NEWLINE, _) | (_, None) => rows.push(Vec::new()),
            (name, Some(row)) => row.extend(fields::by_name(name).and_then(|field| cell(ctx, field))),
        }
    }
    rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
    if ctx.config.broken.is_some() {
        let warning = Cell { rank: STAYS, ..Cell::new(Role::Red, "config!") };
        match rows.last_mut() {
            Some(row) => row.push(warning),
            None => rows.push(vec![warning]),
        }
    }
    let rows = rows.into_iter().map(|row| layout::fit(row, &separator, width));
    let rows: Vec<String> =
        rows.filter(|row: &Row| !row.is_empty()).map(|row| row.render(&separator, line.colors)).collect();
    rows.join("\n")
}

/// The cell of one field. A panic in it is logged and costs this cell alone.
fn cell(ctx: &Context<'_>, field: &Field) -> Option<Cell> {
    let made = catch_unwind(AssertUnwindSafe(|| (field.render)(ctx))).unwrap_or_else(|_| {
        let debug = &ctx.config.debug;
        let log = Log::new(ctx.env, Some(ctx.sid.as_str()), debug.enabled, debug.quiet);
        log.error("statusline", "a field failed", json!({"field": field.name}));
        None
    });
    made.map(|cell| Cell { rank: field.rank, ..cell })
}

/// Leaves the client's context window for the hooks, which are not told it.
fn leave_window(ctx: &Context<'_>) {
    let file = StateFile::ContextWindow(&ctx.sid);
    let Some(window) = ctx.client_window().filter(|window| WINDOWS.contains(window)) else { return };
    if ctx.store.read_count(file, WINDOWS) != Some(window)
        && let Ok(guard) = ctx.store.lock_within(file, Duration::ZERO)
    {
        let _ = guard.write(file, window.to_string().as_bytes()); // the next redraw tries again
    }
}
