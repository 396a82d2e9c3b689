//! Bands of shape logs, the same through real files with rollup and bounds, and where a session is.

use std::path::Path;

use serde_json::{Value, json};
use si::store::records::shape::{SessionAnchor, ShapeEntry};
use si::store::{Sid, StateFile, Store};
use si::watch::bands::{self, Analysis, Options, Root, Scoring};
use si::watch::{rollup, root_dir, shape};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    match row.fn_name() {
        "analyze_shape" if file_is_its_own_root(row) => super::set_aside("B27: the root of a file is its directory"),
        "analyze_shape" => {
            let entries = entries(&input["entries"]);
            let given = Given::new(&input["opts"]);
            let analysis = bands::analyse(&entries, &given.options());
            let line = analysis.as_ref().map_or(String::new(), |analysis| analysis.one_line(false));
            Ok(json!({"analysis": analysis.as_ref().map(analysis_json), "one_line": line}))
        }
        "shape_sequence" => sequence(&input, sandbox),
        "resolve_session_cwd" => resolve(&input, sandbox),
        other => Err(format!("unknown fn {other}")),
    }
}

/// Whether a row expects a file to be its own directory, as the original has it at depths that the path does not reach.
fn file_is_its_own_root(row: &Row) -> bool {
    let bands = ["hot", "warm", "cold"].map(|band| row.expect["analysis"][band].as_array());
    let own = |root: &Value| {
        let name = root["root"].as_str().unwrap_or("");
        let samples = root["samples"].as_array().into_iter().flatten().filter_map(Value::as_str);
        root["count"] == 1 && samples.clone().any(|file| file == name || file.ends_with(&format!("/{name}")))
    };
    bands.into_iter().flatten().flatten().any(own)
}

/// The options of a row, owned.
struct Given {
    scoring: Scoring,
    cutoff: Option<f64>,
    preserve: Vec<String>,
    cwd: Option<String>,
    depth: Option<usize>,
}

impl Given {
    fn new(opts: &Value) -> Given {
        // In the tables no scoring, or an unknown one, is that of the original.
        let scoring = match opts["scoring"].as_str() {
            Some(name @ ("recency" | "frequency")) => Scoring::parse(name),
            _ => Scoring::Hybrid,
        };
        let globs = opts["preserveGlobs"].as_array().into_iter().flatten();
        Given {
            scoring,
            cutoff: opts["warmScoreCutoff"].as_f64(),
            preserve: globs.filter_map(|glob| Some(glob.as_str()?.to_string())).collect(),
            cwd: opts["canonicalCwd"].as_str().map(String::from),
            depth: opts["rootDirDepth"].as_u64().map(|depth| depth as usize),
        }
    }

    fn options(&self) -> Options<'_> {
        Options {
            scoring: self.scoring,
            warm_cutoff: self.cutoff,
            preserve: &self.preserve,
            cwd: self.cwd.as_deref(),
            depth: self.depth,
            ..Options::default()
        }
    }
}

fn entries(value: &Value) -> Vec<ShapeEntry> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|entry| serde_json::from_value(entry.clone()).ok()).collect()
}

fn analysis_json(analysis: &Analysis) -> Value {
    let band = |roots: &[Root]| {
        let root = |root: &Root| {
            json!({
                "root": root.root, "first": root.first, "last": root.last, "count": root.count,
                "samples": root.samples, "allowlisted": root.allowlisted,
                "recencyScore": root.recency, "freqScore": root.frequency, "score": root.score,
            })
        };
        roots.iter().map(root).collect::<Vec<_>>()
    };
    let shift = analysis.shift.as_ref();
    let events = analysis.events.iter().map(|mark| json!({"event": mark.event, "tok": mark.tok}));
    json!({
        "hot": band(&analysis.hot), "warm": band(&analysis.warm), "cold": band(&analysis.cold),
        "shift": shift.map(|shift| json!({"from": shift.from, "to": shift.to, "jaccard": shift.jaccard})),
        "staleTokens": analysis.stale_tokens, "totalSpan": analysis.total_span, "totalCalls": analysis.total_calls,
        "events": events.collect::<Vec<_>>(),
    })
}

fn sequence(input: &Value, sandbox: &Sandbox) -> Result<Value, String> {
    let env = sandbox.env();
    let store = Store::new(&env);
    let sid = Sid::new(input["session_id"].as_str().unwrap_or(""));
    let path = |state: StateFile<'_>| store.path(state).unwrap();
    let name = |state: StateFile<'_>| path(state).file_name().unwrap().to_string_lossy().into_owned();
    let log = path(StateFile::Shape(&sid));
    let mut steps = Vec::new();
    for step in input["steps"].as_array().ok_or("no steps")? {
        let kind = step.as_object().and_then(|step| step.keys().next()).ok_or("empty step")?.as_str();
        let max = step["max_entries"].as_u64().unwrap_or(200) as usize;
        let append = |entries: &[ShapeEntry]| -> Value {
            let guard = store.lock(StateFile::Shape(&sid)).unwrap();
            for entry in entries {
                shape::append(&guard, &sid, entry, max).unwrap();
            }
            let text = sandbox.read(&log);
            let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            let tok = |line: Option<&&str>| serde_json::from_str::<Value>(line.unwrap_or(&"null")).unwrap()["tok"].clone();
            json!({
                "file": name(StateFile::Shape(&sid)), "lines": lines.len(), "bytes": text.len(),
                "first_tok": tok(lines.first()), "last_tok": tok(lines.last()),
            })
        };
        steps.push(match kind {
            "append" => append(&entries(&step["append"])),
            "append_generated" => append(&generated(&step["append_generated"])),
            "raw_append" => {
                let text = std::fs::read_to_string(&log).unwrap_or_default() + step["raw_append"].as_str().unwrap_or("");
                sandbox.write(&log, text);
                json!({})
            }
            "truncate" => {
                sandbox.write(&log, "");
                json!({})
            }
            "write_rollup" => {
                sandbox.write(&path(StateFile::Rollup(&sid)), step["write_rollup"].to_string());
                json!({})
            }
            "rollup" => {
                let given = Given::new(&step["rollup"]);
                let guard = store.lock(StateFile::Rollup(&sid)).unwrap();
                let rolled = rollup::roll(&guard, &sid, &shape::last(store, &sid, 2000), &given.options(), env.now_ms);
                let rolled = rolled.map_err(|error| format!("{error:#}"))?;
                let file: Value = store.read_json(StateFile::Rollup(&sid)).ok_or("no rollup file")?;
                json!({
                    "returned": {"rolledThroughTok": rolled.rolled_through_tok, "roots": rolled.roots},
                    "key_count": rolled.roots.len(), "file": file,
                })
            }
            "analyze" => {
                let given = Given::new(&step["analyze"]);
                let persist = step["analyze"]["persistAcrossCompacts"] == true;
                let rolled = if persist { rollup::read(store, &sid) } else { None };
                let options = Options { rollup: rolled.as_ref(), ..given.options() };
                let analysis = bands::analyse(&shape::entries(store, &sid), &options);
                json!({ "analysis": analysis.as_ref().map(analysis_json) })
            }
            "read" => {
                let limit = step["read"]["limit"].as_u64().map(|limit| limit as usize);
                let entries =
                    limit.map_or_else(|| shape::entries(store, &sid), |limit| shape::last(store, &sid, limit));
                json!({"count": entries.len(), "first": entries.first(), "last": entries.last()})
            }
            other => return Err(format!("unknown step {other}")),
        });
    }
    let [rollup_name, session_name] = [StateFile::Rollup(&sid), StateFile::SessionAnchor(&sid)].map(name);
    Ok(json!({"steps": steps, "rollup_name": rollup_name, "session_name": session_name}))
}

fn generated(spec: &Value) -> Vec<ShapeEntry> {
    let number = |key: &str| spec[key].as_i64().unwrap_or(0);
    let root = spec["root"].as_str().unwrap_or("");
    let entry = |i: i64| ShapeEntry {
        t: 1_700_000_000_000 + i,
        tok: number("tok_start") + i * number("tok_step"),
        tool: Some("Read".into()),
        root: Some(root.into()),
        file: Some(format!("{root}/{}{}.ts", "x".repeat(number("pad") as usize), number("first_index") + i)),
        event: None,
    };
    (0..number("count")).map(entry).collect()
}

fn resolve(input: &Value, sandbox: &Sandbox) -> Result<Value, String> {
    sandbox.setup(input["files"].as_array().map(Vec::as_slice).unwrap_or_default());
    let recorded: Option<SessionAnchor> = serde_json::from_value(input["session_state"].clone()).ok();
    let recorded = recorded.filter(|anchor| anchor.cwd.starts_with('/'));
    let opts = &input["opts"];
    let payload = opts["payloadCwd"].as_str().map(Path::new);
    let file = opts["filePath"].as_str();
    let process = Path::new(input["process_cwd"].as_str().ok_or("no process_cwd")?);
    let (cwd, source) = shape::resolve(recorded.as_ref(), payload, file, process);
    let source = match source {
        shape::Source::Recorded => "sessionState",
        shape::Source::Payload => "payloadCwd",
        shape::Source::ProjectRoot => "projectRoot",
        shape::Source::Process => "processCwd",
    };
    let absolute = file.map(|file| file.replace('\\', "/")).filter(|file| file.starts_with('/'));
    let root = absolute.and_then(|file| root_dir::project_root(Path::new(&file)));
    Ok(json!({"cwd": cwd, "source": source, "project_root_of_file": root}))
}
