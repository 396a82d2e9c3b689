//! The configuration: loading, layers, project blocks, and editing by dotted keys.

use std::path::Path;

use serde_json::{Map, Value, json};
use si::client::json_edit::Document;
use si::config::edit::Target;
use si::config::{Config, PRESETS, tree};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    match row.fn_name() {
        "load_config" => Ok(load(&input, sandbox)),
        "defaults" => {
            let presets: Map<String, Value> = PRESETS.iter().map(|(name, fields)| ((*name).into(), json!(fields))).collect();
            Ok(json!({"config": tree::tree(&sandbox.env(), &Config::built_in()), "presets": presets}))
        }
        "resolve_shape" => Ok(resolve_shape(&input, sandbox)),
        "get" => {
            let value = tree::get(&input["config"], input["key"].as_str().unwrap_or(""));
            Ok(json!({"value": value, "found": value.is_some()}))
        }
        "set" => {
            let mut document = Document::parse(input["config"].to_string().as_bytes()).map_err(|e| e.to_string())?;
            let target = Target::find(input["key"].as_str().unwrap_or(""));
            target.set(&mut document, &input["value"].to_string()).map_err(|e| e.to_string())?;
            Ok(json!({"config": document.value(&[])}))
        }
        "deep_merge" => {
            let mut result = input["base"].clone();
            tree::merge(&mut result, &input["over"]);
            Ok(json!({"result": result}))
        }
        other => Err(format!("fn {other} is not known")),
    }
}

fn write(sandbox: &Sandbox, name: &str, content: &Value) {
    let text = match content {
        Value::Null => return,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    sandbox.write(&sandbox.home.join(".claude").join(name), text);
}

/// The keys whose value differs from the built-in one, dotted.
fn load(input: &Value, sandbox: &Sandbox) -> Value {
    write(sandbox, "session-intelligence.json", &input["unified"]);
    write(sandbox, "statusline-intel.json", &input["legacy"]);
    let mut env = sandbox.env();
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        env = env.with_var(name, value.as_str().unwrap());
    }
    let (mut ours, mut built_in) = (Map::new(), Map::new());
    flatten("", &tree::tree(&env, &Config::load(&env)), &mut ours);
    let nothing_set = Sandbox::new().env();
    flatten("", &tree::tree(&nothing_set, &Config::built_in()), &mut built_in);
    ours.retain(|path, value| built_in.get(path) != Some(value));
    json!({"differs": ours})
}

fn flatten(path: &str, value: &Value, into: &mut Map<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                flatten(&if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value, into);
            }
        }
        value => drop(into.insert(path.into(), value.clone())),
    }
}

/// What the row asks about, of the shape section as it holds in the row's folder.
fn resolve_shape(input: &Value, sandbox: &Sandbox) -> Value {
    write(sandbox, "session-intelligence.json", &json!({"shape": input["shape"]}));
    let env = sandbox.env();
    let loaded = Config::load(&env);
    let config = loaded.for_project(Path::new(input["cwd"].as_str().unwrap_or("")));
    let all = tree::tree(&sandbox.env(), &config);
    let mut shape = all["shape"].as_object().unwrap().clone();
    // The row holds what it gave, and the globs that a block adds. A block that was laid over is used up.
    shape.retain(|name, _| input["shape"].get(name).is_some() || name == "preserveGlobs");
    if config.shape.per_project.is_empty() {
        shape.remove("perProject");
    }
    json!({"shape": shape})
}
