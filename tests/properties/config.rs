//! The configuration: whatever the file holds, every value in force is one that its key allows, a value that cannot be
//! used falls back alone, and what is set is what then holds.

use serde_json::{Value, json};
use si::Env;
use si::client::json::Object;
use si::client::json_edit::Document;
use si::client::payload::Payload;
use si::config::{self, Config, KEYS, Key, Kind, edit::Target, tree};
use si::statusline::context::Context;
use si::statusline::fields::FIELDS;
use si::statusline::render;
use si::store::{StateFile, Store};

use super::{assert_printable, dice, in_world};

/// A payload that most fields find something in.
const PAYLOAD: &str = r#"{"session_id":"s","cwd":"/nonexistent/w","model":{"id":"claude-opus-4-8","display_name":"Opus"},
    "context_window":{"context_window_size":1000000,"current_usage":{"input_tokens":120000}},"cost":{"total_cost_usd":3}}"#;

/// The input is the file.
pub fn check(data: &[u8]) {
    in_world(|env| {
        let config = load(env, data);
        let text = String::from_utf8_lossy(data);
        let readable = text.trim().is_empty() || Object::parse(&text).is_some();
        assert_eq!(config.broken.is_some(), !readable, "{text:?}");
        assert_eq!(config::fault(data).is_some(), !readable, "{text:?}");
        sane(&config);
        if !readable {
            assert_eq!(values(&config), values(&Config::built_in()), "a file that does not parse counts as absent");
        }
        tree::tree(env, &config);
        tree::problems(env);
        rows_are_printable(env, config);
        if let (true, Ok(document)) = (readable, Document::parse(data)) {
            let mut roll = dice(data);
            one_wrong_value(env, &document, &mut roll);
            set_and_reset(env, &document, &mut roll);
        }
    });
}

fn load(env: &Env, data: &[u8]) -> Config {
    Store::new(env).write(StateFile::Config, data).expect("it is written");
    Config::load(env)
}

fn values(config: &Config) -> Vec<(&'static str, Option<Value>)> {
    KEYS.iter().map(|key| (key.path, (key.value)(config))).collect()
}

/// Every value in force is one that its key allows.
fn sane(config: &Config) {
    for key in KEYS {
        let Some(value) = (key.value)(config) else { continue };
        let number = value.as_f64();
        let fits = match key.spec.kind {
            Kind::Switch => value.is_boolean(),
            Kind::Count(min, max) => value.is_u64() && number.is_some_and(|n| (min as f64..=max as f64).contains(&n)),
            Kind::Number(min, max) => number.is_some_and(|number| (min..=max).contains(&number)),
            Kind::Text => value.is_string(),
            Kind::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Kind::List => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Kind::Services => value.is_array(),
            Kind::Projects => value.is_object(),
        };
        assert!(fits, "{} is {value}", key.path);
    }
    let zones = &config.statusline.zones;
    assert!(zones.yellow <= zones.orange && zones.orange <= zones.red, "{zones:?}");
}

/// Keys whose value in force depends on others too.
fn depends(key: &Key) -> bool {
    key.path.starts_with("statusline.zones.") || key.path == "statusline.fields"
}

/// Puts a value of no key's type in the place of one that is there.
fn one_wrong_value(env: &Env, document: &Document, roll: &mut impl FnMut(usize) -> usize) {
    let steps = |key: &Key| key.path.split('.').map(str::to_owned).collect::<Vec<_>>();
    let set: Vec<&Key> = KEYS
        .iter()
        .filter(|key| {
            let steps = steps(key);
            document.raw(&steps.iter().map(String::as_str).collect::<Vec<_>>()).is_some()
        })
        .collect();
    if set.is_empty() {
        return;
    }
    let key = set[roll(set.len())];
    let (steps, before) = (steps(key), load(env, &document.to_bytes()));
    let mut harmed = document.clone();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    harmed.set(&steps, &json!([{"si": []}])).expect("a value is replaced");
    let after = load(env, &harmed.to_bytes());
    for other in KEYS.iter().filter(|other| other.path != key.path && !depends(other)) {
        assert_eq!((other.value)(&after), (other.value)(&before), "{} after {}", other.path, key.path);
    }
    let fallen_back = (key.value)(&after) == key.default_value();
    assert!(fallen_back || depends(key), "{} is {:?}", key.path, (key.value)(&after));
}

/// Sets a key as `si set` does, and resets it as `si reset` does.
fn set_and_reset(env: &Env, document: &Document, roll: &mut impl FnMut(usize) -> usize) {
    let key = &KEYS[roll(KEYS.len())];
    let target = Target::find(key.path);
    let accepted = key.accepted();
    let example = accepted.rsplit("for example ").next().unwrap_or_default().trim_matches('\'');
    let json = target.parse_value(example).expect("an example is accepted");
    let mut edited = document.clone();
    if target.set(&mut edited, &json).is_err() {
        return; // something else stands where the key's object would be
    }
    let config = load(env, &edited.to_bytes());
    assert!(config.broken.is_none());
    let want: Value = serde_json::from_str(&json).expect("it is JSON");
    let template = key.spec.template.is_some_and(|text| serde_json::from_str::<Value>(text).ok() == Some(want.clone()));
    let plain = !matches!(key.spec.kind, Kind::Services | Kind::Projects);
    let holds = (key.value)(&config);
    let same = holds.as_ref().and_then(Value::as_f64).zip(want.as_f64()).map_or(holds == Some(want), |(a, b)| a == b);
    assert!(same || depends(key) || template || !plain, "{} set to {json} is {holds:?}", key.path);
    assert!(target.remove(&mut edited), "what was set can be reset");
    assert!(!target.remove(&mut edited), "once");
    let config = load(env, &edited.to_bytes());
    assert!((key.value)(&config) == key.default_value() || depends(key), "{} was reset", key.path);
}

fn rows_are_printable(env: &Env, mut config: Config) {
    let payload = Payload::parse(PAYLOAD).expect("it is a payload");
    for columns in [None, Some(40)] {
        assert_printable("the status line", &render(&Context::new(env, &config, &payload), columns));
        config.statusline.fields = FIELDS.iter().map(|field| field.name.to_owned()).collect();
    }
}
