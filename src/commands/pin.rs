//! `si pin`: everything about pins in one call, since it runs when the context is nearly full.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::session::{self, Session, SessionArgs};
use super::{Terminal, Usage};
use crate::config::Config;
use crate::env;
use crate::hooks::session_start::room_for_pins;
use crate::memory::pins::{self, Block, REPLY_LIMIT, markdown};
use crate::memory::recall;
use crate::store::{StateFile, Store};
use crate::text;

/// The most that is read from standard input, in bytes.
const MAX_INPUT: u64 = 4 << 20;
/// How much of a pin is shown to tell it by, in UTF-16 units.
const LABEL: usize = 100;

/// Arguments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Without TEXT, or with - alone, pins are read from standard input: one per line, or one per \
    paragraph where blank lines separate them. A fenced block is never split.\n\nPins live in a Markdown file that you \
    may edit (its name is printed). They come back word for word after every compaction and resume of their session. \
    The client takes at most 10,000 units of them (UTF-16; a quote or a line break counts twice): the newest come first. To turn pins off: si set pins.enabled \
    false --yes")]
pub struct Args {
    /// The text to pin, as one pin; put -- before a text that starts with a dash
    #[arg(value_name = "TEXT", conflicts_with_all = ["list", "remove", "clear"])]
    pub text: Vec<String>,
    /// List the session's pins with their numbers
    #[arg(long, conflicts_with_all = ["remove", "clear"])]
    pub list: bool,
    /// Take out the pins with these numbers (see --list)
    #[arg(long, value_name = "N", value_delimiter = ',', num_args = 1.., conflicts_with = "clear")]
    pub remove: Vec<usize>,
    /// Take out all pins; a backup stays beside the file
    #[arg(long)]
    pub clear: bool,
    /// What the summary should put first, for the /compact line
    #[arg(long, value_name = "TEXT", conflicts_with = "no_compact")]
    pub focus: Option<String>,
    /// Print no /compact line
    #[arg(long)]
    pub no_compact: bool,
    /// Which session.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Runs the command.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let texts = if args.list || args.clear || !args.remove.is_empty() { None } else { Some(texts(terminal, args)?) };
    if terminal.env.claude_dir.is_none() {
        bail!("no folder for pins: set HOME or CLAUDE_CONFIG_DIR");
    }
    let session = session::choose(terminal.env, &args.session)?;
    let store = Store::new(terminal.env);
    let path = store.path(StateFile::Pins(&session.sid)).context("no folder for pins")?;
    let pins = Pins { session, store, path: &path };
    match texts {
        Some(texts) => pins.add(terminal, args, &texts),
        None if args.list => pins.list(terminal),
        None if args.clear => pins.clear(terminal),
        None => pins.remove(terminal, &args.remove),
    }
}

/// The texts to pin, from the arguments or from standard input.
fn texts(terminal: &Terminal<'_>, args: &Args) -> Result<Vec<String>> {
    if !args.text.is_empty() && args.text != ["-"] {
        let text = args.text.join(" ");
        return match markdown::trim(&text) {
            "" => bail!(Usage("nothing to pin: the text is empty".into())),
            text => Ok(vec![text.into()]),
        };
    }
    if terminal.env.tty.stdin && args.text.is_empty() {
        return match args.focus {
            Some(_) => Ok(Vec::new()),
            None => {
                bail!(Usage("nothing to pin: give the text, as in: si pin \"Decision: keep the old parser\"".into()))
            }
        };
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut bytes).context("read standard input")?;
    if bytes.len() as u64 > MAX_INPUT {
        bail!("nothing was pinned: standard input is over {} MB", MAX_INPUT >> 20);
    }
    let input = String::from_utf8(bytes).ok().context("nothing was pinned: standard input is not UTF-8 text")?;
    let texts: Vec<String> = markdown::split(&input).into_iter().map(ToString::to_string).collect();
    if texts.is_empty() && args.focus.is_none() {
        bail!(
            "nothing to pin: standard input is empty, and there is no text as in: si pin \"Decision: keep the old parser\""
        );
    }
    Ok(texts)
}

struct Pins<'a> {
    session: Session,
    store: Store<'a>,
    path: &'a Path,
}

impl Pins<'_> {
    fn add(&self, terminal: &mut Terminal<'_>, args: &Args, texts: &[String]) -> Result<()> {
        let round = self.session.transcript.as_deref().map(|path| recall::compactions(path) + 1);
        let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
        let added = match refs.as_slice() {
            [] => pins::Added::default(),
            refs => {
                pins::add(terminal.env, &self.store, &self.session.sid, refs, round).context("nothing was pinned")?
            }
        };
        let all = pins::read(&self.store, &self.session.sid)?;
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (at, pin) in all.iter().enumerate() {
            numbers.entry(pins::gist(&pin.text)).or_insert(at + 1);
        }
        let number = |text: &str| numbers.get(pins::gist(text)).copied().unwrap_or(0);
        let out = &mut *terminal.out;
        let round = round.map_or(String::new(), |round| format!(", round {round}"));
        match added.new.len() {
            0 => writeln!(out, "Nothing new was pinned in {}{round}.", self.session.describe())?,
            n => writeln!(out, "Pinned {n} in {}{round}:", self.session.describe())?,
        }
        for at in &added.new {
            writeln!(out, "{:>5}  {}", number(&texts[*at]), pins::label(&texts[*at], LABEL))?;
        }
        if !added.known.is_empty() {
            writeln!(out, "Pinned before, not added again:")?;
            for at in &added.known {
                writeln!(out, "{:>5}  {}", number(&texts[*at]), pins::label(&texts[*at], LABEL))?;
            }
        }
        self.tell_room(out, &all)?;
        self.tell_switch(terminal)?;
        if !args.no_compact {
            let line = compact_line(args.focus.as_deref());
            writeln!(terminal.out, "\nPaste this to compact:\n\n{line}")?;
        }
        Ok(())
    }

    fn list(&self, terminal: &mut Terminal<'_>) -> Result<()> {
        let all = pins::read(&self.store, &self.session.sid)?;
        if all.is_empty() {
            writeln!(terminal.out, "No pins in {}.", self.session.describe())?;
            return Ok(());
        }
        let out = &mut *terminal.out;
        let plural = if all.len() == 1 { "" } else { "s" };
        writeln!(out, "{} pin{plural} in {}:", all.len(), self.session.describe())?;
        let block = self.block(&all);
        writeln!(out, "{:>5}  {:>6}  {:>5}  {:<16}  text", "no", "units", "round", "pinned")?;
        for (at, pin) in all.iter().enumerate() {
            let when = pin.at.as_deref().and_then(env::parse_iso);
            let when = when.map_or("by hand".into(), |ms| terminal.env.local(ms).format("%Y-%m-%d %H:%M").to_string());
            let round = pin.round.map_or("-".into(), |round| round.to_string());
            let mark = if block.left_out.contains(&at) { "(no room) " } else { "" };
            let (units, label) = (grouped(text::json_units(&pin.text)), pins::label(&pin.text, LABEL));
            writeln!(out, "{:>5}  {units:>6}  {round:>5}  {when:<16}  {mark}{label}", at + 1)?;
        }
        self.tell_room(out, &all)?;
        self.tell_switch(terminal)
    }

    fn remove(&self, terminal: &mut Terminal<'_>, numbers: &[usize]) -> Result<()> {
        let gone = pins::remove(&self.store, &self.session.sid, numbers)?;
        writeln!(terminal.out, "Taken out of {}:", self.session.describe())?;
        for text in &gone {
            writeln!(terminal.out, "       {}", pins::label(text, LABEL))?;
        }
        self.tell_room(terminal.out, &pins::read(&self.store, &self.session.sid)?)
    }

    fn clear(&self, terminal: &mut Terminal<'_>) -> Result<()> {
        match pins::clear(&self.store, &self.session.sid)? {
            None => writeln!(terminal.out, "No pins in {}: nothing to clear.", self.session.describe())?,
            Some((n, backup)) => {
                let plural = if n == 1 { "" } else { "s" };
                writeln!(terminal.out, "Cleared {n} pin{plural} of {}.", self.session.describe())?;
                writeln!(terminal.out, "Backup: {} (kept for 14 days)", backup.display())?;
            }
        }
        Ok(())
    }

    fn block(&self, all: &[markdown::Pin]) -> Block {
        pins::fit(all, self.path, room_for_pins())
    }

    /// Where the pins are, how much of the room they take, and which of them will not come back.
    fn tell_room(&self, out: &mut dyn Write, all: &[markdown::Pin]) -> Result<()> {
        let block = self.block(all);
        writeln!(out, "File: {}", self.path.display())?;
        if all.is_empty() {
            writeln!(out, "Room: the session has no pins.")?;
            return Ok(());
        }
        let frame = REPLY_LIMIT - room_for_pins();
        let count = if all.len() == 1 { "1 pin takes".into() } else { format!("{} pins take", all.len()) };
        writeln!(out, "Room: {count} {} of {} units.", grouped(block.wanted + frame), grouped(REPLY_LIMIT))?;
        if block.left_out.is_empty() {
            return Ok(());
        }
        let numbers = |list: &[usize]| list.iter().map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(", ");
        writeln!(
            out,
            "No room for: {}. After a compaction these are only named, with the file; shorten or remove some \
             (si pin --remove N).",
            numbers(&block.left_out)
        )?;
        if !block.too_long.is_empty() {
            writeln!(out, "Too long to come back even alone: {}.", numbers(&block.too_long))?;
        }
        Ok(())
    }

    /// Says so where a switch keeps pins from coming back.
    fn tell_switch(&self, terminal: &mut Terminal<'_>) -> Result<()> {
        let config = Config::load(terminal.env);
        for (on, key) in [(config.pins.enabled, "pins.enabled"), (config.hooks.session_start, "hooks.sessionStart")] {
            if !on {
                writeln!(terminal.err, "si: pins are kept but do not come back: {key} is off")?;
            }
        }
        Ok(())
    }
}

/// The line to paste. The summary keeps facts apart from the story, so that a summary of a summary loses no facts.
fn compact_line(focus: Option<&str>) -> String {
    let mut line = "/compact Write the summary in two parts. Part 1, durable ledger: facts, results, decisions with their \
                    reasons, standing instructions, paths and names. Take every entry of an earlier ledger over as it \
                    stands and append to it; merge entries only once it has grown long, never shorten them. Part 2, recent \
                    narrative: what is under way and what comes next, condensed freely."
        .to_string();
    let focus = focus.map(|focus| focus.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(focus) = focus.filter(|focus| !focus.is_empty()) {
        line.push_str(&format!(" Prioritize: {}", text::sanitize(&focus)));
        if !line.ends_with(['.', '!', '?']) {
            line.push('.');
        }
    }
    line
}

/// A count with its thousands grouped: `10,000`.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
