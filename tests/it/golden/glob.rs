//! Globs.

use serde_json::{Value, json};
use si::watch::glob::Glob;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let glob = input["pattern"].as_str().and_then(Glob::new);
    match row.fn_name() {
        "glob_compile" => Ok(json!({ "compiles": glob.is_some() })),
        "glob_match" => {
            let candidate = input["candidate"].as_str().ok_or("candidate is no text")?;
            Ok(json!({"compiles": glob.is_some(), "matches": glob.is_some_and(|glob| glob.matches(candidate))}))
        }
        other => Err(format!("unknown fn {other}")),
    }
}
