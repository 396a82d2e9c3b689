//! Tables, and properties over documents in every style.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn document(text: &str) -> Document {
    Document::parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{text:?}: {fault}"))
}

fn text(document: &Document) -> String {
    String::from_utf8(document.to_bytes()).unwrap()
}

#[test]
fn faults_name_the_line_and_the_column() {
    for (bytes, line, column) in [
        (&b"{\"a\":1,}"[..], 1, 8),
        (b"{\n  // hello\n}", 2, 3),
        (b"{\n  \"a\": 1\n  \"b\": 2\n}", 3, 3),
        (b"\xef\xbb\xbf{\"\xc3\xbc\": x}", 1, 7),
        (b"{\"a\": \"\xff\"}", 1, 8),
        (b"\xef\xbb\xbf{\"a\": \"\xff\"}", 1, 8),
        (b"{\"a\": [1, 2", 1, 12),
        (b"{} {}", 1, 4),
        (b"{\"a\": 01}", 1, 8),
        (b"{\"a\": \"x\ny\"}", 1, 9),
        (b"{\"a\": 1.}", 1, 9),
        (b"{'a': 1}", 1, 2),
        (b"{\"a\": \"\\x\"}", 1, 9),
        (b"{\"a\": NaN}", 1, 7),
    ] {
        let fault = Document::parse(bytes).unwrap_err();
        assert_eq!((fault.line, fault.column), (line, column), "{:?}: {fault}", String::from_utf8_lossy(bytes));
    }
    let deep = "[".repeat(100_000);
    assert_eq!(Document::parse(deep.as_bytes()).unwrap_err().what, "the nesting is too deep");
}

#[test]
fn new_members_look_like_their_neighbours() {
    let value = json!({"k": [1, {}], "e": []});
    for (before, after) in [
        ("", "{\n  \"n\": {\n    \"k\": [\n      1,\n      {}\n    ],\n    \"e\": []\n  }\n}\n"),
        ("\u{feff}{}", "{\n  \"n\": {\n    \"k\": [\n      1,\n      {}\n    ],\n    \"e\": []\n  }\n}"),
        ("{\"a\":1}", "{\"a\":1,\"n\":{\"k\":[1,{}],\"e\":[]}}"),
        ("{ \"a\": 1 }\n", "{ \"a\": 1, \"n\": {\"k\": [1, {}], \"e\": []} }\n"),
        (
            "{\n\t\"a\": 1e400\n}",
            "{\n\t\"a\": 1e400,\n\t\"n\": {\n\t\t\"k\": [\n\t\t\t1,\n\t\t\t{}\n\t\t],\n\t\t\"e\": []\n\t}\n}",
        ),
        (
            "{\r\n   \"a\" : 1\r\n}\r\n",
            "{\r\n   \"a\" : 1,\r\n   \"n\" : {\r\n      \"k\" : [\r\n         1,\r\n         {}\r\n      ],\r\n      \"e\" : []\r\n   }\r\n}\r\n",
        ),
    ] {
        let mut doc = document(before);
        doc.set(&["n"], &value).unwrap();
        assert_eq!(text(&doc), after);
        assert!(doc.remove(&["n"]));
        let bare = before.trim_start_matches('\u{feff}');
        assert_eq!(text(&doc), if bare.is_empty() { "{}\n" } else { bare });
    }
}

#[test]
fn members_go_where_their_object_is() {
    let mut doc = document("{\n  \"hooks\": {},\n  \"z\": 12345678901234567890123\n}");
    doc.push(&["hooks", "Stop"], &json!({"c": 1})).unwrap();
    let want = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"c\": 1\n      }\n    ]\n  },\n  \"z\": 12345678901234567890123\n}";
    assert_eq!(text(&doc), want);
    doc.set(&["hooks", "Stop", "0", "c"], &json!("x")).unwrap();
    assert_eq!(text(&doc), want.replace("\"c\": 1", "\"c\": \"x\""));
    assert_eq!(doc.str(&["hooks", "Stop", "0", "c"]).as_deref(), Some("x"));
    assert_eq!(doc.set(&["z", "b"], &json!(1)).unwrap_err().to_string(), "z is not an object");
    assert_eq!(doc.push(&["hooks"], &json!(1)).unwrap_err().to_string(), "hooks is not an array");
    assert_eq!(document("[]").set(&["a"], &json!(1)).unwrap_err().to_string(), "the whole file is not an object");
}

#[test]
fn of_equal_keys_the_last_counts_and_all_are_removed() {
    let mut doc = document(r#"{"a":1, "\u0061":2, "b":3}"#);
    assert_eq!(doc.value(&["a"]), Some(json!(2)));
    doc.set(&["a"], &json!(5)).unwrap();
    assert_eq!(text(&doc), r#"{"a":1, "\u0061":5, "b":3}"#);
    assert!(doc.remove(&["a"]));
    assert_eq!(text(&doc), r#"{"b":3}"#);
    assert!(!doc.remove(&["a"]));
}

#[test]
fn an_equal_value_is_left_as_it_is_written() {
    let before = "{\"a\": {\"x\":   1.50}, \"s\": \"caf\\u00e9\"}";
    let mut doc = document(before);
    doc.set(&["a"], &json!({"x": 1.5})).unwrap();
    doc.set(&["s"], &json!("café")).unwrap();
    assert_eq!(text(&doc), before);
}

/// A JSON value, and the white space to write it with.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é\u{1f600}\\n\"\\\\]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            objects(inner).prop_map(Value::Object),
        ]
    })
}

fn objects(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = serde_json::Map<String, Value>> {
    proptest::collection::vec(("[a-e]{1,2}", inner), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

/// Writes a value with white space from `space` wherever JSON allows it.
fn loosely(value: &Value, space: &mut dyn FnMut() -> String) -> String {
    let (open, close, children): (_, _, Vec<String>) = match value {
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| {
                let [before, after] = [space(), space()];
                format!("{}{before}:{after}{}", quote(key), loosely(value, space))
            });
            ('{', '}', members.collect())
        }
        Value::Array(items) => ('[', ']', items.iter().map(|item| loosely(item, space)).collect()),
        scalar => return scalar.to_string(),
    };
    let padded: Vec<String> = children.into_iter().map(|child| [space(), child, space()].concat()).collect();
    if padded.is_empty() { format!("{open}{}{close}", space()) } else { format!("{open}{}{close}", padded.join(",")) }
}

fn written() -> impl Strategy<Value = (Value, String)> {
    let spaces = prop_oneof![
        Just(vec![String::new()]),
        Just(vec!["\n\t".to_owned(), " ".to_owned()]),
        proptest::collection::vec("[ \t\r\n]{0,3}", 1..6),
    ];
    (objects(values()).prop_map(Value::Object), spaces).prop_map(|(value, spaces)| {
        let mut turns = spaces.iter().cycle().cloned();
        let text = loosely(&value, &mut || turns.next().unwrap_or_default());
        (value, text)
    })
}

fn keys() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[a-e]{1,2}", 1..4)
}

/// The same edit on a tree; false where a value is in the way.
fn set_in_tree(tree: &mut Value, path: &[&str], value: &Value) -> bool {
    let Some((first, rest)) = path.split_first() else {
        *tree = value.clone();
        return true;
    };
    match tree {
        Value::Object(map) => set_in_tree(map.entry(*first).or_insert(Value::Object(Default::default())), rest, value),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_set_changes_its_own_value_and_nothing_else((tree, before) in written(), path in keys(), value in values()) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut doc = document(&before);
        let old = doc.find(&path).map(|node| node.span.clone());
        let mut want = tree;
        if !set_in_tree(&mut want, &path, &value) {
            prop_assert!(doc.set(&path, &value).is_err());
            return Ok(());
        }
        doc.set(&path, &value).unwrap();
        let after = text(&doc);
        prop_assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), want);
        if let Some(old) = old {
            prop_assert!(after.starts_with(&before[..old.start]));
            prop_assert!(after.ends_with(&before[old.end..]));
        } else {
            // One piece went in; an empty object gave up the white space between its braces.
            let head = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            let tail = before.bytes().rev().zip(after.bytes().rev()).take_while(|(a, b)| a == b).count();
            let lost = before.get(head..before.len().saturating_sub(tail)).unwrap_or("");
            prop_assert!(lost.trim().is_empty(), "{:?} was lost", lost);
        }
    }

    #[test]
    fn what_was_added_can_be_taken_out_to_the_byte((tree, before) in written(), value in values()) {
        prop_assume!(tree.as_object().is_some_and(|map| !map.is_empty()));
        let mut doc = document(&before);
        doc.set(&["new", "inner"], &value).unwrap();
        prop_assert!(doc.remove(&["new"]));
        prop_assert_eq!(text(&doc), before);
    }

    #[test]
    fn removing_a_key_leaves_the_others_as_written((tree, before) in written(), key in "[a-e]{1,2}") {
        let mut doc = document(&before);
        let mut want = tree;
        let had = want.as_object_mut().unwrap().shift_remove(&key).is_some();
        prop_assert_eq!(doc.remove(&[&key]), had);
        prop_assert_eq!(serde_json::from_str::<Value>(&text(&doc)).unwrap(), want.clone());
        let old = document(&before);
        for other in want.as_object().unwrap().keys() {
            prop_assert_eq!(doc.raw(&[other]), old.raw(&[other]));
        }
    }

    #[test]
    fn what_serde_reads_is_read_and_what_it_refuses_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..24), (_, text) in written(), cut in 0usize..40) {
        for text in [String::from_utf8_lossy(&bytes).into_owned(), text.chars().take(cut).collect()] {
            let strict = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assume!(!text.trim().is_empty() && !text.starts_with(BOM));
            prop_assert_eq!(Document::parse(text.as_bytes()).is_ok(), strict, "{:?}", text);
        }
    }
}
