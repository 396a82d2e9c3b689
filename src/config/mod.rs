//! The configuration: one table of keys, and the effective values made from it.
//!
//! Layers, later ones win: built-in values, the older flat `statusline-intel.json`, `session-intelligence.json`, a
//! `perProject` block, variables. Loading never fails: a value that cannot be used falls back alone, keys that are not
//! known are left alone, and a file that does not parse counts as absent and is reported as [`Config::broken`].

pub mod docs;
pub mod edit;
mod keys;
mod services;
mod table;
pub mod tree;
mod values;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::json::{Object, Raw};
use crate::client::json_edit::Document;
use crate::env::Env;
use crate::store::{StateFile, Store};

pub use keys::{
    Bootstrap, Compact, Continue, DEFAULT_PRESET, Debug, GitNexus, Hooks, KEYS, Learn, PRESETS, Pins, Prices, SECTIONS,
    Shape, Statusline, TaskChange, ToolArchive, Zones, preset,
};
pub use services::ServiceHealth;
pub use table::{Accepts, Effect, Key, Kind, Spec, Var};
pub use values::human;

/// The effective configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The status line.
    pub statusline: Statusline,
    /// Suggestions and guidance.
    pub compact: Compact,
    /// The resume block.
    pub r#continue: Continue,
    /// The task-change detector.
    pub task_change: TaskChange,
    /// The shape log and its analysis.
    pub shape: Shape,
    /// The tool-response archive.
    pub tool_archive: ToolArchive,
    /// Learning from past compactions.
    pub learn: Learn,
    /// What session start may set up.
    pub bootstrap: Bootstrap,
    /// Pins.
    pub pins: Pins,
    /// Which hooks answer.
    pub hooks: Hooks,
    /// The debug log.
    pub debug: Debug,
    /// A file that does not parse, and so counts as absent.
    pub broken: Option<Broken>,
    /// Keys that some layer set.
    chosen: KeySet,
    /// Keys that a variable set: no project block moves them.
    pinned: KeySet,
    /// `CLAUDE_STATUSLINE_COMPACT=1`: whatever the layout, without the task.
    without_task: bool,
}

/// A configuration file that does not parse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub path: PathBuf,
    /// Where and why, in one sentence: `line 3, column 5: trailing comma`.
    pub why: String,
}

/// A set of rows of [`KEYS`].
#[derive(Debug, Clone, Copy, Default)]
struct KeySet(u128);

const _: () = assert!(KEYS.len() <= 128, "KeySet has a bit for each key");

impl KeySet {
    fn insert(&mut self, row: usize) {
        self.0 |= 1 << row;
    }

    fn remove(&mut self, row: usize) {
        self.0 &= !(1 << row);
    }

    fn contains(self, row: usize) -> bool {
        self.0 & (1 << row) != 0
    }
}

impl Config {
    /// Loads the effective configuration; never fails.
    pub fn load(env: &Env) -> Config {
        let store = Store::new(env);
        let mut config = Config::default();
        for (state, section) in [(StateFile::LegacyConfig, Some("statusline.")), (StateFile::Config, None)] {
            let Some(bytes) = store.read(state) else { continue };
            match parse(&bytes, &String::from_utf8_lossy(&bytes)) {
                Ok(object) => config.apply(&object, section, KeySet::default()),
                Err(why) => config.broken = store.path(state).map(|path| Broken { path, why }),
            }
        }
        config.apply_variables(env);
        config.settle();
        config
    }

    /// The effective configuration for people who work in `dir`: its project blocks laid over the rest, and the blocks
    /// themselves still to be seen.
    pub fn load_in(env: &Env, dir: &Path) -> Config {
        let general = Config::load(env);
        let mut here = general.for_project(dir).into_owned();
        here.statusline.per_project = general.statusline.per_project;
        here.shape.per_project = general.shape.per_project;
        here
    }

    /// The values that hold where nothing is set.
    pub fn built_in() -> Config {
        let mut config = Config::default();
        config.settle();
        config
    }

    /// The configuration for the project in `dir`: its blocks under `statusline.perProject` and `shape.perProject` laid
    /// over the rest. Borrowed where there is no block.
    pub fn for_project(&self, dir: &Path) -> Cow<'_, Config> {
        let (line, shape) = (self.block("statusline", dir).cloned(), self.block("shape", dir).cloned());
        if line.is_none() && shape.is_none() {
            return Cow::Borrowed(self);
        }
        let mut config = self.clone();
        if let Some(block) = line {
            config.statusline.per_project.clear();
            config.apply_block(&block, "statusline.");
        }
        if let Some(block) = shape {
            config.shape.per_project.clear();
            let globs = [config.shape.preserve_globs.clone(), config.shape.drop_globs.clone()];
            config.apply_block(&block, "shape.");
            // What protects files elsewhere goes on protecting them here.
            for (merged, base) in
                [&mut config.shape.preserve_globs, &mut config.shape.drop_globs].into_iter().zip(globs)
            {
                let own = std::mem::replace(merged, base);
                for glob in own {
                    if !merged.contains(&glob) {
                        merged.push(glob);
                    }
                }
            }
        }
        config.settle();
        Cow::Owned(config)
    }

    /// The block of a project for the keys of a section; none where there is none.
    fn block(&self, section: &str, dir: &Path) -> Option<&Value> {
        let blocks = match section {
            "statusline" => &self.statusline.per_project,
            "shape" => &self.shape.per_project,
            _ => return None,
        };
        blocks.get(dir.to_str()?).filter(|block| block.is_object())
    }

    /// Lays one file over what is there, the keys in `skip` excepted. `section` is what the file leaves out of every path.
    fn apply(&mut self, object: &Object<'_>, section: Option<&str>, skip: KeySet) {
        // Groups of keys that were read already, by path.
        let mut groups: Vec<(&str, Option<Object<'_>>)> = Vec::with_capacity(SECTIONS.len() + 4);
        for (row, key) in KEYS.iter().enumerate() {
            let Some(path) = key.path.strip_prefix(section.unwrap_or("")) else { continue };
            let raw = match path.rsplit_once('.') {
                None => object.get(path),
                Some((above, name)) => {
                    if groups.last().is_none_or(|(group, _)| *group != above) {
                        let group = group(object, &groups, above);
                        groups.push((above, group));
                    }
                    groups.last().and_then(|(_, group)| group.as_ref()?.get(name))
                }
            };
            if let Some(raw) = raw
                && !skip.contains(row)
                && !key.spec.is_template(raw)
                && (key.load)(self, raw, &key.spec)
            {
                self.chosen.insert(row);
            }
        }
    }

    /// Lays a project's block over what is there, variables excepted. A block's preset beats the layout of the files.
    fn apply_block(&mut self, block: &Value, section: &str) {
        let text = block.to_string();
        let Some(object) = Object::parse(&text) else { return };
        let before = std::mem::take(&mut self.chosen);
        let mut skip = self.pinned;
        for (row, _) in KEYS.iter().enumerate().filter(|(_, key)| key.spec.kind == Kind::Projects) {
            skip.insert(row);
        }
        self.apply(&object, Some(section), skip);
        let own = self.chosen;
        self.chosen.0 |= before.0;
        let (fields, preset) = (row("statusline.fields"), row("statusline.preset"));
        if own.contains(preset) && !own.contains(fields) && !self.pinned.contains(fields) {
            self.chosen.remove(fields);
        }
    }

    fn apply_variables(&mut self, env: &Env) {
        for (row, key) in KEYS.iter().enumerate() {
            for var in key.spec.vars {
                let Some(text) = env.var(var.name).and_then(|text| key.read_variable(var.accepts, text)) else {
                    continue;
                };
                if (key.load)(self, Raw::new(&text), &key.spec) {
                    self.chosen.insert(row);
                    self.pinned.insert(row);
                }
            }
        }
        self.without_task = env.var("CLAUDE_STATUSLINE_COMPACT") == Some("1");
    }

    /// Works out what follows from several keys together.
    fn settle(&mut self) {
        let chosen = self.chosen;
        let line = &mut self.statusline;
        if !chosen.contains(row("statusline.fields")) {
            let names = preset(&line.preset).or_else(|| preset(DEFAULT_PRESET)).unwrap_or_default();
            line.fields = names.iter().map(ToString::to_string).collect();
        }
        if self.without_task {
            line.fields.retain(|field| field != "task");
        }
        let first = row("statusline.zones.yellow");
        line.zones.set = [0, 1, 2].map(|offset| chosen.contains(first + offset));
        line.zones.orange = line.zones.orange.max(line.zones.yellow);
        line.zones.red = line.zones.red.max(line.zones.orange);
    }
}

/// The group of keys at a path: from the group above it, where that was read already.
fn group<'t>(object: &Object<'t>, read: &[(&str, Option<Object<'t>>)], path: &str) -> Option<Object<'t>> {
    let Some((above, name)) = path.rsplit_once('.') else { return object.get(path)?.object() };
    match read.iter().find(|(group, _)| *group == above) {
        Some((_, above)) => above.as_ref()?.get(name)?.object(),
        None => group(object, read, above)?.get(name)?.object(),
    }
}

/// The key at a path.
pub fn key(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The row of a key that the code itself names.
fn row(path: &str) -> usize {
    KEYS.iter().position(|key| key.path == path).unwrap_or(usize::MAX)
}

/// Why a configuration file counts as absent, where it does: in one sentence, with line and column.
pub fn fault(bytes: &[u8]) -> Option<String> {
    parse(bytes, &String::from_utf8_lossy(bytes)).err()
}

/// Reads a configuration file; nothing but white space counts as `{}`.
fn parse<'t>(bytes: &[u8], text: &'t str) -> Result<Object<'t>, String> {
    if text.trim().is_empty() {
        return Ok(Object::default());
    }
    Object::parse(text).ok_or_else(|| match Document::parse(bytes) {
        Err(fault) => fault.to_string(),
        Ok(_) if text.starts_with('\u{feff}') => "line 1, column 1: it begins with a byte order mark".into(),
        Ok(_) => "it holds something else than one JSON object".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(user: &str, legacy: Option<&str>, vars: &[(&str, &str)]) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let mut env = Env::for_tests(dir.path());
        let store = Store::new(&env);
        store.write(StateFile::Config, user.as_bytes()).unwrap();
        if let Some(text) = legacy {
            store.write(StateFile::LegacyConfig, text.as_bytes()).unwrap();
        }
        for (name, value) in vars {
            env = env.with_var(name, value);
        }
        Config::load(&env)
    }

    #[test]
    fn a_value_that_cannot_be_used_falls_back_alone() {
        let config = load(
            r#"{"$schema":"x","compact":{"threshold":"75","autoblock":false,"feedback":"pigeon"},"shape":5,"debug":null,
                "statusline":{"preset":"fancy","fields":"model","maxTaskLength":-3,"separator":null,"contextCap":0,
                "zones":{"yellow":"100k","orange":null,"red":-5},"prices":{"input":"ten","output":20},
                "serviceHealth":[7,{"name":"api","url":"http://a","ttlSec":"x"}]}}"#,
            None,
            &[],
        );
        assert_eq!((config.compact.threshold, config.compact.autoblock), (50, false));
        assert_eq!(config.compact.feedback, "stderr");
        assert_eq!(config.shape.root_dir_depth, 2);
        assert_eq!(config.statusline.fields, preset("verbose").unwrap());
        assert_eq!((config.statusline.max_task_length, config.statusline.separator.as_str()), (70, " · "));
        let zones = &config.statusline.zones;
        assert_eq!((zones.yellow, zones.orange, zones.red, zones.set), (200_000, 300_000, 400_000, [false; 3]));
        assert_eq!((config.statusline.prices.input, config.statusline.prices.output), (None, Some(20.0)));
        assert_eq!(config.statusline.context_cap, None);
        let services = &config.statusline.service_health;
        assert_eq!((services.len(), services[0].ttl_sec), (1, 30));
        assert_eq!(config.broken, None);
        let config = load(
            r#"{"statusline":{"fields":["zone",5,null,["x"],"task"]},"shape":{"dropGlobs":[7],"preserveGlobs":["a/**",{}]}}"#,
            None,
            &[],
        );
        assert_eq!(config.statusline.fields, ["zone", "task"]);
        assert_eq!(config.shape.drop_globs, Config::default().shape.drop_globs);
        assert_eq!(config.shape.preserve_globs, ["a/**"]);
    }

    #[test]
    fn what_the_template_of_the_original_holds_counts_as_not_set() {
        let config = load(
            r#"{"statusline":{"fields":["model","project","branch","issue","diffstat","tokens","newline","tools","session",
                "cost","compactAge","deploy","task"],"zones":{"yellow":200000,"orange":250000,"red":400000.0},
                "prices":{"input":15,"cache_creation":18.75,"cache_read":1.5,"output":60}}}"#,
            None,
            &[],
        );
        assert_eq!(config.statusline.fields, preset("verbose").unwrap());
        assert_eq!(config.statusline.zones.set, [false, true, false]);
        assert_eq!((config.statusline.prices.input, config.statusline.prices.output), (None, Some(60.0)));
    }

    #[test]
    fn explicit_fields_win_in_the_old_file_too() {
        let config = load("{}", Some(r#"{"fields":["model"],"maxTaskLength":55}"#), &[]);
        assert_eq!(config.statusline.fields, ["model"]);
        assert_eq!(config.statusline.max_task_length, 55);
        let config = load(r#"{"statusline":{"preset":"minimal"}}"#, Some(r#"{"fields":["model"]}"#), &[]);
        assert_eq!(config.statusline.fields, ["model"]);
    }

    #[test]
    fn fields_of_the_environment_beat_its_preset_and_the_task_goes_last() {
        let [fields, preset, compact] = [
            ("CLAUDE_STATUSLINE_FIELDS", "zone,task"),
            ("CLAUDE_STATUSLINE_PRESET", "standard"),
            ("CLAUDE_STATUSLINE_COMPACT", "1"),
        ];
        let user = r#"{"statusline":{"fields":["cwd"]}}"#;
        assert_eq!(load(user, None, &[fields, preset]).statusline.fields, ["zone", "task"]);
        assert_eq!(load(user, None, &[preset]).statusline.fields, ["model", "project", "tokens", "newline", "task"]);
        assert_eq!(load(user, None, &[preset, compact]).statusline.fields, ["model", "project", "tokens", "newline"]);
        assert_eq!(load(user, None, &[fields, preset, compact]).statusline.fields, ["zone"]);
    }

    #[test]
    fn zones_never_fall_from_left_to_right() {
        let zones = load(r#"{"statusline":{"zones":{"yellow":350000,"red":100000}}}"#, None, &[]).statusline.zones;
        assert_eq!(
            (zones.yellow, zones.orange, zones.red, zones.set),
            (350_000, 350_000, 350_000, [true, false, true])
        );
    }

    #[test]
    fn project_blocks_lie_over_the_files_and_below_the_variables() {
        let user = r#"{"statusline":{"fields":["cwd"],"maxTaskLength":50,"perProject":{"/p":{"preset":"minimal","maxTaskLength":20,"separator":"|"}}},
            "shape":{"preserveGlobs":["docs/**"],"perProject":{"/p":{"rootDirDepth":3,"preserveGlobs":["plans/**","docs/**"],"unknown":1}}}}"#;
        let config = load(user, None, &[("CLAUDE_STATUSLINE_SEP_INLINE", "/")]);
        let here = config.for_project(Path::new("/p"));
        assert_eq!(
            (here.statusline.fields.as_slice(), here.statusline.max_task_length),
            (&["tokens".to_string()][..], 20)
        );
        assert_eq!(here.statusline.separator, "/");
        assert_eq!((here.shape.root_dir_depth, here.shape.preserve_globs.len()), (3, 2));
        assert!(matches!(config.for_project(Path::new("/q")), Cow::Borrowed(_)));
    }

    #[test]
    fn a_file_that_does_not_parse_counts_as_absent_and_is_reported() {
        for (user, why) in [
            (
                "{\n  \"compact\": {\"threshold\": 5},\n}",
                "line 3, column 1: a comma may not stand before the closing bracket",
            ),
            ("{\"a\":1} // hi", "line 1, column 9: nothing may follow the end of the document"),
            ("[1]", "it holds something else than one JSON object"),
            ("\u{feff}{}", "line 1, column 1: it begins with a byte order mark"),
        ] {
            let config = load(user, None, &[]);
            assert_eq!(config.broken.unwrap().why, why);
            assert_eq!(config.compact.threshold, 50);
        }
        assert_eq!(load(" \n", None, &[]).broken, None);
    }

    #[test]
    fn built_in_values_are_those_of_the_text() {
        let config = Config::built_in();
        assert_eq!((config.statusline.max_task_length, config.statusline.preset.as_str()), (70, "verbose"));
        assert_eq!(config.shape.scoring, "recency");
        let task = &config.task_change;
        assert_eq!((task.conversational_max_len, task.recent_hours, task.transcript_turns), (120, 24.0, 20));
        assert_eq!((task.semantic_fallback, task.semantic_timeout_ms), (false, 3000));
        assert_eq!((task.haiku_model.as_str(), task.prompt, task.prompt_timeout), ("claude-haiku-4-5", true, 20));
    }

    #[test]
    fn a_section_of_a_wrong_type_disturbs_no_variable() {
        let vars = [("CLAUDE_STATUSLINE_FIELDS", "model"), ("CLAUDE_COMPACT_AUTOBLOCK", "0")];
        let config = load(r#"{"statusline":null,"compact":[1],"debug":{"enabled":{"a":true}}}"#, None, &vars);
        assert_eq!(
            (config.statusline.fields.as_slice(), config.compact.autoblock),
            (&["model".to_string()][..], false)
        );
        assert!(!config.debug.enabled);
        assert_eq!(load(r#"{"statusline":{"preset":"constructor"}}"#, None, &[]).statusline.preset, "verbose");
    }

    #[test]
    fn any_value_of_no_color_turns_colours_off() {
        for (name, value, colours) in [
            ("NO_COLOR", "true", false),
            ("NO_COLOR", "0", false),
            ("NO_COLOR", "", true),
            ("CLAUDE_STATUSLINE_NO_COLOR", "yes", false),
            ("CLAUDE_STATUSLINE_NO_COLOR", "0", true),
        ] {
            assert_eq!(load("{}", None, &[(name, value)]).statusline.colors, colours, "{name}={value}");
        }
    }
}
