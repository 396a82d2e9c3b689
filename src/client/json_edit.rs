//! Edits JSON as text: a value is replaced, added or taken out, and every byte outside it stays as it was.
//!
//! Users keep settings files by hand and in version control, so order, indentation, line ends, odd spacing, numbers of
//! any size, a byte order mark and a missing last newline are theirs. [`Document`] parses the text to spans and splices;
//! it never prints the whole document again. What it adds looks like its surroundings: the indentation, the line end,
//! and the space around colons and commas are taken from the document.
//!
//! A path is a list of steps as in a JSON Pointer: a key of an object, or a decimal number into an array. Of two equal
//! keys the last is the one that counts, as the client reads it.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::json::Raw;

/// Deeper nesting than this is refused, so that no file can exhaust the stack.
const MAX_DEPTH: usize = 500;
const BOM: &str = "\u{feff}";

/// Why a text is not JSON, and where: line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
    /// What was wrong there.
    pub what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for Fault {}

/// A path that cannot be followed, because a value on it is of another type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The steps to the value that is in the way, joined by dots; empty for the whole document.
    pub at: String,
    /// What it would have to be.
    pub wanted: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the whole file" } else { &self.at };
        write!(f, "{at} is not {}", self.wanted)
    }
}

impl std::error::Error for Mismatch {}

/// A JSON text that can be edited in place.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    root: Node,
}

#[derive(Debug, Clone)]
struct Node {
    span: Range<usize>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

#[derive(Debug, Clone)]
struct Member {
    key: String,
    key_span: Range<usize>,
    value: Node,
}

impl Document {
    /// Reads a document. Nothing, or white space alone, counts as `{}`. A byte order mark is no part of it and is not
    /// written back: many a reader of JSON stumbles over it.
    pub fn parse(bytes: &[u8]) -> Result<Document, Fault> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(bad) => {
                let good = String::from_utf8_lossy(&bytes[..bad.valid_up_to()]);
                return Err(fault(good.strip_prefix(BOM).unwrap_or(&good), good.len(), "this byte is not UTF-8"));
            }
        };
        let text = text.strip_prefix(BOM).unwrap_or(text);
        Document::of(if text.trim().is_empty() { "{}\n" } else { text }.to_owned())
    }

    fn of(text: String) -> Result<Document, Fault> {
        let mut parser = Parser { text: &text, at: 0 };
        parser.space();
        let root = parser.value(0)?;
        parser.space();
        if parser.at < text.len() {
            return Err(fault(&text, parser.at, "nothing may follow the end of the document"));
        }
        Ok(Document { root, text })
    }

    /// The document as it is to be written.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.text.clone().into_bytes()
    }

    /// The text of the value at `path`, as it stands.
    pub fn raw(&self, path: &[&str]) -> Option<&str> {
        Some(&self.text[self.find(path)?.span.clone()])
    }

    /// The value at `path`; none where there is none or where a tree cannot hold it.
    pub fn value(&self, path: &[&str]) -> Option<Value> {
        serde_json::from_str(self.raw(path)?).ok()
    }

    /// The string at `path`; none where there is none or it is of another type.
    pub fn str(&self, path: &[&str]) -> Option<String> {
        Raw::new(self.raw(path)?).str().map(std::borrow::Cow::into_owned)
    }

    /// The keys of the object at `path`, in order, each once; none when it is no object.
    pub fn keys(&self, path: &[&str]) -> Option<Vec<String>> {
        let Kind::Object(members) = &self.find(path)?.kind else { return None };
        let mut keys: Vec<String> = Vec::with_capacity(members.len());
        for member in members {
            if !keys.contains(&member.key) {
                keys.push(member.key.clone());
            }
        }
        Some(keys)
    }

    /// How many elements the array at `path` has; none when it is no array.
    pub fn len(&self, path: &[&str]) -> Option<usize> {
        match &self.find(path)?.kind {
            Kind::Array(items) => Some(items.len()),
            _ => None,
        }
    }

    /// Whether the object or array at `path` holds nothing; false for anything else.
    pub fn is_empty(&self, path: &[&str]) -> bool {
        self.find(path).is_some_and(|node| match &node.kind {
            Kind::Object(members) => members.is_empty(),
            Kind::Array(items) => items.is_empty(),
            Kind::Scalar => false,
        })
    }

    /// Sets the value at `path`: in place where there is one, else as the last member of its object. Objects missing on
    /// the way are made. A value that is already equal is left as it is written.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), Mismatch> {
        if self.value(path).is_some_and(|old| old == *value) {
            return Ok(());
        }
        self.put(path, New::Value(value))
    }

    /// Sets the value at `path` to a text that was read from a document before, byte for byte.
    pub fn set_raw(&mut self, path: &[&str], raw: &str) -> Result<(), Mismatch> {
        self.put(path, New::Text(raw))
    }

    fn put(&mut self, path: &[&str], new: New<'_>) -> Result<(), Mismatch> {
        if let Some(node) = self.find(path) {
            let span = node.span.clone();
            let style = self.style_at(&span);
            let indent = self.line_indent(span.start).to_owned();
            return self.splice(span, &new.render(&style, &indent), path);
        }
        let Some((last, parent)) = path.split_last() else { return Err(mismatch(path, "JSON")) };
        if self.find(parent).is_none() {
            self.put(parent, New::Value(&Value::Object(Default::default())))?;
        }
        let container = self.find(parent).ok_or_else(|| mismatch(parent, "an object"))?;
        if !matches!(container.kind, Kind::Object(_)) {
            return Err(mismatch(parent, "an object"));
        }
        let (at, text) = self.insertion(container, Some(last), &new);
        self.splice(at, &text, parent)
    }

    /// Adds a value at the end of the array at `path`. A missing array is made, and so are the objects on the way.
    pub fn push(&mut self, path: &[&str], value: &Value) -> Result<(), Mismatch> {
        if self.find(path).is_none() {
            self.put(path, New::Value(&Value::Array(Vec::new())))?;
        }
        let container = self.find(path).ok_or_else(|| mismatch(path, "an array"))?;
        if !matches!(container.kind, Kind::Array(_)) {
            return Err(mismatch(path, "an array"));
        }
        let (at, text) = self.insertion(container, None, &New::Value(value));
        self.splice(at, &text, path)
    }

    /// Takes out the value at `path`, with its key and its comma. All members of that key go, so that none of them comes
    /// to light. Says whether there was one.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Some((last, parent)) = path.split_last() else { return false };
        let mut removed = false;
        while let Some(container) = self.find(parent) {
            let (spans, index) = match &container.kind {
                Kind::Object(members) => {
                    (child_spans(&container.kind), members.iter().rposition(|member| member.key == *last))
                }
                Kind::Array(items) if !removed => {
                    (child_spans(&container.kind), last.parse().ok().filter(|&index: &usize| index < items.len()))
                }
                _ => break,
            };
            let Some(index) = index else { break };
            let gone = match (index.checked_sub(1), spans.get(index + 1)) {
                (_, Some(next)) => spans[index].start..next.start,
                (Some(previous), None) => spans[previous].end..spans[index].end,
                (None, None) => container.span.start + 1..container.span.end - 1,
            };
            if self.splice(gone, "", path).is_err() {
                break;
            }
            removed = true;
        }
        removed
    }

    fn find(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| match &node.kind {
            Kind::Object(members) => members.iter().rev().find(|member| member.key == *step).map(|m| &m.value),
            Kind::Array(items) => items.get(step.parse::<usize>().ok()?),
            Kind::Scalar => None,
        })
    }

    /// Replaces `span` by `new` and reads the result again; the document stays as it was when that fails.
    fn splice(&mut self, span: Range<usize>, new: &str, path: &[&str]) -> Result<(), Mismatch> {
        let text = [&self.text[..span.start], new, &self.text[span.end..]].concat();
        *self = Document::of(text).map_err(|_| mismatch(path, "JSON"))?;
        Ok(())
    }

    /// Where and as what text a new last child of `container` goes in.
    fn insertion(&self, container: &Node, key: Option<&str>, new: &New<'_>) -> (Range<usize>, String) {
        let spans = child_spans(&container.kind);
        let base = self.line_indent(container.span.start).to_owned();
        let mut style = self.style_at(&container.span);
        let inside = container.span.start + 1..container.span.end - 1;
        let Some(last) = spans.last() else {
            let indent = style.unit.as_ref().map(|unit| base.clone() + unit).unwrap_or_default();
            let child = style.member(key, new, &indent);
            let text = match style.unit {
                Some(_) => format!("{nl}{indent}{child}{nl}{base}", nl = style.newline),
                None => child,
            };
            return (inside, text);
        };
        // The white space before the last child is how children are set apart here.
        let before = &self.text[self.text[..last.start].trim_end_matches(JSON_SPACE).len()..last.start];
        let (gap, indent) = match before.rsplit_once('\n') {
            Some((_, indent)) => (before, indent),
            None => {
                style.unit = None;
                (if spans.len() > 1 { before } else { style.gap }, "")
            }
        };
        (last.end..last.end, format!(",{gap}{}", style.member(key, new, indent)))
    }

    /// How new text near `span` has to look.
    fn style_at(&self, span: &Range<usize>) -> Style<'_> {
        let colon = self.colon().unwrap_or(": ");
        let newline = match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        // A document on one line stays on one line, unless it holds nothing yet.
        let one_line = !self.text.trim().contains('\n') && !self.is_empty(&[]);
        let inline = self.text[span.clone()].len() > 2 && !self.text[span.clone()].contains('\n');
        let container = matches!(self.text.as_bytes()[span.start], b'{' | b'[');
        let unit = (!(one_line || container && inline)).then(|| self.unit());
        Style { newline, unit, colon, gap: if colon.ends_with(' ') { " " } else { "" } }
    }

    /// The indentation that one level adds, from the first child that stands on a line of its own.
    fn unit(&self) -> String {
        let mut queue = vec![&self.root];
        while let Some(node) = queue.pop() {
            if let Some(first) = child_spans(&node.kind).first()
                && self.text[node.span.start..first.start].contains('\n')
            {
                let (outer, inner) = (self.line_indent(node.span.start), self.line_indent(first.start));
                return inner.strip_prefix(outer).unwrap_or(inner).to_owned();
            }
            match &node.kind {
                Kind::Object(members) => queue.extend(members.iter().rev().map(|member| &member.value)),
                Kind::Array(items) => queue.extend(items.iter().rev()),
                Kind::Scalar => {}
            }
        }
        "  ".to_owned()
    }

    /// The text between a key and its value that most members have; somebody may have aligned a few of them.
    fn colon(&self) -> Option<&str> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        let mut queue = vec![&self.root];
        while let Some(node) = queue.pop() {
            match &node.kind {
                Kind::Object(members) => {
                    for member in members {
                        let colon = &self.text[member.key_span.end..member.value.span.start];
                        match counts.iter_mut().find(|(known, _)| *known == colon) {
                            Some((_, count)) => *count += 1,
                            None => counts.push((colon, 1)),
                        }
                    }
                    queue.extend(members.iter().map(|member| &member.value));
                }
                Kind::Array(items) => queue.extend(items),
                Kind::Scalar => {}
            }
        }
        counts.into_iter().filter(|(colon, _)| !colon.contains('\n')).max_by_key(|(_, count)| *count).map(|(c, _)| c)
    }

    /// The white space that the line of byte `at` starts with.
    fn line_indent(&self, at: usize) -> &str {
        let line = &self.text[self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }
}

const JSON_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

fn child_spans(kind: &Kind) -> Vec<Range<usize>> {
    match kind {
        Kind::Object(members) => members.iter().map(|m| m.key_span.start..m.value.span.end).collect(),
        Kind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
        Kind::Scalar => Vec::new(),
    }
}

fn mismatch(path: &[&str], wanted: &'static str) -> Mismatch {
    Mismatch { at: path.join("."), wanted }
}

/// What is put into a document.
enum New<'a> {
    Value(&'a Value),
    Text(&'a str),
}

impl New<'_> {
    fn render(&self, style: &Style<'_>, indent: &str) -> String {
        match self {
            New::Value(value) => {
                let mut out = String::new();
                style.write(&mut out, value, indent);
                out
            }
            New::Text(text) => (*text).to_owned(),
        }
    }
}

struct Style<'d> {
    newline: &'static str,
    /// What one level of nesting adds; none: everything on one line.
    unit: Option<String>,
    colon: &'d str,
    /// What follows a comma on one line.
    gap: &'static str,
}

impl Style<'_> {
    fn member(&self, key: Option<&str>, new: &New<'_>, indent: &str) -> String {
        let value = new.render(self, indent);
        key.map_or(value.clone(), |key| format!("{}{}{value}", quote(key), self.colon))
    }

    fn write(&self, out: &mut String, value: &Value, indent: &str) {
        match value {
            Value::Object(map) if !map.is_empty() => self.write_all(out, '{', '}', indent, map.iter(), |out, child| {
                let (key, value) = child;
                out.push_str(&quote(key));
                out.push_str(self.colon);
                value
            }),
            Value::Array(items) if !items.is_empty() => {
                self.write_all(out, '[', ']', indent, items.iter(), |_, child| child);
            }
            scalar => out.push_str(&scalar.to_string()),
        }
    }

    /// Writes the children between brackets; `head` writes what stands before a child's value and returns the value.
    fn write_all<'v, C>(
        &self,
        out: &mut String,
        open: char,
        close: char,
        indent: &str,
        children: impl Iterator<Item = C>,
        head: impl Fn(&mut String, C) -> &'v Value,
    ) {
        let inner = self.unit.as_ref().map(|unit| format!("{indent}{unit}"));
        out.push(open);
        for (index, child) in children.enumerate() {
            if index > 0 {
                out.push(',');
            }
            match &inner {
                Some(inner) => out.extend([self.newline, inner]),
                None if index > 0 => out.push_str(self.gap),
                None => {}
            }
            let value = head(out, child);
            self.write(out, value, inner.as_deref().unwrap_or(""));
        }
        if inner.is_some() {
            out.extend([self.newline, indent]);
        }
        out.push(close);
    }
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn fault(text: &str, at: usize, what: &'static str) -> Fault {
    let before = &text[..at.min(text.len())];
    let line = before.rsplit('\n').next().unwrap_or("");
    Fault { line: before.matches('\n').count() + 1, column: line.chars().count() + 1, what }
}

/// A strict reader of JSON that keeps spans instead of values.
struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, Fault> {
        let what = if self.at >= self.text.len() { "the file ends in the middle of a value" } else { what };
        Err(fault(self.text, self.at, what))
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Fault> {
        let start = self.at;
        if depth > MAX_DEPTH {
            return self.fail("the nesting is too deep");
        }
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.children(b'}', |parser| parser.member(depth + 1))?),
            Some(b'[') => Kind::Array(self.children(b']', |parser| parser.value(depth + 1))?),
            Some(b'"') => self.string().map(|()| Kind::Scalar)?,
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| Kind::Scalar)?,
            Some(b'/') => return self.fail("comments are not JSON"),
            _ => {
                let rest = &self.text[self.at..];
                let Some(word) = ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word)) else {
                    return self.fail("expected a value");
                };
                self.at += word.len();
                Kind::Scalar
            }
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn children<T>(
        &mut self,
        close: u8,
        mut child: impl FnMut(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut all = Vec::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(all);
        }
        loop {
            all.push(child(self)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(all);
                }
                Some(b'/') => return self.fail("comments are not JSON"),
                _ if close == b'}' => return self.fail("expected a comma or }"),
                _ => return self.fail("expected a comma or ]"),
            }
            self.space();
            if self.peek() == Some(close) {
                return self.fail("a comma may not stand before the closing bracket");
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, Fault> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'/') => return self.fail("comments are not JSON"),
            _ => return self.fail("expected a key in double quotes"),
        }
        let key_span = start..self.at;
        let Some(key) = Raw::new(&self.text[key_span.clone()]).str() else { return self.fail("bad key") };
        self.space();
        if self.peek() != Some(b':') {
            return self.fail("expected a colon");
        }
        self.at += 1;
        self.space();
        let key = key.into_owned();
        Ok(Member { key, key_span, value: self.value(depth)? })
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return self.fail("expected four hexadecimal digits");
                                }
                                self.at += 1;
                            }
                        }
                        _ => return self.fail("this escape is not known"),
                    }
                }
                Some(b'\n' | b'\r') => return self.fail("the string is not closed on its line"),
                Some(0..=31) => return self.fail("a control character must be escaped"),
                Some(_) => self.at += 1,
                None => return self.fail(""),
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.fail("expected a digit");
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
