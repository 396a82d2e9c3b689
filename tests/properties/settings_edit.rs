//! settings.json: it is read where it is JSON, an edit changes its own value and nothing else, and taking si out gives
//! back what was there before it.

use std::path::Path;

use serde_json::{Value, json};
use si::Env;
use si::client::json_edit::Document;
use si::client::settings::{State, entries, statusline};

use super::dice;

/// Deeper nesting is refused by one reader and not by the other.
const DEEP: usize = 100;

/// The input is a file.
pub fn check(data: &[u8]) {
    let document = Document::parse(data);
    agrees(data, document.is_ok());
    let Ok(document) = document else { return };
    let text = String::from_utf8_lossy(data);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return; // it counts as an empty object
    }
    assert_eq!(document.to_bytes(), text.as_bytes(), "reading changes nothing but a byte order mark");
    one_edit(&document, data);
    if document.keys(&[]).is_some() {
        in_and_out(&document);
    }
}

fn agrees(data: &[u8], read: bool) {
    let text = std::str::from_utf8(data).map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    let deep = data.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() > DEEP;
    match text {
        Err(_) => assert!(!read),
        Ok(text) if text.trim().is_empty() || deep => {}
        Ok(text) => {
            let strict = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            assert_eq!(read, strict, "{text:?}");
        }
    }
}

/// Sets one value somewhere, takes one out, adds one: what is before and behind it stays.
fn one_edit(document: &Document, data: &[u8]) {
    let mut roll = dice(data);
    let mut path: Vec<String> = Vec::new();
    let steps = |path: &[String]| -> Vec<String> {
        let at: Vec<&str> = path.iter().map(String::as_str).collect();
        let items = document.len(&at).map(|length| (0..length).map(|n| n.to_string()).collect());
        document.keys(&at).or(items).unwrap_or_default()
    };
    loop {
        let next = steps(&path);
        if next.is_empty() || path.len() > 6 || !path.is_empty() && roll(4) == 0 {
            break;
        }
        path.push(next[roll(next.len())].clone());
    }
    let at: Vec<&str> = path.iter().map(String::as_str).collect();
    let text = String::from_utf8(data.to_vec()).expect("it was read");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let value = [json!("new"), json!({"a": [1, {}]}), json!(null)][roll(3)].clone();

    let mut set = document.clone();
    set.set(&at, &value).expect("the path is there");
    assert_eq!(set.value(&at), Some(value.clone()));
    one_piece(text, &set, document.raw(&at).expect("the path is there").len());

    let mut removed = document.clone();
    if !at.is_empty() {
        assert!(removed.remove(&at));
        let in_array = document.len(&at[..at.len() - 1]).is_some();
        assert!(in_array || removed.raw(&at).is_none(), "{text:?} without {path:?}");
        let (last, above) = at.split_last().expect("it is not empty");
        for key in document.keys(above).unwrap_or_default().iter().filter(|key| key != last) {
            let other = [above, &[key.as_str()]].concat();
            assert_eq!(removed.raw(&other), document.raw(&other), "{text:?} without {path:?}");
        }
    }

    // A new member of the object that the path leads into: out again, it leaves no trace, but for the white space of an
    // object that held nothing else.
    let Some(above) = (0..=at.len()).rev().find(|n| document.keys(&at[..*n]).is_some()) else { return };
    let new = [&at[..above], &["si:new"], &["inner"]].concat();
    if document.raw(&new[..above + 1]).is_none() {
        let mut added = document.clone();
        added.set(&new, &value).expect("an object takes members");
        assert_eq!(added.value(&new), Some(value));
        assert!(added.remove(&new[..above + 1]));
        if !document.is_empty(&at[..above]) {
            assert_eq!(added.to_bytes(), text.as_bytes(), "put in and taken out");
        }
    }
}

/// The edited text is the old one but for one piece of at most `length` bytes.
fn one_piece(before: &str, after: &Document, length: usize) {
    let after = String::from_utf8(after.to_bytes()).expect("text stays text");
    let head = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let most = (before.len() - head).min(after.len() - head);
    let tail = before.bytes().rev().zip(after.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
    assert!(before.len() - head - tail <= length, "{before:?} became {after:?}");
}

/// Installs and uninstalls, twice each.
fn in_and_out(document: &Document) {
    let env = Env::for_tests(Path::new("/nonexistent/si"));
    let exe = Path::new("/opt/some where/bin/si");
    let mut state = State::new();
    let mut settings = document.clone();
    let foreign = entries::found(&env, document).is_empty()
        && !matches!(
            statusline::current(&env, document, &state),
            statusline::Current::Ours(_) | statusline::Current::Original(_)
        );
    // A value of an unusual type is in the way: then the edit is given up as a whole.
    if entries::register(&env, &mut settings, exe).is_err()
        || statusline::take(&env, &mut settings, &mut state, exe).is_err()
    {
        return;
    }
    for event in entries::events() {
        assert!(entries::registered(&env, &settings, event), "{event}");
    }
    assert!(matches!(statusline::current(&env, &settings, &state), statusline::Current::Ours(_)));
    let installed = settings.to_bytes();
    entries::register(&env, &mut settings, exe).expect("a second time works as the first");
    statusline::take(&env, &mut settings, &mut state, exe).expect("a second time works as the first");
    assert_eq!(settings.to_bytes(), installed, "a second time changes nothing");

    // Everything that is not ours is as it was written.
    for key in document.keys(&[]).unwrap_or_default() {
        if key != "hooks" && key != "statusLine" {
            assert_eq!(settings.raw(&[&key]), document.raw(&[&key]), "{key}");
        }
    }
    entries::unregister(&env, &mut settings, false);
    statusline::give_back(&env, &mut settings, &mut state).expect("what was taken can be given back");
    assert!(entries::found(&env, &settings).iter().all(|entry| entry.owner != entries::Owner::Ours));
    if !foreign {
        return; // it held an entry of ours or of an original, which is gone
    }
    if holds_nothing(document) {
        // A number beyond all floats has no value to compare; where a key stands twice it goes with what is taken out.
        if let Some(before) = document.value(&[]) {
            assert_eq!(tidy(settings.value(&[])), tidy(Some(before)), "{}", shown(document));
        }
    } else {
        assert_eq!(shown(&settings), shown(document), "taking out gives back what was there");
    }
}

/// Whether an object or list that si writes into is there and empty: that goes with what is taken out of it.
fn holds_nothing(document: &Document) -> bool {
    let events = entries::events();
    let places = events.iter().map(|event| vec!["hooks", event]).chain([vec!["hooks"], vec![]]);
    places.into_iter().any(|path| document.is_empty(&path))
}

fn tidy(value: Option<Value>) -> Option<Value> {
    let mut value = value?;
    let map = value.as_object_mut()?;
    if let Some(hooks) = map.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
        if hooks.is_empty() {
            map.shift_remove("hooks");
        }
    }
    Some(value)
}

fn shown(document: &Document) -> String {
    String::from_utf8(document.to_bytes()).expect("text stays text")
}
