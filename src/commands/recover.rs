//! `si recover`: snippets of what was said, from the raw transcript.

use std::io::Read;

use anyhow::{Context, Result, bail};

use super::session::{self, SessionArgs};
use super::{Terminal, Usage};
use crate::client::transcript;
use crate::memory::recall::{self, Found, rows, words::Word};
use crate::text;

/// The most words of one search; each costs a pass over the transcript.
const MAX_WORDS: usize = 32;
/// The most that is read from standard input, in bytes.
const MAX_INPUT: u64 = 64 << 10;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Words are looked for literally, in any order and any case. Messages with all the words come \
    first, then those with more hits, then the newer ones. Shown are at most 10 snippets of 240 characters, with who \
    spoke, when, and in which compaction round (round 1 is before the first compaction). Tool outputs are searched too; \
    si expand ID prints one whole.")]
pub struct Args {
    /// The words to look for; - reads them from standard input; put -- before words that start with a dash
    #[arg(value_name = "TOPIC", required = true)]
    pub topic: Vec<String>,
    /// Search what the session's subagents said, too
    #[arg(long)]
    pub all: bool,
    /// Which session.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Runs the command.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let topic = topic(args)?;
    let words: Vec<&str> = topic.split_whitespace().collect();
    let words = {
        let mut seen = std::collections::HashSet::new();
        words.into_iter().filter(|word| seen.insert(word.to_lowercase())).collect::<Vec<_>>()
    };
    if words.is_empty() {
        bail!(Usage("nothing to look for: give a word, as in: si recover \"retry budget\"".into()));
    }
    if words.len() > MAX_WORDS {
        bail!(Usage(format!("{} words are too many: give at most {MAX_WORDS}", words.len())));
    }
    let session = session::choose(terminal.env, &args.session)?;
    let Some(transcript) = &session.transcript else {
        bail!("there is no transcript of session {}", text::sanitize(&session.id));
    };
    let shown = text::cut(&text::sanitize(&words.join(" ")), 100).into_owned();
    let search: Vec<Word> = words.iter().filter_map(|word| Word::new(word)).collect();
    let found = recall::search(transcript, &search, args.all);
    let out = &mut *terminal.out;
    if found.hits.is_empty() {
        writeln!(out, "Nothing found: no message of {} holds {}.", session.describe(), quoted(&shown, &words))?;
        if !args.all && !recall::subagents(transcript).is_empty() {
            writeln!(out, "Its subagents were not searched; --all does that.")?;
        }
        return tell_too_long(out, &found);
    }
    writeln!(out, "{}\"{shown}\" in {}: {}.", rows::HEADING, session.describe(), tally(&found, words.len()))?;
    for (n, hit) in found.hits.iter().enumerate() {
        let when = hit.at_ms.map(|ms| terminal.env.local(ms).format(" · %Y-%m-%d %H:%M").to_string());
        let hits = if hit.count == 1 { "1 hit".into() } else { format!("{} hits", hit.count) };
        let all = if words.len() > 1 && hit.all { ", all words" } else { "" };
        let round = if hit.round > 0 { format!(" · round {}", hit.round) } else { String::new() };
        writeln!(out, "\n{}. {}{}{round} · {hits}{all}", n + 1, hit.who, when.unwrap_or_default())?;
        writeln!(out, "   {}", hit.snippet)?;
    }
    tell_too_long(out, &found)
}

/// Says what was not searched.
fn tell_too_long(out: &mut dyn std::io::Write, found: &Found) -> Result<()> {
    let megabytes = transcript::LONGEST_LINE >> 20;
    match found.too_long {
        0 => {}
        1 => writeln!(out, "\nNot searched: 1 row of the transcript that is over {megabytes} MB.")?,
        n => writeln!(out, "\nNot searched: {n} rows of the transcript that are over {megabytes} MB.")?,
    }
    Ok(())
}

fn topic(args: &Args) -> Result<String> {
    if args.topic != ["-"] {
        return Ok(args.topic.join(" "));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_INPUT).read_to_end(&mut bytes).context("read standard input")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn quoted(shown: &str, words: &[&str]) -> String {
    if words.len() == 1 { format!("\"{shown}\"") } else { format!("any of the words \"{shown}\"") }
}

/// How much was found, and how much of it follows.
fn tally(found: &Found, words: usize) -> String {
    let messages = match found.messages {
        1 => "1 message".to_string(),
        many => format!("{many} messages"),
    };
    let all = if words > 1 { format!(", {} with all words", found.with_all) } else { String::new() };
    let best =
        if found.messages > found.hits.len() { format!("; the best {}", found.hits.len()) } else { String::new() };
    let rounds = match found.compactions {
        0 => String::new(),
        1 => "; 1 compaction so far".into(),
        many => format!("; {many} compactions so far"),
    };
    format!("{messages}{all}{rounds}{best}")
}
