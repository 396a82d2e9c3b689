//! `si uninstall`: everything of ours out of Claude Code, the former status line back. What the user and Claude wrote,
//! and what si learned, stays, unless `--purge` says otherwise.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Terminal, command_files, install};
use crate::client::json_edit::Document;
use crate::client::settings::{self, Edit, State, entries, plugins, statusline};
use crate::compaction::claude_md;
use crate::store::{StateFile, Store, file};

/// Arguments.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Remove si's own files too: configuration, pins, history, logs, counters
    #[arg(long)]
    pub purge: bool,
}

/// Runs the command.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    let env = terminal.env;
    let store = Store::new(env);
    let mut plugin = false;
    let mut projects = Vec::new();
    let mut work = |settings: &mut Document, state: &mut State| {
        plugin = plugins::enabled(env, settings).ours;
        entries::unregister(env, settings, false);
        statusline::give_back(env, settings, state)?;
        command_files::forget(state);
        let folders = state.shift_remove("claudeMdFolders").unwrap_or_default();
        projects = folders
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, folder)| folder.as_str())
            .map(PathBuf::from)
            .collect();
        // A plugin may stay enabled: its session start must not put the status line in again.
        if !state.contains_key(statusline::UNINSTALLED) {
            state.insert(statusline::UNINSTALLED.into(), json!(env.iso(env.now_ms)));
        }
        Ok(())
    };
    let commands = command_files::leaving(env, &settings::read_state(store));
    let files = if args.purge { store.own_files() } else { Vec::new() };
    if args.dry_run {
        let edit = settings::preview(env, store, &mut work)?;
        let rules = projects.iter().filter_map(|folder| {
            let path = StateFile::ClaudeMd(folder).path(env)?;
            let before = store.read(StateFile::ClaudeMd(folder))?;
            let after = claude_md::strip(&before)?;
            Some(Edit { path, before, after })
        });
        let gone = commands.iter().map(|leaving| leaving.edit.clone());
        let edits: Vec<Edit> = std::iter::once(edit).chain(rules).chain(gone).collect();
        install::show(terminal, edits.iter())?;
        for leaving in commands.iter().filter(|leaving| leaving.edited) {
            writeln!(terminal.out, "would keep a copy of your version of {}", leaving.edit.path.display())?;
        }
        for path in files {
            writeln!(terminal.out, "would remove {}", path.display())?;
        }
        return Ok(());
    }
    let edit = settings::change(env, store, &mut work)?;
    let mut notes = Vec::new();
    for leaving in &commands {
        let path = leaving.edit.path.display();
        let stays = || format!("si is out of {}, but a slash command stays", edit.path.display());
        if let Some(copy) = leaving.take_out(env).with_context(stays)? {
            notes.push(format!("Your version of {path} is kept in {}.", copy.display()));
        }
        if leaving.former.is_some() {
            notes.push(format!("{path} is what it was before si again."));
        }
    }
    let mut rules = 0;
    for folder in &projects {
        match claude_md::withdraw(store, folder) {
            Ok(withdrawn) => rules += usize::from(withdrawn),
            Err(error) => writeln!(terminal.err, "the block in {}/CLAUDE.md stays: {error:#}", folder.display())?,
        }
    }
    let out = &mut *terminal.out;
    if edit.changed() || !commands.is_empty() {
        writeln!(out, "si is out of Claude Code ({}).", edit.path.display())?;
    } else {
        writeln!(out, "Nothing of si is left in {}.", edit.path.display())?;
    }
    for note in notes {
        writeln!(out, "{note}")?;
    }
    if rules > 0 {
        let projects = if rules == 1 { "project" } else { "projects" };
        writeln!(out, "The block of session rules is out of the CLAUDE.md of {rules} {projects}.")?;
    }
    if args.purge {
        let count = files.len();
        for path in files {
            file::remove_all(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        writeln!(out, "Removed {count} files and folders of si's own. Your session-context.md files stay.")?;
        if plugin {
            let state = json!({statusline::UNINSTALLED: env.iso(env.now_ms)});
            store.write_json(StateFile::Bootstrap, &state)?;
        }
    } else if edit.changed() {
        writeln!(out, "Configuration, pins, history and logs stay; `si uninstall --purge` removes them.")?;
    }
    if plugin {
        writeln!(terminal.err, "The plugin is still enabled: /plugin uninstall session-intelligence removes it.")?;
    }
    Ok(())
}
