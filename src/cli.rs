//! The command line: names and help only. Each command's arguments live with the command.

use std::ffi::{OsStr, OsString};

use clap::{Parser, Subcommand};

use crate::commands;
use crate::config::docs;

/// Stands before an argument that is text although it begins with a dash.
const TEXT_MARK: &str = "\0";

/// Session intelligence for Claude Code.
#[derive(Debug, Parser)]
#[command(name = "si", version, about, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = "`si doctor` checks the installation, and says how to turn parts off.", after_long_help = turn_off())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the terminal lane. `hook` and `statusline` have lanes of their own and stand here for the help alone.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer a hook of Claude Code (JSON on stdin)
    Hook(commands::lanes::HookArgs),
    /// Print the status line (JSON on stdin)
    Statusline(commands::lanes::StatuslineArgs),
    /// Pin text, so that it comes back word for word after every compaction
    Pin(commands::pin::Args),
    /// Dig snippets out of the session's raw transcript
    Recover(commands::recover::Args),
    /// Print an archived tool result
    Expand(commands::expand::Args),
    /// List the archived tool results of the session
    ArchiveList(commands::expand::ListArgs),
    /// Show the effective configuration
    Show(commands::show::Args),
    /// Print one configuration value
    Get(commands::get::Args),
    /// Change configuration values
    Set(commands::set::Args),
    /// Put configuration values back to their defaults
    Reset(commands::reset::Args),
    /// Say what a configuration key does
    Explain(commands::explain::Args),
    /// Show every setting in one form
    Config(commands::config::Args),
    /// Fold the older statusline-intel.json into the configuration
    Migrate(commands::migrate::Args),
    /// Show what is installed and what this session is doing
    Status(commands::status::Args),
    /// Show the last lines of the debug log
    Tail(commands::tail::Args),
    /// Check the installation and say how to fix it
    Doctor(commands::doctor::Args),
    /// Write a line into the debug log
    Log(commands::log::Args),
    /// Put si into Claude Code
    Install(commands::install::Args),
    /// Take si out of Claude Code again
    Uninstall(commands::uninstall::Args),
    /// Print a shell completion script
    Completions(commands::completions::Args),
    /// Print the manual page
    #[command(hide = true)]
    Man(commands::man::Args),
    /// Run the one command line on stdin (slash commands call this)
    #[command(hide = true)]
    Slash(commands::slash::Args),
    /// Renew a stored answer (started by si itself, detached)
    #[command(hide = true)]
    Refresh(commands::refresh::Args),
}

impl Cli {
    /// Reads a command line, the program's name first. `help` and `help COMMAND` ask for what `--help` gives.
    pub fn read(mut args: Vec<OsString>) -> Result<Cli, clap::Error> {
        if args.get(1).is_some_and(|word| word == "help") {
            args.remove(1);
            args.push("--help".into());
        }
        // The parser takes whatever begins with a dash for an option; no argument can hold the mark of its own accord.
        if args.get(1).is_some_and(|word| word == "pin" || word == "recover") {
            for arg in args.iter_mut().filter(|arg| arg.to_str().is_some_and(is_dashed_text)) {
                *arg = [OsStr::new(TEXT_MARK), arg].into_iter().collect();
            }
        }
        let mut cli = Cli::try_parse_from(args)?;
        let texts: Vec<&mut String> = match &mut cli.command {
            Command::Pin(args) => args.text.iter_mut().chain(&mut args.focus).collect(),
            Command::Recover(args) => args.topic.iter_mut().collect(),
            _ => Vec::new(),
        };
        for text in texts {
            if let Some(bare) = text.strip_prefix(TEXT_MARK) {
                *text = bare.to_string();
            }
        }
        Ok(cli)
    }
}

/// Whether an argument begins with a dash and still is text, as an item of a list is: no option has white space in its
/// name.
fn is_dashed_text(arg: &str) -> bool {
    let rest = arg.trim_start_matches('-');
    let name = rest.split('=').next().unwrap_or(rest);
    rest.len() < arg.len() && name.contains(char::is_whitespace)
}

/// The end of the long help: how to turn each part off.
fn turn_off() -> String {
    let width = docs::TURN_OFF.iter().map(|(part, _)| part.len()).max().unwrap_or(0);
    let lines = docs::TURN_OFF.iter().map(|(part, key)| format!("\n  {part:<width$}  si set {key} false"));
    format!("To turn parts off (`true` turns them on again):{}", lines.collect::<String>())
}
