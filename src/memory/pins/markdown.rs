//! The pin file: Markdown that a person may edit, and how pins are found in it, added and taken out.
//!
//! One top-level bullet is one pin; further lines of it are indented by two spaces, so that nothing in a pin can be
//! taken for the file's own structure. A comment line before the bullet says when it was pinned. Whatever a hand adds
//! works too: any bullet or number, a paragraph without one, a fenced block. Headings, rules and comments are no pins.
//! Whitespace around a pin is not part of it; inside it every character is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// One pin of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The text, word for word.
    pub text: String,
    /// When it was pinned (ISO 8601); none for one that was added by hand.
    pub at: Option<String>,
    /// The compaction round it was pinned in, 1 before the first compaction; none for one that was added by hand.
    pub round: Option<u64>,
    /// Where it stands in the file, its comment and the blank lines behind it included, in bytes.
    span: Range<usize>,
}

/// What a new file starts with.
const HEAD: &str = "# Pins

<!-- Each bullet comes back word for word after every compaction. Edit, reorder, add or delete bullets as you like;
     indent further lines of a bullet by two spaces. -->
";
const COMMENT: &str = "<!-- si:pin ";

/// Finds the pins of a file, in its order.
pub fn parse(file: &str) -> Vec<Pin> {
    let lines = Lines::new(file);
    let mut pins = Vec::new();
    let mut stamp: Option<(usize, Stamp)> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines.get(at);
        let before = stamp.take();
        if is_blank(line) || is_heading(line) || is_rule(line) {
            at += 1;
        } else if let Some(end) = lines.comment_end(at) {
            stamp = Stamp::parse(line).map(|found| (at, found));
            at = end;
        } else {
            let (text, end) = match bullet_width(line) {
                Some(width) => lines.item(at, width),
                None => lines.paragraph(at),
            };
            let start = before.as_ref().map_or(at, |(line, _)| *line);
            let behind = lines.skip_blank(end);
            let found = before.map(|(_, found)| found).unwrap_or_default();
            let mut text = trim(&text);
            if found.at.is_none() && !text.contains('\n') {
                text = text.trim(); // what hands wrote is lined up, not indented
            }
            if !text.is_empty() {
                let span = lines.offset(start)..lines.offset(behind);
                pins.push(Pin { text: text.into(), at: found.at, round: found.round, span });
            }
            at = end;
        }
    }
    pins
}

/// What must be added to `file` (none: it does not exist yet) to pin `texts`, which were trimmed by [`trim`].
pub fn addition(file: Option<&str>, texts: &[&str], at: &str, round: Option<u64>) -> String {
    let mut out = String::new();
    match file {
        None => out.push_str(HEAD),
        Some(file) if !file.is_empty() && !file.ends_with('\n') => out.push('\n'),
        Some(_) => {}
    }
    for text in texts {
        out.push('\n');
        out.push_str(COMMENT);
        out.push_str(&format!("at={at}"));
        if let Some(round) = round {
            out.push_str(&format!(" round={round}"));
        }
        out.push_str(" -->\n");
        for (n, line) in text.split('\n').enumerate() {
            match (n, line) {
                (0, line) => out.push_str(&format!("- {line}\n")),
                (_, "") => out.push('\n'),
                (_, line) => out.push_str(&format!("  {line}\n")),
            }
        }
    }
    // A file from an editor that writes CRLF stays of one kind, or its line ends would become part of the pins.
    if file.is_some_and(|file| Lines::new(file).crlf) { out.replace('\n', "\r\n") } else { out }
}

/// The file without some of its pins; everything else stays byte for byte.
pub fn without(file: &str, pins: &[&Pin]) -> String {
    let mut out = String::with_capacity(file.len());
    let mut from = 0;
    for pin in pins {
        out.push_str(&file[from..pin.span.start]);
        from = pin.span.end;
    }
    out.push_str(&file[from..]);
    out
}

/// A pin's text without the blank lines and the line end around it; the spaces of its first and last line are its own.
pub fn trim(text: &str) -> &str {
    if is_blank(text) {
        return "";
    }
    let blank = text.len() - text.trim_start().len();
    let begin = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    let behind = &text[text.trim_end().len()..];
    let end = text.len() - behind.trim_start_matches([' ', '\t']).len();
    &text[begin..end]
}

/// Splits standard input into pins: paragraphs where blank lines separate any, else lines. A fenced block is never
/// split; among lines it belongs to the line before it.
pub fn split(input: &str) -> Vec<&str> {
    let lines = Lines::new(input);
    let blocks = lines.fenced_blocks();
    let around =
        |at: usize| blocks[..blocks.partition_point(|block| block.start <= at)].last().filter(|b| b.contains(&at));
    let first = lines.skip_blank(0);
    let last = (0..lines.len()).rev().find(|at| !is_blank(lines.get(*at))).map_or(0, |at| at + 1);
    let paragraphs = (first..last).any(|at| is_blank(lines.get(at)) && around(at).is_none());
    let mut pins: Vec<Range<usize>> = Vec::new();
    let mut at = first;
    let mut joins = false;
    while at < last {
        let end = around(at).map_or(at + 1, |block| block.end);
        let fenced = end > at + 1;
        match pins.last_mut() {
            _ if is_blank(lines.get(at)) => {}
            Some(pin) if joins && (paragraphs || fenced) => pin.end = end,
            _ => pins.push(at..end),
        }
        joins = !is_blank(lines.get(at));
        at = end;
    }
    let slices = pins.into_iter().map(|pin| trim(&input[lines.offset(pin.start)..lines.offset(pin.end)]));
    slices.filter(|pin| !pin.is_empty()).collect()
}

/// What the comment before a bullet says.
#[derive(Debug, Default)]
struct Stamp {
    at: Option<String>,
    round: Option<u64>,
}

impl Stamp {
    fn parse(line: &str) -> Option<Stamp> {
        let inner = line.strip_prefix(COMMENT)?.trim_end().strip_suffix("-->")?;
        let mut stamp = Stamp::default();
        for (key, value) in inner.split_whitespace().filter_map(|word| word.split_once('=')) {
            match key {
                "at" => stamp.at = Some(value.into()),
                "round" => stamp.round = value.parse().ok(),
                _ => {}
            }
        }
        Some(stamp)
    }
}

/// The lines of a text with their offsets.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    crlf: bool,
    /// What is never closed, found out once: by what would open it, the lines that hold no end.
    endless: RefCell<HashMap<&'a str, Range<usize>>>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        let ends = || memchr::memchr_iter(b'\n', text.as_bytes());
        let crlf = ends().next().is_some() && ends().all(|at| text[..at].ends_with('\r'));
        Lines { text, starts, crlf, endless: RefCell::default() }
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn offset(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// A line without its end (and, on the first, without a byte order mark).
    fn get(&self, line: usize) -> &'a str {
        let text = &self.text[self.offset(line)..self.offset(line + 1)];
        let text = match text.strip_suffix('\n') {
            Some(text) if self.crlf => text.strip_suffix('\r').unwrap_or(text),
            Some(text) => text,
            None => text, // a carriage return at the very end ends no line yet: what is added behind it brings the end
        };
        if line == 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text }
    }

    /// The first line from `line` on that is not blank.
    fn skip_blank(&self, line: usize) -> usize {
        (line..self.len()).find(|at| !is_blank(self.get(*at))).unwrap_or(self.len())
    }

    /// The first line from `line` on that ends what `open` opened before it. Not one behind a stamp of ours, which is never
    /// inside of what a hand left open, or the next thing that is pinned would close it and be lost in it.
    fn end_of(&self, open: &'a str, line: usize, is_end: impl Fn(&str) -> bool) -> Option<usize> {
        if self.endless.borrow().get(open).is_some_and(|lines| lines.contains(&line)) {
            return None; // searched already: a file of a thousand open ones is not read a thousand times
        }
        let mut stop = self.len();
        for at in line..self.len() {
            let text = self.get(at);
            if Stamp::parse(text).is_some() {
                stop = at;
                break;
            }
            if is_end(text) {
                return Some(at);
            }
        }
        self.endless.borrow_mut().insert(open, line..stop + 1);
        None
    }

    /// The line behind a comment that starts at `line`; none when there is none, or it never ends.
    fn comment_end(&self, line: usize) -> Option<usize> {
        let first = self.get(line).strip_prefix("<!--")?;
        if first.contains("-->") {
            // Text behind a comment on its line makes it a paragraph.
            return first.trim_end().ends_with("-->").then_some(line + 1);
        }
        self.end_of("<!--", line + 1, |line| line.contains("-->")).map(|at| at + 1)
    }

    /// The line behind a fenced block that starts at `line`; none when there is none, or it never ends.
    fn fence_end(&self, line: usize) -> Option<usize> {
        let open = fence(self.get(line))?;
        let closes = |line: &str| fence(line).is_some_and(|run| run.starts_with(open) && line.trim() == run);
        self.end_of(open, line + 1, closes).map(|at| at + 1)
    }

    /// All fenced blocks, as ranges of lines.
    fn fenced_blocks(&self) -> Vec<Range<usize>> {
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < self.len() {
            let end = self.fence_end(at);
            blocks.extend(end.map(|end| at..end));
            at = end.unwrap_or(at + 1);
        }
        blocks
    }

    /// The text of the bullet at `line`, whose marker is `width` bytes wide, and the line behind it.
    fn item(&self, line: usize, width: usize) -> (String, usize) {
        let mut text = self.get(line)[width..].to_string();
        let mut blanks: Vec<&str> = Vec::new();
        let mut end = line + 1;
        let mut at = line + 1;
        while at < self.len() {
            let next = self.get(at);
            let inner = next.strip_prefix("  ").or_else(|| next.strip_prefix('\t'));
            if is_blank(next) {
                blanks.push(inner.unwrap_or(""));
                at += 1;
                continue;
            }
            let lazy = inner.is_none() && blanks.is_empty() && !self.starts_block(at);
            if inner.is_none() && !lazy {
                break;
            }
            for blank in blanks.drain(..) {
                text.push('\n');
                text.push_str(blank);
            }
            let behind = if lazy { self.fence_end(at).unwrap_or(at + 1) } else { at + 1 };
            for at in at..behind {
                text.push('\n');
                text.push_str(if lazy { self.get(at) } else { inner.unwrap_or(next) });
            }
            (at, end) = (behind, behind);
        }
        (text, end)
    }

    /// The text of the paragraph at `line`, and the line behind it.
    fn paragraph(&self, line: usize) -> (String, usize) {
        let mut at = line;
        let mut text = String::new();
        while at < self.len() && !is_blank(self.get(at)) && (at == line || !self.starts_block(at)) {
            let end = self.fence_end(at).unwrap_or(at + 1);
            for at in at..end {
                text.push_str(self.get(at));
                text.push('\n');
            }
            at = end;
        }
        (text, at)
    }

    /// Whether a line cannot belong to the paragraph before it.
    fn starts_block(&self, line: usize) -> bool {
        let text = self.get(line);
        is_heading(text) || is_rule(text) || bullet_width(text).is_some() || self.comment_end(line).is_some()
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level) && (text.is_empty() || text.starts_with([' ', '\t']))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && ['-', '*', '_', '='].iter().any(|mark| line.chars().all(|c| c == *mark))
}

/// Bytes of a list marker with the one space behind it, up to three spaces before it allowed; none for other lines.
fn bullet_width(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marker = match text.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let space = match text[marker..].chars().next() {
        Some(' ' | '\t') => 1,
        _ if is_blank(&text[marker..]) => 0,
        _ => return None,
    };
    (indent <= 3).then_some(indent + marker + space)
}

/// The run of marks that opens or closes a fence on this line.
fn fence(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let run = text.len() - text.trim_start_matches(mark).len();
    // `a`` b` is inline code, not a fence.
    let inline = mark == '`' && text[run..].contains('`');
    (run >= 3 && !inline).then(|| &text[..run])
}

#[cfg(test)]
mod tests;
