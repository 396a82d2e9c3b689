//! Percentiles.

use serde_json::{Value, json};
use si::watch::zones::percentiles;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let values: Vec<f64> = input["values"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    Ok(json!({ "result": as_json(&values) }))
}

/// The percentiles of some values in the table's shape; null for none.
pub fn as_json(values: &[f64]) -> Value {
    percentiles(values)
        .map(|found| json!({"p50": found.p50, "p75": found.p75, "p90": found.p90, "count": found.count}))
        .unwrap_or_default()
}
