//! The handoff: what a compaction leaves for the next start of the same session, and the block that resumes from it.
//!
//! It is one file per project, written before a compaction, taken once by the session that wrote it, and worthless after
//! an hour.

use serde_json::json;

use super::claude_md;
use super::follow_ups::{self, Sources};
use super::session_context::{CURRENT_TASK, SessionContext, task_line};
use crate::client::project::Folder;
use crate::env::Env;
use crate::git::{self, DirtyFile, Head};
use crate::log::Log;
use crate::store::records::compaction::Handoff;
use crate::store::{Sid, StateFile, Store};
use crate::text;
use crate::watch::glob::Globs;

/// How old a task may be to be worth resuming, hours.
const FRESH_TASK_HOURS: f64 = 12.0;
/// How long a handoff is worth anything, milliseconds.
const FRESH_MS: i64 = 3_600_000;
/// The window for commits where nothing tells when the session began, milliseconds.
const COMMIT_WINDOW_MS: i64 = 8 * 3_600_000;
/// How many uncommitted files are named.
const MAX_FILES: usize = 20;
/// How many commits are named.
const MAX_COMMITS: usize = 10;
/// How many directories of a kind are named.
const MAX_DIRS: usize = 5;
/// The most that a banner takes in a reply, in the reply's units.
pub const MAX_BANNER: usize = 300;
/// How much of what is resumed stands in the banner, UTF-16 units.
const MAX_WHAT: usize = 80;
/// How much of a task or a list of key files is taken into the block, UTF-16 units.
const MAX_TEXT: usize = 1500;

/// What a handoff is made of.
pub struct Input<'a> {
    /// The session's id, as the client names it.
    pub session_id: &'a str,
    /// Where the session started.
    pub anchor: &'a str,
    /// When it started, epoch milliseconds; none where nothing tells.
    pub started_ms: Option<i64>,
    /// session-context.md.
    pub context: &'a SessionContext,
    /// HEAD of the anchor's work tree.
    pub head: Option<&'a Head>,
    /// Changed files of that work tree.
    pub dirty: &'a [DirtyFile],
    /// Paths that are named nowhere.
    pub secret: &'a Globs,
    /// Directories in active use.
    pub hot_dirs: &'a [String],
    /// Directories that the guidance listed as safe to drop.
    pub dropped_dirs: &'a [String],
}

/// Gathers a handoff; none when there is no signal worth resuming from: no fresh task, no follow-up, no commit, no
/// directory in use.
pub fn gather(env: &Env, folder: &Folder, input: &Input<'_>) -> Option<Handoff> {
    let context = input.context;
    let task = context.current_task.clone();
    let age = context.unchanged_since(CURRENT_TASK).map(|since| (env.now_ms - since).max(0) as f64 / 3_600_000.0);
    let age = age.filter(|_| !task.is_empty());
    let since = input.started_ms.unwrap_or(env.now_ms - COMMIT_WINDOW_MS);
    let commits = input.head.map(|head| git::commits_since(head, since, MAX_COMMITS)).unwrap_or_default();
    let shown = |path: &str| !input.secret.hit_path(path, Some(input.anchor));
    let of_somebody = |file: &&DirtyFile| {
        let ours = input.head.is_some_and(|head| claude_md::is_our_change(Store::new(env), head, file));
        shown(&file.path) && file.from.as_deref().is_none_or(shown) && !ours
    };
    let dirs =
        |dirs: &[String]| -> Vec<String> { dirs.iter().filter(|dir| shown(dir)).take(MAX_DIRS).cloned().collect() };
    let handoff = Handoff {
        t: Some(env.now_ms),
        session_id: input.session_id.into(),
        cwd: input.anchor.into(),
        current_task: task,
        current_task_age_hours: age.map(|hours| (hours * 10.0).round() / 10.0),
        key_files: without_secrets(&context.key_files, input.secret, input.anchor),
        next_priorities: follow_ups::open(&Sources::of(folder)),
        in_flight_files: in_flight(input.dirty.iter().filter(|file| of_somebody(file))),
        recent_commits: commits.iter().map(|commit| format!("{} {}", &commit.id[..7], commit.subject)).collect(),
        hot_dirs: dirs(input.hot_dirs),
        dropped_dirs: dirs(input.dropped_dirs),
    };
    let signal = task_is_fresh(&handoff)
        || !(handoff.next_priorities.is_empty() && handoff.recent_commits.is_empty() && handoff.hot_dirs.is_empty());
    signal.then_some(handoff)
}

/// Lines that name no secret file.
fn without_secrets(lines: &str, secret: &Globs, anchor: &str) -> String {
    let kept = lines.lines().filter(|line| !secret.hit_command(line, Some(anchor)));
    kept.collect::<Vec<_>>().join("\n").trim().to_string()
}

/// Changed files as `git status --porcelain` writes them, the first ones.
fn in_flight<'a>(files: impl Iterator<Item = &'a DirtyFile>) -> Vec<String> {
    let mut lines: Vec<String> = files.map(line).collect();
    let more = lines.len().saturating_sub(MAX_FILES);
    lines.truncate(MAX_FILES);
    if more > 0 {
        lines.push(format!("   ... and {more} more (truncated)"));
    }
    lines
}

fn line(file: &DirtyFile) -> String {
    let quoted = |path: &str| {
        if path.contains([' ', '"', '\\']) || path.contains(char::is_control) {
            serde_json::Value::from(path).to_string()
        } else {
            path.to_string()
        }
    };
    let path = quoted(&file.path);
    let from = file.from.as_deref().map(|from| format!("{} -> ", quoted(from))).unwrap_or_default();
    format!("{} {from}{path}", file.code).trim().to_string()
}

/// Writes a handoff; an older one of the project is replaced. What another session has not taken yet is kept for it.
pub fn write(store: Store<'_>, folder: &Folder, handoff: &Handoff) -> anyhow::Result<()> {
    let file = StateFile::Handoff(&folder.enc);
    if let Some(older) = store.read_json::<Handoff>(file)
        && older.session_id != handoff.session_id
        && handoff.t.zip(older.t).is_some_and(|(now, then)| now - then <= FRESH_MS)
    {
        store.write_json(StateFile::DisplacedHandoff(&Sid::new(&older.session_id)), &older)?;
    }
    store.write_json(file, handoff)
}

/// Takes the handoff that a session left in a project: it is gone afterwards. Another session's is left alone until it
/// is an hour old; a damaged one is set aside, and one that says nothing is removed.
pub fn take(env: &Env, store: Store<'_>, log: &Log<'_>, folder: &Folder, session_id: &str) -> Option<Handoff> {
    let sid = Sid::new(session_id);
    let displaced = take_from(env, store, log, StateFile::DisplacedHandoff(&sid), session_id);
    let latest = take_from(env, store, log, StateFile::Handoff(&folder.enc), session_id);
    latest.or(displaced)
}

fn take_from(env: &Env, store: Store<'_>, log: &Log<'_>, file: StateFile<'_>, session_id: &str) -> Option<Handoff> {
    store.path(file).filter(|path| path.symlink_metadata().is_ok())?;
    let guard = store.lock(file).ok()?;
    let bytes = store.read(file)?;
    let removed = || {
        if let Err(error) = guard.remove(file) {
            log.warn("handoff", "could not be removed", json!({"error": format!("{error:#}")}));
        }
    };
    if !bytes.trim_ascii().is_empty()
        && let Err(error) = serde_json::from_slice::<serde_json::Value>(&bytes)
    {
        let aside = guard.set_aside(file).ok();
        log.warn("handoff", "damaged, set aside", json!({"error": error.to_string(), "file": aside}));
        return None;
    }
    let handoff = serde_json::from_slice::<Option<Handoff>>(&bytes).ok().flatten();
    let Some((handoff, t)) = handoff.and_then(|handoff| handoff.t.map(|t| (handoff, t))) else {
        removed();
        return None;
    };
    let outdated = env.now_ms - t > FRESH_MS;
    if !outdated && handoff.session_id != session_id {
        return None;
    }
    removed();
    (!outdated).then_some(handoff)
}

fn task_is_fresh(handoff: &Handoff) -> bool {
    !handoff.current_task.is_empty() && handoff.current_task_age_hours.is_some_and(|hours| hours < FRESH_TASK_HOURS)
}

/// What a resuming session is told: one line for the user, and a block for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// The banner.
    pub banner: String,
    /// The block, with instructions; none where not even the task fits.
    pub block: Option<String>,
}

/// Lays out the block in at most `room` units (as they count in the reply); parts of it are left out, the least telling
/// first, and where not even the task fits there is none. `echo` asks the model to show the banner.
pub fn resume(handoff: &Handoff, echo: bool, room: usize) -> Resume {
    let banner = banner(handoff);
    let mut parts = parts(handoff);
    loop {
        let block = block(&parts, &banner, echo);
        if text::json_units(&block) <= room {
            return Resume { banner, block: Some(block) };
        }
        // Half of the last part goes, then the rest of it, then the part before it.
        let Some((_, lines)) = parts.last_mut() else { return Resume { banner, block: None } };
        lines.truncate(lines.len() / 2);
        if lines.is_empty() {
            parts.pop();
        }
    }
}

fn banner(handoff: &Handoff) -> String {
    let count = |n: usize, one: &str, many: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let task = task_line(&handoff.current_task)
        .filter(|_| task_is_fresh(handoff))
        .map(|task| text::cut(&text::sanitize(&task), MAX_WHAT).into_owned());
    let dirs = (!handoff.hot_dirs.is_empty()).then(|| format!("work in {}", handoff.hot_dirs.join(", ")));
    // A follow-up is what comes next, not what was under way: it is only counted.
    let what = task.or_else(|| dirs.map(|dirs| text::cut(&text::sanitize(&dirs), MAX_WHAT).into_owned()));
    let files = handoff.in_flight_files.iter().filter(|file| !file.starts_with(' ')).count();
    let parts = [
        Some(format!("Resuming: {}", what.unwrap_or_else(|| "this session".into()))),
        count(files, "file in flight", "files in flight"),
        count(handoff.recent_commits.len(), "commit so far", "commits so far"),
        count(handoff.next_priorities.len(), "follow-up open", "follow-ups open"),
        // It stands on the screen before that message, and at the top of the reply to it.
        Some("any short message (c will do) resumes it".into()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The parts of the block, the most telling first: heading and lines.
fn parts(handoff: &Handoff) -> Vec<(String, Vec<String>)> {
    let lines = |text: &str| -> Vec<String> {
        text::cut_utf16(text, MAX_TEXT).lines().map(|line| text::sanitize(line).into_owned()).collect()
    };
    let bullets = |items: &[String]| items.iter().map(|item| format!("- {}", text::sanitize(item.trim()))).collect();
    let task = match handoff.current_task_age_hours {
        Some(hours) if !task_is_fresh(handoff) => format!("TASK NOTED {hours:.0} HOURS AGO (may be out of date):"),
        _ => "CURRENT TASK:".to_string(),
    };
    let parts: [(String, Vec<String>); 6] = [
        (task, lines(&handoff.current_task)),
        ("OPEN FOLLOW-UPS:".into(), bullets(&handoff.next_priorities)),
        ("UNCOMMITTED FILES:".into(), bullets(&handoff.in_flight_files)),
        ("KEY FILES:".into(), lines(&handoff.key_files)),
        ("ACTIVE DIRECTORIES:".into(), bullets(&handoff.hot_dirs)),
        ("COMMITS OF THIS SESSION:".into(), bullets(&handoff.recent_commits)),
    ];
    parts.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

fn block(parts: &[(String, Vec<String>)], banner: &str, echo: bool) -> String {
    let mut block = "SESSION RESUME: where this session stood when it was compacted.\n".to_string();
    for (heading, lines) in parts {
        block.push_str(&format!("\n{heading}\n{}\n", lines.join("\n")));
    }
    block.push_str("\nHOW TO GO ON\n");
    let mut step = 1..;
    let mut say = |text: &str| block.push_str(&format!("{}. {text}\n", step.next().unwrap_or_default()));
    if echo {
        say(&format!("Open your next reply with this line, word for word:\n   {banner}"));
    }
    say(
        "Carry on in that same reply with what was under way, as the summary and the task above tell it: read what you \
         need and make the next edit, without saying first what you are going to do. A message as short as \"c\" only \
         means \"go on\"; one that asks for something comes before all of this.",
    );
    say("Ask only if the task is finished and none of the follow-ups can be taken up.");
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handoff() -> Handoff {
        Handoff {
            t: Some(0),
            session_id: "s".into(),
            current_task: "type: fix — login loop\nissue: #7".into(),
            current_task_age_hours: Some(1.5),
            key_files: "- a.ts".into(),
            next_priorities: vec!["write the test".into(), "update docs".into()],
            in_flight_files: vec!["M src/a.ts".into()],
            recent_commits: vec!["1a2b3c4 feat: x".into()],
            hot_dirs: vec!["src/a".into(), "src/b".into()],
            ..Handoff::default()
        }
    }

    #[test]
    fn the_block_lists_the_follow_ups_and_says_how_to_go_on() {
        let Resume { banner, block } = resume(&handoff(), true, 10_000);
        let block = block.unwrap();
        for line in ["type: fix — login loop", "- write the test", "- update docs", "- M src/a.ts", "- a.ts", "- src/b"]
        {
            assert!(block.lines().any(|other| other == line), "{line} in\n{block}");
        }
        assert!(block.contains(&banner));
        assert_eq!(banner.lines().count(), 1);
        assert!(banner.starts_with("Resuming: fix — login loop · 1 file in flight · 1 commit so far"), "{banner}");
        assert!(!resume(&handoff(), false, 10_000).block.unwrap().contains(&banner));
    }

    #[test]
    fn the_block_is_shortened_before_it_is_dropped() {
        let long = Handoff { in_flight_files: (0..20).map(|n| format!("M src/file{n}.ts")).collect(), ..handoff() };
        for room in [1100, 1000, 900] {
            let block = resume(&long, true, room).block.unwrap();
            assert!(text::json_units(&block) <= room);
            assert!(block.contains("login loop") && !block.contains("feat: x"), "{room}: {block}");
        }
        let resume = resume(&long, true, 300);
        assert!(resume.block.is_none() && resume.banner.starts_with("Resuming: "));
    }

    #[test]
    fn text_from_outside_brings_no_control_characters() {
        let hostile = Handoff { current_task: "type: a\x1b]52;c;x\x07\nissue: \u{202e}b".into(), ..handoff() };
        let Resume { banner, block } = resume(&hostile, true, 10_000);
        let block = block.unwrap();
        assert!(!(banner + &block).chars().any(|c| c != '\n' && text::is_unsafe(c)));
    }

    #[test]
    fn an_old_task_is_not_what_the_banner_resumes() {
        let old = Handoff { current_task_age_hours: Some(30.0), ..handoff() };
        let Resume { banner, block } = resume(&old, true, 10_000);
        let block = block.unwrap();
        assert!(banner.starts_with("Resuming: work in src/a, src/b"), "{banner}");
        assert!(block.contains("30 HOURS AGO"));
    }
}
