//! Short text forms: token counts, durations, bars, quota cells and single fields.

use std::path::PathBuf;

use serde_json::{Value, json};
use si::client::json::Object;
use si::client::payload::Payload;
use si::client::usage::Usage;
use si::config::Config;
use si::statusline::context::{Context, Money, Source, Task, Tokens};
use si::statusline::layout::{self, Bar, Cell};
use si::statusline::quota::{self, Window};
use si::statusline::style::{Role, paint};
use si::statusline::{fields, quota::Quota};
use si::store::{Sid, StateFile, Store};
use si::text;
use si::watch::zones::{self, Limits, Zone};

use super::look::same_or;
use super::{Row, set_aside};
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let number = |key: &str| number(&input[key]);
    let string = |key: &str| input[key].as_str().unwrap_or("");
    match row.fn_name() {
        "fmt_tokens_statusline" => Ok(json!({"text": text::tokens_fine(number("value"))})),
        "format_tokens_hook" => {
            // There is one function for all hooks.
            Ok(json!({"text": text::tokens_rough(number("value") as u64), "same_in_zone_hook": true}))
        }
        "fmt_duration" => Ok(json!({"text": text::duration(number("ms"))})),
        "truncate" => {
            let cut = text::cut(string("text"), number("max") as usize).into_owned();
            Ok(json!({"text": same_or(row.expect["text"].as_str(), cut)}))
        }
        "context_bar" => bar(&input, row),
        "zone_for" => {
            let zone = limits(&input["zones"]).zone(count(&input["tokens"]));
            let name = zone.name();
            let icon = plain(Bar { used: zone as u64 + 1, cap: 4, role: Role::of(zone) }, 4);
            let color = format!("{:?}", Role::of(zone)).to_lowercase();
            Ok(json!({"name": name, "color": color, "icon": icon, "hook_zone": name, "suggest_zone": name}))
        }
        "hook_zones_from_config" => {
            let config = config(sandbox, &input["config"]);
            let env = sandbox.env();
            let limits = zones::in_force(&env, Store::new(&env), &config, &env.cwd, &Sid::new("s"), None);
            Ok(json!({"zones": {"yellow": limits.yellow, "orange": limits.orange, "red": limits.red}}))
        }
        "int_file" => {
            let env = sandbox.env();
            let (store, sid) = (Store::new(&env), Sid::new("s"));
            store.write(StateFile::ToolCount(&sid), string("text").as_bytes()).unwrap();
            Ok(json!({"value": store.read_count(StateFile::ToolCount(&sid), 0..=u64::MAX).unwrap_or(0)}))
        }
        "project_label" => {
            let cell = field(sandbox, "project", &json!({"cwd": string("cwd")}), &json!({}), 0);
            Ok(json!({"text": cell.map_or_else(String::new, |cell| shown(cell, false))}))
        }
        "usage_cell" => {
            let now_ms = si::env::parse_iso(string("now_iso")).unwrap();
            let window = |percent| Window { percent, resets_ms: quota::moment(&input["reset_at"]) };
            Ok(both(row, input["percent"].as_f64().map(|percent| window(percent).cell(string("label"), now_ms))))
        }
        "deploy_field" => {
            if let Some(text) = input["breadcrumb"].as_str() {
                sandbox.write(&sandbox.home.join(".claude/logs/deploy-breadcrumb"), text);
            }
            let now_ms = si::env::parse_iso(string("now_iso")).unwrap();
            Ok(both(row, field(sandbox, "deploy", &json!({}), &json!({}), now_ms)))
        }
        "field" => Ok(both(row, field(sandbox, string("name"), &input["stdin"], &input["ctx"], 0))),
        other => Err(format!("fn {other} is not known")),
    }
}

fn number(value: &Value) -> f64 {
    match value["$num"].as_str() {
        Some("NaN") => f64::NAN,
        Some("Infinity") => f64::INFINITY,
        Some("-Infinity") => f64::NEG_INFINITY,
        _ => value.as_f64().unwrap_or(f64::NAN),
    }
}

/// A count of tokens; below 0 is 0.
fn count(value: &Value) -> u64 {
    number(value).max(0.0) as u64
}

fn limits(zones: &Value) -> Limits {
    let [yellow, orange, red] = ["yellow", "orange", "red"].map(|name| count(&zones[name]));
    Limits { yellow, orange, red, adaptive: None }
}

fn config(sandbox: &Sandbox, document: &Value) -> Config {
    if document.is_object() {
        sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), document.to_string());
    }
    Config::load(&sandbox.env())
}

fn plain(bar: Bar, width: usize) -> String {
    bar.spans(width).map(|span| span.text).concat()
}

fn bar(input: &Value, row: &Row) -> Result<Value, String> {
    let width = input["width"].as_u64().map_or(layout::BAR[0], |width| width as usize);
    // The original keeps every width within these.
    if !(8..=40).contains(&width) {
        return set_aside("no cell of ours asks for another width than 20, 10 or 4");
    }
    let zone = Zone::parse(input["zone_color"].as_str().unwrap()).unwrap();
    let bar = Bar { used: count(&input["used"]), cap: count(&input["cap"]), role: Role::of(zone) };
    let mut coloured = String::new();
    for span in bar.spans(width) {
        paint(&mut coloured, span.role, &span.text, true);
    }
    let filled = bar.filled(width);
    let coloured = same_or(row.expect["coloured"].as_str(), coloured);
    Ok(json!({"filled": filled, "empty": width - filled, "plain": plain(bar, width), "coloured": coloured}))
}

fn shown(cell: Cell, colors: bool) -> String {
    layout::fit(vec![cell], "", None).render("", colors)
}

/// A cell without and with colours, in the shape of the row.
fn both(row: &Row, cell: Option<Cell>) -> Value {
    let text = |colors| cell.clone().map_or_else(String::new, |cell| shown(cell, colors));
    let mut both = json!({
        "plain": same_or(row.expect["plain"].as_str(), text(false)),
        "coloured": same_or(row.expect["coloured"].as_str(), text(true)),
    });
    if let Some(note) = row.expect.get("_note") {
        both["_note"] = note.clone();
    }
    both
}

/// One field, made from a payload and from values that the row says were found.
fn field(sandbox: &Sandbox, name: &str, stdin: &Value, given: &Value, now_ms: i64) -> Option<Cell> {
    let mut env = sandbox.env();
    env.home = Some(PathBuf::from("/home/nia"));
    if now_ms > 0 {
        env.now_ms = now_ms;
    }
    let config = config(sandbox, &json!({"statusline": given["cfg"]}));
    let text = stdin.to_string();
    let payload = Payload::parse(&text).unwrap_or_default();
    let ctx = Context::new(&env, &config, &payload);
    let sources = &ctx.sources;
    // The zone of an empty context is green; elsewhere no tokens means none that are known.
    let tokens = given.get("tokens").map(count).filter(|&count| count > 0 || name == "zone");
    let estimated = given["cfg"]["tokenSource"] == "estimate" || given["usedTranscript"] == false;
    set(&sources.tokens, tokens.map(|count| Tokens { count, estimated }));
    if given["cfg"]["zones"].is_object() {
        // The zones in force, whoever chose them.
        let zones = &config.statusline.zones;
        set(&sources.limits, limits(&json!({"yellow": zones.yellow, "orange": zones.orange, "red": zones.red})));
    }
    set(&sources.tools, count(&given["tools"]));
    set(&sources.session_ms, given["sessionDurationMs"].as_f64());
    set(&sources.money, Money { cost: given["costUsd"].as_f64(), saved: given["cacheSavedUsd"].as_f64() });
    set(&sources.thinking, count(&given["thinking"]["recent"]));
    set(&sources.task, given["task"].as_str().map(|text| Task { text: text.into(), issue: None, stale: false }));
    let usage = given["usage"].to_string();
    set(&sources.usage, Object::parse(&usage).map(|usage| Usage::parse(&usage)));
    let totals = &given["tokenTotals"];
    let flow = Usage {
        input: count(&totals["input"]),
        output: count(&totals["output"]),
        cache_read: count(&totals["cached"]),
        cache_creation: count(&totals["creation"]),
        ..Usage::default()
    };
    set(&sources.flow, totals.is_object().then_some(flow));
    set(&sources.quota, Quota::default());
    (fields::by_name(name).unwrap_or_else(|| panic!("no field {name}")).render)(&ctx)
}

fn set<T>(source: &Source<T>, value: T) {
    let _ = source.set((value, "row")); // a new context holds nothing yet
}
