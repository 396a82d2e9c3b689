//! `si doctor`: every check of the installation, each with its fix in one line, and how to turn parts off.

use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Terminal;
use super::command_files;
use super::globs;
use super::installation::Installation;
use super::session::{self, SessionArgs};
use super::set::unknown_fields;
use crate::client::json::{self, Object};
use crate::client::settings::entries;
use crate::client::settings::statusline::Current;
use crate::client::transcript;
use crate::config::{Config, docs, tree};
use crate::env::Env;
use crate::log::{Level, Log};
use crate::store::{StateFile, Store, file};
use crate::{process, text};

/// The oldest client that si was tried with.
const OLDEST_CLIENT: [u64; 3] = [2, 1, 197];
/// How many warnings of the log are shown.
const WARNINGS: usize = 5;
/// How many offending files are named.
const NAMED: usize = 3;

/// Arguments of `si doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Good,
    /// It works, but not as well as it could.
    Warning,
    Bad,
}

/// The outcome of one check.
#[derive(Debug, Clone)]
struct Finding {
    mark: Mark,
    check: &'static str,
    text: String,
    /// What to do, in one line; empty for nothing.
    fix: String,
}

fn finding(mark: Mark, check: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { mark, check, text: text.into(), fix: fix.into() }
}

fn good(check: &'static str, text: impl Into<String>) -> Finding {
    finding(Mark::Good, check, text, "")
}

/// Prints all findings, the last warnings of the log, and how to turn parts off.
pub fn run(terminal: &mut Terminal<'_>, _args: &Args) -> Result<()> {
    let env = terminal.env;
    let config = Config::load(env);
    let installation = Installation::read(env);
    let mut findings = Vec::new();
    findings.extend(programs(env, &installation));
    findings.extend(hooks(&config, &installation));
    findings.push(line(&config, &installation));
    findings.extend(configuration(env, &config));
    findings.push(state(env));
    findings.push(home(env));
    findings.push(match process::find(env, "git") {
        Some(path) => good("git", path.display().to_string()),
        None => finding(Mark::Warning, "git", "not found on PATH: no figures of the working tree", "install git"),
    });
    findings.push(client(env));
    for Finding { mark, check, text, fix } in &findings {
        let sign = match mark {
            Mark::Good => "ok  ",
            Mark::Warning => "warn",
            Mark::Bad => "FAIL",
        };
        writeln!(terminal.out, "{sign}  {check:<13} {}", text::sanitize(text))?;
        if !fix.is_empty() {
            writeln!(terminal.out, "      {:<13} fix: {}", "", text::sanitize(fix))?;
        }
    }
    let warnings = warnings(env);
    writeln!(terminal.out, "\nLast warnings of the log")?;
    if warnings.is_empty() {
        writeln!(terminal.out, "  none")?;
    }
    for line in warnings {
        writeln!(terminal.out, "  {}", text::cut(&text::sanitize(&line), 200))?;
    }
    writeln!(terminal.out, "\nTo turn parts off")?;
    for (part, key) in docs::TURN_OFF {
        writeln!(terminal.out, "  {part:<34} si set {key} false")?;
    }
    let count = |mark: Mark| findings.iter().filter(|finding| finding.mark == mark).count();
    match (count(Mark::Bad), count(Mark::Warning)) {
        (0, 0) => writeln!(terminal.out, "\nAll is well.")?,
        (0, warnings) => writeln!(terminal.out, "\nNothing is broken; {warnings} to look at.")?,
        (bad, _) => writeln!(terminal.out, "\n{bad} to fix.")?,
    }
    Ok(())
}

/// Whether what is registered can be started, and is this very program.
fn programs(env: &Env, installation: &Installation) -> Vec<Finding> {
    let check = "program";
    let here = env.exe.clone().unwrap_or_default();
    let mut all = vec![good(check, format!("si {} at {}", env!("CARGO_PKG_VERSION"), here.display()))];
    for program in installation.programs() {
        let path = if program.contains('/') { Some(PathBuf::from(&program)) } else { process::find(env, &program) };
        let resolved = path.as_ref().and_then(|path| path.canonicalize().ok());
        all.extend(match resolved {
            None => Some(finding(Mark::Bad, check, format!("{program} is registered, and is not there"), "si install")),
            Some(resolved) if here.canonicalize().is_ok_and(|here| here != resolved) => Some(finding(
                Mark::Warning,
                check,
                format!("{program} is registered, which is another file than this one"),
                "run si install with the program that you want",
            )),
            Some(_) => None,
        });
    }
    if installation.plugin && !command_files::any(env) && process::find(env, "si").is_none() {
        all.push(finding(
            Mark::Warning,
            check,
            "the plugin's slash commands call si by its name, and it is not on PATH",
            format!("add {} to PATH, or: si install", here.parent().unwrap_or(&here).display()),
        ));
    }
    all
}

fn hooks(config: &Config, installation: &Installation) -> Vec<Finding> {
    let check = "hooks";
    let mut all = Vec::new();
    if let Some(fault) = &installation.fault {
        all.push(finding(Mark::Bad, check, fault.clone(), "put the file right, then: si install"));
    }
    let missing: Vec<&str> =
        entries::events().into_iter().filter(|event| installation.ours(event).next().is_none()).collect();
    if !missing.is_empty() && installation.fault.is_none() {
        all.push(finding(Mark::Bad, check, format!("not registered: {}", missing.join(", ")), "si install"));
    }
    for (event, places) in installation.duplicates() {
        let text = format!("{event} is registered {} times: {}", places.len(), places.join(", "));
        let fix = if installation.plugin { "si install, which leaves the plugin's alone" } else { "si install" };
        all.push(finding(Mark::Warning, check, text, fix));
    }
    let originals = installation.hooks.iter().any(|hook| hook.owner == entries::Owner::Original);
    if originals || !installation.originals.is_empty() {
        all.push(finding(
            Mark::Warning,
            check,
            "hooks of the JavaScript original answer too",
            "si install, which replaces them",
        ));
    }
    let switches = &config.hooks;
    for (on, key) in [
        (switches.session_start, "hooks.sessionStart"),
        (switches.pre_compact, "hooks.preCompact"),
        (switches.post_tool_use, "hooks.postToolUse"),
        (switches.user_prompt_submit, "hooks.userPromptSubmit"),
    ] {
        if !on {
            all.push(finding(Mark::Warning, check, format!("{key} is off"), format!("si set {key} true")));
        }
    }
    if all.is_empty() {
        all.push(good(check, format!("{} registered once each", entries::events().join(", "))));
    }
    all
}

fn line(config: &Config, installation: &Installation) -> Finding {
    let check = "status line";
    match &installation.statusline {
        Current::Ours(_) if config.statusline.enabled => good(check, "ours"),
        Current::Ours(_) => finding(Mark::Warning, check, "turned off", "si set statusline.enabled true"),
        Current::None => finding(Mark::Warning, check, "there is none", "si install"),
        Current::Original(_) => {
            finding(Mark::Warning, check, "the JavaScript original's", "si install, which replaces it")
        }
        Current::User => finding(Mark::Warning, check, "another program's", "si install, which shows both"),
    }
}

fn configuration(env: &Env, config: &Config) -> Vec<Finding> {
    let check = "configuration";
    let problem = |problem: tree::Problem| {
        let broken = config.broken.as_ref().is_some_and(|broken| broken.path.ends_with(problem.file));
        let unreadable = problem.text.starts_with("cannot be read");
        let (mark, fix) = match broken || unreadable {
            true if unreadable => (Mark::Bad, format!("make {} a file that you can read", problem.file)),
            true => (Mark::Bad, "put the place right with an editor; si set does not touch the file".into()),
            false => (Mark::Warning, format!("change it with si set or si reset, or edit {}", problem.file)),
        };
        finding(mark, check, format!("{}: {}", problem.file, problem.text), fix)
    };
    let mut all: Vec<Finding> = tree::problems(env).into_iter().map(problem).collect();
    let fix = "si statusline --preview shows the fields";
    all.extend(unknown_fields(&config.statusline.fields).map(|text| finding(Mark::Warning, check, text, fix)));
    let shape = &config.shape;
    let lists = globs::KEYS_OF_GLOBS.into_iter().zip([&shape.drop_globs, &shape.preserve_globs]);
    for (key, list) in lists {
        let fix = format!("change it with si set {key} or si reset {key}");
        all.extend(globs::odd(key, list).map(|text| finding(Mark::Warning, check, text, &fix)));
    }
    all.extend(globs::uncovered(&shape.drop_globs).map(|(text, fix)| finding(Mark::Warning, check, text, fix)));
    if all.is_empty() {
        let path = Store::new(env).path(StateFile::Config).filter(|path| path.is_file());
        all.push(good(check, path.map_or("no file: the defaults hold".into(), |path| path.display().to_string())));
    }
    all
}

/// Whether session state can be written, and is readable by nobody else.
fn state(env: &Env) -> Finding {
    let check = "state";
    let probe = env.tmp.join(format!("claude-si-doctor-{}", std::process::id()));
    if let Err(error) = file::write_atomic(&probe, b"ok").and_then(|()| file::remove(&probe)) {
        let text = format!("{} cannot be written: {error}", env.tmp.display());
        return finding(Mark::Bad, check, text, "point TMPDIR at a folder of yours, or make room");
    }
    let open: Vec<PathBuf> = ours(env).into_iter().filter(|path| !is_private(path)).collect();
    if open.is_empty() {
        return good(check, format!("{} can be written, and what is there is private", env.tmp.display()));
    }
    let names: Vec<String> = open.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let text = format!("others can read {} of the files of sessions: {}", open.len(), names.join(" "));
    finding(Mark::Warning, check, text, format!("chmod -R go= {}/claude-*", env.tmp.display()))
}

/// The files and folders of session state that belong to this user.
fn ours(env: &Env) -> Vec<PathBuf> {
    let pieces = [
        "token-budget-",
        "tool-count-",
        "tool-seen-",
        "ctx-shape-",
        "compact-",
        "cost-",
        "tool-archive-",
        "usage-",
        "git-",
    ];
    let entries = std::fs::read_dir(&env.tmp).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.strip_prefix("claude-").is_some_and(|rest| pieces.iter().any(|piece| rest.starts_with(piece)))
    });
    named.map(|entry| entry.path()).filter(|path| meta(path).is_some_and(|meta| meta.uid() == env.uid)).collect()
}

fn meta(path: &Path) -> Option<std::fs::Metadata> {
    std::fs::symlink_metadata(path).ok()
}

fn is_private(path: &Path) -> bool {
    // The mode of a link says nothing, and nothing is written through one.
    meta(path).is_none_or(|meta| meta.is_symlink() || meta.mode() & 0o077 == 0)
}

fn home(env: &Env) -> Finding {
    let check = "home";
    let Some(dir) = &env.claude_dir else {
        return finding(Mark::Bad, check, "there is no home folder", "set HOME, or CLAUDE_CONFIG_DIR");
    };
    let probe = dir.join(format!(".si-doctor-{}", std::process::id()));
    if !dir.is_dir() {
        return finding(
            Mark::Warning,
            check,
            format!("{} is not there yet", dir.display()),
            "start Claude Code once, or: si install",
        );
    }
    match file::write_atomic(&probe, b"ok").and_then(|()| file::remove(&probe)) {
        Ok(()) => good(check, dir.display().to_string()),
        Err(error) => finding(
            Mark::Bad,
            check,
            format!("{} cannot be written: {error}", dir.display()),
            format!("chmod u+rwx {}", dir.display()),
        ),
    }
}

/// The version of Claude Code that wrote the newest transcript of this folder.
fn client(env: &Env) -> Finding {
    let check = "client";
    let path = session::choose(env, &SessionArgs::default()).ok().and_then(|session| session.transcript);
    let Some(version) = path.as_deref().and_then(version) else {
        return finding(Mark::Good, check, "no transcript of this folder tells its version", "");
    };
    let parts: Vec<u64> = version.split('.').map_while(|part| part.parse().ok()).collect();
    if parts.len() == 3 && parts.as_slice() < &OLDEST_CLIENT[..] {
        let oldest = OLDEST_CLIENT.map(|part| part.to_string()).join(".");
        return finding(Mark::Warning, check, format!("Claude Code {version} is older than {oldest}"), "claude update");
    }
    good(check, format!("Claude Code {version}"))
}

fn version(path: &Path) -> Option<String> {
    let mut found = None;
    transcript::each_line_backwards(path, 4 << 20, |line| {
        let text = json::decode(line);
        found = Object::parse(&text).and_then(|row| row.str("version").map(|version| version.into_owned()));
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// The last warnings and errors of today's log.
fn warnings(env: &Env) -> Vec<String> {
    let Some(path) = Log::new(env, None, false, false).path() else { return Vec::new() };
    let mut lines = Vec::new();
    transcript::each_line_backwards(&path, 1 << 20, |line| {
        let line = String::from_utf8_lossy(line);
        if Level::of_line(&line).is_some_and(|level| level >= Level::Warn) {
            lines.push(line.trim_end().to_string());
        }
        if lines.len() < WARNINGS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    lines.reverse();
    lines
}
