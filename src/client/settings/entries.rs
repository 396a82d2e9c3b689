//! Which entries of `settings.json` run our binary, which run the JavaScript originals, and how ours are put in and
//! taken out.
//!
//! An entry is recognised by the words of its command, never by a piece of text in it: a user's own hook may well live
//! under a folder whose name resembles ours.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::client::json_edit::Document;
use crate::env::Env;
use crate::process;

/// One hook that is registered: the client's event, and how our command line calls it.
struct Hook {
    event: &'static str,
    name: &'static str,
    /// Seconds after which the client gives up.
    timeout: u64,
    /// What the client shows while the hook runs.
    status: &'static str,
}

const HOOKS: [Hook; 4] = [
    Hook { event: "SessionStart", name: "session-start", timeout: 15, status: "Restoring pins and the last hand-off" },
    Hook { event: "PreCompact", name: "pre-compact", timeout: 15, status: "Writing compaction guidance" },
    Hook { event: "PostToolUse", name: "post-tool-use", timeout: 10, status: "Watching the context" },
    Hook {
        event: "UserPromptSubmit",
        name: "user-prompt-submit",
        timeout: 10,
        status: "Comparing with the task so far",
    },
];

/// The events that are registered.
pub fn events() -> [&'static str; 4] {
    HOOKS.map(|hook| hook.event)
}

/// Scripts of the JavaScript originals that were registered as hooks.
const ORIGINAL_HOOKS: [&str; 6] = [
    "si-bootstrap.js",
    "si-pre-compact.js",
    "si-token-budget.js",
    "si-tool-archive.js",
    "si-suggest-compact.js",
    "si-task-change.js",
];

/// Who a command belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It runs our binary.
    Ours,
    /// It runs a JavaScript original, which ours replaces.
    Original,
    /// Anything else.
    User,
}

/// The words of a command as a shell would split them, without `exec` and leading assignments; none when it is no
/// simple command.
pub fn words(command: &str) -> Option<Vec<String>> {
    let words = shlex::split(command)?;
    let is_prefix = |word: &String| {
        word == "exec"
            || word.split_once('=').is_some_and(|(name, _)| {
                name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            })
    };
    Some(words.into_iter().skip_while(is_prefix).collect())
}

/// Whether `program` is our binary: by its name, or by being this very file or a link to it.
pub fn is_si(env: &Env, program: &str) -> bool {
    let path = Path::new(program);
    let named_so = path.file_name().is_some_and(|name| name == "si");
    named_so || path.is_absolute() && env.exe.as_deref().is_some_and(|exe| process::is_same_file(path, exe))
}

/// Who the command of a hook belongs to.
pub fn hook_owner(env: &Env, words: &[String]) -> Owner {
    if let [program, hook, name, ..] = words
        && hook == "hook"
        && is_hook_name(name)
        && is_si(env, program)
    {
        return Owner::Ours;
    }
    let original = script(words).map(Path::new).is_some_and(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            ORIGINAL_HOOKS.contains(&name)
                || name == "pin-inject.js" && path.components().any(|part| part.as_os_str() == "smartcompact")
        })
    });
    if original { Owner::Original } else { Owner::User }
}

/// Whether `si hook` is called so: a part that it answers, or another event of the client, which it takes in silence.
fn is_hook_name(name: &str) -> bool {
    const OTHERS: [&str; 7] =
        ["stop", "subagentstop", "sessionend", "notification", "pretooluse", "postcompact", "posttoolusefailure"];
    crate::client::part::Part::parse(name).is_some()
        || OTHERS.contains(&name.replace('-', "").to_ascii_lowercase().as_str())
}

/// The script that a command runs: what an interpreter is given first, else the program itself.
fn script(words: &[String]) -> Option<&String> {
    let interpreters = ["node", "bun", "deno", "sh", "bash", "env"];
    let runs_another = |word: &&String| {
        word.starts_with('-') || Path::new(word).file_name().is_some_and(|name| interpreters.iter().any(|i| name == *i))
    };
    words.iter().find(|word| !runs_another(word))
}

/// A command that runs `exe` with `args`, quoted for the shell.
pub fn command(exe: &Path, args: &str) -> Result<String> {
    Ok(format!("{} {args}", quoted(exe)?))
}

/// A path quoted for the shell where that is needed.
pub fn quoted(exe: &Path) -> Result<String> {
    let text = exe.to_str().with_context(|| format!("{} cannot be written as text", exe.display()))?;
    Ok(shlex::try_quote(text).with_context(|| format!("{} cannot be quoted for a shell", exe.display()))?.into_owned())
}

/// Where a hook entry stands: `hooks`, event, group, `hooks`, entry.
struct Place {
    event: String,
    group: String,
    entry: String,
    owner: Owner,
}

impl Place {
    fn path<'p>(&'p self, rest: &[&'p str]) -> Vec<&'p str> {
        [&["hooks", &self.event, &self.group, "hooks", &self.entry], rest].concat()
    }
}

fn places(env: &Env, settings: &Document) -> Vec<Place> {
    let mut found = Vec::new();
    for event in settings.keys(&["hooks"]).unwrap_or_default() {
        for group in 0..settings.len(&["hooks", &event]).unwrap_or(0) {
            let group = group.to_string();
            for entry in 0..settings.len(&["hooks", &event, &group, "hooks"]).unwrap_or(0) {
                let mut place =
                    Place { event: event.clone(), group: group.clone(), entry: entry.to_string(), owner: Owner::User };
                place.owner = owner_at(env, settings, &place);
                found.push(place);
            }
        }
    }
    found
}

fn owner_at(env: &Env, settings: &Document, place: &Place) -> Owner {
    let Some(command) = settings.str(&place.path(&["command"])) else { return Owner::User };
    // With `args` the client runs the command without a shell, so it is one word.
    let words = match settings.value(&place.path(&["args"])) {
        Some(Value::Array(args)) => {
            let args = args.iter().filter_map(Value::as_str).map(str::to_owned);
            Some(std::iter::once(command).chain(args).collect())
        }
        _ => words(&command),
    };
    words.map_or(Owner::User, |words| hook_owner(env, &words))
}

/// Puts our hooks in: an entry of ours is brought up to date where it stands, what is missing comes last, a second one
/// and those of the originals go. Says whether an original's went.
pub fn register(env: &Env, settings: &mut Document, exe: &Path) -> Result<bool> {
    for hook in &HOOKS {
        let command = command(exe, &format!("hook {}", hook.name))?;
        let kept =
            places(env, settings).into_iter().find(|place| place.owner == Owner::Ours && place.event == hook.event);
        match kept {
            Some(place) => {
                settings.remove(&place.path(&["args"]));
                settings.set(&place.path(&["command"]), &json!(command))?;
            }
            None => {
                let entry = json!({
                    "type": "command",
                    "command": command,
                    "timeout": hook.timeout,
                    "statusMessage": hook.status,
                });
                settings.push(&["hooks", hook.event], &json!({"hooks": [entry]}))?;
            }
        }
    }
    let mut seen = Vec::new();
    let originals = remove_where(env, settings, |place| match place.owner {
        Owner::Original => true,
        Owner::Ours if seen.contains(&place.event) => true,
        Owner::Ours => {
            seen.push(place.event.clone());
            !HOOKS.iter().any(|hook| hook.event == place.event)
        }
        Owner::User => false,
    });
    Ok(originals.contains(&Owner::Original))
}

/// Takes all hooks of ours out, and those of the originals too when `originals` says so. Returns whose went.
pub fn unregister(env: &Env, settings: &mut Document, originals: bool) -> Vec<Owner> {
    remove_where(env, settings, |place| match place.owner {
        Owner::Ours => true,
        Owner::Original => originals,
        Owner::User => false,
    })
}

/// Whether an entry of ours is registered for `event`.
pub fn registered(env: &Env, settings: &Document, event: &str) -> bool {
    places(env, settings).iter().any(|place| place.owner == Owner::Ours && place.event == event)
}

/// A hook entry of ours, or of an original, as it stands in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The client's event.
    pub event: String,
    /// Its command.
    pub command: String,
    /// Whose it is.
    pub owner: Owner,
}

/// The entries of ours and of the originals, in order.
pub fn found(env: &Env, settings: &Document) -> Vec<Entry> {
    let places = places(env, settings).into_iter().filter(|place| place.owner != Owner::User);
    let entry = |place: Place| {
        let command = settings.str(&place.path(&["command"])).unwrap_or_default();
        Entry { event: place.event, command, owner: place.owner }
    };
    places.map(entry).collect()
}

/// Removes entries, and then every group, event and finally `hooks` itself that thereby became empty.
fn remove_where(env: &Env, settings: &mut Document, mut wanted: impl FnMut(&Place) -> bool) -> Vec<Owner> {
    let chosen: Vec<Place> = places(env, settings).into_iter().filter(|place| wanted(place)).collect();
    for place in chosen.iter().rev() {
        let path = place.path(&[]);
        settings.remove(&path);
        // `hooks.<event>.<group>.hooks` is the group's list: with it the whole group goes.
        for depth in [4, 2, 1] {
            if settings.is_empty(&path[..depth]) {
                settings.remove(&path[..if depth == 4 { 3 } else { depth }]);
            }
        }
    }
    chosen.into_iter().map(|place| place.owner).collect()
}
