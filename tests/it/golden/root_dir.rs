//! Root directories of files.

use serde_json::{Value, json};
use si::watch::root_dir::{DEFAULT_DEPTH, Kind, root_of};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    // A depth that is no finite number is none; a fraction is cut off.
    let depth = input["depth"].as_f64().map_or(DEFAULT_DEPTH, |depth| depth.max(0.0) as usize);
    let path = input["path"].as_str().unwrap_or("");
    Ok(json!({ "root": root_of(path, Kind::File, depth, input["cwd"].as_str()) }))
}
