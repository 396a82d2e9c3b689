//! What is generated from the table for people and editors: the Markdown tables of the documentation and the JSON schema.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::table::{Accepts, Key, Kind};
use super::values::range;
use super::{Config, KEYS, PRESETS, SECTIONS, human};
use crate::store::{StateFile, Store};

/// What a new configuration file holds: nothing but the name of its schema.
pub const SEED: &str = "{\n  \"$schema\": \"./session-intelligence.schema.json\"\n}\n";

/// Writes the schema that [`SEED`] names, unless it is there already as this version makes it. Says whether it did.
pub fn keep_schema(store: Store<'_>) -> Result<bool> {
    let text = schema_text()?;
    if store.read(StateFile::Schema).as_deref() == Some(text.as_bytes()) {
        return Ok(false);
    }
    store.write(StateFile::Schema, text.as_bytes())?;
    Ok(true)
}

/// The JSON schema as a file holds it.
pub fn schema_text() -> Result<String> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}

/// What can be turned off, and the key that does it.
pub static TURN_OFF: &[(&str, &str)] = &[
    ("the rows of the status line", "statusline.enabled"),
    ("wiring the status line at start", "bootstrap.statusline"),
    ("the hook at session start", "hooks.sessionStart"),
    ("the hook before a compaction", "hooks.preCompact"),
    ("the hook after tool calls", "hooks.postToolUse"),
    ("the hook on prompts", "hooks.userPromptSubmit"),
    ("the archive of tool results", "toolArchive.enabled"),
    ("pins", "pins.enabled"),
    ("the block in CLAUDE.md", "bootstrap.claudeMd"),
    ("seeding session-context.md", "bootstrap.sessionContext"),
    ("suggestions to compact", "compact.autoblock"),
    ("task-change hints", "taskChange.enabled"),
    ("quota look-ups", "statusline.quota"),
    ("learning from compactions", "learn.enabled"),
    ("the resume block", "continue.afterCompact"),
    ("the resume echo alone", "continue.echo"),
];

/// Variables that stand for no key of the file.
pub static VARIABLES: &[(&str, &str)] = &[
    ("CLAUDE_STATUSLINE_COMPACT", "`1`: leave the `task` field out, whatever the layout."),
    ("CLAUDE_STATUSLINE_NO_PREV", "On: leave the previous status line command out."),
    ("CLAUDE_STATUSLINE_PREV_FIRST", "On: show the rows of the previous command above ours."),
    (
        "CLAUDE_STATUSLINE_SEP",
        "What stands between our rows and those of the previous command; a line break by default.",
    ),
    ("CLAUDE_CONFIG_DIR", "The configuration folder of Claude Code, instead of `~/.claude`."),
    ("TMPDIR", "The folder for the state of sessions, instead of `/tmp`."),
    (
        "CLAUDE_CODE_SESSION_ID",
        "The session, where nothing else names it; `CLAUDE_SESSION_ID` after it. Claude Code sets it.",
    ),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "On: no quota look-ups."),
    ("COLUMNS", "The width that the rows are fitted to. Claude Code sets it."),
];

/// The Markdown of the reference: a table for each section, the presets, and the other variables.
pub fn markdown() -> String {
    let mut text = String::new();
    for (section, title) in SECTIONS {
        text.push_str(&format!("### {title} (`{section}`)\n\n"));
        text.push_str("| key | default | accepts | variable | effect |\n|---|---|---|---|---|\n");
        for key in KEYS.iter().filter(|key| key.section() == *section) {
            let accepts = accepts(key);
            let cells = [&format!("`{}`", key.path), &default_text(key), &accepts, &variables(key), key.help];
            text.push_str(&format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
        }
        text.push('\n');
    }
    text.push_str("### Turning parts off\n\n| part | command |\n|---|---|\n");
    for (part, key) in TURN_OFF {
        text.push_str(&format!("| {part} | `si set {key} false` |\n"));
    }
    text.push_str("\n### Presets\n\n| preset | fields |\n|---|---|\n");
    for (name, fields) in PRESETS {
        let rows: Vec<String> = fields.split(|field| *field == "newline").map(|row| row.join(", ")).collect();
        text.push_str(&format!("| `{name}` | {} |\n", rows.join("<br>")));
    }
    text.push_str("\n### Other variables\n\n| variable | effect |\n|---|---|\n");
    for (name, effect) in VARIABLES {
        text.push_str(&format!("| `{name}` | {effect} |\n"));
    }
    text
}

/// The page `docs/configuration.md`.
pub fn page() -> String {
    let head = "# Configuration\n\n\
        One file, `~/.claude/session-intelligence.json`, holds what differs from the defaults; `si set KEY VALUE` writes it, \
        `si explain KEY` describes a key, `si config` shows all of them. Values come from, later ones win: the defaults, the \
        older `~/.claude/statusline-intel.json`, `session-intelligence.json`, a block for the project under \
        `statusline.perProject` or `shape.perProject`, variables. A value that cannot be used falls back alone; keys that are \
        not known are kept. The JSON schema that a new file names lies beside it, for editors; `si config --schema` prints it.\n\n\
        This page is made by `si config --markdown`.\n\n## Keys\n\n";
    format!("{head}{}", markdown())
}

fn accepts(key: &Key) -> String {
    match key.spec.kind {
        Kind::Switch => "true, false".into(),
        Kind::Count(min, max) => range(min as f64, max as f64),
        Kind::Number(min, max) => range(min, max),
        Kind::Text => "text".into(),
        Kind::Word(words) => words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", "),
        Kind::List => "list of texts".into(),
        Kind::Services => "list of services".into(),
        Kind::Projects => "object by folder".into(),
    }
}

fn default_text(key: &Key) -> String {
    match (key.path, key.default_value()) {
        ("statusline.fields", _) => "by preset".into(),
        (_, None) => key.spec.unset.unwrap_or_default().into(),
        (_, Some(Value::Number(number))) => format!("`{}`", number.as_f64().map_or_else(|| number.to_string(), human)),
        (_, Some(value)) => format!("`{value}`"),
    }
}

fn variables(key: &Key) -> String {
    let all = key.spec.vars.iter().map(|var| format!("`{}`{}", var.name, form(var.accepts)));
    all.collect::<Vec<_>>().join("<br>")
}

/// What a variable may hold, to stand behind its name; nothing where that is a value of its key.
pub fn form(accepts: Accepts) -> &'static str {
    match accepts {
        Accepts::Value => "",
        Accepts::Commas => " (with commas)",
        Accepts::Preset => " (a preset)",
        Accepts::ZeroOne => " (0, 1)",
        Accepts::Zero => " (0: off)",
        Accepts::One => " (1: on)",
        Accepts::TurnsOff | Accepts::AnythingTurnsOff => " (set: off)",
    }
}

/// The JSON schema of `session-intelligence.json`.
pub fn schema() -> Value {
    let mut root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of session-intelligence",
        "type": "object",
        "properties": {"$schema": {"type": "string"}},
    });
    let built_in = Config::built_in();
    for key in KEYS {
        let mut at = &mut root;
        let steps: Vec<&str> = key.path.split('.').collect();
        for step in &steps[..steps.len() - 1] {
            at = &mut at["properties"][*step];
            if at.is_null() {
                *at = json!({"type": "object", "properties": {}});
            }
        }
        at["properties"][steps[steps.len() - 1]] = property(key, &built_in);
    }
    for (section, title) in SECTIONS {
        root["properties"][*section]["title"] = (*title).into();
    }
    root
}

fn property(key: &Key, built_in: &Config) -> Value {
    let mut property = match key.spec.kind {
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Count(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::Text => json!({"type": "string"}),
        Kind::Word(words) => json!({"type": "string", "enum": words}),
        Kind::List => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Services => json!({"type": "array", "items": {
            "type": "object",
            "required": ["name", "url"],
            "properties": {
                "name": {"type": "string"},
                "url": {"type": "string"},
                "ttlSec": {"type": "integer", "minimum": 1, "default": 30},
                "timeoutMs": {"type": "integer", "minimum": 1, "default": 2000},
            },
        }}),
        Kind::Projects => {
            let section = format!("#/properties/{}", key.section());
            json!({"type": "object", "additionalProperties": {"$ref": section}})
        }
    };
    let mut about = Map::new();
    about.insert("title".into(), key.label.into());
    about.insert("description".into(), key.help.into());
    if let Some(default) = (key.value)(built_in) {
        about.insert("default".into(), default);
    }
    for (name, value) in about {
        property[name] = value;
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `si config --markdown > docs/configuration.md` renews the page.
    #[test]
    fn the_reference_page_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        assert_eq!(std::fs::read_to_string(path).unwrap(), page());
    }

    #[test]
    fn the_schema_names_every_key_with_its_default() {
        let schema = schema();
        for key in KEYS {
            let pointer = format!("/properties/{}", key.path.replace('.', "/properties/"));
            let property = schema.pointer(&pointer).unwrap_or_else(|| panic!("{} is missing", key.path));
            assert_eq!(property["description"], key.help);
            assert_eq!(property.get("default").cloned(), key.default_value(), "{}", key.path);
        }
    }

    #[test]
    fn what_turns_a_part_off_is_a_switch_that_is_on() {
        for (part, path) in TURN_OFF {
            let key = crate::config::key(path).unwrap_or_else(|| panic!("{path} for {part}"));
            assert_eq!(key.default_value(), Some(true.into()), "{path}");
        }
    }

    #[test]
    fn the_seed_sets_nothing() {
        let seed: Value = serde_json::from_str(SEED).unwrap();
        assert_eq!(seed.as_object().unwrap().keys().collect::<Vec<_>>(), ["$schema"]);
    }
}
