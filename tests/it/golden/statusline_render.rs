//! Whole status lines through the binary.

use serde_json::{Value, json};

use super::look::same_or;
use super::{Row, set_aside};
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    sandbox.setup(input["setup"].as_array().map_or(&[], Vec::as_slice));
    for repo in input["setup"].as_array().into_iter().flatten().filter(|op| op["op"] == "repo") {
        sandbox.settle_git(&sandbox.place(repo["base"].as_str().unwrap_or("cwd"), repo["path"].as_str().unwrap_or(".")));
    }
    let stdin = match input["stdin_raw"].as_str() {
        Some(raw) => raw.to_string(),
        None => input["stdin"].to_string(),
    };
    let fields = input["env"]["CLAUDE_STATUSLINE_FIELDS"].as_str().unwrap_or("");
    let shows = |name: &str| fields.split(',').any(|field| field.trim() == name);
    let mut call = sandbox.si(["statusline"]).stdin(stdin);
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        call = call.var(name, value.as_str().unwrap());
    }
    let output = call.run();
    let expected = sandbox.expand(&row.expect["stdout"]);
    let stdout = output.stdout.strip_suffix('\n').unwrap_or(&output.stdout).to_string();
    let behind_emoji = |text: &str| text.split_once(' ').map(|(_, rest)| rest.to_string());
    let expected_text = expected.as_str().unwrap_or("");
    if shows("emoji") && !shows("task") && stdout != expected_text && behind_emoji(&stdout) == behind_emoji(expected_text) {
        return set_aside("C45: the emoji sees the task whether it is shown or not");
    }
    Ok(json!({
        "stdout": same_or(expected.as_str(), stdout),
        "exit": output.code,
        "stderr_empty": output.stderr.is_empty(),
        // Which files the original happened to write binds nobody.
        "files_written": sandbox.expand(&row.expect["files_written"]),
    }))
}
