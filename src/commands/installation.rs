//! What is installed and where: hooks and status line in settings files and plugins, partner tools, and how often each
//! event is answered. Everything here only reads.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::json_edit::Document;
use crate::client::part::Part;
use crate::client::settings::entries::{self, Owner};
use crate::client::settings::statusline::{self, Current};
use crate::client::settings::{self, plugins};
use crate::env::Env;
use crate::store::{Store, file};
use crate::text;

/// A hook of ours, or of an original, that the client will call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The client's event.
    pub event: String,
    /// The command; empty for those of our plugin.
    pub command: String,
    /// Where it is registered, for people: a file, or `the plugin …`.
    pub place: String,
    /// Whose it is.
    pub owner: Owner,
}

/// What the settings say.
#[derive(Debug)]
pub struct Installation {
    /// Why the user's settings.json cannot be read, in one sentence.
    pub fault: Option<String>,
    /// Hooks of ours and of the originals.
    pub hooks: Vec<Hook>,
    /// The status line of the user's settings.
    pub statusline: Current,
    /// The command that stood there before ours.
    pub former: Option<String>,
    /// Whether our plugin is enabled.
    pub plugin: bool,
    /// Plugins of the originals that are enabled.
    pub originals: Vec<String>,
}

impl Installation {
    /// Reads the settings of the user and of the project in the working folder.
    pub fn read(env: &Env) -> Installation {
        let state = settings::read_state(Store::new(env));
        let mut found = Installation {
            fault: None,
            hooks: Vec::new(),
            statusline: Current::None,
            former: statusline::former(&state),
            plugin: false,
            originals: Vec::new(),
        };
        match settings::read(env) {
            Ok(document) => {
                found.statusline = statusline::current(env, &document, &state);
                let enabled = plugins::enabled(env, &document);
                found.plugin = enabled.ours;
                found.originals = enabled.originals;
                found.take(env, &document, "settings.json");
            }
            Err(error) => found.fault = Some(format!("{error:#}")),
        }
        let local = env.in_claude("settings.local.json").map(|path| (path, "settings.local.json"));
        let project = env.cwd.join(".claude");
        let of_project =
            [("settings.json", ".claude/settings.json"), ("settings.local.json", ".claude/settings.local.json")]
                .map(|(name, shown)| (project.join(name), shown));
        // In the home folder the project's settings are the user's own.
        let of_project = of_project.into_iter().filter(|_| env.claude_dir.as_ref() != Some(&project));
        for (path, shown) in local.into_iter().chain(of_project) {
            if let Some(document) = document(&path) {
                found.take(env, &document, shown);
            }
        }
        if found.plugin {
            let place = "the plugin session-intelligence".to_string();
            found.hooks.extend(entries::events().map(|event| Hook {
                event: event.into(),
                command: String::new(),
                place: place.clone(),
                owner: Owner::Ours,
            }));
        }
        found
    }

    fn take(&mut self, env: &Env, document: &Document, place: &str) {
        self.hooks.extend(entries::found(env, document).into_iter().map(|entry| Hook {
            event: entry.event,
            command: entry.command,
            place: place.into(),
            owner: entry.owner,
        }));
    }

    /// Our hooks on an event.
    pub fn ours<'s>(&'s self, event: &'s str) -> impl Iterator<Item = &'s Hook> {
        self.hooks.iter().filter(move |hook| hook.owner == Owner::Ours && hook.event == event)
    }

    /// Events that something of ours answers more than once, and where. The parts of an event beside each other are no
    /// duplicates; a part beside the whole, or twice the same, is one.
    pub fn duplicates(&self) -> Vec<(&'static str, Vec<String>)> {
        entries::events()
            .into_iter()
            .filter_map(|event| {
                let parts: Vec<(Option<Part>, &Hook)> = self.ours(event).map(|hook| (part(hook), hook)).collect();
                let whole = |part: Option<Part>| part.is_none() || part == Part::parse(event);
                let twice = parts.iter().enumerate().any(|(at, (one, _))| {
                    parts[at + 1..].iter().any(|(other, _)| one == other || whole(*one) || whole(*other))
                });
                twice.then(|| (event, parts.iter().map(|(_, hook)| hook.place.clone()).collect()))
            })
            .collect()
    }

    /// The programs that the registered commands of ours start.
    pub fn programs(&self) -> Vec<String> {
        let commands = self.hooks.iter().filter(|hook| hook.owner == Owner::Ours && !hook.command.is_empty());
        let mut all: Vec<String> =
            commands.filter_map(|hook| entries::words(&hook.command)?.into_iter().next()).collect();
        if let Current::Ours(program) = &self.statusline {
            all.push(program.clone());
        }
        all.sort();
        all.dedup();
        all
    }
}

/// Which part of which event a command answers; none where the plugin's own command line stands for the whole event.
fn part(hook: &Hook) -> Option<Part> {
    let words = entries::words(&hook.command)?;
    Part::parse(words.iter().skip_while(|word| *word != "hook").nth(1)?)
}

fn document(path: &Path) -> Option<Document> {
    Document::parse(&file::read_user(path, 16 << 20).ok()??).ok()
}

/// Tools that work beside si on the same tokens: where each was found.
pub fn partners(env: &Env) -> Vec<(&'static str, String)> {
    /// Name, variables, and pieces of the names of its MCP server or plugin.
    const KNOWN: [(&str, &[&str], &[&str]); 7] = [
        ("RTK (Rust Token Killer)", &["RTK_ENABLED", "CLAUDE_RTK"], &["rust-token-killer"]),
        ("Context Mode", &[], &["context-mode"]),
        ("Code Review Graph", &[], &["code-review-graph"]),
        ("Token Savior", &[], &["token-savior"]),
        ("Token Optimizer", &[], &["token-optimizer"]),
        ("Claude Context", &[], &["claude-context"]),
        ("Caveman Claude", &["CAVEMAN_MODE"], &["caveman"]),
    ];
    let names = servers_and_plugins(env);
    let found = KNOWN.iter().filter_map(|(title, variables, pieces)| {
        let variable = variables.iter().find(|name| env.var(name).is_some()).map(|name| format!("the variable {name}"));
        let named = || {
            let (name, place) = names.iter().find(|(name, _)| {
                let plain = name.to_lowercase().replace(['_', ' '], "-");
                pieces.iter().any(|piece| plain.contains(piece))
            })?;
            Some(format!("{} in {place}", text::sanitize(name)))
        };
        Some((*title, variable.or_else(named)?))
    });
    found.collect()
}

/// The names of MCP servers and of enabled plugins, with the file that names them.
fn servers_and_plugins(env: &Env) -> Vec<(String, String)> {
    let client_state = match env.var("CLAUDE_CONFIG_DIR") {
        Some(_) => env.in_claude(".claude.json"),
        None => env.home.as_ref().map(|home| home.join(".claude.json")),
    };
    let of_user = ["mcp.json", ".mcp.json", "settings.json"].map(|name| env.in_claude(name));
    let of_project = [".mcp.json", ".claude/mcp.json"].map(|name| Some(env.cwd.join(name)));
    let files: Vec<PathBuf> = of_user.into_iter().chain(of_project).chain([client_state]).flatten().collect();
    let mut names = Vec::new();
    for path in files {
        let Some(document) = document(&path) else { continue };
        let place = path.display().to_string();
        let cwd = env.cwd.to_string_lossy();
        for servers in [&["mcpServers"][..], &["projects", &cwd, "mcpServers"]] {
            names.extend(document.keys(servers).unwrap_or_default().into_iter().map(|name| (name, place.clone())));
        }
        let plugins = document.keys(&["enabledPlugins"]).unwrap_or_default();
        let on = plugins.into_iter().filter(|id| document.value(&["enabledPlugins", id]) == Some(Value::Bool(true)));
        names.extend(on.map(|id| (id, place.clone())));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Env) {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        for (path, text) in files {
            file::write_atomic(&dir.path().join(path), text.as_bytes()).unwrap();
        }
        (dir, env)
    }

    fn settings(hooks: &[(&str, &str)]) -> String {
        let mut all = serde_json::Map::new();
        for (event, command) in hooks {
            let groups = all.entry(*event).or_insert(Value::Array(Vec::new()));
            groups
                .as_array_mut()
                .unwrap()
                .push(serde_json::json!({"hooks": [{"type": "command", "command": command}]}));
        }
        serde_json::json!({"hooks": all}).to_string()
    }

    #[test]
    fn duplicates_are_named_with_their_places() {
        let user = settings(&[
            ("PreCompact", "/b/si hook pre-compact"),
            ("PostToolUse", "/b/si hook token-budget"),
            ("PostToolUse", "/b/si hook tool-archive"),
        ]);
        let project = settings(&[("PreCompact", "si hook PreCompact")]);
        let (_dir, env) = env_with(&[("home/.claude/settings.json", &user), ("work/.claude/settings.json", &project)]);
        let found = Installation::read(&env);
        assert_eq!(
            found.duplicates(),
            [("PreCompact", vec!["settings.json".to_string(), ".claude/settings.json".to_string()])]
        );
        assert_eq!(found.ours("PostToolUse").count(), 2);
        assert_eq!(found.programs(), ["/b/si", "si"]);
    }

    #[test]
    fn a_part_beside_the_whole_is_a_duplicate() {
        let user = settings(&[("PostToolUse", "si hook post-tool-use"), ("PostToolUse", "si hook tool-archive")]);
        let (_dir, env) = env_with(&[("home/.claude/settings.json", &user)]);
        assert_eq!(Installation::read(&env).duplicates().len(), 1);
    }

    #[test]
    fn the_plugin_and_every_hook_of_the_original_are_known() {
        let mut user: Value = serde_json::from_str(&settings(&[
            ("PostToolUse", "node ~/.claude/scripts/hooks/si-tool-archive.js"),
            ("PostToolUse", "node ~/.claude/scripts/hooks/mine.js"),
        ]))
        .unwrap();
        user["enabledPlugins"] = serde_json::json!({"session-intelligence@session-intelligence": true});
        let (_dir, env) = env_with(&[("home/.claude/settings.json", &user.to_string())]);
        let found = Installation::read(&env);
        assert!(found.plugin);
        for event in entries::events() {
            assert_eq!(found.ours(event).count(), 1, "{event}");
        }
        let originals: Vec<&str> =
            found.hooks.iter().filter(|hook| hook.owner == Owner::Original).map(|hook| hook.command.as_str()).collect();
        assert_eq!(originals, ["node ~/.claude/scripts/hooks/si-tool-archive.js"]);
    }

    #[test]
    fn settings_that_do_not_parse_are_a_fault_and_no_panic() {
        let (_dir, env) = env_with(&[("home/.claude/settings.json", "{ // mine\n}")]);
        let found = Installation::read(&env);
        assert!(found.fault.unwrap().contains("settings.json is not JSON"));
        assert!(found.hooks.is_empty());
    }

    #[test]
    fn partners_are_found_by_server_plugin_and_variable() {
        let (_dir, env) = env_with(&[
            ("work/.mcp.json", r#"{"mcpServers":{"token_optimizer":{}}}"#),
            ("home/.claude/settings.json", r#"{"enabledPlugins":{"caveman@x":false,"context-mode@y":true}}"#),
            ("home/.claude.json", r#"{"mcpServers":{"claude-context":{}}}"#),
        ]);
        let env = env.with_var("RTK_ENABLED", "1");
        let names: Vec<&str> = partners(&env).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["RTK (Rust Token Killer)", "Context Mode", "Token Optimizer", "Claude Context"]);
    }
}
