//! Lenient, borrowing JSON: an object is a list of keys with the raw text of their values, and each value is read as
//! the type that is wanted, or is absent. One leaf of a wrong type never harms its neighbours; the last of two equal
//! keys wins; a lone surrogate becomes U+FFFD.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The raw JSON text of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

/// An object whose values are still raw.
#[derive(Debug, Clone, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'a> Object<'a> {
    /// Reads an object; none when `text` is not one JSON object.
    pub fn parse(text: &'a str) -> Option<Object<'a>> {
        let mut de = serde_json::Deserializer::from_str(text);
        let object = de.deserialize_map(ObjectVisitor).ok()?;
        de.end().ok()?;
        Some(object)
    }

    /// The value of a key; null counts as absent.
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value).filter(|value| !value.is_null())
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<Raw<'a>> {
        let (last, parents) = path.split_last()?;
        let Some((first, rest)) = parents.split_first() else { return self.get(last) };
        let mut object = self.get(first)?.object()?;
        for key in rest {
            object = object.get(key)?.object()?;
        }
        object.get(last)
    }

    /// A string; none when absent or of another type.
    pub fn str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.str()
    }

    /// A string that names something: an empty one names nothing.
    pub fn name(&self, key: &str) -> Option<Cow<'a, str>> {
        self.str(key).filter(|name| !name.is_empty())
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }
}

impl<'a> Raw<'a> {
    /// Takes text that is known to be one JSON value.
    pub fn new(text: &'a str) -> Raw<'a> {
        Raw(text.trim())
    }

    /// The JSON text itself.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// A string, unescaped; lone surrogates become U+FFFD.
    pub fn str(self) -> Option<Cow<'a, str>> {
        if !self.0.starts_with('"') {
            return None;
        }
        let mut de = serde_json::Deserializer::from_str(self.0);
        de.deserialize_bytes(TextVisitor).ok()
    }

    /// A finite number.
    pub fn f64(self) -> Option<f64> {
        serde_json::from_str::<f64>(self.0).ok().filter(|number| number.is_finite())
    }

    /// A non-negative whole number; a fraction is cut off, as the client may send `12.0`.
    pub fn u64(self) -> Option<u64> {
        if let Ok(number) = self.0.parse::<u64>() {
            return Some(number);
        }
        self.f64().filter(|number| (0.0..9.0e15).contains(number)).map(|number| number as u64)
    }

    /// A number from 0 up to `most`, also one that was written as text; one outside is nonsense and counts as absent.
    pub fn amount(self, most: f64) -> Option<f64> {
        let number = self.f64().or_else(|| Raw::new(&self.str()?).f64())?;
        // Adding zero makes a negative zero a plain one.
        (0.0..=most).contains(&number).then_some(number + 0.0)
    }

    /// A truth value.
    pub fn bool(self) -> Option<bool> {
        self.0.parse().ok()
    }

    /// An object. The text was checked when the value around it was read, so it is only cut at its commas.
    pub fn object(self) -> Option<Object<'a>> {
        let mut cutter = Cutter::enter(self.0, '{')?;
        let mut members = Vec::with_capacity(16);
        while cutter.has_more('}')? {
            let key = Raw(cutter.value()?).str()?;
            cutter.eat(':').then_some(())?;
            members.push((key, Raw(cutter.value()?)));
        }
        cutter.is_done().then_some(Object(members))
    }

    /// The elements of an array.
    pub fn items(self) -> Option<Vec<Raw<'a>>> {
        let mut cutter = Cutter::enter(self.0, '[')?;
        let mut items = Vec::new();
        while cutter.has_more(']')? {
            items.push(Raw(cutter.value()?));
        }
        cutter.is_done().then_some(items)
    }

    /// The whole value as a tree; none where it holds what a tree cannot (a lone surrogate).
    pub fn value(self) -> Option<serde_json::Value> {
        serde_json::from_str(self.0).ok()
    }
}

/// Cuts JSON that is known to be valid into its values: a long string costs a search for its end, no more. Text that is
/// not valid after all is cut wrongly or not at all, and harms nothing else.
struct Cutter<'a> {
    rest: &'a str,
    begun: bool,
}

impl<'a> Cutter<'a> {
    fn enter(text: &'a str, open: char) -> Option<Cutter<'a>> {
        text.strip_prefix(open).map(|rest| Cutter { rest, begun: false })
    }

    fn eat(&mut self, mark: char) -> bool {
        let text = self.rest.trim_ascii_start();
        let rest = text.strip_prefix(mark);
        self.rest = rest.unwrap_or(text);
        rest.is_some()
    }

    /// Whether another value comes before the end of the object or array, the comma before it passed over.
    fn has_more(&mut self, close: char) -> Option<bool> {
        if self.eat(close) {
            return Some(false);
        }
        let apart = !std::mem::replace(&mut self.begun, true) || self.eat(',');
        apart.then_some(true)
    }

    fn is_done(&self) -> bool {
        self.rest.trim_ascii().is_empty()
    }

    fn value(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_ascii_start();
        let bytes = self.rest.as_bytes();
        let end = match bytes.first()? {
            b'"' => string_end(bytes, 0)?,
            b'{' | b'[' => {
                let (mut at, mut depth) = (0, 0usize);
                loop {
                    match bytes.get(at)? {
                        b'"' => at = string_end(bytes, at)? - 1,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break at;
                    }
                }
            }
            _ => bytes
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || b",]}:".contains(byte))
                .unwrap_or(bytes.len()),
        };
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!value.is_empty()).then_some(value)
    }
}

/// The index behind the closing quote of the string that begins at `at`. Only quotes are looked for, since of a log most
/// escapes are line ends: a quote closes the string unless an odd number of backslashes stands before it.
pub(super) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if let Some(end) = short_string_end(bytes, at) {
        return Some(end);
    }
    let begin = at + 1;
    let mut at = begin;
    loop {
        at += memchr::memchr(b'"', bytes.get(at..)?)? + 1;
        let slashes = bytes[begin..at - 1].iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            return Some(at);
        }
    }
}

/// The same for a string of up to 40 bytes without an escape, as keys, ids and moments are: eight bytes at a time, in
/// less than a call of [`memchr`] takes. None for any other.
pub(super) fn short_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    /// The highest bit of each byte that is the wanted one; a mark above the first may be wrong.
    const fn marks(word: u64, wanted: u8) -> u64 {
        const ONES: u64 = u64::MAX / 0xff;
        let zero = word ^ (ONES * wanted as u64);
        zero.wrapping_sub(ONES) & !zero & (ONES << 7)
    }
    let mut at = at + 1;
    for chunk in bytes.get(at..)?.as_chunks().0.iter().take(5) {
        let word = u64::from_le_bytes(*chunk);
        let (quotes, slashes) = (marks(word, b'"'), marks(word, b'\\'));
        if slashes.trailing_zeros() < quotes.trailing_zeros() {
            return None;
        }
        if quotes != 0 {
            return Some(at + quotes.trailing_zeros() as usize / 8 + 1);
        }
        at += chunk.len();
    }
    None
}

/// Bytes from outside to text that JSON can be read from: a BOM is dropped, bad bytes are replaced.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // The plain check takes many bytes at a time; the lossy one is needed only where it fails.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Text of bytes in which lone surrogates are encoded like characters, as the JSON reader hands them out.
fn wtf8(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(text) => {
                out.push_str(text);
                return out;
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                out.push_str(&String::from_utf8_lossy(good));
                out.push('\u{fffd}');
                let surrogate = bad.len() >= 3 && bad[0] == 0xed && bad[1] >= 0xa0;
                rest = &bad[if surrogate { 3 } else { error.error_len().unwrap_or(bad.len()) }..];
            }
        }
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut entries = Vec::with_capacity(16);
        while let Some(key) = map.next_key_seed(TextVisitor)? {
            entries.push((key, Raw(map.next_value::<&'de RawValue>()?.get())));
        }
        Ok(Object(entries))
    }
}

#[derive(Clone, Copy)]
struct TextVisitor;

impl<'de> DeserializeSeed<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, de: D) -> Result<Cow<'de, str>, D::Error> {
        de.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Cow<'de, str>, E> {
        Ok(std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(wtf8(bytes)), Cow::Borrowed))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(wtf8(bytes)))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_leaf_harms_no_neighbour() {
        let text = r#"{"a":{"b":12.0,"c":"x"},"s":"lone \ud83d end","n":null,"k\ud800":1,"a2":"1","a2":"2","t":true}"#;
        let object = Object::parse(text).unwrap();
        assert_eq!(object.at(&["a", "b"]).unwrap().u64(), Some(12));
        assert_eq!(object.at(&["a", "c"]).unwrap().u64(), None);
        assert_eq!(object.at(&["s", "c"]), None);
        assert_eq!(object.str("s").unwrap(), "lone \u{fffd} end");
        assert_eq!(object.get("n"), None);
        assert_eq!(object.str("a2").unwrap(), "2");
        assert_eq!(object.get("t").unwrap().bool(), Some(true));
        assert!(object.get("k\u{fffd}").is_some());
    }

    #[test]
    fn what_is_no_object_is_none() {
        for text in ["", "null", "[]", "{", "{}x", "\"s\"", "{\"a\":}"] {
            assert!(Object::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn values_are_cut_where_a_parser_would_cut_them() {
        for text in [
            r#"{}"#,
            r#" { "a" : [ 1 , {"b": "]}\\"} , [] ] , "c\"d" : "x\\\"y,{", "e":null,"f": -1.5e3 , "g" :true}"#,
            r#"{"a":{"a":{"a":[[[]]]}},"b":"\ud83d"}"#,
        ] {
            let (cut, parsed) = (Raw::new(text).object().unwrap(), Object::parse(text.trim()).unwrap());
            assert_eq!(cut.0, parsed.0, "{text}");
        }
        let items = Raw::new(r#"[ "a,b" , [1,2] , {"c":[3]} , 4 ]"#).items().unwrap();
        assert_eq!(items.iter().map(|item| item.text()).collect::<Vec<_>>(), ["\"a,b\"", "[1,2]", "{\"c\":[3]}", "4"]);
        assert_eq!(Raw::new("[]").items().unwrap(), []);
    }

    #[test]
    fn cutting_what_is_no_json_ends() {
        let odd = [
            "{",
            "{\"",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":[1}",
            "{1:2}",
            "{a:1}",
            "{}}",
            "{\"\\",
            "{:",
        ];
        for text in odd {
            assert!(Raw::new(text).object().is_none(), "{text:?}");
        }
        for text in ["[", "[1", "[1 2]", "[1,]", "[,1]", "[\"", "[[", "[1]]", "[:", "{}"] {
            assert!(Raw::new(text).items().is_none(), "{text:?}");
        }
    }

    #[test]
    fn bytes_from_outside_become_text() {
        assert_eq!(decode(b"\xef\xbb\xbf{\"a\":\"\xff\"}"), "{\"a\":\"\u{fffd}\"}");
    }

    #[test]
    fn deep_nesting_is_no_stack_overflow() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let object = Object::parse(&deep).unwrap();
        assert!(object.get("a").unwrap().value().is_none());
    }
}
