//! Which session a terminal command speaks about: the one that is named, else the one it runs in, else the newest of
//! the current folder's project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::client::{payload, project};
use crate::env::Env;
use crate::store::{Sid, Store};

/// How many sessions are named where a start fits several.
const NAMED: usize = 5;

/// Names a session on the command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SessionArgs {
    /// The session, by its id or the start of it; without: the one this runs in, else the newest of this folder
    #[arg(long, visible_alias = "sid", value_name = "ID")]
    pub session: Option<String>,
}

/// The session that was chosen.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id, as the client writes it.
    pub id: String,
    /// Its id, as file names carry it.
    pub sid: Sid,
    /// Its transcript; none when there is no such file.
    pub transcript: Option<PathBuf>,
    /// How it was chosen.
    pub by: ChosenBy,
}

/// How a session was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenBy {
    /// On the command line.
    Argument,
    /// By this variable.
    Variable(&'static str),
    /// As the newest transcript of this project folder.
    Newest(PathBuf),
}

impl Session {
    /// One line for the user: which session was taken, and why.
    pub fn describe(&self) -> String {
        let id = crate::text::sanitize(&self.id);
        match &self.by {
            ChosenBy::Argument => format!("session {id}"),
            ChosenBy::Variable(name) => format!("session {id} (this one, by {name})"),
            ChosenBy::Newest(folder) => format!("session {id} (the newest in {})", folder.display()),
        }
    }
}

/// Chooses the session; an error says how to name one.
pub fn choose(env: &Env, args: &SessionArgs) -> Result<Session> {
    if let Some(named) = args.session.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        return by_argument(env, named);
    }
    if let Some(id) = payload::env_session_id(env) {
        let name = ["CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID"].into_iter().find(|name| env.var(name).is_some());
        return Ok(with_id(env, id, ChosenBy::Variable(name.unwrap_or_default())));
    }
    match newest(env) {
        Some((folder, path)) => {
            let id = id_of(&path).unwrap_or_default().to_string();
            Ok(Session { sid: Sid::new(&id), id, transcript: Some(path), by: ChosenBy::Newest(folder) })
        }
        None => bail!("no session of {} was found; name one with --session ID", env.cwd.display()),
    }
}

fn with_id(env: &Env, id: &str, by: ChosenBy) -> Session {
    let sid = Sid::new(id);
    // An id that is not its own file name names no transcript.
    let transcript = (sid.as_str() == id).then(|| find_transcript(env, id)).flatten();
    Session { id: id.to_string(), sid, transcript, by }
}

/// The session with this id, else the one whose id starts so, in any case. Only what left a trace is a session: what is
/// written for another would never come back.
fn by_argument(env: &Env, named: &str) -> Result<Session> {
    let known = known(env);
    let same = |id: &&String| id.eq_ignore_ascii_case(named);
    if known.iter().any(|id| id == named || id == Sid::new(named).as_str()) {
        return Ok(with_id(env, named, ChosenBy::Argument));
    }
    let starts = |id: &&String| id.get(..named.len()).is_some_and(|start| start.eq_ignore_ascii_case(named));
    let whole: Vec<&String> = known.iter().filter(same).collect();
    let fitting = if whole.is_empty() { known.iter().filter(starts).collect() } else { whole };
    match fitting.as_slice() {
        [] => bail!("no session has the id {named}, or one that starts so; si status names the one of this folder"),
        [id] => Ok(with_id(env, id, ChosenBy::Argument)),
        many => {
            let shown: Vec<&str> = many.iter().take(NAMED).map(|id| id.as_str()).collect();
            let more = if many.len() > NAMED { ", …" } else { "" };
            bail!("{named} is the start of {} sessions: {}{more}", many.len(), shown.join(", "))
        }
    }
}

/// The ids of all sessions that left a trace: a transcript, files of ours, or the variable of the one this runs in.
fn known(env: &Env) -> BTreeSet<String> {
    let transcripts: Vec<PathBuf> = all_transcripts(env).collect();
    let mut ids: BTreeSet<String> = transcripts.iter().filter_map(|path| id_of(path).map(str::to_string)).collect();
    // Files of ours carry a long or odd id in another form.
    let forms: BTreeSet<String> = ids.iter().map(|id| Sid::new(id).to_string()).collect();
    ids.extend(Store::new(env).session_ids().into_iter().filter(|sid| !forms.contains(sid)));
    ids.extend(payload::env_session_id(env).map(str::to_string));
    ids
}

/// The transcript of a session, in this folder's project first, else in any.
pub fn find_transcript(env: &Env, id: &str) -> Option<PathBuf> {
    let name = format!("{id}.jsonl");
    let here = project_folders(env).map(|folder| folder.join(&name)).find(|path| path.is_file());
    here.or_else(|| all_transcripts(env).find(|path| path.file_name().is_some_and(|file| *file == *name)))
}

/// The project folder of the current folder, and those of the folders above it, existing or not.
fn project_folders(env: &Env) -> impl Iterator<Item = PathBuf> {
    let projects = env.in_claude("projects");
    let encoded = env.cwd.ancestors().map(project::encode);
    encoded.filter_map(move |name| Some(projects.as_ref()?.join(name)))
}

/// The nearest project folder that has a transcript, and the newest transcript in it.
fn newest(env: &Env) -> Option<(PathBuf, PathBuf)> {
    project_folders(env).find_map(|folder| {
        let dated = transcripts(&folder).filter_map(|path| Some((modified(&path)?, path)));
        let (_, path) = dated.max()?;
        Some((folder, path))
    })
}

fn all_transcripts(env: &Env) -> impl Iterator<Item = PathBuf> {
    let projects = env.in_claude("projects").and_then(|projects| std::fs::read_dir(projects).ok());
    projects.into_iter().flatten().flatten().flat_map(|entry| transcripts(&entry.path()).collect::<Vec<_>>())
}

/// The session transcripts in a project folder. Older clients left those of subagents beside them.
fn transcripts(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| id_of(path).is_some_and(|id| !id.starts_with("agent-")))
}

fn id_of(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".jsonl").filter(|id| !id.is_empty())
}

fn modified(path: &Path) -> Option<SystemTime> {
    let meta = std::fs::metadata(path).ok()?;
    if meta.is_file() { meta.modified().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{StateFile, file};
    use std::time::Duration;

    fn env_with(transcripts: &[(&str, &str, u64)]) -> (tempfile::TempDir, Env) {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        for (folder, id, age) in transcripts {
            let folder = folder.replace('.', env.cwd.to_str().unwrap());
            let name = project::encode(Path::new(&folder));
            let path = env.in_claude(&format!("projects/{name}/{id}.jsonl")).unwrap();
            file::write_atomic(&path, b"{}\n").unwrap();
            let when = SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000 - age);
            std::fs::File::open(&path).unwrap().set_modified(when).unwrap();
        }
        (dir, env)
    }

    fn named(id: &str) -> SessionArgs {
        SessionArgs { session: Some(id.into()) }
    }

    #[test]
    fn a_named_session_beats_the_variable_and_that_the_newest() {
        let (_dir, mut env) = env_with(&[(".", "old", 50), (".", "new", 10), (".", "agent-1", 1), ("/other", "x", 0)]);
        let newest = choose(&env, &SessionArgs::default()).unwrap();
        assert_eq!(newest.id, "new");
        assert!(newest.describe().contains("new (the newest in "), "{}", newest.describe());
        env = env.with_var("CLAUDE_CODE_SESSION_ID", "old");
        let own = choose(&env, &SessionArgs::default()).unwrap();
        assert_eq!((own.id.as_str(), own.transcript.is_some()), ("old", true));
        let other = choose(&env, &named("x")).unwrap();
        assert!(other.transcript.unwrap().to_str().unwrap().contains("-other/"));
    }

    #[test]
    fn a_folder_below_the_project_finds_its_sessions() {
        let (_dir, mut env) = env_with(&[(".", "s", 5)]);
        env.cwd.push("src/deep");
        assert_eq!(choose(&env, &SessionArgs::default()).unwrap().id, "s");
    }

    #[test]
    fn the_start_of_an_id_is_enough_while_it_is_the_start_of_one() {
        let (_dir, env) = env_with(&[(".", "1b672dad-1111", 5), (".", "1b672dad-2222", 5), ("/p", "77777777-3", 5)]);
        for start in ["77777777", "7", "77777777-3"] {
            assert_eq!(choose(&env, &named(start)).unwrap().id, "77777777-3");
        }
        let upper = choose(&env, &named("1B672DAD-1")).unwrap();
        assert_eq!((upper.id.as_str(), upper.transcript.is_some()), ("1b672dad-1111", true));
        let error = choose(&env, &named("1b672dad")).unwrap_err().to_string();
        assert_eq!(error, "1b672dad is the start of 2 sessions: 1b672dad-1111, 1b672dad-2222");
    }

    #[test]
    fn the_whole_id_of_one_session_may_be_the_start_of_another() {
        let (_dir, env) = env_with(&[(".", "work", 5), (".", "work-2", 5)]);
        assert_eq!(choose(&env, &named("work")).unwrap().id, "work");
        assert_eq!(choose(&env, &named("WORK")).unwrap().id, "work");
    }

    #[test]
    fn a_session_is_known_by_any_trace_and_by_its_variable() {
        let (_dir, env) = env_with(&[("/p", "s", 5)]);
        for id in ["unknown-one", "unk", "é", "agent-1"] {
            assert!(choose(&env, &named(id)).unwrap_err().to_string().contains("no session has the id"), "{id}");
        }
        let env = env.with_var("CLAUDE_CODE_SESSION_ID", "fresh-1");
        assert_eq!(choose(&env, &named("fresh")).unwrap().id, "fresh-1");
        let store = Store::new(&env);
        let (counted, pinned, archived) = (Sid::new("counted-1"), Sid::new("pinned-1"), Sid::new("archived-1"));
        store.write(StateFile::ToolCount(&counted), b"1").unwrap();
        store.write(StateFile::Pins(&pinned), b"x").unwrap();
        store.write(StateFile::ArchiveIndex(&archived), b"").unwrap();
        store.write(StateFile::Prefix("0123456789abcdef"), b"{}").unwrap();
        for id in ["counted", "pinned", "archived"] {
            assert_eq!(choose(&env, &named(id)).unwrap().id, format!("{id}-1"));
        }
        assert!(choose(&env, &named("0123")).is_err());
    }

    #[test]
    fn a_hostile_id_reaches_no_other_file() {
        let (_dir, env) = env_with(&[("/p", "s", 5)]);
        assert!(choose(&env, &named("../-p/s")).is_err());
        let env = env.with_var("CLAUDE_CODE_SESSION_ID", "../-p/s");
        let session = choose(&env, &SessionArgs::default()).unwrap();
        assert_eq!((session.sid.as_str(), session.transcript), ("-ps", None));
    }

    #[test]
    fn without_any_session_the_way_out_is_named() {
        let (_dir, env) = env_with(&[]);
        let error = choose(&env, &SessionArgs::default()).unwrap_err();
        assert!(error.to_string().ends_with("name one with --session ID"), "{error}");
    }
}
