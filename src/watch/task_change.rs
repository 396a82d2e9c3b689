//! Whether a prompt belongs to the task at hand: what it names is compared with what the session is working on.
//!
//! Two signals, the files that are named and the words that are used, make a score from 0 to 1. A signal that has
//! nothing to say is left out, and without any the answer is none.

use std::collections::{BTreeSet, HashSet};

use crate::client::json::{Object, Raw};
use crate::compaction::session_context;

/// Weight of the files against that of the words.
const FILES_WEIGHT: f64 = 2.0;
const WORDS_WEIGHT: f64 = 1.0;
/// Shorter words say nothing.
const MIN_WORD: usize = 3;

/// Words that say nothing about a task.
const STOPWORDS: [&str; 67] = [
    "about", "also", "and", "any", "are", "because", "been", "being", "but", "can", "cannot", "could", "did", "does",
    "doing", "done", "for", "from", "get", "had", "has", "have", "help", "here", "how", "into", "its", "just", "let",
    "lets", "like", "make", "may", "more", "need", "not", "now", "only", "other", "our", "please", "should", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "use", "using",
    "want", "was", "were", "what", "when", "which", "will", "with", "would", "you",
];

/// Starts of prompts that the client itself writes, where no closing tag tells it.
const MACHINE_TAGS: [&str; 9] = [
    "<local-command-",
    "<command-",
    "<task-notification",
    "<system-reminder",
    "<bash-input",
    "<bash-stdout",
    "<bash-stderr",
    "<ide_",
    "<user-prompt-submit-hook",
];

/// Whether nobody typed a prompt: results of background work, echoes of commands, messages of other agents.
pub fn is_machine_prompt(prompt: &str) -> bool {
    let prompt = prompt.trim();
    if MACHINE_TAGS.iter().any(|tag| prompt.starts_with(tag)) {
        return true;
    }
    // Any other wrapper: a compound tag name around the whole.
    let name = prompt.strip_prefix('<').map_or("", |rest| rest.split(['>', ' ', '\n', '/']).next().unwrap_or(""));
    let compound = name.contains(['-', '_']) && name.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '_'));
    compound && prompt.ends_with(&format!("</{name}>"))
}

/// Whether a prompt is a command for the client: `/compact keep the parser`.
pub fn is_command(prompt: &str) -> bool {
    let word = prompt.split_whitespace().next().unwrap_or("");
    word.strip_prefix('/').is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// Whether a prompt is talk about the work at hand rather than a task: shorter than `max_len` UTF-16 units, naming no
/// file and quoting no code.
pub fn is_conversational(prompt: &str, max_len: usize) -> bool {
    let prompt = prompt.trim();
    crate::text::utf16_len(prompt) < max_len && files(prompt).is_empty() && code_spans(prompt).next().is_none()
}

/// The insides of `` `code` `` that are not blank.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = text.split('`').enumerate().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, part) = parts.next()?;
            // Every other part lies between two backticks, the last one excepted: it is never closed.
            if at % 2 == 1 && parts.peek().is_some() && !part.trim().is_empty() {
                return Some(part);
            }
        }
    })
}

/// Names in the order in which they came, each once: a prompt may hold a listing of thousands.
#[derive(Debug, Default)]
struct Names {
    names: Vec<String>,
    known: HashSet<String>,
}

impl Names {
    fn add(&mut self, name: &str) {
        if !name.is_empty() && self.known.insert(name.to_string()) {
            self.names.push(name.to_string());
        }
    }
}

/// The files that a prompt names, each once: `@references`, code that looks like a path, words with a slash.
pub fn files(prompt: &str) -> Vec<String> {
    let mut found = Names::default();
    let mut add = |file: &str| found.add(file);
    for (at, _) in prompt.match_indices('@') {
        let rest = &prompt[at + 1..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_./-~+".contains(c))).unwrap_or(rest.len());
        let reference = rest[..end].trim_end_matches('.');
        if reference.contains(['.', '/']) {
            add(reference);
        }
    }
    for code in code_spans(prompt) {
        if code.contains(['.', '/']) && !code.contains(char::is_whitespace) {
            add(code);
        }
    }
    for word in prompt.split(|c: char| c.is_whitespace() || c == '`') {
        let word = word.trim_end_matches([',', ';', ')']);
        let inner = word.trim_matches('/').contains('/') || word.find('/').is_some_and(|at| at > 0);
        if inner && !word.starts_with(['"', '\'', '(', '<']) {
            add(word);
        }
    }
    found.names
}

/// The files listed in the `Key Files` section of a session-context.md.
pub fn key_files(content: &str) -> Vec<String> {
    let path = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*']).trim_start().trim_start_matches(['`', '"', '\'']);
        let end = line.find(|c: char| c.is_whitespace() || "`\"',;()<>".contains(c)).unwrap_or(line.len());
        let path = &line[..end];
        let has_extension = path.rsplit_once('.').is_some_and(|(name, ending)| {
            !name.is_empty() && !ending.is_empty() && ending.chars().all(char::is_alphanumeric)
        });
        (path.contains('/') || has_extension).then(|| path.to_string())
    };
    section(content, session_context::KEY_FILES).filter_map(path).collect()
}

/// What the `Current Task` section of a session-context.md says, without hints of the template and marks of ours.
pub fn task_text(content: &str) -> String {
    let real = |line: &&str| {
        let bullet = line.trim_start().starts_with('-');
        (bullet || !session_context::is_placeholder_line(line)) && session_context::sentinel(line).is_none()
    };
    section(content, session_context::CURRENT_TASK).filter(real).collect::<Vec<_>>().join("\n").trim().to_string()
}

/// The lines of the first section whose heading begins with `name`; what else stands in the heading is the first line.
fn section<'a>(content: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let mut lines = content.lines();
    let rest = lines.by_ref().find_map(|line| {
        let heading = session_context::heading(line)?;
        let start = heading.get(..name.len()).filter(|start| session_context::is_named(start, name))?;
        let rest = &heading[start.len()..];
        (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
    });
    let body = lines.take_while(|line| session_context::heading(line).is_none());
    rest.into_iter().flat_map(|rest| [rest]).chain(body)
}

/// Collects the files that the last turns of a conversation mention, newest turn first, from rows read backwards.
#[derive(Debug)]
pub struct Mentions<'a> {
    turns_left: usize,
    bases: &'a [String],
    files: Names,
}

impl<'a> Mentions<'a> {
    /// Collects over at most `turns` turns; absolute paths below one of `bases` become relative to it.
    pub fn new(turns: usize, bases: &'a [String]) -> Mentions<'a> {
        Mentions { turns_left: turns, bases, files: Names::default() }
    }

    /// Takes one row of the transcript; false once enough turns were seen.
    pub fn row(&mut self, row: &Object<'_>) -> bool {
        if self.turns_left == 0 {
            return false;
        }
        let machine = |key: &str| row.get(key).and_then(Raw::bool) == Some(true);
        if !matches!(row.str("type").as_deref(), Some("user" | "assistant"))
            || machine("isSidechain")
            || machine("isMeta")
        {
            return true;
        }
        let Some(content) = row.at(&["message", "content"]) else { return true };
        let said = match content.str() {
            Some(text) => self.text(&text),
            None => content.items().unwrap_or_default().into_iter().fold(false, |said, block| self.block(block) | said),
        };
        self.turns_left -= usize::from(said);
        self.turns_left > 0
    }

    /// What was found, each file once.
    pub fn into_files(self) -> Vec<String> {
        self.files.names
    }

    fn block(&mut self, block: Raw<'_>) -> bool {
        let Some(block) = block.object() else { return false };
        match block.str("type").as_deref() {
            Some("text") => block.str("text").is_some_and(|text| self.text(&text)),
            Some("tool_use") => {
                let path =
                    ["file_path", "notebook_path", "path"].iter().find_map(|key| block.at(&["input", key])?.str());
                path.inspect(|path| self.add(path)).is_some()
            }
            _ => false,
        }
    }

    /// Runs of path characters with a slash inside.
    fn text(&mut self, text: &str) -> bool {
        let path_char = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        for run in text.split(|c| !path_char(c)).filter(|run| run.contains('/')) {
            let run = run.trim_end_matches(['.', '-']);
            if run.trim_start_matches(['/', '.']).trim_end_matches('/').contains('/') && !run.ends_with('/') {
                self.add(run);
            }
        }
        !text.trim().is_empty()
    }

    fn add(&mut self, path: &str) {
        self.files.add(relative(path, self.bases).trim_start_matches('/'));
    }
}

/// A path relative to the first of `bases` that it lies below; else as it is.
pub fn relative<'p>(path: &'p str, bases: &[String]) -> &'p str {
    let below = |base: &String| path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/');
    bases.iter().find_map(below).unwrap_or(path)
}

/// The first two segments of a path.
pub fn root_prefix(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty()).take(2).collect::<Vec<_>>().join("/")
}

/// How far the files of a prompt are those at hand: 1 for the same file, 0.5 for one below the same two folders, 0 else,
/// averaged. None when the prompt names no file.
pub fn file_overlap(prompt_files: &[String], at_hand: &[String]) -> Option<f64> {
    let plain = |file: &String| file.strip_prefix("./").unwrap_or(file).to_lowercase();
    let known: BTreeSet<String> = at_hand.iter().map(plain).collect();
    let roots: BTreeSet<String> = known.iter().map(|file| root_prefix(file)).filter(|root| !root.is_empty()).collect();
    let score = |file: &String| {
        let file = plain(file);
        if known.contains(&file) {
            1.0
        } else if roots.contains(&root_prefix(&file)) {
            0.5
        } else {
            0.0
        }
    };
    (!prompt_files.is_empty()).then(|| prompt_files.iter().map(score).sum::<f64>() / prompt_files.len() as f64)
}

/// The words of a text that say something: ASCII, in lower case, at least three characters, no stopwords.
pub fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let word_char = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let says = |word: &&str| word.len() >= MIN_WORD && STOPWORDS.binary_search(word).is_err();
    lower.split(|c| !word_char(c)).filter(says).map(String::from).collect()
}

/// The share of words that two texts have in common; none when one of them has none.
pub fn word_overlap(one: &str, other: &str) -> Option<f64> {
    let [one, other] = [one, other].map(|text| words(text).into_iter().collect::<BTreeSet<_>>());
    let both = one.intersection(&other).count();
    (!one.is_empty() && !other.is_empty()).then(|| both as f64 / (one.len() + other.len() - both) as f64)
}

/// The weighted mean of the signals that are there; none without any.
pub fn combine(signals: &[(Option<f64>, f64)]) -> Option<f64> {
    let there = || signals.iter().filter_map(|(score, weight)| Some(((*score)?, weight)));
    let weights: f64 = there().map(|(_, weight)| weight).sum();
    (weights > 0.0).then(|| there().map(|(score, weight)| score * weight).sum::<f64>() / weights)
}

/// What the session is working on.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    /// The task's description.
    pub task: String,
    /// Files at hand: listed, changed, committed or talked about lately.
    pub files: Vec<String>,
    /// Folders that absolute paths are made relative to.
    pub bases: Vec<String>,
    /// Whether other files are at hand, which need not be known since no prompt's file is near them.
    pub elsewhere: bool,
}

/// How much a prompt belongs to the work at hand, 0 to 1; none when there is nothing to tell it by.
pub fn score(prompt: &str, baseline: &Baseline) -> Option<f64> {
    let named = named(prompt, &baseline.bases);
    // Without a file at hand, a prompt that names one says nothing.
    let at_hand = baseline.elsewhere || !baseline.files.is_empty();
    let files = if at_hand { file_overlap(&named, &baseline.files) } else { None };
    combine(&[(files, FILES_WEIGHT), (word_overlap(&baseline.task, prompt), WORDS_WEIGHT)])
}

/// The files that a prompt names, as they are compared: relative to one of `bases`, each once, without `@`, line numbers
/// and punctuation.
pub fn named(prompt: &str, bases: &[String]) -> Vec<String> {
    let mut plain = Names::default();
    for file in &files(prompt) {
        let file = file.trim_start_matches('@').trim_end_matches(['.', ',', ';', ':', '!', '?']);
        let named = file.split_once(':').filter(|(_, line)| line.starts_with(|c: char| c.is_ascii_digit()));
        plain.add(relative(named.map_or(file, |(file, _)| file), bases));
    }
    plain.names
}

/// What to say about a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is the task at hand.
    Same,
    /// It may be another task: compact.
    Unclear,
    /// It is another task: clear.
    Different,
}

/// Judges a score by the two thresholds.
pub fn judge(score: f64, same: f64, different: f64) -> Verdict {
    match score {
        score if score >= same => Verdict::Same,
        score if score < different => Verdict::Different,
        _ => Verdict::Unclear,
    }
}

/// The hint, one line: why, and what would help.
pub fn hint(verdict: Verdict, score: f64, tokens: u64) -> Option<String> {
    let advice = match verdict {
        Verdict::Same => return None,
        Verdict::Unclear => "consider /compact first, keeping what the task at hand needs",
        Verdict::Different => "consider /clear: a fresh start costs less than carrying this context along",
    };
    let score = crate::text::fixed(score, 2);
    let tokens = crate::text::tokens_fine(tokens as f64);
    Some(format!("[TaskChange] This looks like another task (score {score}, {tokens} tokens in context): {advice}."))
}

/// The hash by which a prompt is known again: 32 bits of `h × 31 + UTF-16 unit`, base 36.
pub fn hash(prompt: &str) -> String {
    let mut rest = prompt.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(rest % 36, 36).unwrap_or('0'));
        rest /= 36;
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(items: &[&str]) -> Vec<String> {
        items.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn stopwords_are_sorted() {
        assert!(STOPWORDS.is_sorted());
    }

    #[test]
    fn nobody_typed_what_stands_in_a_machine_wrapper() {
        for (prompt, machine) in [
            ("<task-notification>\n<task-id>b1</task-id>", true),
            ("<local-command->", true),
            ("<command-namespace>", true),
            ("  <command-name>/si</command-name>", true),
            ("<agent-message from=\"reviewer\">please rework</agent-message>", true),
            ("<cross-session-message>rework it</cross-session-message>", true),
            ("<my-button> is drawn twice, please look", false),
            ("<div>x</div>", false),
            ("fix <command-name> parsing", false),
        ] {
            assert_eq!(is_machine_prompt(prompt), machine, "{prompt}");
        }
    }

    #[test]
    fn any_code_counts_against_conversation() {
        for (prompt, talk) in [
            ("and now?", true),
            ("run `npm test` please", false),
            ("an odd ` tick", true),
            ("see @docs/a.md", false),
            ("now edit services/pdf/render.py", false),
        ] {
            assert_eq!(is_conversational(prompt, 120), talk, "{prompt}");
        }
        assert!(!is_conversational(&"x".repeat(120), 120));
        assert!(is_conversational(&format!("  {}  ", "x".repeat(119)), 120));
    }

    #[test]
    fn commands_are_no_tasks_but_paths_are() {
        assert!(is_command("/compact keep the parser") && is_command(" /clear"));
        assert!(!is_command("/srv/app/x.ts is broken") && !is_command("look at /x"));
    }

    #[test]
    fn absolute_paths_meet_relative_ones() {
        let baseline =
            Baseline { files: strings(&["src/a/x.ts"]), bases: strings(&["/srv/app"]), ..Baseline::default() };
        assert_eq!(score("please repair /srv/app/src/a/x.ts:12 now", &baseline), Some(1.0));
        assert_eq!(score("please repair @src/a/x.ts, it is broken", &baseline), Some(1.0));
        let mut mentions = Mentions::new(3, &baseline.bases);
        let row = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","input":{"file_path":"/srv/app/src/d.ts"}},
            {"type":"text","text":"see /srv/app/lib/e.rs and /etc/hosts."}]}}"#;
        assert!(mentions.row(&Object::parse(row).unwrap()));
        assert_eq!(mentions.into_files(), ["src/d.ts", "lib/e.rs", "etc/hosts"]);
    }

    #[test]
    fn absent_signals_are_neutral() {
        let words = Baseline { task: "fix login cookie".into(), ..Baseline::default() };
        assert_eq!(score("fix login cookie", &words), Some(1.0));
        assert_eq!(
            score("fix login cookie in a/b/c.ts", &words),
            word_overlap("fix login cookie", "fix login cookie a/b/c.ts")
        );
        assert_eq!(score("日本語", &words), None);
        assert_eq!(score("fix login cookie", &Baseline::default()), None);
    }

    #[test]
    fn key_files_end_at_the_next_section() {
        assert!(key_files("## Key Files\n\n## Other\n- no/pe.ts\n").is_empty());
        assert_eq!(key_files("## Key Files\n- Cargo.toml — the manifest\n- none yet\n"), ["Cargo.toml"]);
    }

    #[test]
    fn a_byte_order_mark_and_the_case_of_a_heading_do_not_matter() {
        assert_eq!(task_text("\u{feff}## current task\nfix the parser\n"), "fix the parser");
        assert_eq!(key_files("## KEY FILES\n- src/a.rs\n"), ["src/a.rs"]);
    }

    #[test]
    fn thresholds_part_three_verdicts() {
        for (score, verdict) in
            [(0.5, Verdict::Same), (0.49, Verdict::Unclear), (0.2, Verdict::Unclear), (0.19, Verdict::Different)]
        {
            assert_eq!(judge(score, 0.5, 0.2), verdict, "{score}");
        }
    }
}
