//! What the client sends on standard input: one JSON object, every leaf optional.

use std::borrow::Cow;
use std::path::PathBuf;

use super::json::{Object, Raw};
use crate::env::Env;
use crate::store::Sid;

/// The document of one hook call or redraw. Accessors know where the client keeps a thing, older spellings included.
#[derive(Debug, Clone, Default)]
pub struct Payload<'a> {
    object: Object<'a>,
    response: Option<ToolResponse<'a>>,
}

/// Where the client keeps a tool's result, older spellings last.
const TOOL_RESPONSE: [&str; 4] = ["tool_response", "tool_output", "output", "result"];

/// A tool's result. It may be long, so it is cut into its members once.
#[derive(Debug, Clone)]
pub struct ToolResponse<'a> {
    raw: Raw<'a>,
    object: Option<Object<'a>>,
}

impl<'a> ToolResponse<'a> {
    /// Takes the value of a result.
    pub fn new(raw: Raw<'a>) -> ToolResponse<'a> {
        ToolResponse { raw, object: raw.object() }
    }

    /// The value itself.
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Its members, if it is an object.
    pub fn object(&self) -> Option<&Object<'a>> {
        self.object.as_ref()
    }
}

impl<'a> Payload<'a> {
    /// Reads a payload; none when it is not one JSON object.
    pub fn parse(text: &'a str) -> Option<Payload<'a>> {
        let object = Object::parse(text)?;
        let filled = |raw: &Raw<'_>| !matches!(raw.text(), "\"\"" | "0" | "false");
        let response = TOOL_RESPONSE.iter().find_map(|key| object.get(key).filter(filled));
        Some(Payload { response: response.map(ToolResponse::new), object })
    }

    /// The document itself, for the fields that one lane alone reads.
    pub fn object(&self) -> &Object<'a> {
        &self.object
    }

    fn first_str(&self, keys: &[&str]) -> Option<Cow<'a, str>> {
        keys.iter().find_map(|key| self.object.str(key).filter(|text| !text.is_empty()))
    }

    /// The session id as it stands in the payload.
    pub fn session_id(&self) -> Option<Cow<'a, str>> {
        self.first_str(&["session_id", "sessionId"])
    }

    /// The session id as file names carry it: from the payload, else from the environment.
    pub fn sid(&self, env: &Env) -> Sid {
        match self.session_id() {
            Some(id) => Sid::new(&id),
            None => Sid::new(env_session_id(env).unwrap_or_default()),
        }
    }

    /// The folder the session is in now: `cwd`, else `workspace.current_dir`, if absolute.
    pub fn cwd(&self) -> Option<PathBuf> {
        let cwd = self.first_str(&["cwd"]).or_else(|| self.object.at(&["workspace", "current_dir"])?.str());
        cwd.map(|text| PathBuf::from(text.as_ref())).filter(|path| path.is_absolute())
    }

    /// The folder the session began in, where the client says it: `workspace.project_dir`, if absolute.
    pub fn project_dir(&self) -> Option<PathBuf> {
        let text = self.object.at(&["workspace", "project_dir"])?.str()?;
        Some(PathBuf::from(text.as_ref())).filter(|path| path.is_absolute())
    }

    /// Where the session began as far as the payload tells, else where it is now.
    pub fn start_dir(&self) -> Option<PathBuf> {
        self.project_dir().or_else(|| self.cwd())
    }

    /// The transcript's path, if absolute.
    pub fn transcript_path(&self) -> Option<PathBuf> {
        let path = self.first_str(&["transcript_path", "transcriptPath"])?;
        Some(PathBuf::from(path.as_ref())).filter(|path| path.is_absolute())
    }

    /// `hook_event_name`.
    pub fn event(&self) -> Option<Cow<'a, str>> {
        self.first_str(&["hook_event_name"])
    }

    /// Why the session started: `startup`, `resume`, `clear`, `compact` or `fork`.
    pub fn source(&self) -> Option<Cow<'a, str>> {
        self.first_str(&["source"])
    }

    /// The prompt of a UserPromptSubmit.
    pub fn prompt(&self) -> Option<Cow<'a, str>> {
        self.first_str(&["prompt"])
            .or_else(|| self.object.at(&["user_message", "content"])?.str())
            .or_else(|| self.first_str(&["message"]))
    }

    /// The tool's name.
    pub fn tool_name(&self) -> Option<Cow<'a, str>> {
        self.first_str(&["tool_name", "toolName"])
    }

    /// The tool call's id; one that is a number counts too.
    pub fn tool_use_id(&self) -> Option<Cow<'a, str>> {
        let keys = ["tool_use_id", "toolUseId", "tool_call_id"];
        let number = || keys.iter().find_map(|key| self.object.get(key).filter(|raw| raw.f64().is_some()));
        self.first_str(&keys).or_else(|| number().map(|raw| Cow::Borrowed(raw.text())))
    }

    /// The tool's input, raw.
    pub fn tool_input(&self) -> Option<Raw<'a>> {
        ["tool_input", "toolInput", "input"].iter().find_map(|key| self.object.get(key))
    }

    /// The tool's result, raw: `tool_response`, else the older spellings; one that holds nothing is passed over.
    pub fn tool_response(&self) -> Option<&ToolResponse<'a>> {
        self.response.as_ref()
    }

    /// The tool's result, of several spellings the first that is there, be it null or nothing.
    pub fn any_tool_response(&self) -> Option<Cow<'_, ToolResponse<'a>>> {
        let present = |name: &str| self.object.iter().filter(|(key, _)| *key == name).last().map(|(_, value)| value);
        let raw = TOOL_RESPONSE.into_iter().find_map(present)?;
        let same = self.tool_response().filter(|response| std::ptr::eq(response.raw.text(), raw.text()));
        Some(same.map_or_else(|| Cow::Owned(ToolResponse::new(raw)), Cow::Borrowed))
    }

    /// Whether a subagent made the call: its input and output are not in the main context.
    pub fn from_subagent(&self) -> bool {
        self.first_str(&["agent_id"]).is_some()
    }
}

/// The session id that the client exports to hooks, the Bash tool and slash commands.
pub fn env_session_id(env: &Env) -> Option<&str> {
    env.var("CLAUDE_CODE_SESSION_ID").or_else(|| env.var("CLAUDE_SESSION_ID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_types_read_as_absent() {
        let payload = Payload::parse(
            r#"{"session_id":{"a":1},"cwd":5,"workspace":{"current_dir":"/w"},"tool_response":null,"output":"x"}"#,
        )
        .unwrap();
        assert_eq!(payload.session_id(), None);
        assert_eq!(payload.cwd(), Some(PathBuf::from("/w")));
        assert_eq!(payload.tool_response().unwrap().raw().str().unwrap(), "x");
    }

    #[test]
    fn the_environment_names_the_session_when_the_payload_does_not() {
        let env = Env::for_tests(std::path::Path::new("/nonexistent/si")).with_var("CLAUDE_CODE_SESSION_ID", "e-1");
        assert_eq!(Payload::parse("{}").unwrap().sid(&env).as_str(), "e-1");
        assert_eq!(Payload::parse(r#"{"session_id":"p"}"#).unwrap().sid(&env).as_str(), "p");
    }
}
