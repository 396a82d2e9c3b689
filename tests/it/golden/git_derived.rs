//! What is derived from a repository and from session-context.md: the kind of task, the issue, the last commit, whose a
//! section is, and which project folder belongs to a path.

use std::path::Path;

use serde_json::{Value, json};
use si::client::project;
use si::compaction::session_context::{self, Class};
use si::git;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let text = |key: &str| input[key].as_str().unwrap_or("");
    let or_none = |issue: Option<String>| issue.unwrap_or_else(|| "none".into());
    Ok(match row.fn_name() {
        "guess_task_type" => json!({"type": session_context::task_type(text("subject"))}),
        "issue_from_ref" => json!({"issue": or_none(session_context::issue_from_ref(text("ref")))}),
        "issue_for_statusline" => {
            let issue = session_context::issue(input["branch"].as_str(), text("task"));
            json!({"issue": issue.unwrap_or_default()})
        }
        "classify_section" => {
            let class = session_context::classify(text("body"), None);
            let mode = |legacy: bool| match &class {
                Class::Placeholder => json!({"mode": "placeholder"}),
                Class::Autofilled(sha) => json!({"mode": "autofilled", "sha": sha}),
                Class::Legacy if legacy => json!({"mode": "legacy"}),
                Class::Legacy | Class::User => json!({"mode": "user"}),
            };
            json!({"is_placeholder": class == Class::Placeholder, "plain": mode(false), "with_legacy": mode(true)})
        }
        "replace_section" => {
            json!({"content": session_context::replace_section(text("content"), text("heading"), text("body"))})
        }
        "last_commit" => {
            if input["repo"].is_object() {
                sandbox.repo(&sandbox.cwd, &input["repo"]);
            }
            let env = sandbox.env();
            match git::head(&env, &sandbox.cwd, git::HOOK_DEADLINE) {
                None => json!({"ref": "", "data": null}),
                Some(head) => {
                    let commit = git::last_commit(&env, &head, git::HOOK_DEADLINE).ok_or("no commit")?;
                    json!({"ref": head.name, "data": {
                        "subject": commit.subject,
                        "type": session_context::task_type(&commit.subject),
                        "issue": or_none(session_context::issue_from_ref(&head.name)),
                        "files": git::commit_files(&head),
                        "branch": head.name,
                    }})
                }
            }
        }
        "project_dir" => {
            let env = sandbox.env();
            let projects = env.in_claude("projects").unwrap();
            for name in input["project_dirs"].as_array().into_iter().flatten() {
                std::fs::create_dir_all(projects.join(name.as_str().unwrap())).unwrap();
            }
            let found = project::existing(&env, Path::new(text("cwd"))).map(|folder| folder.enc);
            json!({"hooks": found, "statusline": found})
        }
        other => return Err(format!("unknown fn {other}")),
    })
}
