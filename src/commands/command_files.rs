//! The slash command files that `si install` writes: which are still as it wrote them, and what comes back when they go.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::client::settings::{self, Edit, State, entries};
use crate::env::Env;
use crate::process;
use crate::store::{file, key};

/// The slash commands: file name and content as the plugin has it, where `si` is found by its name.
const COMMANDS: [(&str, &str); 2] = [
    ("si.md", include_str!("../../commands/si.md")),
    ("smartcompact.md", include_str!("../../commands/smartcompact.md")),
];

/// What every slash command file of ours holds, whatever the path of the program.
const COMMAND_MARK: &str = " <<'SI_END'\n";
/// Where the bootstrap state keeps, by file name, the hash of what was written: what differs the user has edited.
const WRITTEN: &str = "commandFiles";
/// The largest file that is read.
const MAX: u64 = 1 << 20;

/// The slash command files with the path of this program in them, and what stands there now.
pub fn plan(env: &Env, exe: &Path) -> Result<Vec<Edit>> {
    let program = entries::quoted(exe)?;
    // The client ends a rule at a bracket followed by a space, so wildcards stand for brackets. In the front matter the
    // rule is YAML, where in quotes it may hold anything.
    let rule = match program.contains(['(', ')']) {
        true => format!("Bash({} *)", program.replace(['(', ')'], "*")),
        false => format!("Bash({program}:*)"),
    };
    let allowed = format!("allowed-tools: {}\n", json!(rule));
    let plan = |(name, content): &(&str, &str)| {
        let path = env.in_claude(&format!("commands/{name}")).context("there is no home folder")?;
        let before = file::read_user(&path, MAX).with_context(|| format!("read {}", path.display()))?;
        let after = content.replace("allowed-tools: Bash(si:*)\n", &allowed).replace("\nsi ", &format!("\n{program} "));
        Ok(Edit { path, before: before.unwrap_or_default(), after: after.into_bytes() })
    };
    COMMANDS.iter().map(plan).collect()
}

/// Notes what is written, so that a later change by the user is told from a version of ours.
pub fn record(state: &mut State, planned: &[Edit]) {
    let written = planned.iter().map(|edit| (name(&edit.path), json!(hash(&edit.after)))).collect();
    state.insert(WRITTEN.into(), Value::Object(written));
}

/// Forgets what was written.
pub fn forget(state: &mut State) {
    state.shift_remove(WRITTEN);
}

/// Whether what stands there is not as we wrote it: neither as now planned nor as recorded.
pub fn is_users(state: &State, edit: &Edit) -> bool {
    let recorded = state.get(WRITTEN).and_then(|written| written.get(name(&edit.path)));
    !edit.before.is_empty() && edit.changed() && recorded.and_then(Value::as_str) != Some(&hash(&edit.before))
}

/// Whether any slash command file of ours is there.
pub fn any(env: &Env) -> bool {
    COMMANDS.iter().filter_map(|(name, _)| read(&env.in_claude(&format!("commands/{name}"))?)).any(|it| is_ours(&it))
}

/// One file that goes when si does.
#[derive(Debug)]
pub struct Leaving {
    /// What it becomes: what stood there before si, or nothing.
    pub edit: Edit,
    /// Whether the user has edited it.
    pub edited: bool,
    /// The copy of what stood there before si.
    pub former: Option<PathBuf>,
}

/// The files of ours, with what stood in their places.
pub fn leaving(env: &Env, state: &State) -> Vec<Leaving> {
    let planned = process::own_path(env).and_then(|exe| plan(env, &exe).ok()).unwrap_or_default();
    let found = COMMANDS.iter().filter_map(|(name, _)| {
        let path = env.in_claude(&format!("commands/{name}"))?;
        let before = read(&path);
        let recorded = state.get(WRITTEN).is_some_and(|written| written.get(*name).is_some());
        // One that the user removed leaves the place to what was there before.
        if !before.as_deref().map_or(recorded && path.symlink_metadata().is_err(), is_ours) {
            return None;
        }
        let before = before.unwrap_or_default();
        let as_planned = planned.iter().any(|edit| edit.path == path && edit.after == before);
        let former = former(&path);
        let after = former.as_deref().and_then(read).unwrap_or_default();
        let edit = Edit { path, before, after };
        Some(Leaving { edited: !as_planned && is_users(state, &edit), edit, former })
    });
    found.collect()
}

impl Leaving {
    /// Takes the file out, the former one back. Gives the copy of what the user made of ours.
    pub fn take_out(&self, env: &Env) -> Result<Option<PathBuf>> {
        let path = &self.edit.path;
        let kept = if self.edited { Some(keep(env, &self.edit)?) } else { None };
        match &self.former {
            Some(copy) => {
                settings::write(path, &self.edit.after)?;
                file::remove(copy).with_context(|| format!("remove {}", copy.display()))?;
            }
            None => file::remove(path).with_context(|| format!("remove {}", path.display()))?,
        }
        Ok(kept)
    }
}

/// Keeps a dated copy of what is about to be replaced, beside it.
pub fn keep(env: &Env, edit: &Edit) -> Result<PathBuf> {
    let stamp = env.local(env.now_ms).format("%Y%m%d-%H%M%S").to_string();
    let name = name(&edit.path);
    let mut copy = edit.path.with_file_name(format!("{name}.before-si-{stamp}"));
    let mut more = 1;
    while copy.symlink_metadata().is_ok() {
        more += 1;
        copy = edit.path.with_file_name(format!("{name}.before-si-{stamp}-{more}"));
    }
    file::write_atomic(&copy, &edit.before).with_context(|| format!("write {}", copy.display()))?;
    Ok(copy)
}

/// The newest dated copy of a file that is none of ours.
fn former(path: &Path) -> Option<PathBuf> {
    let start = format!("{}.before-si-", name(path));
    let entries = std::fs::read_dir(path.parent()?).ok()?.flatten().map(|entry| entry.path());
    let copies = entries.filter(|copy| name(copy).starts_with(&start));
    copies.filter(|copy| read(copy).is_some_and(|bytes| !bytes.is_empty() && !is_ours(&bytes))).max()
}

fn read(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    file::read_user(path.as_ref(), MAX).ok().flatten()
}

/// Whether a slash command file was written by `si install`.
fn is_ours(content: &[u8]) -> bool {
    String::from_utf8_lossy(content).contains(COMMAND_MARK)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn hash(content: &[u8]) -> String {
    key::sha256_hex(content, 16)
}
