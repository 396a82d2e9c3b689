//! The terminal commands, one file each. Slash commands call the same ones.

pub mod change;
pub mod command_files;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod expand;
pub mod explain;
pub mod get;
pub mod globs;
pub mod install;
pub mod installation;
pub mod lanes;
pub mod log;
pub mod man;
pub mod migrate;
pub mod pin;
pub mod recover;
pub mod refresh;
pub mod reset;
pub mod screen;
pub mod session;
pub mod set;
pub mod show;
pub mod slash;
pub mod status;
pub mod tail;
pub mod uninstall;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;

use crate::cli::Command;
use crate::client::payload;
use crate::config::Config;
use crate::env::Env;
use crate::store::{Sid, Store};
use crate::watch::shape;

/// What a terminal command works with.
pub struct Terminal<'a> {
    /// The surroundings.
    pub env: &'a Env,
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error, for remarks beside the answer.
    pub err: &'a mut dyn Write,
}

impl Terminal<'_> {
    /// The folder whose project blocks count: where the session this runs in began, else the current folder.
    pub fn folder(&self) -> PathBuf {
        let began = payload::env_session_id(self.env)
            .and_then(|id| shape::anchor(Store::new(self.env), &Sid::new(id)))
            .map(|anchor| PathBuf::from(anchor.cwd));
        began.filter(|path| path.is_absolute()).unwrap_or_else(|| self.env.cwd.clone())
    }

    /// Says so where a configuration file does not parse: what was answered is made without it.
    pub fn remark_broken(&mut self, config: &Config) -> std::io::Result<()> {
        let Some(broken) = &config.broken else { return Ok(()) };
        self.remark(format!("note: {} does not parse, and so counts as absent: {}", broken.path.display(), broken.why))
    }

    /// Says something beside the answer, on standard error, after what was answered so far.
    pub fn remark(&mut self, text: impl std::fmt::Display) -> std::io::Result<()> {
        self.out.flush()?;
        writeln!(self.err, "{text}")
    }
}

/// An error that is the caller's wording: exit 64 instead of 1.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs one command. An error is one sentence for the user; [`Usage`] marks bad wording.
pub fn run(terminal: &mut Terminal<'_>, command: Command) -> Result<()> {
    match command {
        // These two lanes are chosen before clap; only their help arrives here.
        Command::Hook(_) | Command::Statusline(_) => Ok(()),
        Command::Pin(args) => pin::run(terminal, &args),
        Command::Recover(args) => recover::run(terminal, &args),
        Command::Expand(args) => expand::run(terminal, &args),
        Command::ArchiveList(args) => expand::list(terminal, &args),
        Command::Show(args) => show::run(terminal, &args),
        Command::Get(args) => get::run(terminal, &args),
        Command::Set(args) => set::run(terminal, &args),
        Command::Reset(args) => reset::run(terminal, &args),
        Command::Explain(args) => explain::run(terminal, &args),
        Command::Config(args) => config::run(terminal, &args),
        Command::Migrate(args) => migrate::run(terminal, &args),
        Command::Status(args) => status::run(terminal, &args),
        Command::Tail(args) => tail::run(terminal, &args),
        Command::Doctor(args) => doctor::run(terminal, &args),
        Command::Log(args) => log::run(terminal, &args),
        Command::Install(args) => install::run(terminal, &args),
        Command::Uninstall(args) => uninstall::run(terminal, &args),
        Command::Completions(args) => completions::run(terminal, &args),
        Command::Man(args) => man::run(terminal, &args),
        Command::Slash(args) => slash::run(terminal, &args),
        Command::Refresh(args) => refresh::run(terminal, &args),
    }
}
