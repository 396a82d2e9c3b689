//! The command line: names and help only. Each command's arguments live with the command.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::commands;
use crate::config::docs;

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
        Cli::try_parse_from(args)
    }
}

/// The end of the long help: how to turn each part off.
fn turn_off() -> String {
    let width = docs::TURN_OFF.iter().map(|(part, _)| part.len()).max().unwrap_or(0);
    let lines = docs::TURN_OFF.iter().map(|(part, key)| format!("\n  {part:<width$}  si set {key} false"));
    format!("To turn parts off (`true` turns them on again):{}", lines.collect::<String>())
}
