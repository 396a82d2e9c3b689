//! Pins: text that the user chose to keep, brought back word for word after every compaction.
//!
//! They live in one Markdown file per session, which a person may edit ([`markdown`]). The order of the file is the
//! order in which they were pinned. A hook's reply may be no longer than [`REPLY_LIMIT`], so the newest pins go first
//! into what there is room for, and what is left out is named with the file that holds it.

pub mod markdown;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::call::Call;
use crate::client::json::{self as client_json, Object};
use crate::client::transcript;
use crate::env::Env;
use crate::store::{Sid, StateFile, Store, file};
use crate::text::{self, json_units};
use markdown::Pin;

/// The longest reply that the client hands to the model whole, in UTF-16 units.
pub const REPLY_LIMIT: usize = 10_000;
/// How long a pin file is kept after its last change.
const KEPT_MS: i64 = 14 * DAY_MS;
const DAY_MS: i64 = 86_400_000;
/// How far from either end of a fork's transcript its parent's id is looked for, in bytes.
const FORK_ENDS: usize = 16 << 20;
/// How many pins that are too long to come back are named one by one.
const NAMED: usize = 3;

const HEAD: &str = "PINNED CONTEXT, saved by the user with `si pin`. Each pin below stands word for word as it was saved and \
                    is authoritative: where a summary leaves it out or says otherwise, the pin holds.\n";

/// What a session start brings back, and what it leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The text for the model.
    pub text: String,
    /// Positions of the pins there was no room for, from 0.
    pub left_out: Vec<usize>,
    /// Those of them that would not fit even alone.
    pub too_long: Vec<usize>,
    /// What all pins together would take, in units of the reply.
    pub wanted: usize,
}

/// The block with this session's pins for a session start, at most `room` units long as [`json_units`] counts; none when
/// there is nothing to bring back. Every source may call it: a fork first takes over its parent's pins, and old files
/// of other sessions are swept.
pub fn inject(call: &Call<'_>, room: usize) -> Option<String> {
    if !call.config.pins.enabled {
        return None;
    }
    if call.payload.source().as_deref() == Some("fork")
        && let Err(error) = adopt(call)
    {
        call.log.warn(
            "pin-inject",
            "the parent's pins could not be taken over",
            json!({"error": format!("{error:#}")}),
        );
    }
    let pins = load(&call.store, &call.sid);
    let path = call.store.path(StateFile::Pins(&call.sid));
    let block = pins.filter(|pins| !pins.is_empty()).zip(path).map(|(pins, path)| {
        let block = fit(&pins, &path, room);
        call.log.info("pin-inject", "pins brought back", json!({"pins": pins.len(), "leftOut": block.left_out.len()}));
        renew(call.env, &path);
        block.text
    });
    for name in sweep(call.env, &call.store, &call.sid) {
        call.log.info("pin-inject", "old pin file removed", json!({"file": name}));
    }
    block
}

/// How many pins a session has; none without a pin file.
pub fn count(store: &Store<'_>, sid: &Sid) -> Option<usize> {
    load(store, sid).map(|pins| pins.len())
}

/// The session's pins, in the order of the file; none without a pin file.
pub fn load(store: &Store<'_>, sid: &Sid) -> Option<Vec<Pin>> {
    Some(markdown::parse(&store.read_text(StateFile::Pins(sid))?))
}

/// The session's pins for a person who asks: no file is no pins, but one that cannot be read is an error.
pub fn read(store: &Store<'_>, sid: &Sid) -> Result<Vec<Pin>> {
    let bytes = read_whole(store, sid)?.unwrap_or_default();
    Ok(markdown::parse(&String::from_utf8_lossy(&bytes)))
}

/// Lays out what fits into `room` units. The newest pins are taken first, one that does not fit is passed over, and
/// what is taken is shown in the order of the file.
pub fn fit(pins: &[Pin], path: &Path, room: usize) -> Block {
    let bar = bar(pins);
    let heads: Vec<String> = (1..=pins.len()).map(|n| format!("\n{bar} pin {n} {bar}\n")).collect();
    let costs: Vec<usize> =
        pins.iter().zip(&heads).map(|(pin, head)| json_units(head) + json_units(&pin.text) + 2).collect();
    let frame = json_units(HEAD);
    let wanted = frame + costs.iter().sum::<usize>();
    let mut taken = vec![wanted <= room; pins.len()];
    let mut too_long = Vec::new();
    if wanted > room {
        let alone = |n: usize, named: &[usize]| frame + costs[n] + json_units(&closing(pins, pins.len(), named, path));
        too_long = (0..pins.len()).filter(|n| alone(*n, &[]) > room).collect();
        let mut left = room.saturating_sub(frame + json_units(&closing(pins, pins.len(), &too_long, path)));
        for n in (0..pins.len()).rev() {
            taken[n] = costs[n] <= left;
            left -= if taken[n] { costs[n] } else { 0 };
        }
    }
    let left_out: Vec<usize> = (0..pins.len()).filter(|n| !taken[*n]).collect();
    let mut text = HEAD.to_string();
    for n in (0..pins.len()).filter(|n| taken[*n]) {
        text.push_str(&heads[n]);
        text.push_str(&pins[n].text);
        text.push('\n');
    }
    if !left_out.is_empty() {
        text.push_str(&closing(pins, left_out.len(), &too_long, path));
    }
    Block { text, left_out, too_long, wanted }
}

/// The line that says what is missing and where it can be read.
fn closing(pins: &[Pin], missing: usize, too_long: &[usize], path: &Path) -> String {
    let verb = if missing == 1 { "1 more pin is" } else { &format!("{missing} more pins are") };
    let mut line = format!("\n{verb} not shown here for lack of room. Read them in {}.", path.display());
    for n in too_long.iter().take(NAMED) {
        line.push_str(&format!(" Pin {} ({}) is too long to come back on its own.", n + 1, label(&pins[*n].text, 40)));
    }
    if too_long.len() > NAMED {
        line.push_str(&format!(" So are {} others.", too_long.len() - NAMED));
    }
    line.push('\n');
    line
}

/// The first words of a pin, to tell it by, in at most `max` UTF-16 units.
pub fn label(pin: &str, max: usize) -> String {
    let words: Vec<&str> = pin.split_whitespace().take(max).collect();
    text::cut(&text::sanitize(&words.join(" ")), max).into_owned()
}

/// The mark between pins: longer than any run in them that looks like it, so that no pin can pass for two.
fn bar(pins: &[Pin]) -> String {
    let before = |text: &str| text.len() - text.trim_end_matches('-').len();
    let runs = pins.iter().flat_map(|pin| pin.text.match_indices(" pin ").map(|(at, _)| before(&pin.text[..at])));
    "-".repeat(runs.max().map_or(3, |longest| 3.max(longest + 1)))
}

/// What became of texts that were to be pinned, by their position.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Written.
    pub new: Vec<usize>,
    /// There already, or twice in the call.
    pub known: Vec<usize>,
}

/// What tells a pin from others: spaces around a text make no other pin of it.
pub fn gist(pin: &str) -> &str {
    pin.trim()
}

/// Appends pins. A text that is pinned already is left out. Either all new ones are written or none.
pub fn add(env: &Env, store: &Store<'_>, sid: &Sid, texts: &[&str], round: Option<u64>) -> Result<Added> {
    let guard = store.lock(StateFile::Pins(sid))?;
    let old = read_whole(&guard.store(), sid)?;
    let mut bytes = old.unwrap_or_default();
    let file = String::from_utf8_lossy(&bytes);
    let pins = markdown::parse(&file);
    let mut known: HashSet<&str> = pins.iter().map(|pin| gist(&pin.text)).collect();
    let mut result = Added::default();
    let mut fresh: Vec<&str> = Vec::new();
    for (n, text) in texts.iter().map(|text| markdown::trim(text)).enumerate() {
        if known.insert(gist(text)) {
            fresh.push(text);
            result.new.push(n);
        } else {
            result.known.push(n);
        }
    }
    if fresh.is_empty() {
        return Ok(result);
    }
    let before = (!bytes.is_empty()).then_some(file.as_ref());
    let addition = markdown::addition(before, &fresh, &env.iso(env.now_ms), round);
    bytes.extend_from_slice(addition.as_bytes());
    guard.write(StateFile::Pins(sid), &bytes)?;
    Ok(result)
}

/// Takes pins out, by their numbers from 1, and returns their texts. A number that is not there changes nothing.
pub fn remove(store: &Store<'_>, sid: &Sid, numbers: &[usize]) -> Result<Vec<String>> {
    let guard = store.lock(StateFile::Pins(sid))?;
    let file = read_whole(&guard.store(), sid)?.unwrap_or_default();
    let file = String::from_utf8(file).context("the pin file is not UTF-8 text: edit it by hand")?;
    let pins = markdown::parse(&file);
    let mut picked: Vec<usize> = numbers.to_vec();
    picked.sort_unstable();
    picked.dedup();
    if let Some(wrong) = picked.iter().find(|n| !(1..=pins.len()).contains(*n)) {
        match pins.len() {
            0 => bail!("there is no pin {wrong}: this session has none"),
            1 => bail!("there is no pin {wrong}: this session has one, number 1"),
            most => bail!("there is no pin {wrong}: this session's pins are numbered 1 to {most} (see si pin --list)"),
        }
    }
    let picked: Vec<&Pin> = picked.into_iter().map(|n| &pins[n - 1]).collect();
    guard.write(StateFile::Pins(sid), markdown::without(&file, &picked).as_bytes())?;
    Ok(picked.into_iter().map(|pin| pin.text.clone()).collect())
}

/// Sets the whole pin file aside; returns how many pins it held and where it is now. None without pins.
pub fn clear(store: &Store<'_>, sid: &Sid) -> Result<Option<(usize, PathBuf)>> {
    let guard = store.lock(StateFile::Pins(sid))?;
    let Some(file) = read_whole(&guard.store(), sid)? else { return Ok(None) };
    let pins = markdown::parse(&String::from_utf8_lossy(&file)).len();
    if pins == 0 {
        return Ok(None);
    }
    Ok(Some((pins, guard.set_aside_as(StateFile::Pins(sid), "cleared")?)))
}

/// The bytes of the pin file; none when there is none. An error where there is something that cannot be read whole,
/// since writing then would lose it.
fn read_whole(store: &Store<'_>, sid: &Sid) -> Result<Option<Vec<u8>>> {
    let state = StateFile::Pins(sid);
    let bytes = store.read(state);
    let path = store.path(state).context("no configuration folder: set HOME or CLAUDE_CONFIG_DIR")?;
    if bytes.is_none() && path.symlink_metadata().is_ok() && path.exists() {
        bail!("{} cannot be read as a pin file (over 16 MB, or not a regular file)", path.display());
    }
    Ok(bytes)
}

/// Copies the pins of the session that this one was forked from, unless this one has its own.
fn adopt(call: &Call<'_>) -> Result<()> {
    let state = StateFile::Pins(&call.sid);
    if call.store.path(state).is_none_or(|path| path.symlink_metadata().is_ok()) {
        return Ok(());
    }
    let Some(transcript) = call.payload.transcript_path() else { return Ok(()) };
    let guard = call.store.lock(state)?;
    if call.store.read(state).is_some() {
        return Ok(());
    }
    for parent in other_sessions(&transcript, &call.sid) {
        if let Some(bytes) = call.store.read(StateFile::Pins(&parent)) {
            guard.write(state, &bytes)?;
            call.log.info("pin-inject", "pins taken over from the parent session", json!({"parent": parent.as_str()}));
            break;
        }
    }
    Ok(())
}

/// The sessions that a fork's transcript may come from: the last `sessionId` in it that is not `own`, since a fork of a
/// fork holds rows of both, and the first.
fn other_sessions(path: &Path, own: &Sid) -> impl Iterator<Item = Sid> {
    let other = |line: &[u8]| {
        let text = client_json::decode(line);
        let id = Object::parse(&text)?.name("sessionId")?;
        Some(Sid::new(&id)).filter(|sid| sid != own)
    };
    let (mut last, mut first, mut read) = (None, None, 0);
    transcript::each_line_backwards(path, FORK_ENDS as u64, |line| {
        last = other(line);
        if last.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    transcript::each_line(path, |line| {
        read += line.len();
        first = other(line);
        if first.is_some() || read > FORK_ENDS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    last.into_iter().chain(first)
}

/// Counts a pin file that was brought back as changed, so that a session in use never loses it. Once a day is enough.
fn renew(env: &Env, path: &Path) {
    if changed_ms(path).is_some_and(|changed| env.now_ms - changed > DAY_MS) {
        let _ = file::set_changed(path, env.now_ms); // a read-only home keeps its old time; the next start tries again
    }
}

/// Removes the pin files (and set-aside ones) of other sessions that have not changed for 14 days; returns their names.
fn sweep(env: &Env, store: &Store<'_>, own: &Sid) -> Vec<String> {
    let Some(folder) = env.in_claude("smartcompact") else { return Vec::new() };
    let mut removed = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((stem, rest)) = name.split_once(".md") else { continue };
        let sid = Sid::new(stem);
        let ours = sid.as_str() == stem && (rest.is_empty() || rest.starts_with(".cleared."));
        let stale = || {
            let file = entry.path().symlink_metadata().is_ok_and(|meta| meta.is_file());
            file && changed_ms(&entry.path()).is_some_and(|changed| env.now_ms - changed > KEPT_MS)
        };
        if !ours || sid == *own || !stale() {
            continue;
        }
        // A session that is pinning just now holds the lock or has just changed the file.
        let Ok(_guard) = store.lock_within(StateFile::Pins(&sid), Duration::ZERO) else { continue };
        if stale() && file::remove(&entry.path()).is_ok() {
            removed.push(name);
        }
    }
    removed
}

fn changed_ms(path: &Path) -> Option<i64> {
    let since = path.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_millis() as i64)
}

#[cfg(test)]
mod tests;
