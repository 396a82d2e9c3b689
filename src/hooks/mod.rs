//! The hooks: payload in, domain asked, one [`Reply`] out. No rules live here, only order.

pub mod post_tool_use;
pub mod pre_compact;
pub mod session_start;
pub mod user_prompt_submit;

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

pub use crate::call::Call;
use crate::client::part::Part;
use crate::client::{json as client_json, payload::Payload, stdin};
use crate::config::{self, Config};
use crate::env::Env;
use crate::log::Log;
use crate::store::Store;

/// How long a hook waits for an unfinished document on standard input.
const STDIN_PATIENCE: Duration = Duration::from_millis(2000);

/// The one answer of a hook. Built whole, written once, by the lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    event: &'static str,
    plain: Option<String>,
    for_model: Option<String>,
    for_user: Option<String>,
    stderr: Option<String>,
    feedback: bool,
}

impl Reply {
    /// Nothing on either stream, exit 0.
    pub fn silent() -> Reply {
        Reply::default()
    }

    /// Plain text on stdout: what PreCompact hands to the summarizer.
    pub fn guidance(text: String) -> Reply {
        Reply { plain: Some(text).filter(|text| !text.is_empty()), ..Reply::default() }
    }

    /// One JSON object on stdout: text for the model (`additionalContext`) and for the user (`systemMessage`).
    pub fn context(event: &'static str, for_model: Option<String>, for_user: Option<String>) -> Reply {
        Reply { event, for_model, for_user, ..Reply::default() }
    }

    /// A hint for the user: as `systemMessage`, which the client shows, and on stderr, which scripts read.
    pub fn hint(event: &'static str, text: String) -> Reply {
        Reply { event, for_user: Some(text.clone()), stderr: Some(text), ..Reply::default() }
    }

    /// A word on stderr for a person who called a hook by hand.
    fn remark(text: &str) -> Reply {
        Reply { stderr: Some(text.into()), ..Reply::default() }
    }

    /// Feedback for the model: text on stderr and exit 2. Only the compaction suggestion may answer so; a fault inside
    /// it is silence and exit 0, never 2.
    pub(in crate::hooks) fn feedback(text: String) -> Reply {
        Reply { stderr: Some(text), feedback: true, ..Reply::default() }
    }

    /// Whether the answer is feedback.
    pub fn is_feedback(&self) -> bool {
        self.feedback
    }

    /// What goes to stdout and to stderr.
    pub fn streams(&self) -> (Option<String>, Option<String>) {
        let stdout = self.plain.clone().or_else(|| {
            let mut object = serde_json::Map::new();
            if let Some(text) = &self.for_user {
                object.insert("systemMessage".into(), json!(text));
            }
            if let Some(text) = &self.for_model {
                let specific = json!({"hookEventName": self.event, "additionalContext": text});
                object.insert("hookSpecificOutput".into(), specific);
            }
            (!object.is_empty()).then(|| Value::Object(object).to_string() + "\n")
        });
        (stdout, self.stderr.as_ref().map(|text| text.clone() + "\n"))
    }
}

/// Answers the hook `name`: an event as the client or the command line spells it, or one part of an event.
/// A name that si does not know is no error.
pub fn run(name: &str, env: &Env) -> Result<Reply> {
    let Some(part) = Part::parse(name) else {
        Log::new(env, None, false, false).info("hook", "event is not known", json!({"hook": name}));
        return Ok(Reply::silent());
    };
    if env.tty.stdin {
        return Ok(Reply::remark("si hook answers Claude Code: it reads one JSON object on standard input"));
    }
    let bytes = stdin::read(STDIN_PATIENCE);
    let text = client_json::decode(&bytes);
    let config = Config::load(env);
    if !is_on(part, &config.hooks) {
        return Ok(Reply::silent());
    }
    let Some(payload) = Payload::parse(&text) else {
        let log = Log::new(env, None, config.debug.enabled, config.debug.quiet);
        log.warn(part.source(), "standard input is not one JSON object", json!({"bytes": bytes.len()}));
        return Ok(Reply::silent());
    };
    let id = payload.session_id();
    let log = Log::new(env, id.as_deref(), config.debug.enabled, config.debug.quiet);
    let sid = payload.sid(env);
    log.debug(part.source(), "hook fired", json!({"sessionId": sid.as_str()}));
    let call = Call { env, store: Store::new(env), config: &config, log, payload: &payload, sid };
    match part {
        Part::SessionStart => session_start::run(&call),
        Part::Bootstrap => session_start::bootstrap(&call),
        Part::PinInject => session_start::pin_inject(&call),
        Part::PreCompact => pre_compact::run(&call),
        Part::PostToolUse => post_tool_use::run(&call),
        Part::TokenBudget => post_tool_use::token_budget(&call),
        Part::ToolArchive => post_tool_use::tool_archive(&call),
        Part::SuggestCompact => post_tool_use::suggest_compact(&call),
        Part::UserPromptSubmit => user_prompt_submit::run(&call),
    }
}

/// Whether the user left the part's event on.
fn is_on(part: Part, hooks: &config::Hooks) -> bool {
    match part {
        Part::SessionStart | Part::Bootstrap | Part::PinInject => hooks.session_start,
        Part::PreCompact => hooks.pre_compact,
        Part::PostToolUse | Part::TokenBudget | Part::ToolArchive | Part::SuggestCompact => hooks.post_tool_use,
        Part::UserPromptSubmit => hooks.user_prompt_submit,
    }
}
