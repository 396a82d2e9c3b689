//! Parsing of session-context.md, and the task that the status line takes from it.

use serde_json::{Map, Value, json};
use si::compaction::session_context::{self, Sections};
use si::store::{StateFile, Store};

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let content = input["content"].as_str();
    let read = || {
        let env = sandbox.env();
        let store = Store::new(&env);
        if let Some(content) = content {
            sandbox.write(&store.path(StateFile::SessionContext("-p")).unwrap(), content);
        }
        session_context::read(store, "-p")
    };
    Ok(match row.fn_name() {
        "is_placeholder_line" => {
            json!({"placeholder": session_context::is_placeholder_line(input["line"].as_str().unwrap())})
        }
        "parse_sections" => json!({"sections": object(&session_context::parse(content.unwrap()))}),
        "read_session_context" => {
            let context = read();
            // Without the mask a caller looks at the section itself.
            let masked = input["opts"]["maskAutofill"].as_bool().unwrap_or(true);
            let raw = |heading| context.sections.get(heading).unwrap_or("").to_string();
            let (task, files) = if masked {
                (context.current_task.clone(), context.key_files.clone())
            } else {
                (raw(session_context::CURRENT_TASK), raw(session_context::KEY_FILES))
            };
            json!({
                "sections": object(&context.sections),
                "current_task": task,
                "key_files": files,
                "is_autofill": context.task_is_autofilled,
                "has_mtime": context.modified_ms.is_some(),
            })
        }
        "statusline_task" => json!({"task": session_context::task(&read())}),
        other => return Err(format!("unknown fn {other}")),
    })
}

fn object(sections: &Sections) -> Map<String, Value> {
    sections.iter().map(|(heading, body)| (heading.to_string(), body.into())).collect()
}
