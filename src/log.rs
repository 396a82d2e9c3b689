//! The debug log: `YYYY-MM-DD HH:MM:SS.mmm LEVEL source           [session] message | {meta}`, local time, one file a day.
//!
//! It never prints and never fails: a full disk or a read-only home costs the line, nothing else. Appends need no lock
//! (one write in append mode); rotation at 5 MB takes one and is skipped while another process holds it.

use std::path::PathBuf;

use serde_json::Value;

use crate::env::Env;
use crate::store::file;
use crate::text;

const ROTATE_AT: u64 = 5 << 20;
/// How much of the session id stands in a line: its last characters.
const SID_CHARS: usize = 12;
/// The longest meta, in UTF-16 units.
const META_UNITS: usize = 500;

/// How grave a line is. `Debug` needs `debug.enabled`; `debug.quiet` leaves only `Error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every tick, full values.
    Debug,
    /// What happened.
    Info,
    /// What was given up or suggested.
    Warn,
    /// What went wrong.
    Error,
}

impl Level {
    /// Parses `debug`, `info`, `warn` or `error`, in any case.
    pub fn parse(text: &str) -> Option<Level> {
        [Level::Debug, Level::Info, Level::Warn, Level::Error].into_iter().find(|l| l.name().eq_ignore_ascii_case(text))
    }

    /// The level that a line of the log states; none for the rest of a broken line.
    pub fn of_line(line: &str) -> Option<Level> {
        Level::parse(line.split_ascii_whitespace().nth(2)?)
    }

    fn name(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }
}

/// Writes lines for one session.
#[derive(Debug, Clone)]
pub struct Log<'e> {
    env: &'e Env,
    sid: String,
    least: Level,
}

impl<'e> Log<'e> {
    /// How a line names the session with this raw id: `[its last 12 characters]`.
    pub fn mark(session_id: Option<&str>) -> String {
        format!("[{}]", one_line(&short(session_id)))
    }

    /// A log for the session with this raw id (`default` stands for none); the switches are those of `debug.*`.
    pub fn new(env: &'e Env, session_id: Option<&str>, debug: bool, quiet: bool) -> Log<'e> {
        let least = match (quiet, debug) {
            (true, _) => Level::Error,
            (false, true) => Level::Debug,
            (false, false) => Level::Info,
        };
        Log { env, sid: short(session_id), least }
    }

    /// Today's file; none without a configuration folder.
    pub fn path(&self) -> Option<PathBuf> {
        let day = self.env.local(self.env.now_ms).format("%Y-%m-%d");
        self.env.in_claude(&format!("logs/session-intel-{day}.log"))
    }

    /// Every tick, full values.
    pub fn debug(&self, source: &str, message: &str, meta: Value) {
        self.write(Level::Debug, source, message, meta);
    }

    /// What happened. `Value::Null` stands for no meta.
    pub fn info(&self, source: &str, message: &str, meta: Value) {
        self.write(Level::Info, source, message, meta);
    }

    /// What was given up or suggested.
    pub fn warn(&self, source: &str, message: &str, meta: Value) {
        self.write(Level::Warn, source, message, meta);
    }

    /// What went wrong.
    pub fn error(&self, source: &str, message: &str, meta: Value) {
        self.write(Level::Error, source, message, meta);
    }

    /// Writes one line, if its level is wanted.
    pub fn write(&self, level: Level, source: &str, message: &str, meta: Value) {
        if level < self.least {
            return;
        }
        let Some(path) = self.path() else { return };
        let moment = self.env.local(self.env.now_ms).format("%Y-%m-%d %H:%M:%S%.3f");
        let [source, sid, message] = [source, &self.sid, message].map(one_line);
        let mut line = format!("{moment} {:<5} {source:<16} [{sid}] {message}", level.name());
        if let Some(meta) = meta_text(&meta) {
            line.push_str(" | ");
            line.push_str(&meta);
        }
        line.push('\n');
        let rotate = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() > ROTATE_AT);
        if rotate {
            self.rotate(&path);
        }
        let _ = file::append_line_unlocked(&path, &line); // a log that cannot be written must not disturb its caller
    }

    fn rotate(&self, path: &std::path::Path) {
        let lock = self.env.tmp.join("claude-session-intel-log.lock");
        let Ok(Some(_lock)) = file::lock(&lock, std::time::Duration::ZERO) else { return };
        if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.len() > ROTATE_AT) {
            let mut old = path.as_os_str().to_os_string();
            old.push(".1");
            let _ = file::rename(path, std::path::Path::new(&old)); // the next line tries again
        }
    }
}

fn short(session_id: Option<&str>) -> String {
    let sid = session_id.filter(|id| !id.is_empty()).unwrap_or("default");
    let skip = sid.chars().count().saturating_sub(SID_CHARS);
    sid.chars().skip(skip).collect()
}

/// What a line says after its message: text as it is, anything else as JSON, cut at [`META_UNITS`]; nothing for
/// nothing.
fn meta_text(meta: &Value) -> Option<String> {
    let text = match meta {
        Value::Null | Value::Bool(false) => return None,
        Value::Number(number) if number.as_f64() == Some(0.0) => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => one_line(text),
        other => other.to_string(),
    };
    let kept = text::cut_utf16(&text, META_UNITS);
    Some(if kept.len() < text.len() { format!("{kept}…") } else { text })
}

/// Log lines come from outside too (paths, prompts): a line break in one must not forge another.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_has_the_documented_shape() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let log = Log::new(&env, Some("0123456789abcdefghij"), false, false);
        log.info("token-budget", "zone\ntransition", json!({"cumulative": 5}));
        log.debug("token-budget", "not wanted", Value::Null);
        let text = std::fs::read_to_string(log.path().unwrap()).unwrap();
        let want =
            "2026-01-02 03:04:05.000 INFO  token-budget     [89abcdefghij] zone transition | {\"cumulative\":5}\n";
        assert_eq!(text, want);
    }
}
