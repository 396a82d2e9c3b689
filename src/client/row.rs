//! One row of a transcript, read for what it says about tokens, models and compactions; the rest of it is passed over.
//!
//! Rows come from many releases of the client, and some from gateways. A row that has the usual shape is read in one pass
//! without copying; any other is read once more with every leaf optional, so that one odd value harms no other.

use std::borrow::Cow;

use memchr::memmem;

use super::cursor::Cursor;
use super::json::{self, Object, Raw};
use super::transcript::Boundary;
use super::usage::{self, Usage};
use crate::env::parse_iso;

/// The model of replies that the client makes up itself.
const SYNTHETIC: &str = "<synthetic>";
/// The subtype of the row that marks a compaction.
pub(crate) const COMPACT_BOUNDARY: &str = "compact_boundary";
/// What rows of interest hold: a usage, or the mark of a compaction.
pub(crate) const NEEDLES: [&str; 2] = ["\"usage\"", "\"compact_boundary\""];

/// What a row says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Row<'a> {
    /// The message's id, else the row's own; none when it has neither.
    pub id: Option<Cow<'a, str>>,
    /// The session that wrote the row first.
    pub session: Option<Cow<'a, str>>,
    /// Whether a subagent's conversation wrote it.
    pub sidechain: bool,
    /// When it was written, epoch milliseconds.
    pub at_ms: Option<i64>,
    /// `user`, `assistant`, `system`…
    pub kind: Option<Cow<'a, str>>,
    pub says: Says<'a>,
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Says<'a> {
    /// A reply of the API, and the model that wrote it.
    Used { usage: Usage, model: Cow<'a, str> },
    /// A compaction of the conversation.
    Compacted(Boundary),
    /// Anything else, a reply that the client made up included.
    #[default]
    Other,
}

impl<'a> Row<'a> {
    /// Reads a line; none when it is not one JSON object.
    pub fn parse(line: &'a [u8]) -> Option<Row<'a>> {
        usual(line).or_else(|| Object::parse(&json::decode(line)).map(|object| of_object(&object)))
    }

    /// The rows of a line: one as a rule. A writer that was killed leaves half a row without a line break, and the next
    /// goes on behind it, so that a line that tells nothing in the usual way is looked through for where one begins.
    pub fn all(line: &'a [u8]) -> impl DoubleEndedIterator<Item = Row<'a>> {
        let mut whole = usual(line);
        let mut rows = Vec::new();
        if whole.as_ref().is_none_or(|row| row.says == Says::Other) {
            rows.extend(pieces(line).into_iter().filter_map(usual));
            whole = if rows.is_empty() { whole.or_else(|| Row::parse(line)) } else { None };
        }
        whole.into_iter().chain(rows)
    }

    /// The usage of a reply in the main conversation that says how large its context was.
    pub fn context(&self) -> Option<(&Usage, &str)> {
        match &self.says {
            Says::Used { usage, model } if !self.sidechain && !usage.is_empty() => Some((usage, model)),
            _ => None,
        }
    }
}

/// What rows with something to tell begin with.
const BEGINNINGS: [&str; 4] =
    ["{\"parentUuid\":", "{\"type\":\"assistant\"", "{\"type\":\"user\"", "{\"type\":\"system\""];

/// A line cut where rows begin behind its start; none where none does. In the texts of a row none of this can stand, since
/// quotes are escaped there; an object in a row that begins so is no piece of its own, since the rest of the row follows it.
fn pieces(line: &[u8]) -> Vec<&[u8]> {
    let begins = |at: &usize| {
        let behind_another = line[..*at].ends_with(b"}");
        *at > 0 && (behind_another || BEGINNINGS.iter().any(|sign| line[*at..].starts_with(sign.as_bytes())))
    };
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in memmem::find_iter(line, b"{\"").filter(begins) {
        pieces.push(&line[from..at]);
        from = at;
    }
    if from > 0 {
        pieces.push(&line[from..]);
    }
    pieces
}

/// Reads a row of the usual shape; none for any other.
fn usual(line: &[u8]) -> Option<Row<'_>> {
    let (mut row, mut own_id, mut timestamp, mut compact, mut reply, mut is_boundary) =
        (Row::default(), None, None, None, None, false);
    let mut cursor = Cursor::new(line);
    cursor.peek_object()?;
    cursor.object(|cursor, key| {
        match key {
            b"message" => (row.id, reply) = message(cursor)?,
            b"isSidechain" => row.sidechain = cursor.flag()?,
            b"sessionId" => row.session = named(cursor)?.map(Cow::from),
            b"timestamp" => timestamp = cursor.text()?,
            b"type" => row.kind = cursor.text()?.map(Cow::from),
            b"uuid" if row.id.is_none() => own_id = named(cursor)?,
            b"subtype" => is_boundary = cursor.text()? == Some(COMPACT_BOUNDARY),
            b"compactMetadata" => compact = Some(cursor.raw()?),
            _ => cursor.skip()?,
        }
        Some(())
    })?;
    row.id = row.id.or(own_id.map(Cow::from));
    row.at_ms = timestamp.and_then(parse_iso);
    row.says = match reply {
        _ if is_boundary => Says::Compacted(boundary(compact.and_then(|raw| Raw::new(raw).object()), row.at_ms)),
        Some((usage, model)) if is_message(row.kind.as_deref()) => used(usage, model.into()),
        _ => Says::Other,
    };
    cursor.is_at_end().then_some(row)
}

/// The twin of [`Object::name`].
fn named<'a>(cursor: &mut Cursor<'a>) -> Option<Option<&'a str>> {
    Some(cursor.text()?.filter(|text| !text.is_empty()))
}

type Reply<'a> = (Usage, &'a str);

/// The id of a message, and its usage and model if it tells a usage.
fn message<'a>(cursor: &mut Cursor<'a>) -> Option<(Option<Cow<'a, str>>, Option<Reply<'a>>)> {
    let (mut id, mut model, mut usage) = (None, None, None);
    cursor.object(|cursor, key| {
        match key {
            b"id" => id = named(cursor)?,
            b"model" => model = cursor.text()?,
            b"usage" => usage = Some(usage_object(cursor)?),
            _ => cursor.skip()?,
        }
        Some(())
    })?;
    Some((id.map(Cow::from), usage.map(|usage| (usage, model.unwrap_or_default()))))
}

fn usage_object(cursor: &mut Cursor<'_>) -> Option<Usage> {
    // A figure beyond all sense is left to the patient reading.
    let tokens = |cursor: &mut Cursor<'_>| cursor.count().filter(|&tokens| tokens <= usage::MAX_TOKENS);
    let (mut usage, mut writes, mut lifetimes) = (Usage::default(), 0, (0, 0));
    cursor.peek_object()?;
    cursor.object(|cursor, key| {
        match key {
            b"input_tokens" => usage.input = tokens(cursor)?,
            b"output_tokens" => usage.output = tokens(cursor)?,
            b"cache_creation_input_tokens" => writes = tokens(cursor)?,
            b"cache_read_input_tokens" => usage.cache_read = tokens(cursor)?,
            b"cache_creation" => cursor.object(|cursor, key| {
                match key {
                    b"ephemeral_5m_input_tokens" => lifetimes.0 = tokens(cursor)?,
                    b"ephemeral_1h_input_tokens" => lifetimes.1 = tokens(cursor)?,
                    _ => cursor.skip()?,
                }
                Some(())
            })?,
            b"output_tokens_details" => cursor.object(|cursor, key| {
                match key {
                    b"thinking_tokens" => usage.thinking = Some(tokens(cursor)?),
                    _ => cursor.skip()?,
                }
                Some(())
            })?,
            _ => cursor.skip()?,
        }
        Some(())
    })?;
    Some(usage.with_writes(writes, lifetimes))
}

/// Reads a row of any shape.
fn of_object(row: &Object<'_>) -> Row<'static> {
    let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
    let message = row.get("message").and_then(Raw::object).unwrap_or_default();
    let at_ms = row.get("timestamp").and_then(moment);
    let kind = owned(row.str("type"));
    let says = if row.str("subtype").as_deref() == Some(COMPACT_BOUNDARY) {
        Says::Compacted(boundary(row.get("compactMetadata").and_then(Raw::object), at_ms))
    } else if let Some(usage) = message.get("usage").and_then(Raw::object).filter(|_| is_message(kind.as_deref())) {
        used(Usage::parse(&usage), owned(message.str("model")).unwrap_or_default())
    } else {
        Says::Other
    };
    Row {
        id: owned(message.name("id").or_else(|| row.name("uuid"))),
        session: owned(row.name("sessionId")),
        sidechain: row.get("isSidechain").and_then(Raw::bool) == Some(true),
        at_ms,
        kind,
        says,
    }
}

/// Whether rows of a kind are messages: others may hold a copy of one, and grow with every release.
pub(crate) fn is_message(kind: Option<&str>) -> bool {
    matches!(kind, None | Some("assistant" | "user"))
}

fn used(usage: Usage, model: Cow<'_, str>) -> Says<'_> {
    if model == SYNTHETIC { Says::Other } else { Says::Used { usage, model } }
}

fn boundary(metadata: Option<Object<'_>>, at_ms: Option<i64>) -> Boundary {
    let metadata = metadata.unwrap_or_default();
    let tokens = |key: &str| metadata.get(key).and_then(usage::count);
    Boundary {
        at_ms,
        pre_tokens: tokens("preTokens"),
        post_tokens: tokens("postTokens"),
        trigger: metadata.str("trigger").map(Cow::into_owned),
    }
}

/// A timestamp: ISO 8601, or epoch milliseconds.
pub(crate) fn moment(raw: Raw<'_>) -> Option<i64> {
    match raw.str() {
        Some(text) => parse_iso(&text),
        None => raw.amount(1.0e15).map(|ms| ms as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usual row, as client 2.1.332 writes it.
    const USUAL: &str = r#"{"parentUuid":null,"isSidechain":false,"message":{"id":"m1","model":"claude-opus-5-5","content":[{"type":"text","text":"\"usage\":{}"}],"usage":{"input_tokens":12,"cache_creation_input_tokens":345,"cache_read_input_tokens":60643,"output_tokens":50,"output_tokens_details":{"thinking_tokens":7},"cache_creation":{"ephemeral_1h_input_tokens":40,"ephemeral_5m_input_tokens":0},"speed":"standard"}},"type":"assistant","uuid":"u1","timestamp":"2026-02-01T10:00:00.000Z","sessionId":"s1"}"#;

    #[test]
    fn the_quick_and_the_patient_reading_agree() {
        let usual = super::usual(USUAL.as_bytes()).unwrap();
        assert_eq!(usual, of_object(&Object::parse(USUAL).unwrap()));
        assert_eq!(usual.context().unwrap().0.context(), 61_000);
        let compact = r#"{"type":"system","subtype":"compact_boundary","timestamp":"2026-02-01T10:00:00.000Z","compactMetadata":{"trigger":"auto","preTokens":9,"postTokens":3}}"#;
        let usual = super::usual(compact.as_bytes()).unwrap();
        assert_eq!(usual, of_object(&Object::parse(compact).unwrap()));
        assert!(matches!(usual.says, Says::Compacted(Boundary { post_tokens: Some(3), .. })));
    }

    #[test]
    fn one_odd_leaf_harms_no_other() {
        for (from, to) in [
            (r#""output_tokens":50"#, r#""output_tokens":[5]"#),
            (r#""id":"m1""#, r#""id":17"#),
            (r#""timestamp":"2026-02-01T10:00:00.000Z""#, r#""timestamp":1769940000000"#),
            (r#""isSidechain":false"#, r#""isSidechain":"no""#),
            (r#""text":""#, "\"text\":\"\\ud83d \u{fc}"),
            (r#""speed":"standard""#, r#""speed":"standard","input_tokens":12"#),
            (r#""output_tokens":50"#, r#""output_tokens":18446744073709551615"#),
            (r#""sessionId":"s1""#, r#""sessionId":"s\u0031""#),
        ] {
            assert!(USUAL.contains(from), "{from}");
            let line = USUAL.replace(from, to);
            let row = Row::parse(line.as_bytes()).unwrap();
            assert_eq!(row.context().unwrap().0.context(), 61_000, "{to}");
            assert_eq!(row.at_ms, Some(1_769_940_000_000), "{to}");
            assert_eq!(row.session.as_deref(), Some("s1"), "{to}");
        }
        let mut bytes = USUAL.as_bytes().to_vec();
        let model = USUAL.find("opus").unwrap();
        bytes[model] = 0xff;
        assert_eq!(Row::parse(&bytes).unwrap().context().unwrap().1, "claude-\u{fffd}pus-5-5");
        let marked = [b"\xef\xbb\xbf".as_slice(), USUAL.as_bytes(), b"\r"].concat();
        assert!(Row::parse(&marked).unwrap().context().is_some());
    }

    #[test]
    fn rows_on_one_line_are_read_each() {
        let next = USUAL.replace("\"m1\"", "\"m2\"");
        let ids = |line: &str| -> Vec<String> {
            Row::all(line.as_bytes()).filter_map(|row| row.id.map(Cow::into_owned)).collect()
        };
        assert_eq!(ids(USUAL), ["m1"]);
        for half in [20, USUAL.find("12,").unwrap(), USUAL.len() - 1] {
            assert_eq!(ids(&format!("{}{next}", &USUAL[..half])), ["m2"], "{half}");
        }
        for half in 1..USUAL.len() {
            let line = format!("{}{next}", &USUAL[..half]);
            let told: Vec<u64> = Row::all(line.as_bytes()).filter_map(|row| Some(row.context()?.0.context())).collect();
            assert_eq!(told, [61_000], "{half}");
        }
        assert_eq!(ids(&format!("{}{next}", "\0".repeat(40))), ["m2"]);
        assert_eq!(ids(&format!("{USUAL}{next}")), ["m1", "m2"]);
        assert_eq!(ids(&format!("{USUAL}{{\"type\":\"mode\"}}{next}{}", &USUAL[..50])), ["m1", "m2"]);
        assert_eq!(ids(&USUAL[..USUAL.len() - 1]), [""; 0]);
    }

    #[test]
    fn what_says_nothing_about_the_context_is_no_context() {
        for (from, to) in
            [("\"isSidechain\":false", "\"isSidechain\":true"), ("claude-opus-5-5", "<synthetic>"), (":12,", ":0,")]
        {
            let line = USUAL.replace(from, to).replace(":345,", ":0,").replace(":60643,", ":0,").replace(":40,", ":0,");
            assert_eq!(Row::parse(line.as_bytes()).unwrap().context(), None, "{to}");
        }
        for odd in ["", "\\u0070"] {
            let copy = USUAL.replace("\"type\":\"assistant\"", &format!("\"type\":\"{odd}progress\""));
            assert_eq!(Row::parse(copy.as_bytes()).unwrap().says, Says::Other, "{odd}");
        }
        assert_eq!(Row::parse(b"oops"), None);
        assert_eq!(Row::parse(b"[1]"), None);
        assert_eq!(Row::parse(br#"{"message":{"usage":"x"}}"#).unwrap().says, Says::Other);
    }
}
