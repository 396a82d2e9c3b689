//! The two emoji fields: the first signal that holds wins.

use crate::watch::zones::Zone;

const MINUTE_MS: i64 = 60_000;

/// What the first emoji is chosen from.
#[derive(Debug, Clone, Default)]
pub struct State<'a> {
    /// The zone of the context.
    pub zone: Zone,
    /// The task, if one is known.
    pub task: &'a str,
    /// Whether the working tree has changes.
    pub dirty: bool,
    /// Milliseconds since the last deploy.
    pub deployed_ms: Option<i64>,
}

/// What the second emoji is chosen from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activity {
    /// Milliseconds since the last deploy.
    pub deployed_ms: Option<i64>,
    /// What the session has cost, dollars.
    pub cost: f64,
    /// How long the session has lasted, milliseconds.
    pub session_ms: f64,
    /// Tool calls so far.
    pub tools: u64,
}

/// Words of a task and what they mean, in order of priority.
const TASKS: &[(&str, &[&str])] = &[
    ("🐛", &["bug", "fix", "issue", "error", "crash"]),
    ("🏗️", &["build", "feat", "feature", "add", "implement", "create"]),
    ("🧹", &["refactor", "cleanup", "simpl*"]),
    ("🧪", &["test", "spec"]),
    ("🚀", &["deploy", "ship", "release"]),
    ("📝", &["doc", "readme"]),
];
const AT_REST: &[&str] = &["idle", "done", "clean", "ready", "ended"];

/// The emoji for the state of the session.
pub fn state(state: &State<'_>) -> &'static str {
    match state.zone {
        Zone::Red => return "🔥",
        Zone::Orange => return "⚠️",
        _ => {}
    }
    if state.deployed_ms.is_some_and(|ms| ms < 15 * MINUTE_MS) {
        return "🚀";
    }
    if let Some((emoji, _)) = TASKS.iter().find(|(_, words)| mentions(state.task, words)) {
        return emoji;
    }
    match state.zone {
        _ if state.dirty => "✏️",
        Zone::Yellow => "🟡",
        _ if mentions(state.task, AT_REST) => "✨",
        _ => "🟢",
    }
}

/// The emoji for the activity of the session.
pub fn activity(activity: &Activity) -> &'static str {
    if activity.deployed_ms.is_some_and(|ms| ms < 5 * MINUTE_MS) {
        "🚀"
    } else if activity.cost >= 3.0 {
        "💸"
    } else if activity.session_ms > 120.0 * MINUTE_MS as f64 {
        "🕐"
    } else if activity.tools > 100 {
        "🔧"
    } else {
        "📊"
    }
}

/// Whether a text holds one of the words, in any case and with its usual endings. Letters outside ASCII end a word.
fn mentions(text: &str, listed: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .any(|word| listed.iter().any(|listed| is_form_of(&word.to_ascii_lowercase(), listed)))
}

/// Whether `word` is `listed`, or it with -s, -es, -d, -ed or -ing, a final consonant doubled or a final e dropped.
/// A star at the end stands for anything.
fn is_form_of(word: &str, listed: &str) -> bool {
    if let Some(start) = listed.strip_suffix('*') {
        return word.starts_with(start);
    }
    if let Some(ending) = word.strip_prefix(listed) {
        let doubled = listed.bytes().next_back().filter(|last| !b"aeiou".contains(last));
        let ending = match doubled {
            Some(last) if matches!(&ending.as_bytes(), [first, b'e', b'd'] | [first, b'i', b'n', b'g'] if *first == last) => {
                &ending[1..]
            }
            _ => ending,
        };
        return matches!(ending, "" | "s" | "es" | "d" | "ed" | "ing");
    }
    listed.strip_suffix('e').and_then(|stem| word.strip_prefix(stem)) == Some("ing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_word_counts_with_its_usual_endings() {
        for (task, emoji) in [
            ("fixed the login", "🐛"),
            ("errors", "🐛"),
            ("crashes", "🐛"),
            ("Feature — x", "🏗️"),
            ("creating", "🏗️"),
            ("added", "🏗️"),
            ("simplify parser", "🧹"),
            ("Refactoring", "🧹"),
            ("testing", "🧪"),
            ("shipped", "🚀"),
            ("releasing", "🚀"),
            ("docs", "📝"),
            ("builder", "🟢"),
            ("prefix", "🟢"),
            ("fix_me", "🟢"),
            ("address", "🟢"),
            ("fixting", "🟢"),
        ] {
            assert_eq!(super::state(&State { task, ..State::default() }), emoji, "{task}");
        }
    }
}
