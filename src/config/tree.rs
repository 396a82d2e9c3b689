//! The configuration as one JSON tree, and where each value of it comes from.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Config, KEYS, Key, Kind, parse};
use crate::client::json::{Object, Raw};
use crate::env::Env;
use crate::store::{StateFile, Store};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nothing set it.
    BuiltIn,
    /// The preset in force.
    Preset,
    /// `statusline-intel.json`.
    Legacy,
    /// `session-intelligence.json`.
    File,
    /// The block of a project, by its path: `statusline.perProject./srv/app`.
    Project(String),
    /// This variable.
    Variable(&'static str),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::BuiltIn => "built-in",
            Source::Preset => "from statusline.preset",
            Source::Legacy => "from statusline-intel.json",
            Source::File => "from session-intelligence.json",
            Source::Project(block) => return write!(f, "from {}", crate::text::sanitize(block)),
            Source::Variable(name) => return write!(f, "from the variable {name}"),
        })
    }
}

/// The effective configuration as a tree: every known key with the value in force, and the keys of the files that are
/// not known as they stand there.
pub fn tree(env: &Env, config: &Config) -> Value {
    let mut tree = Value::Object(Map::new());
    for (state, section) in FILES {
        if let Some(text) = read(env, state)
            && let Ok(object) = parse(text.as_bytes(), &text)
        {
            merge(&mut tree, &unknown(&object, section));
        }
    }
    let mut known = Value::Object(Map::new());
    for key in KEYS {
        if let Some(value) = (key.value)(config) {
            put(&mut known, key.path, value);
        }
    }
    // Known keys come first, in the order of the table.
    merge(&mut known, &tree);
    known
}

/// Where the value in force of `key` comes from.
pub fn source(env: &Env, key: &Key) -> Source {
    for var in key.spec.vars.iter().rev() {
        let json = env.var(var.name).and_then(|text| key.read_variable(var.accepts, text));
        if json.is_some_and(|json| key.fits(Raw::new(&json))) {
            return Source::Variable(var.name);
        }
    }
    for (state, section) in FILES.into_iter().rev() {
        let Some(text) = read(env, state) else { continue };
        let Ok(object) = parse(text.as_bytes(), &text) else { continue };
        let Some(path) = key.path.strip_prefix(section) else { continue };
        let steps: Vec<&str> = path.split('.').collect();
        if object
            .at(&steps)
            .is_some_and(|raw| !key.spec.is_template(raw) && (key.load)(&mut Config::default(), raw, &key.spec))
        {
            return if state == StateFile::Config { Source::File } else { Source::Legacy };
        }
    }
    if key.path == "statusline.fields" { Source::Preset } else { Source::BuiltIn }
}

/// Where the value in force of `key` comes from for people who work in `dir`; `config` is [`Config::load_in`] of it.
pub fn source_in(env: &Env, config: &Config, dir: &Path, key: &Key) -> Source {
    let general = source(env, key);
    let Some(block) = config.block(key.section(), dir) else { return general };
    let text = block.to_string();
    let sets = |key: &Key| {
        let raw = key.path.split_once('.').and_then(|(_, path)| {
            Object::parse(&text)?.at(&path.split('.').collect::<Vec<_>>()).filter(|raw| !key.spec.is_template(*raw))
        });
        raw.is_some_and(|raw| key.spec.kind != Kind::Projects && (key.load)(&mut Config::default(), raw, &key.spec))
    };
    // A block's preset beats the layout of the files.
    let by_preset = || key.path == "statusline.fields" && super::key("statusline.preset").is_some_and(sets);
    if matches!(general, Source::Variable(_)) || !(sets(key) || by_preset()) {
        return general;
    }
    Source::Project(format!("{}.perProject.{}", key.section(), dir.display()))
}

/// Something in the files that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file's name.
    pub file: &'static str,
    /// One sentence.
    pub text: String,
}

/// What is wrong in the files: text that does not parse, values that cannot be used, keys that are not known.
pub fn problems(env: &Env) -> Vec<Problem> {
    let mut all = Vec::new();
    for ((state, section), file) in FILES.into_iter().zip(["statusline-intel.json", "session-intelligence.json"]) {
        let store = Store::new(env);
        let mut say = |text: String| all.push(Problem { file, text });
        let Some(bytes) = store.read(state) else {
            if store.path(state).is_some_and(|path| path.exists()) {
                say("cannot be read, and so counts as absent: it is no readable file of at most 4 MB".into());
            }
            continue;
        };
        let text = String::from_utf8_lossy(&bytes);
        if let std::borrow::Cow::Owned(_) = text {
            say("holds bytes that are not UTF-8, so si set cannot change it".into());
        }
        match parse(text.as_bytes(), &text) {
            Err(why) => say(format!("does not parse, and so counts as absent: {why}")),
            Ok(object) => check(&object, section, &mut say),
        }
    }
    all
}

/// The older file holds what the newer one has under `statusline.`.
const FILES: [(StateFile<'static>, &str); 2] = [(StateFile::LegacyConfig, "statusline."), (StateFile::Config, "")];

fn read(env: &Env, state: StateFile<'_>) -> Option<String> {
    Store::new(env).read_text(state)
}

fn check(object: &Object<'_>, section: &str, say: &mut dyn FnMut(String)) {
    walk(object, section, &mut |path, raw| {
        let above = format!("{path}.");
        if KEYS.iter().any(|key| key.path.starts_with(&above)) {
            if !raw.is_null() {
                let shown: String = raw.text().chars().take(40).collect();
                say(format!("{path} is {shown}, and so none of its keys is set; it takes a JSON object of keys"));
            }
            return;
        }
        let Some(key) = super::key(path) else {
            say(format!("{path} is not a known key{}", super::edit::did_you_mean(path)));
            return;
        };
        if !raw.is_null() && !key.fits(raw) {
            let shown: String = raw.text().chars().take(40).collect();
            let some_text = || raw.items().is_some_and(|items| items.iter().any(|item| item.str().is_some()));
            let now = match key.spec.clamp {
                true if raw.f64().is_some() => "the nearest is taken",
                true if some_text() => "only its texts count",
                _ => "the default holds",
            };
            say(format!("{path} is {shown}, and {now}; it takes {}", key.accepted()));
        }
        if key.spec.kind == super::Kind::Projects {
            for (project, block) in raw
                .object()
                .iter()
                .flat_map(|blocks| blocks.iter().map(|(k, v)| (k.to_string(), v)))
                .collect::<Vec<_>>()
            {
                match block.object() {
                    Some(block) => check(&block, &format!("{}.", key.section()), &mut |text| {
                        say(format!("in the block of {project}, {text}"))
                    }),
                    None => say(format!("the block of {project} in {path} is not an object")),
                }
            }
        }
    });
}

/// Calls `visit` with every leaf: a key of the table, or one that is not known. `prefix` ends in a dot or is empty.
fn walk(object: &Object<'_>, prefix: &str, visit: &mut dyn FnMut(&str, Raw<'_>)) {
    for (name, raw) in object.iter() {
        let path = format!("{prefix}{name}");
        let above = format!("{path}.");
        let group = KEYS.iter().any(|key| key.path.starts_with(&above));
        match raw.object() {
            Some(inner) if group => walk(&inner, &above, visit),
            _ if group => visit(&path, raw),
            _ if path == "$schema" || name.starts_with('_') && super::key(&path).is_none() => {} // remarks
            _ => visit(&path, raw),
        }
    }
}

fn unknown(object: &Object<'_>, section: &str) -> Value {
    let mut tree = Value::Object(Map::new());
    collect(object, section, &mut tree);
    tree
}

fn collect(object: &Object<'_>, prefix: &str, into: &mut Value) {
    for (name, raw) in object.iter() {
        let path = format!("{prefix}{name}");
        let above = format!("{path}.");
        if KEYS.iter().any(|key| key.path.starts_with(&above)) {
            if let Some(inner) = raw.object() {
                collect(&inner, &above, into);
            }
        } else if super::key(&path).is_none()
            && path != "$schema"
            && let Some(value) = raw.value()
        {
            // The name itself may hold dots.
            let parents: Vec<&str> = prefix.split('.').filter(|step| !step.is_empty()).collect();
            let mut at = &mut *into;
            for step in parents {
                at = child(at, step);
            }
            *child(at, name) = value;
        }
    }
}

/// The value at a dotted path of a tree; none where there is none.
pub fn get<'v>(tree: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return None;
    }
    path.split('.').try_fold(tree, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    })
}

fn put(tree: &mut Value, path: &str, value: Value) {
    let mut at = tree;
    for step in path.split('.') {
        at = child(at, step);
    }
    *at = value;
}

/// The member of an object, made where it is missing; what is no object becomes one.
fn child<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { unreachable!("made an object above") };
    map.entry(name).or_insert(Value::Null)
}

/// Lays `over` over `base`: objects member by member, anything else replaces.
pub fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                match base.get_mut(name) {
                    Some(old) => merge(old, value),
                    None => {
                        base.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}
