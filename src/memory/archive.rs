//! The tool-response archive: big results, kept as readable text so that they can be replayed after a compaction.
//!
//! Each session has a folder with one record per response and an index, oldest first. What is small, secret or a
//! picture is not kept; over the cap the least recently used goes, past its time everything does.

pub mod body;
mod secrets;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use memchr::memmem;
use serde_json::json;

use crate::call::Call;
use crate::client::json::Raw;
use crate::config::ToolArchive;
use crate::env::Env;
use crate::store::records::archive::{ArchiveRow, Archived};
use crate::store::{ARCHIVE_FOLDER, Guard, Sid, StateFile, Store, file, key};
use body::Body;

/// The longest id that names a file.
const ID_CHARS: usize = 64;
/// The longest id that the index holds as it was written.
const RAW_BYTES: usize = 200;
/// Length of a preview, in UTF-16 units.
const PREVIEW: usize = 160;
const DAY_MS: f64 = 86_400_000.0;

/// One tool response.
#[derive(Debug, Clone)]
pub struct Response<'a> {
    /// The tool call's id, as the client wrote it.
    pub id: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// The tool's input.
    pub input: Option<Raw<'a>>,
    /// The readable text.
    pub body: Body<'a>,
}

/// Archives the response of one tool call, if it is large enough and holds no secret. Counted once for each
/// `tool_use_id`, however often the hook fires. What goes wrong is for the caller to log; the call itself is unharmed.
pub fn store_response(call: &Call<'_>) -> Result<()> {
    let (config, payload) = (&call.config.tool_archive, call.payload);
    let (Some(id), Some(response)) = (payload.tool_use_id(), payload.any_tool_response()) else { return Ok(()) };
    if !config.enabled || response.raw().text().len() < config.threshold_chars {
        return Ok(());
    }
    let Some(body) = Body::of(&response) else { return Ok(()) };
    if secrets::touched(call) {
        call.log.debug("tool-archive", "not archived: shape.dropGlobs", json!({"id": id}));
        return Ok(());
    }
    let tool = payload.tool_name().unwrap_or_default();
    let response = Response { id: &id, tool: &tool, input: payload.tool_input(), body };
    if let Some(path) = save(call.env, &call.store, &call.sid, config, &response)? {
        call.log.debug("tool-archive", "archived", json!({"id": id, "tool": tool, "path": path}));
    }
    Ok(())
}

/// Archives a response; none when it is too small, has no id, or is there already.
pub fn save(
    env: &Env,
    store: &Store<'_>,
    sid: &Sid,
    limits: &ToolArchive,
    response: &Response<'_>,
) -> Result<Option<PathBuf>> {
    let Some(id) = file_id(response.id) else { return Ok(None) };
    let body = &response.body;
    let least = limits.threshold_chars.max(1);
    let chars = if body.bytes() < least { 0 } else { body.units() };
    if chars < least {
        return Ok(None);
    }
    // What takes long is done before the lock is taken.
    let body_parts = body.json_parts();
    let guard = store.lock(StateFile::ArchiveIndex(sid))?;
    let index = Index::read(&guard.store(), sid);
    let (name, taken) = index.place(&id, response.id);
    if taken && is_there(store, sid, &name) {
        return Ok(None); // the hook fired twice, as plugin and from the settings
    }
    let head = head(env, sid, &name, chars, response);
    let parts = [head.as_bytes()].into_iter().chain(body_parts.iter().map(|part| part.as_bytes())).chain([&b"}"[..]]);
    guard.write_parts(StateFile::Archived(sid, &name), &parts.collect::<Vec<_>>())?;
    let path = store.path(StateFile::Archived(sid, &name));
    if taken {
        return Ok(path);
    }
    let row = ArchiveRow {
        raw_id: (name != response.id).then(|| raw_key(response.id)),
        id: name.clone(),
        t: env.now_ms,
        tool: response.tool.into(),
        chars: chars as i64,
        preview: body.preview(PREVIEW),
        ..ArchiveRow::default()
    };
    if let Err(error) = index.add(&guard, sid, &row, limits, env.now_ms) {
        let _ = guard.remove(StateFile::Archived(sid, &name)); // best effort: without a row nobody would miss it
        return Err(error);
    }
    Ok(path)
}

/// What stands before the body in a record's JSON, in the key order of the JavaScript original.
fn head(env: &Env, sid: &Sid, id: &str, chars: usize, response: &Response<'_>) -> String {
    let input = response.input.map_or("null".into(), |input| body::strict(input.text()));
    let text = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "{{\"id\":{},\"sid\":{},\"tool\":{},\"tool_input\":{input},\"t\":{},\"chars\":{chars},\"body\":",
        text(id),
        text(sid.as_str()),
        text(response.tool),
        env.now_ms,
    )
}

/// The id as a file name: only `[A-Za-z0-9_-]`, at most 64 characters; none when nothing is left.
pub fn file_id(raw: &str) -> Option<String> {
    let mut id = key::clean(raw, usize::MAX)?;
    id.truncate(ID_CHARS);
    Some(id)
}

/// The id as the index remembers it: as it was written, unless it is of absurd length.
fn raw_key(raw: &str) -> String {
    if raw.len() <= RAW_BYTES { raw.into() } else { format!("sha256:{}", key::sha256_hex(raw.as_bytes(), 64)) }
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its row in the index.
    pub row: ArchiveRow,
    /// Whether its record is gone.
    pub missing: bool,
}

/// What a session's archive holds, in the order of its index: oldest first. Records that no row names, as where the
/// index was swept out of the temp folder, are listed by what stands in them.
pub fn list(store: &Store<'_>, sid: &Sid) -> Vec<Entry> {
    let index = Index::read(store, sid);
    let mut rows: Vec<ArchiveRow> = index.rows().map(|(_, row)| row).collect();
    // Of two rows with one id the later one counts.
    let mut seen = HashSet::new();
    rows.reverse();
    rows.retain(|row| seen.insert(row.id.clone()));
    rows.reverse();
    let unlisted = unlisted(store, sid, &seen);
    if !unlisted.is_empty() {
        rows.extend(unlisted);
        rows.sort_by_key(|row| row.t);
    }
    rows.into_iter().map(|row| Entry { missing: !is_there(store, sid, &row.id), row }).collect()
}

/// A row for each record that is whole and not among `listed`.
fn unlisted(store: &Store<'_>, sid: &Sid, listed: &HashSet<String>) -> Vec<ArchiveRow> {
    let Some(folder) = own_folder(store, sid) else { return Vec::new() };
    let row = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let id = name.to_str()?.strip_suffix(".json").filter(|id| is_file_id(id) && !listed.contains(*id))?;
        let record: Archived = serde_json::from_slice(&store.read(StateFile::Archived(sid, id))?).ok()?;
        let preview = Body::plain(&record.body).preview(PREVIEW);
        let Archived { id: own, t, tool, chars, .. } = record;
        (own == id).then(|| ArchiveRow { id: own, t, tool, chars, preview, ..ArchiveRow::default() })
    };
    std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(row).collect()
}

/// The folder of a session's archive. A link in its place leads to a folder of somebody else's.
fn own_folder(store: &Store<'_>, sid: &Sid) -> Option<PathBuf> {
    let folder = store.path(StateFile::ArchiveIndex(sid))?.parent()?.to_path_buf();
    folder.symlink_metadata().is_ok_and(|meta| meta.is_dir() && file::is_own(&meta)).then_some(folder)
}

fn is_there(store: &Store<'_>, sid: &Sid, name: &str) -> bool {
    let path = store.path(StateFile::Archived(sid, name)).filter(|_| is_file_id(name));
    path.is_some_and(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_file()))
}

/// Whether a name can be that of a record: an index that another hand wrote may hold anything.
fn is_file_id(name: &str) -> bool {
    file_id(name).as_deref() == Some(name)
}

/// Reads a record by its id, raw or cleaned; none when it is not there or not whole. What is read counts as used.
pub fn read(env: &Env, store: &Store<'_>, sid: &Sid, id: &str) -> Option<Archived> {
    let cleaned = file_id(id)?;
    let raw = raw_key(id);
    let index = Index::read(store, sid);
    let by_raw = index.rows().map(|(_, row)| row).find(|row| row.raw_id.as_ref() == Some(&raw));
    let name = by_raw.map(|row| row.id).filter(|name| is_file_id(name)).unwrap_or(cleaned);
    let bytes = store.read(StateFile::Archived(sid, &name))?;
    let record = serde_json::from_slice(&bytes).ok()?;
    mark_used(env, store, sid, &name);
    Some(record)
}

/// Notes that an entry was used, so that it is evicted late. A listing that is busy or read-only just keeps its order.
fn mark_used(env: &Env, store: &Store<'_>, sid: &Sid, name: &str) {
    if !Index::read(store, sid).rows().any(|(_, row)| row.id == name) {
        return;
    }
    let Ok(guard) = store.lock(StateFile::ArchiveIndex(sid)) else { return };
    let index = Index::read(&guard.store(), sid);
    let mut text = String::with_capacity(index.text.len() + 32);
    for (line, mut row) in index.rows() {
        if row.id == name {
            row.used = Some(env.now_ms);
            text.push_str(&serde_json::to_string(&row).unwrap_or_else(|_| line.to_string()));
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    let _ = guard.write(StateFile::ArchiveIndex(sid), text.as_bytes());
}

/// Removes what is older than `ttl_days` from a session's archive, records without a row included; returns how many.
pub fn prune(env: &Env, store: &Store<'_>, sid: &Sid, ttl_days: f64) -> Result<usize> {
    let Some(folder) = own_folder(store, sid).filter(|_| ttl_days > 0.0) else { return Ok(0) };
    let guard = store.lock(StateFile::ArchiveIndex(sid))?;
    let index = Index::read(&guard.store(), sid);
    let oldest = env.now_ms - (ttl_days * DAY_MS) as i64;
    let (kept, gone): (Vec<_>, Vec<_>) = index.rows().partition(|(_, row)| row.t >= oldest);
    let mut removed = 0;
    if !gone.is_empty() {
        rewrite(&guard, sid, &kept, None)?;
        removed += drop_records(&guard, sid, gone.iter().map(|(_, row)| row), &kept)?;
    }
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = name.strip_suffix(".json").filter(|id| is_file_id(id)) else { continue };
        let changed = entry.metadata().ok().and_then(|meta| meta.modified().ok());
        let changed = changed.and_then(|when| when.duration_since(std::time::UNIX_EPOCH).ok());
        let old = changed.is_some_and(|since| (since.as_millis() as i64) < oldest);
        if old && !kept.iter().any(|(_, row)| row.id == id) && guard.remove(StateFile::Archived(sid, id)).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// The sessions of this user that have an archive, the most recently used first.
pub fn sessions(env: &Env) -> Vec<Sid> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&env.tmp).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(ARCHIVE_FOLDER)) else { continue };
        let sid = Sid::new(id);
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        if sid.as_str() == id && meta.is_dir() && file::is_own(&meta) {
            found.push((meta.modified().ok(), sid));
        }
    }
    found.sort_by(|one, two| two.cmp(one));
    found.into_iter().map(|(_, sid)| sid).collect()
}

/// The text of an index.
struct Index {
    text: String,
}

impl Index {
    fn read(store: &Store<'_>, sid: &Sid) -> Index {
        Index { text: store.read_text(StateFile::ArchiveIndex(sid)).unwrap_or_default() }
    }

    /// The rows with their lines; a torn line is passed over.
    fn rows(&self) -> impl Iterator<Item = (&str, ArchiveRow)> {
        let parse = |line: &'_ str| serde_json::from_str::<ArchiveRow>(line).ok().filter(|row| !row.id.is_empty());
        self.text.lines().filter_map(move |line| Some((line, parse(line)?)))
    }

    /// The name for a call's record, and whether the call has it already. Ids that differ only in characters that a
    /// name cannot have stay apart.
    fn place(&self, id: &str, raw: &str) -> (String, bool) {
        let owner = |name: &str| {
            memmem::find(self.text.as_bytes(), name.as_bytes())?;
            let row = self.rows().find(|(_, row)| row.id == name)?.1;
            Some(row.raw_id.unwrap_or(row.id))
        };
        match owner(id) {
            None => (id.into(), false),
            Some(other) if other == raw_key(raw) => (id.into(), true),
            Some(_) => {
                let start = &id[..id.len().min(ID_CHARS - 17)];
                let name = format!("{start}-{}", key::sha256_hex(raw.as_bytes(), 16));
                let taken = owner(&name).is_some();
                (name, taken)
            }
        }
    }

    /// Adds a row, and drops what is past its time or over the cap. Rows are dated in order, so usually a look at the
    /// first one is enough, and the row is appended.
    fn add(&self, guard: &Guard<'_>, sid: &Sid, row: &ArchiveRow, limits: &ToolArchive, now_ms: i64) -> Result<()> {
        let oldest = if limits.ttl_days > 0.0 { now_ms - (limits.ttl_days * DAY_MS) as i64 } else { i64::MIN };
        let cap = if limits.max_per_session > 0 { limits.max_per_session } else { usize::MAX };
        let count = self.text.lines().count();
        if count < cap && self.rows().next().is_none_or(|(_, first)| first.t >= oldest) {
            return guard.append(StateFile::ArchiveIndex(sid), &serde_json::to_string(row)?);
        }
        let (kept, mut gone): (Vec<_>, Vec<_>) = self.rows().partition(|(_, row)| row.t >= oldest);
        let excess = (kept.len() + 1).saturating_sub(cap);
        let mut by_use: Vec<usize> = (0..kept.len()).collect();
        by_use.sort_by_key(|at| kept[*at].1.used.unwrap_or(0).max(kept[*at].1.t));
        let least: HashSet<usize> = by_use.into_iter().take(excess).collect();
        let (over, kept): (Vec<_>, Vec<_>) = kept.into_iter().enumerate().partition(|(at, _)| least.contains(at));
        gone.extend(over.into_iter().map(|(_, row)| row));
        let mut kept: Vec<_> = kept.into_iter().map(|(_, row)| row).collect();
        rewrite(guard, sid, &kept, Some(row))?;
        kept.push(("", row.clone()));
        drop_records(guard, sid, gone.iter().map(|(_, row)| row), &kept)?;
        Ok(())
    }
}

fn rewrite(guard: &Guard<'_>, sid: &Sid, kept: &[(&str, ArchiveRow)], new: Option<&ArchiveRow>) -> Result<()> {
    let mut text: String = kept.iter().flat_map(|(line, _)| [*line, "\n"]).collect();
    if let Some(row) = new {
        text.push_str(&serde_json::to_string(row)?);
        text.push('\n');
    }
    guard.write(StateFile::ArchiveIndex(sid), text.as_bytes())
}

/// Removes the records of dropped rows, unless a row that stays names the same one; returns how many.
fn drop_records<'r>(
    guard: &Guard<'_>,
    sid: &Sid,
    gone: impl Iterator<Item = &'r ArchiveRow>,
    kept: &[(&str, ArchiveRow)],
) -> Result<usize> {
    let mut removed = 0;
    let kept: HashSet<&str> = kept.iter().map(|(_, row)| row.id.as_str()).collect();
    for row in gone {
        if is_file_id(&row.id) && !kept.contains(row.id.as_str()) {
            guard.remove(StateFile::Archived(sid, &row.id))?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests;
