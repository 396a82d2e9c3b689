//! The context cap by model id, display name and the user's own.

use serde_json::{Value, json};
use si::client::payload::Payload;
use si::client::pricing;
use si::config::Config;

use super::Row;
use crate::support::Sandbox;

pub fn run(row: &Row, sandbox: &Sandbox) -> Result<Value, String> {
    let input = row.input(sandbox);
    if input["config"].is_object() {
        let config = json!({"statusline": input["config"]});
        sandbox.write(&sandbox.home.join(".claude/session-intelligence.json"), config.to_string());
    }
    let config = Config::load(&sandbox.env());
    let text = input["stdin"].to_string();
    let payload = Payload::parse(&text).ok_or("no payload")?;
    let name = |key: &str| payload.object().at(&["model", key]).and_then(|raw| raw.str());
    match row.fn_name() {
        "context_cap" => {
            let (id, display) = (name("id"), name("display_name"));
            let user = config.statusline.context_cap;
            Ok(json!({"cap": pricing::context_cap(user, None, id.as_deref(), display.as_deref(), 0)}))
        }
        other => Err(format!("unknown fn {other}")),
    }
}
