//! Payloads: the borrowing reader says what a plain JSON reader says, one wrong leaf harms no other, and whatever the
//! rows of the status line are made of may go to a terminal.

use std::borrow::Cow;

use serde_json::Value;
use si::Env;
use si::client::json::{self, Object, Raw};
use si::client::json_len;
use si::client::payload::{Payload, ToolResponse};
use si::config::Config;
use si::statusline::context::Context;
use si::statusline::fields::FIELDS;
use si::statusline::render;

use super::{assert_printable, dice, in_world};

/// What a leaf may turn into.
const WRONG: [&str; 9] =
    ["null", "7", "-1.5e9", "1e999", "\"\"", "\"\\ud800 x\"", "true", "[{\"a\":[]}]", "{\"a\":{\"b\":[1]}}"];

/// The input is what stands on standard input.
pub fn check(data: &[u8]) {
    let text = json::decode(data);
    let object = Object::parse(&text);
    if let Ok(tree) = serde_json::from_str::<Value>(&text) {
        assert_eq!(object.is_some(), tree.is_object(), "{text:?}");
        if let Some(object) = &object {
            same_members(object, &tree);
        }
        if tree.is_object() && plain_numbers(&tree) {
            let want = si::text::utf16_len(&tree.to_string()) as u64;
            assert_eq!(json_len::compact(Raw::new(&text)), want, "{text:?}");
        }
    }
    let Some(object) = object else {
        assert!(Payload::parse(&text).is_none());
        return;
    };
    one_wrong_leaf(&text, &object, dice(data));
    in_world(|env| {
        rows_are_printable(env, &text);
        assert!(!logged(env).contains("a field failed"), "{text:?}: {}", logged(env));
    });
}

/// Whether every number is one that JavaScript writes as Rust does.
fn plain_numbers(tree: &Value) -> bool {
    match tree {
        Value::Number(number) => number.as_i64().is_some_and(|number| number.unsigned_abs() < 1 << 53),
        Value::Array(items) => items.iter().all(plain_numbers),
        Value::Object(map) => map.values().all(plain_numbers),
        _ => true,
    }
}

fn same_members(object: &Object<'_>, tree: &Value) {
    let map = tree.as_object().expect("it is an object");
    for (key, value) in map {
        match object.get(key) {
            Some(raw) => same(raw, value),
            None => assert!(value.is_null(), "{key:?} is lost"),
        }
    }
    assert!(object.iter().all(|(key, _)| map.contains_key(key)));
}

fn same(raw: Raw<'_>, value: &Value) {
    assert_eq!(raw.str().as_deref(), value.as_str());
    assert_eq!(json_len::string(raw), value.as_str().map(|text| si::text::utf16_len(text) as u64), "{raw:?}");
    assert_eq!(raw.bool(), value.as_bool());
    assert_eq!(raw.f64(), value.as_f64(), "{raw:?}");
    assert!(value.as_u64().is_none_or(|number| raw.u64() == Some(number)), "{raw:?}");
    assert_eq!(raw.object().is_some(), value.is_object(), "{raw:?}");
    assert_eq!(raw.items().is_some(), value.is_array(), "{raw:?}");
    if value.is_object() {
        same_members(&raw.object().expect("it is one"), value);
    }
    for (item, value) in raw.items().unwrap_or_default().into_iter().zip(value.as_array().into_iter().flatten()) {
        if value.is_null() { assert!(item.is_null()) } else { same(item, value) }
    }
}

/// Puts a wrong value in the place of each of a few leaves, top-level or one level down.
fn one_wrong_leaf(text: &str, object: &Object<'_>, mut roll: impl FnMut(usize) -> usize) {
    let mut places: Vec<(&str, Raw<'_>)> = object.iter().collect();
    for (key, raw) in object.iter() {
        places
            .extend(raw.object().iter().flat_map(|inner| inner.iter()).map(|(_, raw)| (key, raw)).collect::<Vec<_>>());
    }
    let before = Payload::parse(text).expect("it was read");
    for _ in 0..places.len().min(4) {
        let (key, raw) = places[roll(places.len())];
        let at = raw.text().as_ptr() as usize - text.as_ptr() as usize;
        let harmed = [&text[..at], WRONG[roll(WRONG.len())], &text[at + raw.text().len()..]].concat();
        let after = Payload::parse(&harmed).unwrap_or_else(|| panic!("{harmed:?} is still an object"));
        let others = |payload: &Payload<'_>| -> Vec<(String, String)> {
            let all = payload.object().iter().filter(|(other, _)| *other != key);
            all.map(|(key, raw)| (key.to_owned(), raw.text().to_owned())).collect()
        };
        assert_eq!(others(&after), others(&before), "{key} in {text:?}");
        for (name, keys, read) in ACCESSORS {
            assert!(keys.contains(&key) || read(&after) == read(&before), "{name} after {key} in {harmed:?}");
        }
    }
}

type Accessor = (&'static str, &'static [&'static str], fn(&Payload<'_>) -> Option<String>);

/// What the product asks a payload for, and the keys that it may look at for that.
const ACCESSORS: [Accessor; 11] = [
    ("session id", &["session_id", "sessionId"], |payload| own(payload.session_id())),
    ("folder", &["cwd", "workspace"], |payload| payload.cwd().map(|path| format!("{path:?}"))),
    ("transcript", &["transcript_path", "transcriptPath"], |payload| {
        payload.transcript_path().map(|path| format!("{path:?}"))
    }),
    ("event", &["hook_event_name"], |payload| own(payload.event())),
    ("source", &["source"], |payload| own(payload.source())),
    ("prompt", &["prompt", "user_message", "message"], |payload| own(payload.prompt())),
    ("tool", &["tool_name", "toolName"], |payload| own(payload.tool_name())),
    ("tool call", &["tool_use_id", "toolUseId", "tool_call_id"], |payload| own(payload.tool_use_id())),
    ("tool input", &["tool_input", "toolInput", "input"], |payload| raw(payload.tool_input())),
    ("tool result", &["tool_response", "tool_output", "output", "result"], |payload| {
        raw(payload.tool_response().map(ToolResponse::raw))
    }),
    ("subagent", &["agent_id"], |payload| Some(payload.from_subagent().to_string())),
];

fn own(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

fn raw(raw: Option<Raw<'_>>) -> Option<String> {
    raw.map(|raw| raw.text().to_owned())
}

/// Renders every field there is, on terminals wide and narrow.
fn rows_are_printable(env: &Env, text: &str) {
    let payload = Payload::parse(text).expect("it was read");
    let mut config = Config::load(env);
    config.statusline.fields = FIELDS.iter().map(|field| field.name.to_owned()).collect();
    for columns in [None, Some(80), Some(9)] {
        let rows = render(&Context::new(env, &config, &payload), columns);
        assert_printable("the status line", &rows);
    }
}

fn logged(env: &Env) -> String {
    let logs = std::fs::read_dir(env.in_claude("logs").expect("a home")).into_iter().flatten().flatten();
    logs.filter_map(|log| std::fs::read_to_string(log.path()).ok()).collect()
}
