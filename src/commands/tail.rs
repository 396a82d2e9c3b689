//! `si tail`: the last lines of the debug log.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};

use anyhow::{Context, Result};

use super::Terminal;
use super::session::{self, SessionArgs};
use crate::log::{Level, Log};
use crate::store::file;
use crate::text;

/// Arguments of `si tail`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many lines
    #[arg(long, short = 'n', default_value_t = 40)]
    pub lines: usize,
    /// Only lines of this level or graver: debug, info, warn, error
    #[arg(long, value_parser = parse_level)]
    pub level: Option<Level>,
    /// Lines of all sessions, not of one
    #[arg(long, conflicts_with = "session")]
    pub all: bool,
    /// Which session
    #[command(flatten)]
    pub session: SessionArgs,
}

fn parse_level(text: &str) -> Result<Level, String> {
    Level::parse(text).ok_or_else(|| "it is one of debug, info, warn, error".into())
}

/// Prints the last lines of today's log, or of the newest one. Lines of one session where one is named or known.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let Some(path) = newest(terminal)? else {
        writeln!(terminal.out, "The log is empty.")?;
        return Ok(());
    };
    let session = if args.all { None } else { Some(session::choose(terminal.env, &args.session)) };
    // The log may outlive every other trace of a session that is named in full.
    let (id, of, refused) = match session {
        Some(Ok(session)) => (Some(session.id.clone()), session.describe(), None),
        Some(Err(error)) if args.session.session.is_some() => {
            let id = args.session.session.clone().unwrap_or_default();
            (Some(id.clone()), format!("session {}", text::sanitize(&id)), Some(error))
        }
        _ => (None, "all sessions".into(), None),
    };
    let mark = id.map(|id| Log::mark(Some(&id)));
    let opened = file::open_private(&path).with_context(|| format!("open {}", path.display()))?;
    let opened = opened.with_context(|| format!("{} is not a file of this user", path.display()))?;
    let mut last: VecDeque<String> = VecDeque::with_capacity(args.lines.min(10_000));
    let mut reader = BufReader::new(opened);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        let line = text::sanitize(String::from_utf8_lossy(&bytes).trim_end()).into_owned();
        bytes.clear();
        let wanted = mark.as_ref().is_none_or(|mark| line.contains(mark.as_str()))
            && args.level.is_none_or(|least| Level::of_line(&line).is_none_or(|level| level >= least));
        if wanted && args.lines > 0 {
            if last.len() == args.lines {
                last.pop_front();
            }
            last.push_back(line);
        }
    }
    if let Some(error) = refused.filter(|_| last.is_empty()) {
        return Err(error);
    }
    terminal.remark(format!("{}, {of}", path.display()))?;
    if last.is_empty() {
        terminal.remark("no such lines; --all shows those of every session")?;
    }
    for line in last {
        writeln!(terminal.out, "{line}")?;
    }
    Ok(())
}

/// Today's log, or the newest one before it.
fn newest(terminal: &Terminal<'_>) -> Result<Option<std::path::PathBuf>> {
    let today = Log::new(terminal.env, None, false, false).path();
    let today = today.context("there is no configuration folder: HOME is not set")?;
    if today.is_file() {
        return Ok(Some(today));
    }
    let entries = today.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let logs = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with("session-intel-") && name.ends_with(".log"))
    });
    Ok(logs.map(|entry| entry.path()).max())
}
