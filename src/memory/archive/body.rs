//! A tool response as a person or a model wants to read it: the text itself where there is one, else compact JSON.
//!
//! The text is usually a JSON string of the payload already and goes into the record as one, so that it is neither
//! decoded nor copied on the way: a [`Body`] is a list of borrowed pieces.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::client::json::{Object, Raw};
use crate::client::json_len;
use crate::client::payload::ToolResponse;
use crate::text;

/// What stands before the standard error of a command.
const STDERR: &str = "[stderr]\n";
/// What a command that was stopped ends with.
const INTERRUPTED: &str = "[interrupted]\n";

/// A readable text in pieces.
#[derive(Debug, Clone, Default)]
pub struct Body<'a>(Vec<Piece<'a>>);

#[derive(Debug, Clone)]
enum Piece<'a> {
    /// A JSON string, still escaped and in its quotes.
    Escaped(Raw<'a>),
    /// Text as it is.
    Plain(Cow<'a, str>),
}

impl<'a> Body<'a> {
    /// The readable text of a response; none when it is a picture or another binary.
    pub fn of(result: &ToolResponse<'a>) -> Option<Body<'a>> {
        let response = result.raw();
        if let Some(piece) = string(response) {
            return Some(Body(vec![piece]));
        }
        if let Some(items) = response.items() {
            return match texts(&items) {
                Texts::Found(body) => Some(body),
                Texts::OnlyBinary => None,
                Texts::Other => Some(Body::json(response)),
            };
        }
        let Some(object) = result.object() else { return Some(Body::json(response)) };
        let field = |key: &str| object.get(key).and_then(string);
        let (stdout, stderr) = (field("stdout"), field("stderr"));
        if stdout.is_some() || stderr.is_some() {
            return (!flag(object, "isImage")).then(|| command(stdout, stderr, flag(object, "interrupted")));
        }
        if let Some(file) = object.get("file").and_then(Raw::object) {
            if let Some(content) = file.get("content").and_then(string) {
                return Some(Body(vec![content]));
            }
            if let Some(cells) = file.get("cells").and_then(Raw::items) {
                return Some(notebook(&cells));
            }
            if file.get("base64").is_some() {
                return None;
            }
        }
        if let Some(content) = field("content").filter(|content| !content.is_empty()) {
            return Some(Body(vec![content]));
        }
        if let Some(blocks) = object.get("content").and_then(Raw::items) {
            match texts(&blocks) {
                Texts::Found(body) => return Some(body),
                Texts::OnlyBinary => return None,
                Texts::Other => {}
            }
        }
        if let Some(patch) = object.get("structuredPatch").and_then(Raw::items).filter(|hunks| !hunks.is_empty()) {
            return Some(diff(&patch));
        }
        if let Some(names) = object.get("filenames").and_then(Raw::items) {
            let names: Vec<Piece<'_>> = names.into_iter().filter_map(string).collect();
            return Some(Body(lines(names)));
        }
        Some(field("result").map_or_else(|| Body::json(response), |result| Body(vec![result])))
    }

    /// A text that is known already.
    pub fn plain(text: &'a str) -> Body<'a> {
        Body(vec![Piece::Plain(Cow::Borrowed(text))])
    }

    /// The JSON text, in one line.
    fn json(value: Raw<'a>) -> Body<'a> {
        // A line break never stands inside a JSON string, so it tells that the text is laid out for reading.
        let compact = value.text().contains('\n').then(|| value.value()).flatten();
        Body(vec![Piece::Plain(compact.map_or(Cow::Borrowed(value.text()), |value| Cow::Owned(value.to_string())))])
    }

    /// Bytes of the pieces: never less than [`units`](Body::units), and known at no cost.
    pub fn bytes(&self) -> usize {
        let bytes = |piece: &Piece<'_>| match piece {
            Piece::Escaped(raw) => inside(*raw).len(),
            Piece::Plain(text) => text.len(),
        };
        self.0.iter().map(bytes).sum()
    }

    /// Length in UTF-16 units.
    pub fn units(&self) -> usize {
        let units = |piece: &Piece<'_>| match piece {
            Piece::Escaped(raw) => json_len::string(*raw).unwrap_or(0) as usize,
            Piece::Plain(text) => text::utf16_len(text),
        };
        self.0.iter().map(units).sum()
    }

    /// The text's characters; a lone surrogate is U+FFFD.
    pub fn chars(&self) -> impl Iterator<Item = char> + '_ {
        self.0.iter().flat_map(|piece| match piece {
            Piece::Escaped(raw) => Unescaped { text: inside(*raw), plain: false },
            Piece::Plain(text) => Unescaped { text, plain: true },
        })
    }

    /// The start of the text with white space collapsed, at most `max` UTF-16 units; a character that the end would
    /// split is U+FFFD.
    pub fn preview(&self, max: usize) -> String {
        let mut out = String::new();
        let mut units = 0;
        let mut gap = false;
        for c in self.chars() {
            if c.is_whitespace() || c == '\u{feff}' {
                gap = !out.is_empty();
                continue;
            }
            for c in gap.then_some(' ').into_iter().chain([c]) {
                if units + c.len_utf16() > max {
                    if units < max {
                        out.push('\u{fffd}');
                    }
                    out.truncate(out.trim_end().len());
                    return out;
                }
                units += c.len_utf16();
                out.push(c);
            }
            gap = false;
        }
        out
    }

    /// The text as one JSON string, in parts that need not be copied.
    pub fn json_parts(&self) -> Vec<Cow<'_, str>> {
        let part = |piece: &'_ Piece<'a>| match piece {
            Piece::Escaped(raw) => strict(inside(*raw)),
            Piece::Plain(text) => {
                let quoted = serde_json::Value::from(text.as_ref()).to_string();
                Cow::Owned(quoted[1..quoted.len() - 1].to_string())
            }
        };
        let quote = || std::iter::once(Cow::Borrowed("\""));
        quote().chain(self.0.iter().map(part)).chain(quote()).collect()
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.chars().collect()
    }
}

impl Piece<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Piece::Escaped(raw) => inside(*raw).is_empty(),
            Piece::Plain(text) => text.is_empty(),
        }
    }

    fn ends_line(&self) -> bool {
        match self {
            Piece::Escaped(raw) => inside(*raw).strip_suffix('n').is_some_and(|before| {
                let slashes = before.len() - before.trim_end_matches('\\').len();
                slashes % 2 == 1
            }),
            Piece::Plain(text) => text.ends_with('\n'),
        }
    }
}

/// JSON text without escapes that stand for half a character, which strict readers refuse.
pub fn strict(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    if memmem::find(bytes, b"\\ud").is_none() && memmem::find(bytes, b"\\uD").is_none() {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (length, whole) = match (hex_unit(escape), escape.get(6..).and_then(hex_unit)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (12, true),
            (Some(0xd800..0xe000), _) => (6, false),
            (Some(_), _) => (6, true),
            (None, _) => (1 + escape[1..].chars().next().map_or(0, char::len_utf8), true),
        };
        out.push_str(if whole { &escape[..length] } else { "\\ufffd" });
        rest = &escape[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The unit that a `\uXXXX` at the start of `text` stands for.
fn hex_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

struct Unescaped<'a> {
    text: &'a str,
    plain: bool,
}

impl Iterator for Unescaped<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let first = self.text.chars().next()?;
        let (c, length) = if self.plain || first != '\\' { (first, first.len_utf8()) } else { unescape(self.text) };
        self.text = self.text.get(length..).unwrap_or("");
        Some(c)
    }
}

/// The character that the escape at the start of `text` stands for, and the length of the escape.
fn unescape(text: &str) -> (char, usize) {
    if let Some(unit) = hex_unit(text) {
        let pair = [unit, text.get(6..).and_then(hex_unit).unwrap_or(0)];
        let first = char::decode_utf16(pair).next().and_then(Result::ok);
        return first.map_or(('\u{fffd}', 6), |c| (c, 6 * c.len_utf16()));
    }
    let c = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        _ => return text[1..].chars().next().map_or(('\\', 1), |c| (c, 1 + c.len_utf8())),
    };
    (c, 2)
}

fn string(value: Raw<'_>) -> Option<Piece<'_>> {
    value.text().starts_with('"').then_some(Piece::Escaped(value))
}

/// What stands between the quotes of a JSON string.
fn inside(string: Raw<'_>) -> &str {
    let text = string.text();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

fn flag(object: &Object<'_>, key: &str) -> bool {
    object.get(key).and_then(Raw::bool) == Some(true)
}

fn command<'a>(stdout: Option<Piece<'a>>, stderr: Option<Piece<'a>>, interrupted: bool) -> Body<'a> {
    let mut pieces = Vec::new();
    let mut part = |head: &'static str, text: Piece<'a>| {
        if pieces.last().is_some_and(|last: &Piece<'_>| !last.ends_line()) {
            pieces.push(Piece::Plain("\n".into()));
        }
        if !head.is_empty() {
            pieces.push(Piece::Plain(head.into()));
        }
        pieces.push(text);
    };
    for (head, text) in [("", stdout), (STDERR, stderr)] {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            part(head, text);
        }
    }
    if interrupted {
        part("", Piece::Plain(INTERRUPTED.into()));
    }
    Body(pieces)
}

enum Texts<'a> {
    Found(Body<'a>),
    OnlyBinary,
    Other,
}

/// The text blocks of a message's content, one below the other.
fn texts<'a>(blocks: &[Raw<'a>]) -> Texts<'a> {
    let mut pieces = Vec::new();
    let mut binary = false;
    for block in blocks {
        let Some(block) = block.object() else { return Texts::Other };
        match (block.str("type").as_deref(), block.get("text").and_then(string)) {
            (Some("text"), Some(text)) => pieces.push(text),
            (Some("image" | "audio" | "document" | "resource_link" | "resource"), _) => binary = true,
            _ => return Texts::Other,
        }
    }
    match (pieces.is_empty(), binary) {
        (false, _) => Texts::Found(Body(lines(pieces))),
        (true, true) => Texts::OnlyBinary,
        (true, false) => Texts::Other,
    }
}

/// Each piece on lines of its own.
fn lines(pieces: Vec<Piece<'_>>) -> Vec<Piece<'_>> {
    let mut out: Vec<Piece<'_>> = Vec::with_capacity(pieces.len() * 2);
    for piece in pieces {
        if out.last().is_some_and(|last| !last.ends_line()) {
            out.push(Piece::Plain("\n".into()));
        }
        out.push(piece);
    }
    out
}

/// The cells of a notebook: what stands in them and what they printed.
fn notebook<'a>(cells: &[Raw<'a>]) -> Body<'a> {
    let mut pieces = Vec::new();
    for cell in cells.iter().filter_map(|cell| cell.object()) {
        pieces.extend(cell.get("source").and_then(string));
        let outputs = cell.get("outputs").and_then(Raw::items).unwrap_or_default();
        pieces.extend(outputs.iter().filter_map(|output| output.object()?.get("text").and_then(string)));
    }
    Body(lines(pieces))
}

/// The hunks of an edit as a unified diff.
fn diff<'a>(hunks: &[Raw<'a>]) -> Body<'a> {
    let mut pieces = Vec::new();
    for hunk in hunks.iter().filter_map(|hunk| hunk.object()) {
        let number = |key: &str| hunk.get(key).and_then(Raw::u64).unwrap_or(0);
        let [old, olds, new, news] = ["oldStart", "oldLines", "newStart", "newLines"].map(number);
        pieces.push(Piece::Plain(format!("@@ -{old},{olds} +{new},{news} @@").into()));
        pieces.extend(hunk.get("lines").and_then(Raw::items).unwrap_or_default().into_iter().filter_map(string));
    }
    Body(lines(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(json: &str) -> Option<String> {
        Body::of(&ToolResponse::new(Raw::new(json))).map(|body| body.text())
    }

    #[test]
    fn archived_bodies_are_readable_text() {
        for (json, want) in [
            (r#""plain \"text\" \ud83d\ude42\n""#, Some("plain \"text\" 🙂\n")),
            (r#"{"stdout":"out","stderr":"","interrupted":false,"isImage":false}"#, Some("out")),
            (r#"{"stdout":"out","stderr":"oh\n"}"#, Some("out\n[stderr]\noh\n")),
            (r#"{"stdout":"out\n","stderr":"oh"}"#, Some("out\n[stderr]\noh")),
            (r#"{"stdout":"a\\n","stderr":"oh"}"#, Some("a\\n\n[stderr]\noh")),
            (r#"{"stdout":"","stderr":"oh","interrupted":true}"#, Some("[stderr]\noh\n[interrupted]\n")),
            (r#"{"stdout":"data:image/png","isImage":true}"#, None),
            (r#"{"type":"text","file":{"filePath":"/a","content":"l1\nl2\n","numLines":3}}"#, Some("l1\nl2\n")),
            (r#"{"type":"image","file":{"base64":"AAAA","type":"image/png"}}"#, None),
            (
                r#"{"file":{"cells":[{"source":"x = 1","outputs":[{"text":"1\n"}]},{"source":"y"}]}}"#,
                Some("x = 1\n1\ny"),
            ),
            (r#"{"type":"create","filePath":"/a","content":"whole","structuredPatch":[]}"#, Some("whole")),
            (
                r#"{"filePath":"/a","oldString":"x","originalFile":"x\n","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-x","+y"]}]}"#,
                Some("@@ -1,1 +1,1 @@\n-x\n+y"),
            ),
            (r#"{"mode":"files_with_matches","filenames":["a.rs","b.rs"],"numFiles":2}"#, Some("a.rs\nb.rs")),
            (r#"{"mode":"content","content":"a.rs:1:x","filenames":[]}"#, Some("a.rs:1:x")),
            (r#"{"url":"http://x","code":200,"result":"page"}"#, Some("page")),
            (
                r#"[{"type":"text","text":"one"},{"type":"image","data":"AA"},{"type":"text","text":"two"}]"#,
                Some("one\ntwo"),
            ),
            (r#"{"content":[{"type":"text","text":"agent says"}],"totalTokens":5}"#, Some("agent says")),
            (r#"[{"type":"image","data":"AA"}]"#, None),
            (r#"[1,2]"#, Some("[1,2]")),
            ("{\n \"a\": [1, null]\n}", Some("{\"a\":[1,null]}")),
            ("false", Some("false")),
            ("null", Some("null")),
            (r#"{"a":"日本 🙂","n":1.5}"#, Some(r#"{"a":"日本 🙂","n":1.5}"#)),
        ] {
            assert_eq!(read(json).as_deref(), want, "{json}");
        }
    }

    #[test]
    fn previews_collapse_white_space_and_say_where_a_character_was_cut() {
        for (text, want) in [
            ("  a\n\n \tb  ".to_string(), "a b".to_string()),
            ("y".repeat(159) + "\n\nz", "y".repeat(159)),
            ("x".repeat(159) + "🙂end", "x".repeat(159) + "\u{fffd}"),
            ("x".repeat(300), "x".repeat(160)),
        ] {
            assert_eq!(Body::plain(&text).preview(160), want);
        }
    }

    #[test]
    fn half_a_character_never_reaches_the_file() {
        let json = r#""a \ud83d b \udc00\ud83d\ude42 \\ud83d \u00e9""#;
        let body = Body::of(&ToolResponse::new(Raw::new(json))).unwrap();
        let out = body.json_parts().concat();
        assert_eq!(out, r#""a \ufffd b \ufffd\ud83d\ude42 \\ud83d \u00e9""#);
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), "a \u{fffd} b \u{fffd}🙂 \\ud83d é");
        assert_eq!(body.units(), 18);
    }

    proptest! {
        #[test]
        fn a_body_is_its_text(text in "(?s).{0,60}", error in "[a\n\"\\\\é🙂]{0,8}") {
            let json = serde_json::json!({"stdout": text, "stderr": error}).to_string();
            let body = Body::of(&ToolResponse::new(Raw::new(&json))).unwrap();
            let out = body.json_parts().concat();
            let whole = body.text();
            prop_assert_eq!(&serde_json::from_str::<String>(&out).unwrap(), &whole);
            prop_assert_eq!(body.units(), whole.encode_utf16().count());
            prop_assert!(whole.starts_with(&text) && whole.ends_with(&error));
        }
    }
}
