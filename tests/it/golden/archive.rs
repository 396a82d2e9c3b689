//! The archive of tool responses and `si expand`.

use serde_json::{Map, Value, json};
use si::client::json::Raw;
use si::client::payload::Payload;
use si::config::Config;
use si::memory::archive::body::Body;
use si::memory::archive::{self, Response};
use si::store::{Sid, Store};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let text = |key: &str| input[key].as_str().unwrap_or("");
    match row.fn_name() {
        "extract" => Ok(extract(&input["payload"])),
        "clean_sid" => Ok(json!({"sid": Sid::new(text("sid")).as_str()})),
        "clean_id" => Ok(json!({"id": archive::file_id(text("id"))})),
        "preview" => Ok(json!({"preview": Body::plain(text("body")).preview(160)})),
        "archive_sequence" => {
            let mut at_s = 0.0;
            let steps = input["steps"].as_array().unwrap();
            let steps: Result<Vec<Value>, String> = steps.iter().map(|step| sequence_step(step, &mut at_s, sandbox)).collect();
            Ok(json!({"steps": steps?}))
        }
        "expand_cli" => Ok(expand_cli(&input, sandbox)),
        other => Err(format!("no runner for {other}")),
    }
}

fn extract(payload: &Value) -> Value {
    let text = payload.to_string();
    let payload_read = Payload::parse(&text).unwrap_or_default();
    let id = payload_read.tool_use_id();
    // An id that was a number is shown as one; for us every id is a text.
    let was_number = ["tool_use_id", "toolUseId", "tool_call_id"].iter().any(|key| payload[key].is_number());
    let id = match id {
        Some(id) if was_number => serde_json::from_str(&id).unwrap(),
        id => json!(id),
    };
    let body = payload_read.any_tool_response().and_then(|response| Body::of(&response)).map(|body| body.text()).unwrap_or_default();
    let tool_input = payload_read.tool_input().and_then(Raw::value);
    json!({"id": id, "body": body, "tool": payload_read.tool_name().unwrap_or_default(), "tool_input": tool_input})
}

fn sequence_step(step: &Value, at_s: &mut f64, sandbox: &Sandbox) -> Result<Value, String> {
    *at_s = step["at_s"].as_f64().unwrap_or(*at_s);
    let mut env = sandbox.env();
    env.now_ms += (*at_s * 1000.0) as i64;
    let store = Store::new(&env);
    let brief = step["brief"] == true;
    if let Some(write) = step.get("write") {
        let body = match &write["body_repeat"] {
            Value::Array(repeat) => repeat[0].as_str().unwrap().repeat(repeat[1].as_u64().unwrap() as usize),
            _ => write["body"].as_str().map_or_else(|| write["body"].to_string(), str::to_string),
        };
        let written = save(&env, write, write["id"].as_str().unwrap_or(""), &write["meta"], &body)?;
        return Ok(json!({"written": written, "state": state(sandbox, brief)}));
    }
    if let Some(many) = step.get("write_many") {
        let body = "b".repeat(many["chars"].as_u64().unwrap() as usize);
        for n in 0..many["count"].as_u64().unwrap() {
            save(&env, many, &format!("t{n}"), &json!({"tool_name": "Read"}), &body)?;
        }
        return Ok(json!({"state": state(sandbox, brief)}));
    }
    if let Some(sid) = step.get("list") {
        let entries = archive::list(&store, &Sid::new(sid.as_str().unwrap_or("")));
        let rows: Vec<Value> = entries
            .iter()
            .map(|e| json!({"id": e.row.id, "exists": !e.missing, "chars": e.row.chars, "tool": e.row.tool}))
            .collect();
        return Ok(json!({"list": rows}));
    }
    if let Some(read) = step.get("read") {
        let text = |key: &str| read[key].as_str().unwrap_or("");
        let found = archive::read(&env, &store, &Sid::new(text("sid")), text("id"));
        return Ok(found.map_or(json!({"found": false}), |record| json!({"found": true, "chars": record.chars})));
    }
    if let Some(sweep) = step.get("sweep") {
        let sid = Sid::new(sweep["sid"].as_str().unwrap_or(""));
        let days = sweep["ttl_days"].as_f64().unwrap_or(7.0);
        let pruned = archive::prune(&env, &store, &sid, days).map_err(|error| error.to_string())?;
        return Ok(json!({"pruned": pruned, "state": state(sandbox, brief)}));
    }
    Err(format!("no runner for the step {step}"))
}

fn save(env: &si::Env, write: &Value, id: &str, meta: &Value, body: &str) -> Result<Option<String>, String> {
    let mut limits = Config::built_in().tool_archive;
    let number = |key: &str| write["opts"][key].as_f64();
    limits.max_per_session = number("maxPerSession").map_or(limits.max_per_session, |max| max as usize);
    limits.threshold_chars = number("thresholdChars").map_or(limits.threshold_chars, |least| least as usize);
    limits.ttl_days = number("ttlDays").unwrap_or(limits.ttl_days);
    let input = meta.get("tool_input").map(Value::to_string);
    let response = Response {
        id,
        tool: meta["tool_name"].as_str().unwrap_or(""),
        input: input.as_deref().map(Raw::new),
        body: Body::plain(body),
    };
    let sid = Sid::new(write["sid"].as_str().unwrap_or(""));
    let saved = archive::save(env, &Store::new(env), &sid, &limits, &response).map_err(|error| format!("{error:#}"))?;
    Ok(saved.map(|path| path.to_str().unwrap().to_string()))
}

/// What lies in the archive folders; times in seconds since the sandbox was made.
fn state(sandbox: &Sandbox, brief: bool) -> Value {
    let mut folders = Map::new();
    for folder in names(&sandbox.tmp).into_iter().filter(|name| is_archive(sandbox, name)) {
        let path = sandbox.tmp.join(&folder);
        let files: Vec<String> = names(&path).into_iter().filter(|name| name.ends_with(".json")).collect();
        let since = |t: &Value| json!((t.as_i64().unwrap() - sandbox.now_ms) / 1000);
        let mut rows: Vec<Value> =
            sandbox.read(path.join("index.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let state = if brief {
            let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
            json!({"archives": files, "index_ids": ids})
        } else {
            let archives: Vec<Value> = files
                .iter()
                .map(|name| {
                    let mut record: Value = serde_json::from_str(&sandbox.read(path.join(name))).unwrap();
                    let body = record.as_object_mut().unwrap().remove("body").unwrap();
                    let body = body.as_str().unwrap();
                    record["t"] = since(&record["t"]);
                    record["body_chars"] = json!(body.encode_utf16().count());
                    record["body_head"] = json!(si::text::cut_utf16(body, 30));
                    json!({"file": name, "record": record})
                })
                .collect();
            for row in &mut rows {
                row["t"] = since(&row["t"]);
                // Ours, where the id had characters that a file name cannot hold.
                row.as_object_mut().unwrap().remove("rawId");
            }
            json!({"archives": archives, "index": rows})
        };
        folders.insert(folder, state);
    }
    folders.into()
}

fn expand_cli(input: &Value, sandbox: &Sandbox) -> Value {
    sandbox.setup(input["setup"].as_array().map_or(&[], Vec::as_slice));
    let args = input["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_string());
    let mut run = sandbox.si(["expand".to_string()].into_iter().chain(args));
    for (key, value) in input["env"].as_object().into_iter().flatten() {
        run = run.var(key, value.as_str().unwrap());
    }
    let output = run.run();
    let (header, rest) = match output.stdout.split_once('\n') {
        Some((header, rest)) if header.starts_with("# ") => (Some(header), rest),
        _ => (None, output.stdout.as_str()),
    };
    let (input_line, rest) = match rest.split_once('\n') {
        Some((line, rest)) if header.is_some() && line.starts_with("# input=") => (Some(line), rest),
        _ => (None, rest),
    };
    let body = header.map(|_| rest.strip_prefix('\n').unwrap());
    let rows = (header.is_none() && output.stdout.starts_with("ID ")).then(|| listed(rest));
    let mut files_left = Vec::new();
    for folder in names(&sandbox.tmp).into_iter().filter(|name| is_archive(sandbox, name)) {
        files_left.extend(names(&sandbox.tmp.join(&folder)).iter().map(|name| format!("{folder}/{name}")));
    }
    json!({
        "exit": output.code, "stderr_empty": output.stderr.is_empty(), "body": body, "header": header,
        "input_line": input_line, "rows": rows, "files_left": files_left,
    })
}

/// The rows of a listing; columns are at least two spaces apart.
fn listed(text: &str) -> Vec<Value> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let missing = cells.get(4).is_some_and(|preview| preview.starts_with("(missing)"));
        json!({"id": cells[0], "tool": cells[1], "size": cells[2], "age": cells[3], "missing": missing})
    };
    text.lines().skip(1).map(row).collect()
}

fn is_archive(sandbox: &Sandbox, name: &str) -> bool {
    name.starts_with("claude-tool-archive-") && sandbox.tmp.join(name).is_dir()
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
