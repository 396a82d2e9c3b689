//! Zone limits learnt from past compactions.

use serde_json::{Value, json};
use si::config::Zones;
use si::store::records::compaction_log::HistoryEntry;
use si::watch::zones::{Base, adapt};

use super::Row;
use super::percentiles;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let lines = input["history"].as_array().cloned().unwrap_or_default();
    let read = |line: Value| serde_json::from_value::<HistoryEntry>(line).ok();
    // The table's costs stand for costs that si recorded.
    let ours = |entry| HistoryEntry { by: Some("si".into()), ..entry };
    let history: Vec<HistoryEntry> = lines.into_iter().filter_map(read).map(ours).collect();
    let limit = |name: &str, default| input["defaults"][name].as_u64().unwrap_or(default);
    let zones = Zones {
        yellow: limit("yellow", 200_000),
        orange: limit("orange", 300_000),
        red: limit("red", 400_000),
        ..Zones::default()
    };
    let project = input["opts"]["cwd"].as_str().unwrap_or("");
    let limits = adapt(&history, &Base::new(&zones, None), project, || input["opts"]["currentCost"].as_f64());
    let mut shown = json!({
        "yellow": limits.yellow, "orange": limits.orange, "red": limits.red,
        "adaptive": limits.adaptive.is_some(), "bucket": "global",
    });
    if let Some(learnt) = &limits.adaptive {
        shown["bucket"] = if learnt.of_project { "cwd" } else { "global" }.into();
        shown["sampleCount"] = learnt.samples.into();
        shown["p50"] = learnt.p50.into();
        shown["p90"] = learnt.p90.into();
        shown["regretRate"] = si::text::fixed(learnt.regret_rate, 2).parse::<f64>().unwrap().into();
        shown["costTightened"] = learnt.cost_tightened.into();
    }
    let own: Vec<&HistoryEntry> = history.iter().filter(|entry| entry.cwd == project).collect();
    let used = if limits.adaptive.is_some_and(|learnt| learnt.of_project) { own } else { history.iter().collect() };
    let tokens: Vec<f64> = used.iter().filter_map(|entry| entry.tokens).filter(|tokens| *tokens > 0.0).collect();
    Ok(json!({"zones": shown, "token_percentiles": percentiles::as_json(&tokens)}))
}
