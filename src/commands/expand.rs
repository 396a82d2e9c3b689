//! `si expand`: archived tool results, printed, listed and swept.

use anyhow::{Result, bail};

use super::session::{self, Session, SessionArgs};
use super::{Terminal, Usage};
use crate::config::Config;
use crate::memory::archive::{self, Entry};
use crate::memory::recall::replay;
use crate::memory::recall::rows::EXPAND_HEADING;
use crate::store::records::archive::Archived;
use crate::store::{Sid, Store};
use crate::text;

/// The longest tool input in a heading, in UTF-16 units.
const INPUT: usize = 500;
/// How many similar ids are offered.
const SIMILAR: usize = 3;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The result is looked for in the archive of this session, then in every session's, then in the \
    raw transcript. On a terminal control characters are left out; into a pipe or a file the text goes word for word. \
    To turn the archive off: si set toolArchive.enabled false --yes"
)]
pub struct Args {
    /// The id of the tool call, as --list shows it
    #[arg(value_name = "ID", required_unless_present_any = ["list", "prune"], conflicts_with_all = ["list", "prune"])]
    pub id: Option<String>,
    /// List what the session's archive holds, oldest first
    #[arg(long, conflicts_with = "prune")]
    pub list: bool,
    /// Remove results that are past their time (toolArchive.ttlDays), of all sessions or of the one that is named
    #[arg(long)]
    pub prune: bool,
    /// Which session.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Arguments of `archive-list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Which session.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Runs the command.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    match &args.id {
        Some(id) => expand(terminal, id, &args.session),
        None if args.prune => prune(terminal, &args.session),
        None => list(terminal, &ListArgs { session: args.session.clone() }),
    }
}

/// Prints one result.
fn expand(terminal: &mut Terminal<'_>, id: &str, args: &SessionArgs) -> Result<()> {
    if archive::file_id(id).is_none() {
        bail!(Usage("an id has letters and digits, as in: si expand toolu_01ABC (si expand --list shows them)".into()));
    }
    let (env, store) = (terminal.env, Store::new(terminal.env));
    // Without a session there are still the archives.
    let (session, refused) = match session::choose(env, args) {
        Ok(session) => (Some(session), None),
        Err(error) => (None, Some(error).filter(|_| args.session.is_some())),
    };
    let own = session.as_ref().map(|session| session.sid.clone());
    let others = archive::sessions(env).into_iter().filter(|sid| Some(sid) != own.as_ref());
    let sids: Vec<Sid> = own.iter().cloned().chain(others).collect();
    if let Some(record) = sids.iter().find_map(|sid| archive::read(env, &store, sid, id)) {
        return print(terminal, &record);
    }
    let listed = sids.iter().find_map(|sid| Some((sid, entry(&store, sid, id)?)));
    // What is listed in another session was said in that one.
    let other = listed.as_ref().filter(|(sid, _)| Some(*sid) != own.as_ref());
    let other = other.and_then(|(sid, _)| session::find_transcript(env, sid.as_str()));
    let own = session.as_ref().and_then(|session| session.transcript.clone());
    if let Some(replay) = own.into_iter().chain(other).find_map(|path| replay::tool_result(&path, id)) {
        let record = Archived {
            id: id.into(),
            tool: replay.tool,
            tool_input: replay.input.and_then(|input| serde_json::from_str(&input).ok()),
            t: replay.at_ms.unwrap_or(0),
            chars: text::utf16_len(&replay.body) as i64,
            body: replay.body,
            ..Archived::default()
        };
        return print(terminal, &record);
    }
    match refused {
        Some(error) if listed.is_none() => Err(error),
        _ => bail!("{}", unknown(&store, env, id, session.as_ref(), listed.map(|(_, entry)| entry).as_ref())),
    }
}

/// What a session's listing says of an id, raw or cleaned.
fn entry(store: &Store<'_>, sid: &Sid, id: &str) -> Option<Entry> {
    let is_it = |entry: &Entry| entry.row.id == id || entry.row.raw_id.as_deref() == Some(id);
    archive::list(store, sid).into_iter().find(is_it)
}

/// Why an id leads nowhere, and which ids might have been meant; `listed` is what a listing says of it.
fn unknown(store: &Store<'_>, env: &crate::Env, id: &str, session: Option<&Session>, listed: Option<&Entry>) -> String {
    let shown = text::cut(&text::sanitize(id), 80).into_owned();
    let place = match session {
        Some(Session { transcript: Some(_), id, .. }) => {
            format!("in any archive, nor in the transcript of session {}", text::sanitize(id))
        }
        _ => "in any archive".into(),
    };
    match listed {
        Some(Entry { missing: true, .. }) => {
            return format!("the result of {shown} is listed, but its file is gone, and it is not found {place}");
        }
        Some(_) => return format!("the record of {shown} is damaged, and its result is not found whole {place}"),
        None => {}
    }
    let own = session.map(|session| session.sid.clone());
    let mut sentence = format!("no result of {shown} is found {place}");
    let similar = similar(store, env, id, own.as_ref());
    sentence.push_str(&match similar.as_slice() {
        [] => "; si expand --list shows what there is".to_string(),
        ids => format!("; did you mean {}?", ids.join(" or ")),
    });
    sentence
}

/// The ids that look most like `id`, the session's own first among equals.
fn similar(store: &Store<'_>, env: &crate::Env, id: &str, own: Option<&Sid>) -> Vec<String> {
    let others = archive::sessions(env).into_iter().filter(|sid| Some(sid) != own);
    let mut found: Vec<(usize, String)> = Vec::new();
    for sid in own.cloned().into_iter().chain(others) {
        for entry in archive::list(store, &sid).into_iter().filter(|entry| !entry.missing) {
            let other = entry.row.raw_id.unwrap_or(entry.row.id);
            let away = if other.contains(id) { 0 } else { distance(id, &other) };
            let known = found.iter().any(|(_, known)| *known == other);
            if away <= (id.len() / 4).clamp(1, 4) && !known {
                found.push((away, other));
            }
        }
    }
    found.sort_by_key(|(away, _)| *away);
    found.into_iter().take(SIMILAR).map(|(_, id)| text::sanitize(&id).into_owned()).collect()
}

/// Edits between two ids.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().take(200).collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (i, a) in one.chars().take(200).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in two.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[two.len()]
}

fn print(terminal: &mut Terminal<'_>, record: &Archived) -> Result<()> {
    let tool = if record.tool.is_empty() { "-" } else { &record.tool };
    let (id, tool) = (text::sanitize(&record.id), text::sanitize(tool));
    let at = terminal.env.iso(record.t);
    writeln!(terminal.out, "{EXPAND_HEADING}id={id} tool={tool} chars={} at={at}", record.chars)?;
    if let Some(input) = record.tool_input.as_ref().map(|input| input.get()).filter(|input| *input != "null") {
        writeln!(terminal.out, "# input={}", text::cut(&text::sanitize(input), INPUT))?;
    }
    writeln!(terminal.out)?;
    if terminal.env.tty.stdout {
        for line in record.body.lines() {
            writeln!(terminal.out, "{}", text::sanitize(&line.replace('\t', "    ")))?;
        }
    } else {
        terminal.out.write_all(record.body.as_bytes())?;
    }
    Ok(())
}

/// Lists the archive.
pub fn list(terminal: &mut Terminal<'_>, args: &ListArgs) -> Result<()> {
    let (env, store) = (terminal.env, Store::new(terminal.env));
    let (sid, what) = match session::choose(env, &args.session) {
        Ok(session) => (session.sid.clone(), session.describe()),
        Err(error) if args.session.session.is_some() => return Err(error),
        // The archive outlives the project folder, and works without one.
        Err(error) => match archive::sessions(env).into_iter().next() {
            Some(sid) => (sid.clone(), format!("session {sid} (the latest with an archive)")),
            None => return Err(error),
        },
    };
    let entries = archive::list(&store, &sid);
    if entries.is_empty() {
        writeln!(terminal.out, "The archive of {what} is empty.")?;
        let archive = Config::load(env).tool_archive;
        match archive.enabled {
            true => {
                writeln!(terminal.out, "Tool results of {} characters and more are kept.", archive.threshold_chars)?
            }
            false => writeln!(terminal.out, "It is switched off (toolArchive.enabled).")?,
        }
        if let Some(other) = archive::sessions(env).into_iter().find(|other| *other != sid) {
            writeln!(terminal.out, "The latest of other sessions: si expand --list --session {other}")?;
        }
        return Ok(());
    }
    if args.session.session.is_none() {
        writeln!(terminal.err, "si: {what}")?;
    }
    let rows: Vec<[String; 5]> = entries.iter().map(|entry| row(entry, env.now_ms)).collect();
    let width = |column: usize| rows.iter().map(|row| text::width(&row[column])).max().unwrap_or(0);
    let widths = [width(0), width(1).max(4), width(2).max(4), width(3).max(3)];
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text::width(text)));
    let head = ["ID", "TOOL", "SIZE", "AGE", "PREVIEW"].map(String::from);
    for [id, tool, size, age, preview] in std::iter::once(&head).chain(&rows) {
        let (after_id, after_tool) = (pad(id, widths[0]), pad(tool, widths[1]));
        let (before_size, after_age) = (pad(size, widths[2]), pad(age, widths[3]));
        let line = format!("{id}{after_id}  {tool}{after_tool}  {before_size}{size}  {age}{after_age}  {preview}");
        writeln!(terminal.out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(entry: &Entry, now_ms: i64) -> [String; 5] {
    let row = &entry.row;
    let safe = |text: &str| text::sanitize(text).into_owned();
    let tool = if row.tool.is_empty() { "-".into() } else { safe(&row.tool) };
    let gone = if entry.missing { "(missing) " } else { "" };
    [safe(&row.id), tool, size(row.chars), age(now_ms - row.t), format!("{gone}{}", safe(&row.preview))]
}

/// Characters in short: `900`, `5K`, `1.4M`.
fn size(chars: i64) -> String {
    match chars.max(0) as f64 {
        chars if chars < 1024.0 => format!("{chars}"),
        chars if chars < 1024.0 * 1024.0 => format!("{}K", text::round(chars / 1024.0)),
        chars => format!("{}M", text::fixed(chars / 1024.0 / 1024.0, 1)),
    }
}

/// How long ago in its largest unit: `just now`, `10m ago`, `2h ago`, `1d ago`.
fn age(ms: i64) -> String {
    match ms.max(0) / 60_000 {
        0 => "just now".into(),
        minutes @ 1..60 => format!("{minutes}m ago"),
        minutes @ 60..1440 => format!("{}h ago", minutes / 60),
        minutes => format!("{}d ago", minutes / 1440),
    }
}

/// Removes what is past its time.
fn prune(terminal: &mut Terminal<'_>, args: &SessionArgs) -> Result<()> {
    let (env, store) = (terminal.env, Store::new(terminal.env));
    let days = Config::load(env).tool_archive.ttl_days;
    if days <= 0.0 {
        writeln!(terminal.out, "Nothing is ever too old: toolArchive.ttlDays is {days}.")?;
        return Ok(());
    }
    let sids = match args.session {
        Some(_) => vec![session::choose(env, args)?.sid],
        None => archive::sessions(env),
    };
    let mut removed = 0;
    for sid in &sids {
        removed += archive::prune(env, &store, sid, days)?;
    }
    let results = if removed == 1 { "1 result" } else { &format!("{removed} results") };
    let sessions = if sids.len() == 1 { "1 session" } else { &format!("{} sessions", sids.len()) };
    writeln!(terminal.out, "Removed {results} older than {days} days ({sessions} looked at).")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ages_are_short() {
        for (chars, want) in [(0, "0"), (900, "900"), (1024, "1K"), (1536, "2K"), (5000, "5K"), (1_500_000, "1.4M")] {
            assert_eq!(size(chars), want);
        }
        for (seconds, want) in [
            (-5, "just now"),
            (30, "just now"),
            (630, "10m ago"),
            (3630, "1h ago"),
            (7230, "2h ago"),
            (100_020, "1d ago"),
        ] {
            assert_eq!(age(seconds * 1000), want);
        }
    }

    #[test]
    fn edits_are_counted() {
        for (one, two, want) in
            [("abc", "abc", 0), ("abc", "abd", 1), ("abc", "ac", 1), ("", "abc", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(one, two), want, "{one} {two}");
        }
    }
}
