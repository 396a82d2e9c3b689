//! The golden tables: inputs and values recorded from the JavaScript original, run through our code.
//!
//! The folder is `tests/golden`, or the one that `SI_GOLDEN` names, so that further tables of the same format can be run.
//! A row binds unless one of its tags is freed; what holds instead is in [`rulings`], with the test that shows it. A row
//! that cannot be run is a failure, and so is a table that nothing here knows. Each table prints how many rows it ran.

mod look;
mod rulings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::Sandbox;

/// One row of a table, placeholders not yet filled in.
pub struct Row {
    pub id: String,
    pub input: Value,
    pub expect: Value,
}

impl Row {
    /// The input, placeholders filled in for `sandbox`.
    pub fn input(&self, sandbox: &Sandbox) -> Value {
        sandbox.expand(&self.input)
    }

    /// The function of the original that the row was recorded from.
    pub fn fn_name(&self) -> &str {
        self.input["fn"].as_str().unwrap_or("")
    }
}

/// Runs one row: gives what our code makes of it in the shape of `row.expect`, or says why it cannot.
/// `sandbox` is new for each row.
type Runner = fn(&Row, &Sandbox) -> Result<Value, String>;

/// One line per table: its file's name, its module, which has a `run` of type [`Runner`].
macro_rules! tables {
    ($($name:ident,)*) => {
        $(mod $name;)*
        const KNOWN: &[(&str, Runner)] = &[$((stringify!($name), $name::run),)*];
        $(#[test] fn $name() { run_table(stringify!($name)); })*
    };
}

tables! {
    adaptive_zones,
    archive,
    chain,
    config,
    context_cap,
    cost,
    debug_log,
    emoji,
    format,
    git_derived,
    git_nexus,
    glob,
    handoff,
    percentiles,
    phase_events,
    prefix_hash,
    regret,
    root_dir,
    session_context,
    shape_analysis,
    state_files,
    statusline_render,
    task_change,
    thinking,
    usage_api,
}

/// Functions of the original that nothing of ours corresponds to: table, function, and why. Their rows are not run.
const NOT_OURS: &[(&str, &str, &str)] = &[
    (
        "cost",
        "since_compact_sequence",
        "when a compaction was is told by the transcript, not by a log that all sessions share",
    ),
    (
        "git_derived",
        "check_previous_command",
        "the former status line command is kept as JSON, so nothing has to be rejected before it is put into a script",
    ),
    (
        "git_derived",
        "previous_command_in_script",
        "a chain script is read as the shell reads it, not by a pattern for one way of quoting",
    ),
];

/// Tables that are data, not rows.
const NOT_ROWS: &[&str] = &["freed", "model_prices"];

/// A runner's answer for a row that nothing of ours does, or that a ruling decides otherwise though the row carries no
/// tag: it is counted and the reason is printed.
pub fn set_aside(why: &str) -> Result<Value, String> {
    Err(format!("{SET_ASIDE}{why}"))
}

const SET_ASIDE: &str = "set aside: ";

fn folder() -> PathBuf {
    std::env::var_os("SI_GOLDEN")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), PathBuf::from)
}

fn freed_tags() -> BTreeSet<String> {
    let own = include_str!("../../golden/freed.json");
    let freed: Value = serde_json::from_str(own).unwrap();
    freed["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_string()).collect()
}

fn run_table(name: &str) {
    let path = folder().join(format!("{name}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("{name}: no table in {}", folder().display());
        return;
    };
    let table: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let run = KNOWN.iter().find(|(known, _)| *known == name).unwrap().1;
    let freed = freed_tags();
    let (mut ran, mut freed_rows, mut failures) = (0, 0, Vec::new());
    let mut not_ours: BTreeMap<String, usize> = BTreeMap::new();
    for case in table["cases"].as_array().unwrap() {
        let tags = case["tags"].as_array().cloned().unwrap_or_default();
        if tags.iter().filter_map(Value::as_str).any(|tag| freed.contains(tag)) {
            freed_rows += 1;
            continue;
        }
        let row = Row {
            id: case["id"].as_str().unwrap().into(),
            input: case["input"].clone(),
            expect: case["expect"].clone(),
        };
        let elsewhere = NOT_OURS.iter().find(|(table, function, _)| *table == name && *function == row.fn_name());
        if let Some((_, function, why)) = elsewhere {
            *not_ours.entry(format!("{function}: {why}")).or_default() += 1;
            continue;
        }
        let sandbox = Sandbox::new();
        let result = std::panic::catch_unwind(|| run(&row, &sandbox)).unwrap_or_else(|_| Err("panicked".into()));
        if let Some(why) = result.as_ref().err().and_then(|why| why.strip_prefix(SET_ASIDE)) {
            *not_ours.entry(why.to_string()).or_default() += 1;
            continue;
        }
        ran += 1;
        let verdict = result.and_then(|actual| differ(&sandbox.expand(&row.expect), &actual, "").map_or(Ok(()), Err));
        if let Err(why) = verdict {
            failures.push(format!("{}: {why}", row.id));
        }
    }
    let others: usize = not_ours.values().sum();
    println!("{name}: {ran} rows ran, {freed_rows} freed by a ruling, {others} not ours, {} failed", failures.len());
    for (why, rows) in not_ours {
        println!("  not ours: {rows}: {why}");
    }
    assert!(failures.is_empty(), "{name}: {} of {ran} rows\n{}", failures.len(), failures.join("\n"));
}

/// Where two values differ; none when they agree. Numbers agree within 1e-9; `<ms>`, `<iso>`, `<pid>` stand for any
/// value; long texts may be given as length and hash.
pub fn differ(expect: &Value, actual: &Value, at: &str) -> Option<String> {
    let no = || Some(format!("at {at:?}: expected {expect}, got {actual}"));
    match (expect, actual) {
        (Value::Object(want), Value::String(text)) if want.contains_key("$utf16_len") => {
            let same = want["$utf16_len"] == text.encode_utf16().count()
                && want["$sha256_of_utf8"] == si::store::key::sha256_hex(text.as_bytes(), 64);
            if same { None } else { no() }
        }
        (Value::Object(want), Value::Object(have)) => {
            // A key that starts with an underscore is a remark of the table.
            let keys = want.keys().chain(have.keys()).filter(|key| !key.starts_with('_'));
            let keys: BTreeSet<&String> = keys.collect();
            keys.into_iter().find_map(|key| {
                let at = format!("{at}/{key}");
                match (want.get(key), have.get(key)) {
                    (Some(want), Some(have)) => differ(want, have, &at),
                    (want, have) => Some(format!("at {at:?}: expected {want:?}, got {have:?}")),
                }
            })
        }
        (Value::Array(want), Value::Array(have)) => {
            if want.len() != have.len() {
                return no();
            }
            want.iter().zip(have).enumerate().find_map(|(i, (want, have))| differ(want, have, &format!("{at}/{i}")))
        }
        (Value::Number(want), Value::Number(have)) => {
            let (want, have) = (want.as_f64().unwrap(), have.as_f64().unwrap());
            if (want - have).abs() <= 1e-9 { None } else { no() }
        }
        (Value::String(want), _) if matches!(want.as_str(), "<ms>" | "<pid>") && actual.is_number() => None,
        (Value::String(want), Value::String(have)) if want == "<iso>" => {
            if si::env::parse_iso(have).is_some() {
                None
            } else {
                no()
            }
        }
        _ if expect == actual => None,
        _ => no(),
    }
}

#[test]
fn every_table_has_a_runner() {
    let mut unknown = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let known = KNOWN.iter().any(|(known, _)| *known == name) || NOT_ROWS.contains(&name.as_str());
        if path.extension().is_some_and(|ext| ext == "json") && !known {
            unknown.push(name);
        }
    }
    assert!(unknown.is_empty(), "tables without a runner: {unknown:?}");
}

#[test]
fn every_freed_tag_names_the_ruling_and_the_test_that_shows_it() {
    // `conflict:C03` and `undocumented:C03` are one ruling.
    let numbers: BTreeSet<String> =
        freed_tags().iter().map(|tag| tag.rsplit(':').next().unwrap().to_string()).collect();
    let ruled: BTreeSet<String> = rulings::RULINGS.iter().map(|ruling| ruling.tag.to_string()).collect();
    let missing: Vec<_> = numbers.difference(&ruled).collect();
    assert!(missing.is_empty(), "freed without a ruling here: {missing:?}");
    for ruling in rulings::RULINGS {
        assert!(!ruling.rule.is_empty() && !ruling.test.is_empty(), "{}", ruling.tag);
        let name = ruling.test.rsplit("::").next().unwrap();
        assert!(rulings::source_has_test(name), "{}: no test named {name}", ruling.tag);
    }
}
