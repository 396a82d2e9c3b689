//! The status line entry of `settings.json`: taking it over, and giving it back.
//!
//! The command that stood there before is kept in the bootstrap state and run by `si statusline` beside its own work;
//! only the `command` of the entry changes, so that its other keys stay the user's.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::{State, entries};
use crate::client::json_edit::Document;
use crate::env::Env;
use crate::process;
use crate::store::{Store, file};

/// Keys of the bootstrap state that belong to the status line.
const PREV: &str = "wiredStatuslinePrev";
const AT: &str = "wiredStatuslineAt";
/// Ours: the entry before us as it was written, for giving it back to the byte.
const RAW: &str = "wiredStatuslineRaw";
/// Ours: when the user took si out, so that no session start puts it in again.
pub const UNINSTALLED: &str = "uninstalledAt";

/// Who the status line belongs to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Current {
    /// There is none.
    None,
    /// It runs our binary, whose path or name stands here.
    Ours(String),
    /// It runs the JavaScript original; the former command that its wrapper kept stands here.
    Original(Option<String>),
    /// Anything else.
    User,
}

/// Looks at the status line of `settings`.
pub fn current(env: &Env, settings: &Document, state: &State) -> Current {
    if settings.raw(&["statusLine"]).is_none_or(|raw| raw == "null") {
        return Current::None;
    }
    let Some(words) = settings.str(&["statusLine", "command"]).and_then(|command| entries::words(&command)) else {
        return Current::User;
    };
    if let [program, name, ..] = &words[..]
        && name == "statusline"
        && entries::is_si(env, program)
    {
        return Current::Ours(program.clone());
    }
    words.iter().find_map(|word| original(env, word, state)).unwrap_or(Current::User)
}

/// Reads a word of a status line command as a script of the JavaScript original.
fn original(env: &Env, word: &str, state: &State) -> Option<Current> {
    let path = expand(env, word);
    let script =
        || file::read_user(&path, 1 << 20).ok().flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match path.file_name()?.to_str()? {
        "statusline-intel.js" => Some(Current::Original(None)),
        "si-statusline-chain.sh" => Some(Current::Original(chained(script().as_deref(), state))),
        // This name is anybody's; only the original's script names its renderer.
        "statusline-chain.sh" => {
            let script = script()?;
            script.contains("statusline-intel").then(|| Current::Original(chained(Some(&script), state)))
        }
        _ => None,
    }
}

/// The previous command that a chain script keeps. The original wrote backslashes twice and read `$` sequences as its
/// own, so where the script says the same as the state apart from that, the state is right; otherwise the script is,
/// which users were told to edit.
fn chained(script: Option<&str>, state: &State) -> Option<String> {
    let stored = state.get(PREV).and_then(Value::as_str).filter(|text| !text.is_empty());
    let written = script.and_then(|script| {
        let at = script.lines().position(|line| line.trim_start().starts_with("PREV_STATUSLINE="))?;
        // The value may go over several lines; whatever follows its last quote is the script's.
        let rest = script.lines().skip(at).collect::<Vec<_>>().join("\n");
        let mut lexer = shlex::Shlex::new(rest.trim_start());
        lexer.next()?.strip_prefix("PREV_STATUSLINE=").map(str::to_owned)
    });
    match (written, stored) {
        (Some(written), Some(stored))
            if written.contains("__PREV_STATUSLINE__") || written == stored.replace('\\', "\\\\") =>
        {
            Some(stored.to_owned())
        }
        (Some(written), _) => Some(written).filter(|text| !text.is_empty() && !text.contains("__PREV_STATUSLINE__")),
        (None, stored) => stored.map(str::to_owned),
    }
}

fn expand(env: &Env, word: &str) -> PathBuf {
    let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|prefix| word.strip_prefix(prefix));
    match (below, &env.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(word),
    }
}

/// Makes the status line ours, and notes the former one in `state`. Says whether it was an original's.
pub fn take(env: &Env, settings: &mut Document, state: &mut State, exe: &Path) -> Result<bool> {
    let was = current(env, settings, state);
    let command = json!(entries::command(exe, "statusline")?);
    let prev = match &was {
        Current::Ours(_) => None,
        Current::None => Some(String::new()),
        Current::Original(prev) => Some(prev.clone().unwrap_or_default()),
        Current::User => Some(settings.str(&["statusLine", "command"]).unwrap_or_default()),
    };
    if let Some(prev) = prev {
        match (&was, settings.raw(&["statusLine"])) {
            (Current::User | Current::None, Some(raw)) => state.insert(RAW.into(), json!(raw)),
            _ => state.shift_remove(RAW),
        };
        state.insert(PREV.into(), json!(prev));
        state.insert(AT.into(), json!(env.iso(env.now_ms)));
    } else if !state.contains_key(AT) {
        state.insert(AT.into(), json!(env.iso(env.now_ms)));
    }
    let is_command = settings.str(&["statusLine", "type"]).as_deref() == Some("command");
    if is_command && settings.raw(&["statusLine", "command"]).is_some() {
        settings.set(&["statusLine", "command"], &command)?;
    } else {
        settings.set(&["statusLine"], &json!({"type": "command", "command": command, "padding": 0}))?;
    }
    Ok(matches!(was, Current::Original(_)))
}

/// Gives the status line back as it was, if it is still ours (or an original's that nobody replaced). Says whether
/// anything was done.
pub fn give_back(env: &Env, settings: &mut Document, state: &mut State) -> Result<bool> {
    let ours = matches!(current(env, settings, state), Current::Ours(_));
    if ours {
        let prev = state.get(PREV).and_then(Value::as_str).unwrap_or_default().to_owned();
        let raw = state.get(RAW).and_then(Value::as_str).and_then(|raw| Document::parse(raw.as_bytes()).ok());
        match raw {
            // The user may have changed other keys of the entry since: only the command goes back.
            Some(raw) if raw.raw(&["command"]).is_some() && raw.str(&["type"]).as_deref() == Some("command") => {
                settings.set_raw(&["statusLine", "command"], raw.raw(&["command"]).unwrap_or("\"\""))?;
            }
            Some(raw) => settings.set_raw(&["statusLine"], raw.raw(&[]).unwrap_or("null"))?,
            None if !prev.is_empty() => settings.set(&["statusLine", "command"], &json!(prev))?,
            None => drop(settings.remove(&["statusLine"])),
        }
    }
    for key in [PREV, AT, RAW] {
        state.shift_remove(key);
    }
    Ok(ours)
}

/// The command that stood there before ours; none where there was none.
pub fn former(state: &State) -> Option<String> {
    state.get(PREV)?.as_str().filter(|command| !command.is_empty()).map(str::to_owned)
}

/// What [`wire`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wiring {
    /// The status line was taken over just now.
    Wired,
    /// There is nothing to do: it is ours already, or the user's, or the user removed it, or took si out.
    Left,
}

/// Wires the status line from a session start, the only wiring that a plugin user gets: once, and only where there is
/// none, or an original's, or one of ours whose program is gone. The former command is kept.
///
/// Takes the locks of the settings and of the bootstrap state, so the caller must hold neither. Cheap when there is
/// nothing to do: one small file is read besides the bootstrap state.
pub fn wire(env: &Env, store: Store<'_>) -> Result<Wiring> {
    let wanted = |settings: &Document, state: &State| {
        !state.contains_key(UNINSTALLED)
            && match current(env, settings, state) {
                Current::None => !state.contains_key(AT),
                Current::Ours(program) => !runs(env, &program),
                Current::Original(_) => true,
                Current::User => false,
            }
    };
    if !wanted(&super::read(env)?, &super::read_state(store)) {
        return Ok(Wiring::Left);
    }
    let Some(exe) = process::own_path(env) else { return Ok(Wiring::Left) };
    // Asked again under the locks: a session that started together with this one may have been first.
    let edit = super::change(env, store, |settings, state| {
        if wanted(settings, state) { take(env, settings, state, &exe).map(drop) } else { Ok(()) }
    })?;
    Ok(if edit.changed() { Wiring::Wired } else { Wiring::Left })
}

/// Whether the program of a command can be started: a path must be there, a plain name is left to the shell.
fn runs(env: &Env, program: &str) -> bool {
    !program.contains('/') || expand(env, program).is_file()
}
