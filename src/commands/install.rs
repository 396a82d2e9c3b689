//! `si install`: hooks, status line and slash commands into Claude Code. Safe to run twice; what it finds of the
//! JavaScript originals it replaces, and keeps a dated copy of what was there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use similar::TextDiff;

use super::{Terminal, command_files};
use crate::client::json_edit::Document;
use crate::client::settings::entries::{self, Owner};
use crate::client::settings::{self, Edit, State, plugins, statusline};
use crate::config::docs;
use crate::env::Env;
use crate::process;
use crate::store::{StateFile, Store};
use crate::text;

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Leave the status line alone, now and at session starts
    #[arg(long)]
    pub no_statusline: bool,
    /// Never write the session rules into a project's CLAUDE.md
    #[arg(long)]
    pub no_claude_md: bool,
    /// Register the program at this path instead of this one; for installers, which know where it will be
    #[arg(long, value_name = "PATH", hide = true)]
    pub program: Option<PathBuf>,
}

/// What was found, for telling the user.
#[derive(Debug, Default)]
struct Found {
    plugin: bool,
    originals: bool,
    former: Option<String>,
}

/// Runs the command.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let env = terminal.env;
    let store = Store::new(env);
    let exe = args.program.clone().or_else(|| process::own_path(env));
    let exe = &*exe.context("the system does not say where this program is")?;
    let mut found = Found::default();
    let was = settings::read_state(store);
    let commands = command_files::plan(env, exe)?;
    let mut work = |settings: &mut Document, state: &mut State| {
        found = put_in(env, settings, state, exe, args)?;
        Ok(())
    };
    // Everything is read and worked out before anything is written.
    let planned = settings::preview(env, store, &mut work)?;
    let config = plan_config(env, store, args)?;
    if args.dry_run {
        show(terminal, std::iter::once(&planned).chain(&config).chain(&commands))?;
        let schema = store.path(StateFile::Schema).filter(|path| !path.exists());
        return match schema {
            Some(path) => Ok(writeln!(terminal.out, "would write {}, the schema for editors", path.display())?),
            None => Ok(()),
        };
    }
    let mut kept = Vec::new();
    if found.originals && planned.changed() {
        kept.push(command_files::keep(env, &planned)?);
    }
    let mut work = |settings: &mut Document, state: &mut State| {
        found = put_in(env, settings, state, exe, args)?;
        command_files::record(state, &commands);
        Ok(())
    };
    let mut changed = settings::change(env, store, &mut work)?.changed();
    if config.is_some_and(|config| config.changed()) {
        let guard = store.lock(StateFile::Config)?;
        // Read again under the lock: another command may have changed it since.
        if let Some(config) = plan_config(env, store, args)? {
            guard.write(StateFile::Config, &config.after)?;
        }
        changed = true;
    }
    for command in commands.iter().filter(|command| command.changed()) {
        let mut write = || {
            if command_files::is_users(&was, command) {
                kept.push(command_files::keep(env, command)?);
            }
            settings::write(&command.path, &command.after)
        };
        write().with_context(|| format!("all is in {} but not this slash command", planned.path.display()))?;
        changed = true;
    }
    changed |= docs::keep_schema(store)?;
    report(terminal, args, &planned.path, exe, &found, &kept, changed)
}

/// Changes the settings; says what there was.
fn put_in(env: &Env, settings: &mut Document, state: &mut State, exe: &Path, args: &Args) -> Result<Found> {
    let plugins = plugins::enabled(env, settings);
    plugins::disable(settings, &plugins.originals)?;
    let mut originals = !plugins.originals.is_empty();
    if plugins.ours {
        originals |= entries::unregister(env, settings, true).contains(&Owner::Original);
    } else {
        originals |= entries::register(env, settings, exe)?;
    }
    if !args.no_statusline {
        originals |= statusline::take(env, settings, state, exe)?;
    }
    state.shift_remove(statusline::UNINSTALLED);
    Ok(Found { plugin: plugins.ours, originals, former: statusline::former(state) })
}

/// The switches that session starts obey, in our own configuration.
fn plan_config(env: &Env, store: Store<'_>, args: &Args) -> Result<Option<Edit>> {
    let off: Vec<&str> = [("statusline", args.no_statusline), ("claudeMd", args.no_claude_md)]
        .iter()
        .filter(|(_, off)| *off)
        .map(|(key, _)| *key)
        .collect();
    if off.is_empty() {
        return Ok(None);
    }
    let path = StateFile::Config.path(env).context("there is no home folder: set HOME or CLAUDE_CONFIG_DIR")?;
    let before = store.read(StateFile::Config).unwrap_or_default();
    let mut config = Document::parse(&before)
        .map_err(|fault| anyhow::anyhow!("{} is not JSON, so it was left alone ({fault})", path.display()))?;
    for key in off {
        config.set(&["bootstrap", key], &json!(false)).with_context(|| format!("{} was left alone", path.display()))?;
    }
    let after = config.to_bytes();
    Ok(Some(Edit { path, before, after }))
}

/// Prints the difference that each edit makes.
pub fn show<'e>(terminal: &mut Terminal<'_>, edits: impl Iterator<Item = &'e Edit>) -> Result<()> {
    let mut any = false;
    for edit in edits.filter(|edit| edit.changed()) {
        any = true;
        let [before, after] = [&edit.before, &edit.after].map(|bytes| String::from_utf8_lossy(bytes));
        let path = edit.path.display().to_string();
        let diff = TextDiff::from_lines(&*before, &*after);
        write!(terminal.out, "{}", diff.unified_diff().header(&path, &path))?;
    }
    if !any {
        writeln!(terminal.out, "Nothing to change.")?;
    }
    Ok(())
}

fn report(
    terminal: &mut Terminal<'_>,
    args: &Args,
    path: &Path,
    exe: &Path,
    found: &Found,
    kept: &[PathBuf],
    changed: bool,
) -> Result<()> {
    let out = &mut *terminal.out;
    if !changed {
        writeln!(out, "si is installed already: nothing to change in {}.", path.display())?;
        return Ok(());
    }
    writeln!(out, "si is in Claude Code now ({}):", path.display())?;
    let hooks =
        if found.plugin { "from the plugin session-intelligence".to_owned() } else { entries::events().join(", ") };
    writeln!(out, "  hooks        {hooks}")?;
    match &found.former {
        _ if args.no_statusline => writeln!(out, "  status line  left alone")?,
        Some(command) => writeln!(out, "  status line  si's rows, then your own: {}", text::sanitize(command))?,
        None => writeln!(out, "  status line  si's rows")?,
    }
    writeln!(out, "  commands     /si, /smartcompact")?;
    for copy in kept {
        writeln!(out, "What was there before is kept in {}.", copy.display())?;
    }
    if found.plugin && !reachable(terminal.env, exe) {
        writeln!(
            terminal.err,
            "The plugin looks for si on PATH and in ~/.local/bin, and this one is in neither: {}",
            exe.display()
        )?;
    }
    writeln!(terminal.out, "Restart Claude Code to start with it. `si uninstall` takes it out again.")?;
    Ok(())
}

/// Whether the plugin's hooks find a program called `si`.
fn reachable(env: &Env, exe: &Path) -> bool {
    let local = env.home.iter().map(|home| home.join(".local/bin/si"));
    let on_path = env.var("PATH").unwrap_or_default().split(':').map(|folder| Path::new(folder).join("si"));
    local.chain(on_path).any(|path| path == exe || path.is_file())
}
