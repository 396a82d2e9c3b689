//! Walks over one line of JSON without checking or copying it, for rows of which little is wanted.
//!
//! Anything unusual (an escape in a wanted text, a fraction for a count, text behind the object) makes the walk answer
//! none, and the caller reads the line again with [`super::json`].

use memchr::memchr;

use super::json::{short_string_end, string_end};

/// A place in a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Whether nothing follows.
    pub fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Walks over an object: `field` is called behind each key and must walk over the value. A value of another kind is
    /// walked over without a call.
    pub fn object(&mut self, mut field: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        if self.peek()? != b'{' {
            return self.skip();
        }
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            // A key that is wanted may be spelt with escapes.
            let key = self.plain_string()?;
            self.eat(b':')?;
            field(self, key)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Answers none unless an object follows.
    pub fn peek_object(&mut self) -> Option<()> {
        (self.peek()? == b'{').then_some(())
    }

    /// Walks over a string and returns what stands between its quotes.
    fn raw_string(&mut self) -> Option<&'a [u8]> {
        self.eat(b'"')?;
        let begin = self.at;
        self.at = string_end(self.bytes, begin - 1)?;
        Some(&self.bytes[begin..self.at - 1])
    }

    /// The same for a string without escapes; none for any other.
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.peek()?;
        if let Some(end) = short_string_end(self.bytes, self.at).filter(|_| self.bytes[self.at] == b'"') {
            let raw = &self.bytes[self.at + 1..end - 1];
            self.at = end;
            return Some(raw);
        }
        self.raw_string().filter(|raw| memchr(b'\\', raw).is_none())
    }

    /// A text, or none for null.
    pub fn text(&mut self) -> Option<Option<&'a str>> {
        if self.peek()? != b'"' {
            return self.null().map(|()| None);
        }
        std::str::from_utf8(self.plain_string()?).ok().map(Some)
    }

    /// A whole number.
    pub fn count(&mut self) -> Option<u64> {
        if !self.peek()?.is_ascii_digit() {
            return None;
        }
        let mut count = 0u64;
        while let Some(digit) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            count = count.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.at += 1;
        }
        // A fraction or an exponent is left to the caller's other way.
        matches!(self.peek()?, b',' | b'}').then_some(count)
    }

    /// A truth value, false for null.
    pub fn flag(&mut self) -> Option<bool> {
        match self.peek()? {
            b't' => self.word(b"true").map(|()| true),
            b'f' => self.word(b"false").map(|()| false),
            _ => self.null().map(|()| false),
        }
    }

    fn null(&mut self) -> Option<()> {
        self.word(b"null")
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    /// Walks over a value of any kind.
    pub fn skip(&mut self) -> Option<()> {
        self.peek()?;
        let mut depth = 0usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => drop(self.raw_string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => return Some(()),
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' if depth == 0 => return Some(()),
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Walks over a value and returns its text.
    pub fn raw(&mut self) -> Option<&'a str> {
        self.peek()?;
        let begin = self.at;
        self.skip()?;
        std::str::from_utf8(&self.bytes[begin..self.at]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(text: &str) -> Option<Vec<(String, String)>> {
        let mut cursor = Cursor::new(text.as_bytes());
        let mut fields = Vec::new();
        cursor.object(|cursor, key| {
            fields.push((String::from_utf8_lossy(key).into_owned(), cursor.raw()?.to_owned()));
            Some(())
        })?;
        cursor.is_at_end().then_some(fields)
    }

    #[test]
    fn values_of_every_kind_are_walked_over_whole() {
        let text = r#" {"a":"x\\","b": [1,{"c":"]}\""}], "d":{} , "e":-1.5e3,"f":null,"g":true,"h":""} "#;
        let fields = walk(text).unwrap();
        let values: Vec<&str> = fields.iter().map(|(_, value)| value.trim_end()).collect();
        assert_eq!(values, [r#""x\\""#, r#"[1,{"c":"]}\""}]"#, "{}", "-1.5e3", "null", "true", r#""""#]);
        assert_eq!(walk("{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_cut_or_odd_is_none() {
        for text in [
            "",
            "{",
            "{\"\\u0061\":1}",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":\"x",
            "{\"a\":[1",
            "{\"a\":1",
            "{\"a\":1}x",
            "{\"a\" 1}",
            "{a:1}",
        ] {
            assert_eq!(walk(text), None, "{text:?}");
        }
        let count = |text: &str| Cursor::new(text.as_bytes()).count();
        assert_eq!((count("12,"), count(" 0 }")), (Some(12), Some(0)));
        for odd in ["1.5,", "null}", "\"1\",", "-1,", "1e3,", "99999999999999999999,", "12"] {
            assert_eq!(count(odd), None, "{odd}");
        }
        let text = |text: &str| Cursor::new(text.as_bytes()).text().map(|text| text.map(str::to_owned));
        assert_eq!(
            (text("\"x\""), text("null"), text("\"\\u0041\""), text("7")),
            (Some(Some("x".into())), Some(None), None, None)
        );
    }
}
