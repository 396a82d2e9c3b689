//! At session start: what is to be set up, then what the session is to remember, in one reply.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::{Call, Reply};
use crate::client::project;
use crate::compaction::bootstrap::{self, Start};
use crate::compaction::{claude_md, handoff};
use crate::git;
use crate::memory::pins::{self, REPLY_LIMIT};
use crate::store::StateFile;
use crate::text::{self, json_units};
use crate::watch::anchors::{self, Query};
use crate::watch::glob::Globs;
use crate::watch::shape;

/// The event as the client names it.
const EVENT: &str = "SessionStart";

/// Bootstrap, then pins, resume block and anchors as one reply of at most [`REPLY_LIMIT`] units: pins go first and whole,
/// the resume block is shortened to what is left.
pub fn run(call: &Call<'_>) -> Result<Reply> {
    if !call.config.hooks.session_start {
        return Ok(Reply::silent());
    }
    let started = set_up(call);
    reply(call, &started, true)
}

/// Bootstrap and resume block, without the pins.
pub fn bootstrap(call: &Call<'_>) -> Result<Reply> {
    if !call.config.hooks.session_start {
        return Ok(Reply::silent());
    }
    let started = set_up(call);
    reply(call, &started, false)
}

/// Pins alone.
pub fn pin_inject(call: &Call<'_>) -> Result<Reply> {
    let block = call.config.hooks.session_start.then(|| pins::inject(call, room_for_pins())).flatten();
    Ok(match block {
        Some(block) => Reply::context(EVENT, Some(block), None),
        None => Reply::silent(),
    })
}

/// What setting up found out.
struct Started {
    anchor: PathBuf,
    folder: Option<project::Folder>,
    notices: Vec<String>,
}

fn set_up(call: &Call<'_>) -> Started {
    let anchor = pin_anchor(call);
    let folder = project::folder(call.env, call.payload, Some(&anchor));
    let head = git::head(call.env, &anchor, git::HOOK_DEADLINE);
    if head.is_some() {
        git::ask_anew(call.env, call.store, &anchor);
    }
    let fresh = matches!(call.payload.source().as_deref(), None | Some("startup" | "clear"));
    let start = Start { anchor: &anchor, folder: folder.as_ref(), head: head.as_ref(), fresh };
    let notices = bootstrap::run(call, &start);
    let swept = call.store.sweep(claude_md::project_folder(call.env, &anchor));
    if swept > 0 {
        call.log.info("bootstrap", "leftovers of killed processes removed", json!({"files": swept}));
    }
    Started { folder, notices, anchor }
}

/// Records where the session starts and returns that folder.
fn pin_anchor(call: &Call<'_>) -> PathBuf {
    let cwd = project::start_dir(call.payload).unwrap_or_else(|| call.env.cwd.clone());
    let named = call.payload.session_id().is_some() || crate::client::payload::env_session_id(call.env).is_some();
    if !named {
        return cwd; // without an id the record would be everybody's
    }
    let file = StateFile::SessionAnchor(&call.sid);
    let pinned = call.store.lock(file).and_then(|guard| shape::pin_anchor(&guard, call.env, &call.sid, &cwd));
    match pinned {
        Ok(anchor) => anchor.cwd.into(),
        Err(error) => {
            call.log.warn("bootstrap", "the session's start was not recorded", json!({"error": format!("{error:#}")}));
            cwd
        }
    }
}

/// What pins may take of a session start without notices: the client's limit without the reply's own frame.
pub fn room_for_pins() -> usize {
    let frame = Reply::context(EVENT, Some(String::new()), Some(String::new())).streams().0;
    REPLY_LIMIT - frame.map_or(0, |frame| text::utf16_len(&frame))
}

fn reply(call: &Call<'_>, started: &Started, with_pins: bool) -> Result<Reply> {
    let notice = notice(&started.notices);
    // A banner is at most a line; what it takes is set aside, so that the pins need not wait for it.
    let mut room = room_for_pins() - notice.as_deref().map_or(0, json_units);
    let mut parts = Vec::new();
    if with_pins && let Some(block) = pins::inject(call, room) {
        room = room.saturating_sub(json_units(&block) + json_units("\n\n"));
        parts.push(block);
    }
    let mut banner = None;
    if let Some(resume) = resume(call, started, room) {
        let wanted = resume.block.as_deref().map_or(0, json_units) + json_units(&resume.banner);
        // Where pins leave no room for the block, the user is told at least.
        banner = Some(resume.banner).filter(|_| wanted <= room);
        room = room.saturating_sub(wanted + 2 * json_units("\n\n"));
        parts.extend(resume.block);
    }
    parts.extend(frequent_files(call, started).filter(|block| json_units(block) <= room));
    let for_user: Vec<String> = [banner, notice].into_iter().flatten().collect();
    let for_model = (!parts.is_empty()).then(|| parts.join("\n\n"));
    let for_user = (!for_user.is_empty()).then(|| for_user.join("\n"));
    Ok(Reply::context(EVENT, for_model, for_user))
}

fn notice(lines: &[String]) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("  {}", text::sanitize(line))).collect();
    Some(format!("session-intelligence\n{}", lines.join("\n")))
}

/// Takes the handoff of this session's last compaction and lays it out in `room` units, banner included.
fn resume(call: &Call<'_>, started: &Started, room: usize) -> Option<handoff::Resume> {
    if !call.config.r#continue.after_compact {
        return None;
    }
    let folder = started.folder.as_ref()?;
    let id = call.payload.session_id()?;
    let handoff = handoff::take(call.env, call.store, &call.log, folder, &id)?;
    let room = room.saturating_sub(handoff::MAX_BANNER + 2 * json_units("\n\n"));
    let resume = handoff::resume(&handoff, call.config.r#continue.echo, room);
    call.log.info("bootstrap", "resumed from the handoff", json!({"shown": resume.block.is_some()}));
    Some(resume)
}

/// The files that recent commits changed most, where the user asked for them at session start.
fn frequent_files(call: &Call<'_>, started: &Started) -> Option<String> {
    let settings = &call.config.shape.git_nexus;
    if !settings.enabled || !settings.inject_at_start {
        return None;
    }
    let query = Query::new(settings.since_days, settings.limit.max(settings.inject_limit));
    let secret = Globs::new(&shape::Settings::of(call.config, &started.anchor.to_string_lossy()).secret);
    let files = anchors::files(call.env, call.store, &started.anchor, &query);
    let shown = files.iter().filter(|file| !secret.hit_path(&file.path, None)).take(settings.inject_limit);
    let lines: Vec<String> = shown
        .map(|file| {
            let commits = if file.count == 1 { "commit" } else { "commits" };
            format!("- {} ({} {commits})", text::sanitize(&file.path), file.count)
        })
        .collect();
    let head = format!("FILES CHANGED MOST OFTEN (commits of the last {} days):", settings.since_days);
    (!lines.is_empty()).then(|| format!("{head}\n{}", lines.join("\n")))
}
