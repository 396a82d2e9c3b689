//! Our rows and those of the previous status line command.

use std::time::Duration;

use serde_json::{Value, json};
use si::config::Config;
use si::statusline::previous;
use si::store::{StateFile, Store};

use super::{Row, set_aside};
use crate::support::Sandbox;

const SWITCHES: [&str; 3] =
    ["CLAUDE_STATUSLINE_NO_PREV", "CLAUDE_STATUSLINE_NO_INTEL", "CLAUDE_STATUSLINE_PREV_FIRST"];

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    let mut env = sandbox.env();
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        env = env.with_var(name, value.as_str().unwrap());
    }
    let stdin = input["stdin"].as_str().unwrap_or("");
    let state = json!({"wiredStatuslinePrev": input["previous_command"]});
    Store::new(&env).write_json(StateFile::Bootstrap, &state).unwrap();
    let config = Config::load(&env);
    let theirs = previous::command(&env, Store::new(&env), &config)
        .and_then(|command| previous::run(&env, &command, stdin.as_bytes(), Duration::from_secs(10)));
    let ours = input["intel_output"].as_str().filter(|_| config.statusline.enabled).unwrap_or("");
    let mut stdout = previous::join(&env, ours.to_string(), theirs);
    if stdout.is_empty() {
        // Nothing at all is the lane's case.
        let mut call = sandbox.si(["statusline"]).stdin(stdin).var("CLAUDE_STATUSLINE_FIELDS", "branch");
        for (name, value) in input["env"].as_object().into_iter().flatten() {
            call = call.var(name, value.as_str().unwrap());
        }
        stdout = call.run().stdout.trim_end_matches('\n').into();
    }
    if row.expect["stdout"] != stdout && SWITCHES.iter().any(|name| env.var(name) == Some("0")) {
        return set_aside("the switches are on for any value but empty and 0");
    }
    Ok(json!({"stdout": stdout, "exit": 0}))
}
