//! Open follow-ups: list items under headings such as `## Next steps` in the memory files of a project and in its
//! session-context.md, as far as nobody has struck them out.

use std::path::{Path, PathBuf};

use super::session_context::is_placeholder_line;
use crate::client::project::Folder;
use crate::store::file;
use crate::text;

/// How many are taken over all files.
pub const MAX: usize = 5;
/// The longest item, UTF-16 units.
const MAX_UNITS: usize = 200;
/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a project that may hold follow-ups, in the order in which they count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// `memory/MEMORY.md`.
    pub memory: PathBuf,
    /// The newest `memory/project_session_*.md`, if there is one.
    pub session: Option<PathBuf>,
    /// `session-context.md`.
    pub context: PathBuf,
}

impl Sources {
    /// Looks for the files of a project.
    pub fn of(folder: &Folder) -> Sources {
        let memory = folder.memory();
        Sources {
            session: newest_session(&memory),
            memory: memory.join("MEMORY.md"),
            context: folder.dir.join("session-context.md"),
        }
    }

    /// The files in order.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.memory), self.session.as_ref(), Some(&self.context)].into_iter().flatten().map(PathBuf::as_path)
    }
}

/// The open follow-ups of a project, at most [`MAX`], each once.
pub fn open(sources: &Sources) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for path in sources.iter() {
        for item in of_file(path) {
            let known = items.iter().any(|other| other.to_lowercase() == item.to_lowercase());
            if !known && items.len() < MAX {
                items.push(item);
            }
        }
    }
    items
}

/// The open follow-ups of one file; empty when it cannot be read.
pub fn of_file(path: &Path) -> Vec<String> {
    let bytes = file::read_user(path, MAX_BYTES).ok().flatten().unwrap_or_default();
    parse(&String::from_utf8_lossy(&bytes))
}

fn newest_session(memory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(memory).ok()?;
    let session = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        let ours = name.starts_with("project_session_") && name.ends_with(".md");
        ours.then_some(())?;
        Some((path.metadata().ok()?.modified().ok()?, path))
    };
    entries.filter_map(session).max().map(|(_, path)| path)
}

/// The open items of a text.
fn parse(content: &str) -> Vec<String> {
    let mut wanted = false;
    let mut items = Vec::new();
    for line in content.lines() {
        match level(line) {
            Some(2) => wanted = is_follow_up_heading(line[2..].trim()),
            Some(1) => wanted = false,
            _ if wanted => items.extend(item(line)),
            _ => {}
        }
    }
    items
}

/// How many `#` open a heading line.
fn level(line: &str) -> Option<usize> {
    let level = line.len() - line.trim_start_matches('#').len();
    (level > 0 && line[level..].starts_with([' ', '\t'])).then_some(level)
}

fn is_follow_up_heading(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    match (words.next().unwrap_or(""), words.next().unwrap_or("")) {
        ("todo" | "upcoming" | "pending" | "followup" | "followups", _) => true,
        ("to", "do") | ("follow", "up" | "ups") => true,
        ("open", next) => matches!(next, "thread" | "threads" | "question" | "questions" | "item" | "items"),
        ("next", next) => matches!(next, "step" | "steps" | "session" | "up" | "priority" | "priorities"),
        _ => false,
    }
}

/// The text of a list item that is still open.
fn item(line: &str) -> Option<String> {
    let line = line.trim();
    let body = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        (digits > 0).then(|| line[digits..].strip_prefix(['.', ')'])).flatten()
    })?;
    let body = body.strip_prefix([' ', '\t'])?.trim_start();
    let text = body.strip_prefix("[ ]").unwrap_or(body).trim();
    let closed = text.is_empty() || is_placeholder_line(line) || is_done(text);
    (!closed).then(|| text::cut_utf16(&text::sanitize(text), MAX_UNITS).trim_end().to_string())
}

fn is_done(text: &str) -> bool {
    let struck = text
        .strip_prefix("~~")
        .and_then(|rest| rest.split_once("~~"))
        .is_some_and(|(inner, _)| !inner.is_empty() && !inner.contains('~'));
    let ticked = text.contains(['✅', '✓', '✔']) || text.starts_with("[x]") || text.starts_with("[X]");
    let said = text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("done"))
        && text[4..].starts_with(|c: char| c == ':' || c.is_whitespace());
    struck || ticked || said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read_and_template_lines_are_nobodys() {
        let text = "## Next steps\n- [ ] open box\n- [x] ticked box\n- (list them here)\n1. numbered\n2) other\nprose\n# Top\n- no\n";
        assert_eq!(parse(text), ["open box", "numbered", "other"]);
    }
}
