//! session-context.md: the user's and Claude's notes about the task at hand, by section.
//!
//! What is the user's and what is si's is told section by section ([`classify`]): a template line is nobody's, a section
//! that si filled in starts with a sentinel and is known by its hash, and everything else is the user's.

use std::collections::BTreeMap;

use crate::store::key::sha256_hex;
use crate::store::records::compaction::{AutoFill, BootstrapState, SectionMark};
use crate::store::{StateFile, Store};

/// The heading of the task at hand.
pub const CURRENT_TASK: &str = "Current Task";
/// The heading of the files at hand.
pub const KEY_FILES: &str = "Key Files";
/// How many hex digits of a hash stand for a section.
const HASH_DIGITS: usize = 16;

/// The sections of one file, template lines taken out, in order of first appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections(Vec<(String, String)>);

impl Sections {
    /// The body of the section with this heading.
    pub fn get(&self, heading: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == heading).map(|(_, body)| body.as_str())
    }

    /// Headings and bodies.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, body)| (name.as_str(), body.as_str()))
    }
}

/// What si takes out of a session-context.md.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionContext {
    /// All sections.
    pub sections: Sections,
    /// `Current Task`, as a person wrote it; empty where si filled it in or nobody wrote it.
    pub current_task: String,
    /// `Key Files`, as a person wrote it; empty where si filled it in or nobody wrote it.
    pub key_files: String,
    /// Whether `Current Task` was filled in by si.
    pub task_is_autofilled: bool,
    /// When the file was last changed, epoch milliseconds; none when there is no file.
    pub modified_ms: Option<i64>,
    /// Since when sections have been as they are, by heading, as far as it was noted.
    marks: BTreeMap<String, SectionMark>,
}

impl SessionContext {
    /// Since when a section has been as it is, epoch milliseconds. A change that nobody has noted yet dates from the
    /// last change of the file.
    pub fn unchanged_since(&self, heading: &str) -> Option<i64> {
        let modified = self.modified_ms?;
        let hash = hash(self.sections.get(heading)?);
        Some(self.marks.get(heading).filter(|mark| mark.hash == hash).map_or(modified, |mark| mark.since.min(modified)))
    }

    /// The marks that hold now: what is to be noted for later.
    pub fn marks(&self) -> BTreeMap<String, SectionMark> {
        let mark = |(heading, body): (&str, &str)| {
            let since = self.unchanged_since(heading)?;
            (!body.is_empty()).then(|| (heading.to_string(), SectionMark { hash: hash(body), since }))
        };
        self.sections.iter().filter_map(mark).collect()
    }
}

/// Whose a section is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// Nobody's: empty, or template lines alone.
    Placeholder,
    /// Filled in by si from the commit with this short id.
    Autofilled(String),
    /// Filled in by a version that left no sentinel.
    Legacy,
    /// The user's, or Claude's.
    User,
}

/// Tells whose a section is. `known` is the hash of what si wrote into it last ([`hash`]); without one, lines of the
/// shapes that si writes are taken for its own.
pub fn classify(body: &str, known: Option<&str>) -> Class {
    let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines().all(is_placeholder_line) {
        return Class::Placeholder;
    }
    if let Some(sha) = lines().next().and_then(sentinel) {
        let ours = known.map_or_else(|| lines().skip(1).all(is_our_line), |known| hash(body) == known);
        return if ours { Class::Autofilled(sha.to_string()) } else { Class::User };
    }
    let derived = lines().any(|line| line.starts_with("description: derived from last commit"));
    if derived && lines().all(is_our_line) { Class::Legacy } else { Class::User }
}

/// What a person wrote in a section: without template lines and without what si filled in.
fn written(body: &str, known: Option<&str>) -> String {
    match classify(body, known) {
        Class::Placeholder | Class::Autofilled(_) => String::new(),
        Class::Legacy | Class::User => {
            let foreign_sentinel = body.lines().any(|line| sentinel(line).is_some());
            if !foreign_sentinel {
                return body.to_string();
            }
            // Someone wrote into a section of ours. Where the hash says it was changed, any line may have been.
            let theirs = |line: &&str| sentinel(line).is_none() && (known.is_some() || !is_our_line(line.trim()));
            body.lines().filter(theirs).collect::<Vec<_>>().join("\n").trim().to_string()
        }
    }
}

/// The hash by which a section's body is known again. White space around its lines does not count.
pub fn hash(body: &str) -> String {
    let lines: Vec<&str> = body.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    sha256_hex(lines.join("\n").as_bytes(), HASH_DIGITS)
}

/// Whether a line is a hint of the template: `- (…)`, `key: (…)` or `(…)`.
pub fn is_placeholder_line(line: &str) -> bool {
    let line = line.trim();
    let hint = match line.strip_prefix('-') {
        Some(rest) => rest.trim_start(),
        None => match line.split_once(':') {
            Some((key, rest)) if is_word(key) => rest.trim_start(),
            _ => line,
        },
    };
    hint.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).is_some_and(|inner| !inner.contains(')'))
}

fn is_word(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The short commit id of an autofill sentinel: `<!-- si:autofill sha=1a2b3c4 -->`.
pub fn sentinel(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let sha = inner.strip_prefix("si:autofill")?.trim_start().strip_prefix("sha=")?;
    let hex = sha.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (hex && (4..=40).contains(&sha.len())).then_some(sha)
}

/// Whether a line has a shape that si writes into an autofilled section.
fn is_our_line(line: &str) -> bool {
    line.starts_with("type: ")
        || line.starts_with("description: derived from last commit")
        || line.strip_prefix("issue: ").is_some_and(|issue| issue == "none" || issue.starts_with('#'))
        || line.starts_with("- ")
}

/// Whether the text of a heading is this name, in any case.
pub fn is_named(heading: &str, name: &str) -> bool {
    heading.eq_ignore_ascii_case(name)
}

/// Whether a line is the heading with this name.
pub fn is_heading(line: &str, name: &str) -> bool {
    heading(line).is_some_and(|heading| is_named(heading, name))
}

/// Splits a file into its sections; `Current Task` and `Key Files` are called so in any case of their letters. Of two
/// with the same heading the later one counts.
pub fn parse(content: &str) -> Sections {
    let mut sections: Vec<(String, Vec<&str>)> = Vec::new();
    let mut at = None;
    for line in content.lines() {
        if let Some(heading) = heading(line) {
            let heading = [CURRENT_TASK, KEY_FILES].into_iter().find(|name| is_named(heading, name)).unwrap_or(heading);
            let index = sections.iter().position(|(name, _)| name == heading).unwrap_or(sections.len());
            if index == sections.len() {
                sections.push((heading.to_string(), Vec::new()));
            }
            sections[index].1.clear();
            at = Some(index);
        } else if let Some(index) = at
            && !is_placeholder_line(line)
        {
            sections[index].1.push(line);
        }
    }
    Sections(sections.into_iter().map(|(name, lines)| (name, lines.join("\n").trim().to_string())).collect())
}

/// The text of a `## heading` line. Some editors begin a file with a byte order mark.
pub fn heading(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('\u{feff}').unwrap_or(line).strip_prefix("##")?;
    let text = rest.trim();
    (rest.starts_with([' ', '\t']) && !text.is_empty()).then_some(text)
}

/// Replaces the body of the first section with this heading, up to the next one; everything else stays byte for byte.
/// A file without the section stays as it is.
pub fn replace_section(content: &str, wanted: &str, body: &str) -> String {
    let mut start = None;
    let mut end = content.len();
    let mut at = 0;
    for line in content.split_inclusive('\n') {
        let next = at + line.len();
        match start {
            None if is_heading(line, wanted) && line.ends_with('\n') => start = Some(next),
            // Blank lines under the heading stay where they are.
            Some(from) if from == at && line.trim().is_empty() && line.ends_with('\n') => start = Some(next),
            Some(_) if heading(line.trim_end()).is_some() => {
                end = at;
                break;
            }
            _ => {}
        }
        at = next;
    }
    let Some(start) = start else { return content.to_string() };
    let gap = if end < content.len() { "\n" } else { "" };
    format!("{}{body}\n{gap}{}", &content[..start], &content[end..])
}

/// Reads the file of a project folder (`enc` is the folder's name).
pub fn read(store: Store<'_>, enc: &str) -> SessionContext {
    let file = StateFile::SessionContext(enc);
    let modified_ms = store.path(file).and_then(|path| modified_ms(&path));
    let Some(content) = store.read_text(file) else { return SessionContext::default() };
    let state = store.read_json::<BootstrapState>(StateFile::Bootstrap).unwrap_or_default();
    let marks = state.sections.get(enc).cloned().unwrap_or_default();
    SessionContext { modified_ms, marks, ..interpret(&content, state.auto_filled.get(enc)) }
}

/// What a file's content says; `filled` is what si wrote into it last.
pub fn interpret(content: &str, filled: Option<&AutoFill>) -> SessionContext {
    let sections = parse(content);
    let [task, files] = [CURRENT_TASK, KEY_FILES].map(|heading| sections.get(heading).unwrap_or(""));
    let known_task = filled.and_then(|filled| filled.body.as_deref());
    let known_files = filled.and_then(|filled| filled.files.as_deref());
    SessionContext {
        current_task: written(task, known_task),
        key_files: written(files, known_files),
        task_is_autofilled: matches!(classify(task, known_task), Class::Autofilled(_)),
        sections,
        modified_ms: None,
        marks: BTreeMap::new(),
    }
}

fn modified_ms(path: &std::path::Path) -> Option<i64> {
    let modified = path.metadata().ok()?.modified().ok()?;
    Some(modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as i64)
}

/// The task in one line, for the status line: the `type:` line, else the first line a person wrote; none where there is
/// only a template or an autofilled section.
pub fn task(context: &SessionContext) -> Option<String> {
    task_line(&context.current_task)
}

/// The task in one line, from what a person wrote in `Current Task`.
pub fn task_line(written: &str) -> Option<String> {
    // A `type:` that nobody has filled in says nothing.
    let says = |line: &&str| !line.is_empty() && !line.starts_with("<!--") && *line != "type:";
    let lines = || written.lines().map(str::trim).filter(says);
    let of_type = lines().find_map(|line| line.strip_prefix("type:")).map(str::trim);
    let Some(text) = of_type else {
        let first = lines().next()?.trim_start_matches(|c: char| matches!(c, '-' | '*') || c.is_whitespace());
        return Some(first.trim().to_string()).filter(|text| !text.is_empty());
    };
    let split = [" — ", " - "].iter().filter_map(|dash| text.split_once(dash)).min_by_key(|(kind, _)| kind.len());
    Some(match split {
        Some((kind, what)) if !what.trim().is_empty() => format!("{} — {}", kind.trim(), what.trim()),
        _ => text.to_string(),
    })
}

/// The issue that a session is about: from the branch, else from the task. With the `#`.
pub fn issue(branch: Option<&str>, task: &str) -> Option<String> {
    branch.and_then(issue_from_ref).or_else(|| issue_of_task(task))
}

/// The issue that a task names: its `issue:` line before any other `#123`. With the `#`.
pub fn issue_of_task(task: &str) -> Option<String> {
    let value = |line: &str| {
        // `- **Issue:** #12` is such a line too.
        let line: String = line.chars().filter(|&c| c != '*').collect();
        let (key, value) = line.trim_start_matches(['-', ' ', '\t']).split_once(':')?;
        key.trim().eq_ignore_ascii_case("issue").then(|| value.trim().to_string())
    };
    let of_line = |line: &str| {
        let value = value(line)?;
        let bare = !value.is_empty() && value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
        if bare { Some(format!("#{value}")) } else { issue_from_ref(&value) }
    };
    task.lines().find_map(of_line).or_else(|| hash_number(task))
}

/// An issue number in the name of a branch: `#123`, or 2 to 6 digits between `/`, `-`, `_` or the ends that are no part
/// of a date, a version or a commit id. With the `#`.
pub fn issue_from_ref(name: &str) -> Option<String> {
    if let Some(issue) = hash_number(name) {
        return Some(issue);
    }
    let parts: Vec<&str> = name.split(['/', '-', '_']).collect();
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |part: &str| {
        let body = part.strip_prefix(['v', 'V']).unwrap_or(part);
        body.starts_with(|c: char| c.is_ascii_digit()) && (body.contains('.') || body.len() < part.len())
    };
    let year = |part: &str| digits(part) && part.len() == 4 && (part.starts_with("19") || part.starts_with("20"));
    let two = |part: &str| digits(part) && part.len() == 2;
    parts.iter().enumerate().find_map(|(i, part)| {
        let before = i.checked_sub(1).map(|at| parts[at]).unwrap_or("");
        let further = i.checked_sub(2).map(|at| parts[at]).unwrap_or("");
        let after = parts.get(i + 1).copied().unwrap_or("");
        let in_date = (year(part) && two(after)) || (two(part) && (year(before) || (two(before) && year(further))));
        let in_version = is_version(before);
        (digits(part) && (2..=6).contains(&part.len()) && !in_date && !in_version).then(|| format!("#{part}"))
    })
}

/// The first `#123` of a text, one to six digits that stand for themselves.
fn hash_number(text: &str) -> Option<String> {
    text.match_indices('#').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let whole = !rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        ((1..=6).contains(&end) && whole).then(|| format!("#{}", &rest[..end]))
    })
}

/// The kind of task that a commit's subject speaks of.
pub fn task_type(subject: &str) -> &'static str {
    let word = subject.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    match word.to_ascii_lowercase().as_str() {
        "feat" => "feat",
        "fix" | "bug" | "bugfix" => "bug-fix",
        "refactor" => "refactor",
        "doc" | "docs" => "docs",
        "test" => "test",
        "chore" => "chore",
        "perf" => "perf",
        "deploy" | "release" | "ship" => "deploy",
        _ => "feature",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_is_no_part_of_a_date_a_version_or_a_commit_id() {
        for (name, want) in [
            ("fix/164-login", Some("#164")),
            ("feat/x164", None),
            ("release-2024-05", None),
            ("backup/2024-05-17_164", Some("#164")),
            ("v10.20.30", None),
            ("v1.2.3-15-g0abc123", None),
            ("v2-10", None),
            ("0abc123", None),
            ("feat/1234567", None),
            ("3fa8399", None),
            ("fix#77x", None),
            ("issue#7", Some("#7")),
        ] {
            assert_eq!(issue_from_ref(name).as_deref(), want, "{name}");
        }
        assert_eq!(issue(Some("v2"), "a 2024 plan"), None);
        assert_eq!(issue(Some("main"), "type: fix\nissue: #7").as_deref(), Some("#7"));
        for (task, want) in [
            ("type: fix — see #3\nIssue: #164", Some("#164")),
            ("type: fix\n- **Issue:** 164", Some("#164")),
            ("type: fix\nissue: GH-164", Some("#164")),
            ("type: fix #12\nissue: none", Some("#12")),
            ("type: fix\nissues: 164", None),
        ] {
            assert_eq!(issue_of_task(task).as_deref(), want, "{task}");
        }
    }

    #[test]
    fn a_type_that_nobody_filled_in_is_no_task() {
        for (written, want) in [
            ("type:\ntype: fix — login", Some("fix — login")),
            ("type:\ndescription: the cookie stays", Some("description: the cookie stays")),
            ("notes\ntype:", Some("notes")),
            ("type:  \n", None),
        ] {
            assert_eq!(task_line(written).as_deref(), want, "{written}");
        }
    }

    #[test]
    fn text_under_the_sentinel_is_the_users_unless_we_know_it() {
        let ours = "<!-- si:autofill sha=1a2b3c4 -->\ntype: feat — x\ndescription: derived from last commit on `m`\nissue: none";
        let autofilled = Class::Autofilled("1a2b3c4".into());
        assert_eq!(classify(ours, None), autofilled);
        assert_eq!(classify(ours, Some(&hash(ours))), autofilled);
        let edited = ours.replace("type: feat — x", "type: bug-fix — mine");
        assert_eq!(classify(&edited, Some(&hash(ours))), Class::User);
        let added = format!("{ours}\n\nremember the cookie");
        assert_eq!(classify(&added, None), Class::User);
        assert_eq!(classify("hand written\n<!-- si:autofill sha=1a2b3c4 -->", None), Class::User);

        let context = |body: &str, filled: Option<&AutoFill>| interpret(&format!("## Current Task\n{body}\n"), filled);
        assert_eq!(context(&added, None).current_task, "remember the cookie");
        let filled = AutoFill { body: Some(hash(ours)), ..AutoFill::default() };
        assert_eq!(task(&context(&edited, Some(&filled))).as_deref(), Some("bug-fix — mine"));
        assert_eq!(context(ours, Some(&filled)).current_task, "");
    }

    #[test]
    fn a_bare_hint_is_a_template_line() {
        assert_eq!(classify("(hint)\n", None), Class::Placeholder);
    }

    #[test]
    fn replacing_takes_text_as_it_is_and_stops_at_the_next_section() {
        assert_eq!(replace_section("## A\n## B\nb\n", "A", "$& $1 $$"), "## A\n$& $1 $$\n\n## B\nb\n");
    }

    #[test]
    fn a_byte_order_mark_and_the_case_of_a_heading_do_not_matter() {
        for text in
            ["\u{feff}## Current Task\nmine\n", "## current task\nmine\n", "\u{feff}## CURRENT TASK\r\nmine\r\n"]
        {
            let context = interpret(text, None);
            assert_eq!((context.current_task.as_str(), context.sections.get(CURRENT_TASK)), ("mine", Some("mine")));
            let replaced = replace_section(text, CURRENT_TASK, "new");
            assert_eq!(replaced, format!("{}new\n", text.split_inclusive('\n').next().unwrap()));
        }
        assert_eq!(interpret("## key files\n- a.rs\n", None).key_files, "- a.rs");
    }

    #[test]
    fn a_section_dates_from_its_own_last_change() {
        let mut context = interpret("## Current Task\nmine\n\n## Notes\nn\n", None);
        context.modified_ms = Some(1000);
        context.marks = BTreeMap::from([
            ("Current Task".to_string(), SectionMark { hash: hash("mine"), since: 10 }),
            ("Notes".to_string(), SectionMark { hash: hash("other"), since: 20 }),
        ]);
        assert_eq!(context.unchanged_since("Current Task"), Some(10));
        assert_eq!(context.unchanged_since("Notes"), Some(1000));
        assert_eq!(context.marks()["Notes"], SectionMark { hash: hash("n"), since: 1000 });
    }
}
