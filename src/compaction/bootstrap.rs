//! What a session start sets up: the config file, the status line, session-context.md with what the last commit tells,
//! the block in CLAUDE.md, and one tip. Each step is done once or whenever it is due, and none stands in another's way.
//!
//! What was done is remembered in one file, read and written under its lock, so that sessions that start together do
//! everything once and lose nothing.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::claude_md::{self, Injected};
use super::session_context::{self, CURRENT_TASK, Class, KEY_FILES};
use crate::call::Call;
use crate::client::project::Folder;
use crate::client::settings::statusline::{self, Wiring};
use crate::config::docs;
use crate::git::{self, Head};
use crate::store::records::compaction::{AutoFill, BootstrapState};
use crate::store::{StateFile, Store};
use crate::text;
use crate::watch::glob::Globs;
use crate::watch::shape::Settings;

const TEMPLATE: &str = include_str!("../../templates/session-context.md");
/// How many files of a commit are named.
const MAX_FILES: usize = 10;
/// How much of a subject is taken, UTF-16 units.
const MAX_SUBJECT: usize = 200;
/// The source in the debug log.
const SOURCE: &str = "bootstrap";

/// Where a session starts.
pub struct Start<'a> {
    /// The folder that the session started in.
    pub anchor: &'a Path,
    /// The project's folder of the client.
    pub folder: Option<&'a Folder>,
    /// HEAD of the anchor's work tree.
    pub head: Option<&'a Head>,
    /// Whether a new conversation begins: only then the project's own files are touched.
    pub fresh: bool,
}

/// Sets up what is due. Returns what the user should be told, a line each.
pub fn run(call: &Call<'_>, start: &Start<'_>) -> Vec<String> {
    let mut notices = Vec::new();
    let mut step = |result: Result<Option<String>>, what: &str| match result {
        Ok(notice) => notices.extend(notice),
        Err(error) => call.log.warn(SOURCE, what, json!({"error": format!("{error:#}")})),
    };
    step(wire(call), "the status line was not wired");
    let guard = match call.store.lock(StateFile::Bootstrap) {
        Ok(guard) => guard,
        Err(error) => {
            call.log.warn(SOURCE, "nothing was set up", json!({"error": format!("{error:#}")}));
            return notices;
        }
    };
    let before = match guard.read_or_set_aside::<BootstrapState>(StateFile::Bootstrap) {
        Ok(state) => state.unwrap_or_default(),
        Err(error) => {
            call.log.warn(SOURCE, "the damaged state was not set aside", json!({"error": format!("{error:#}")}));
            return notices;
        }
    };
    let mut state = before.clone();
    step(seed_config(call, &mut state), "the config file was not made");
    if let Some(folder) = start.folder.filter(|_| call.config.bootstrap.session_context) {
        step(seed_context(call, folder, &mut state), "session-context.md was not made");
        note_sections(call.store, folder, &mut state);
        if let Some(head) = start.head.filter(|_| start.fresh) {
            step(autofill(call, start.anchor, folder, head, &mut state), "session-context.md was not filled in");
        }
    }
    if start.fresh && call.config.bootstrap.claude_md {
        step(inject_rules(call, start, &mut state), "CLAUDE.md was left alone");
    }
    if state.shown_compact_resume_tip.is_none() && call.config.r#continue.after_compact {
        state.shown_compact_resume_tip = Some(call.env.iso(call.env.now_ms));
        notices.push("After /compact Claude waits: send any short message (c will do) and it resumes the task.".into());
    }
    if state != before
        && let Err(error) = guard.write_json(StateFile::Bootstrap, &state)
    {
        call.log.warn(SOURCE, "what was set up could not be noted", json!({"error": format!("{error:#}")}));
    }
    notices
}

fn wire(call: &Call<'_>) -> Result<Option<String>> {
    if !call.config.bootstrap.statusline || statusline::wire(call.env, call.store)? == Wiring::Left {
        return Ok(None);
    }
    call.log.info(SOURCE, "status line wired", Value::Null);
    Ok(Some(
        "Status line set up in settings.json (a former one keeps running beside it; `si uninstall` undoes it).".into(),
    ))
}

fn seed_config(call: &Call<'_>, state: &mut BootstrapState) -> Result<Option<String>> {
    let path = call.store.path(StateFile::Config).context("no configuration folder")?;
    let wanted = call.config.bootstrap.config && state.seeded_config_at.is_none();
    if !wanted || path.symlink_metadata().is_ok() {
        return Ok(None);
    }
    call.store.write(StateFile::Config, docs::SEED.as_bytes())?;
    docs::keep_schema(call.store)?;
    state.seeded_config_at = Some(call.env.iso(call.env.now_ms));
    call.log.info(SOURCE, "config file made", Value::Null);
    Ok(Some(format!("Settings file made: {} (`/si config` shows what there is to set).", path.display())))
}

fn seed_context(call: &Call<'_>, folder: &Folder, state: &mut BootstrapState) -> Result<Option<String>> {
    let file = StateFile::SessionContext(&folder.enc);
    let path = call.store.path(file).context("no configuration folder")?;
    if path.symlink_metadata().is_ok() {
        return Ok(None);
    }
    call.store.write(file, TEMPLATE.as_bytes())?;
    state.seeded_contexts.insert(folder.enc.clone(), call.env.iso(call.env.now_ms).into());
    call.log.info(SOURCE, "session-context.md made", json!({"project": folder.enc}));
    Ok(Some(format!("Notes for this project made: {}", path.display())))
}

/// Notes since when each section that a person wrote has been as it is, before anything of ours renews the file's time.
pub fn note_sections(store: Store<'_>, folder: &Folder, state: &mut BootstrapState) {
    let context = session_context::read(store, &folder.enc);
    let filled = state.auto_filled.get(&folder.enc);
    let mut marks = context.marks();
    marks.retain(|heading, _| {
        let known = match heading.as_str() {
            CURRENT_TASK => filled.and_then(|filled| filled.body.as_deref()),
            KEY_FILES => filled.and_then(|filled| filled.files.as_deref()),
            _ => None,
        };
        let body = context.sections.get(heading).unwrap_or("");
        session_context::classify(body, known) == Class::User
    });
    if marks.is_empty() {
        state.sections.remove(&folder.enc);
    } else {
        state.sections.insert(folder.enc.clone(), marks);
    }
}

/// Fills the sections that nobody has written in from the last commit, once per commit.
fn autofill(
    call: &Call<'_>,
    anchor: &Path,
    folder: &Folder,
    head: &Head,
    state: &mut BootstrapState,
) -> Result<Option<String>> {
    let Some(id) = head.id.clone() else { return Ok(None) };
    let filled = state.auto_filled.get(&folder.enc).cloned().unwrap_or_default();
    let file = StateFile::SessionContext(&folder.enc);
    let Some(content) = call.store.read(file).and_then(|bytes| String::from_utf8(bytes).ok()) else { return Ok(None) };
    let sections = session_context::parse(&content);
    let due = |heading: &str, known: Option<&str>| {
        // Of two sections with one name it is not clear which is meant.
        let once = content.lines().filter(|line| session_context::is_heading(line, heading)).count() == 1;
        once && match session_context::classify(sections.get(heading).unwrap_or(""), known) {
            Class::Placeholder | Class::Legacy => true,
            Class::Autofilled(sha) => !id.starts_with(&sha),
            Class::User => false,
        }
    };
    let (task_due, files_due) = (due(CURRENT_TASK, filled.body.as_deref()), due(KEY_FILES, filled.files.as_deref()));
    if !task_due && !files_due {
        return Ok(None);
    }
    let Some(commit) = git::last_commit(call.env, head, git::HOOK_DEADLINE) else { return Ok(None) };
    let mut after = content.clone();
    let mut next = AutoFill { sha: id.clone(), at: call.env.iso(call.env.now_ms), ..filled };
    if task_due {
        let body = task_body(&id, &commit.subject, &head.name);
        after = session_context::replace_section(&after, CURRENT_TASK, &body);
        next.body = Some(session_context::hash(&body));
    }
    if files_due {
        let secret = Globs::new(&Settings::of(call.config, &anchor.to_string_lossy()).secret);
        let body = files_body(&id, git::commit_files(head), &secret);
        after = session_context::replace_section(&after, KEY_FILES, &body);
        next.files = Some(session_context::hash(&body));
    }
    if after == content {
        return Ok(None);
    }
    let guard = call.store.lock(file)?;
    // Claude edits the file too, without our lock: what was read must still be what is there.
    if call.store.read(file).as_deref() != Some(content.as_bytes()) {
        return Ok(None);
    }
    guard.write(file, after.as_bytes())?;
    state.auto_filled.insert(folder.enc.clone(), next);
    call.log.info(SOURCE, "session-context.md filled in", json!({"project": folder.enc, "sha": &id[..7]}));
    Ok(None)
}

fn task_body(id: &str, subject: &str, reference: &str) -> String {
    let subject = text::sanitize(subject);
    let kind = session_context::task_type(&subject);
    let issue = session_context::issue_from_ref(reference).unwrap_or_else(|| "none".into());
    let (subject, reference) = (text::cut_utf16(&subject, MAX_SUBJECT), text::sanitize(reference));
    let sha = &id[..7];
    format!(
        "<!-- si:autofill sha={sha} -->\ntype: {kind} — {subject}\n\
         description: derived from last commit on `{reference}`\nissue: {issue}"
    )
}

fn files_body(id: &str, mut files: Vec<String>, secret: &Globs) -> String {
    files.retain(|file| !secret.hit_path(file, None));
    files.truncate(MAX_FILES);
    if files.is_empty() {
        return "- (the files in play)".into();
    }
    let lines = files.iter().map(|file| format!("- {}", text::sanitize(file)));
    [format!("<!-- si:autofill sha={} -->", &id[..7])].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn inject_rules(call: &Call<'_>, start: &Start<'_>, state: &mut BootstrapState) -> Result<Option<String>> {
    let Some(root) = claude_md::project_folder(call.env, start.anchor) else { return Ok(None) };
    let enc = crate::client::project::encode(&root);
    let injected = claude_md::inject(call.store, &root)?;
    if let Some(folder) = root.to_str() {
        state.claude_md_folders.insert(enc.clone(), folder.to_owned());
    }
    let (path, what) = match injected {
        Injected::Unchanged => return Ok(None),
        Injected::Created(path) => (path, "made with a block of session rules"),
        Injected::Added(path) => (path, "given a block of session rules"),
        Injected::Renewed(path) => (path, "given the present block of session rules"),
    };
    state.injected_claude_md.insert(enc, call.env.iso(call.env.now_ms).into());
    call.log.info(SOURCE, "CLAUDE.md changed", json!({"file": path}));
    Ok(Some(format!("{} was {what} (`si set bootstrap.claudeMd false` turns this off).", path.display())))
}
