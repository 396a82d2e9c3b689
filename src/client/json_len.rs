//! Lengths of JSON without making the text: what a value takes when it is written compactly, and what a string takes
//! when it is read. Both in UTF-16 units, as the client counts; one pass, nothing copied.

use memchr::{memchr, memchr_iter, memmem};

use super::json::{Raw, string_end};

/// The length of a value as JavaScript's `JSON.stringify` writes it: no white space, shortest numbers, the last of equal
/// keys.
pub fn compact(raw: Raw<'_>) -> u64 {
    let text = raw.text();
    let bytes = text.as_bytes();
    let (mut at, mut total) = (0, 0);
    let mut open: Vec<Option<Keys<'_>>> = Vec::new();
    while at < bytes.len() {
        let begin = at;
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at).unwrap_or(bytes.len());
                let inner = &text[begin + 1..at.saturating_sub(1).max(begin + 1)];
                if let Some(Some(keys)) = open.last_mut() {
                    keys.see_string(inner, total);
                }
                total += 2 + written_units(inner);
            }
            b'{' | b'[' => {
                open.push((bytes[at] == b'{').then(Keys::default));
                total += 1;
                at += 1;
            }
            b'}' | b']' => {
                if let Some(Some(keys)) = open.pop() {
                    total -= keys.superseded(total);
                }
                total += 1;
                at += 1;
            }
            b',' => {
                if let Some(Some(keys)) = open.last_mut() {
                    keys.end_entry(total);
                }
                total += 1;
                at += 1;
            }
            b':' => {
                total += 1;
                at += 1;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => {
                let ends = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
                at += bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
                total += scalar(&text[begin..at]);
            }
        }
    }
    total
}

/// The length of a string once it is read; none for a value that is no string.
pub fn string(raw: Raw<'_>) -> Option<u64> {
    let inner = raw.text().strip_prefix('"')?.strip_suffix('"')?;
    Some(read_units(inner))
}

/// The entries of an open object, to find those that a later equal key supersedes.
#[derive(Default)]
struct Keys<'a> {
    entries: Vec<(&'a str, u64)>,
    begun: Option<(&'a str, u64)>,
}

impl<'a> Keys<'a> {
    /// The first string of an entry is its key.
    fn see_string(&mut self, text: &'a str, total: u64) {
        self.begun.get_or_insert((text, total));
    }

    fn end_entry(&mut self, total: u64) {
        if let Some((key, begun)) = self.begun.take() {
            self.entries.push((key, total - begun));
        }
    }

    /// What the superseded entries take, each with a comma.
    fn superseded(mut self, total: u64) -> u64 {
        self.end_entry(total);
        let mut entries: Vec<(&str, usize, u64)> =
            self.entries.iter().enumerate().map(|(at, (key, len))| (*key, at, *len)).collect();
        entries.sort_unstable();
        entries.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].2 + 1).sum()
    }
}

/// The units of a string's inside once it is read: an escape is one, `\uXXXX` as well. Escapes are counted many bytes at a
/// time, from one escaped backslash to the next: between them every backslash begins an escape.
fn read_units(inner: &str) -> u64 {
    let (pair, code) = (memmem::Finder::new(br"\\"), memmem::Finder::new(br"\u"));
    let mut rest = inner.as_bytes();
    let mut saved = 0;
    loop {
        let end = pair.find(rest);
        let part = &rest[..end.unwrap_or(rest.len())];
        saved += memchr_iter(b'\\', part).count() + 4 * code.find_iter(part).count();
        let Some(end) = end else { return plain_units(inner).saturating_sub(saved as u64) };
        saved += 1;
        rest = &rest[end + 2..];
    }
}

/// The units of a string's inside when it is written compactly.
fn written_units(inner: &str) -> u64 {
    let mut total = plain_units(inner);
    let mut at = 0;
    // Escapes are ASCII, so what they were counted for above is their length.
    while let Some(next) = inner.as_bytes().get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += next;
        let (units, taken) = escape(&inner[at..]);
        let taken = taken.min(inner.len() - at);
        total = total + units - taken as u64;
        at += taken;
    }
    total
}

fn plain_units(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    // A character's first byte counts once, and once more where the character lies beyond the basic plane.
    text.bytes().map(|byte| u64::from(byte & 0xc0 != 0x80) + u64::from(byte >= 0xf0)).sum()
}

/// Units of the escape at the start of `text`, and the bytes that it takes.
fn escape(text: &str) -> (u64, usize) {
    match text.as_bytes().get(1) {
        Some(b'u') => {}
        Some(b'/') => return (1, 2),
        _ => return (2, 2),
    }
    let code = hex(text);
    let pair = (0xd800..0xdc00).contains(&code) && (0xdc00..0xe000).contains(&hex(text.get(6..).unwrap_or("")));
    let units = match code {
        0x08 | 0x09 | 0x0a | 0x0c | 0x0d | 0x22 | 0x5c => 2,
        0..0x20 => 6,
        0xd800..0xe000 if !pair => 6,
        _ => 1,
    };
    if pair { (2, 12) } else { (units, 6) }
}

/// The code of a `\uXXXX` at the start of `text`; beyond all codes when there is none.
fn hex(text: &str) -> u32 {
    let digits = text.strip_prefix("\\u").and_then(|rest| rest.get(..4));
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(u32::MAX)
}

/// The length of `true`, `false`, `null` or a number as JavaScript writes it.
fn scalar(text: &str) -> u64 {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit()) && text != "-0";
    let Some(number) = (!plain).then(|| text.parse::<f64>().ok()).flatten() else { return text.len() as u64 };
    if !number.is_finite() {
        return 4; // null
    }
    if number == 0.0 {
        return 1;
    }
    // The shortest digits that read back as the same number, and where the point stands behind the first.
    let shortest = format!("{:e}", number.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.len() as i64 - i64::from(mantissa.contains('.'));
    let point = exponent.parse::<i64>().unwrap_or(0) + 1;
    let length = match point {
        point if (digits..=21).contains(&point) => point,
        1..=21 => digits + 1,
        -5..=0 => 2 - point + digits,
        _ => {
            let exponent = (point - 1).abs().to_string().len() as i64;
            digits + i64::from(digits > 1) + 2 + exponent
        }
    };
    length as u64 + u64::from(number < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_as_javascript_writes_them() {
        for (text, written) in [
            (r#"{ "a" : 1.0, "b":1e3 }"#, r#"{"a":1,"b":1000}"#),
            (r#"[1E21,0.10,-0,123456789012345678901234567890,1e-7]"#, "[1e+21,0.1,0,1.2345678901234568e+29,1e-7]"),
            (
                "[0.000001,-12.5,1e21,100000000000000000000,-1.5e-9]",
                "[0.000001,-12.5,1e+21,100000000000000000000,-1.5e-9]",
            ),
            (r#"{"a":1,"b":[2,{"a":3}],"a":{"x":4}}"#, r#"{"b":[2,{"a":3}],"a":{"x":4}}"#),
            (r#"{"a":1,"a":22}"#, r#"{"a":22}"#),
            (r#""é\u00e9\/\n\u000a\u0001\ud83d\ude42 \ud83d""#, r#""éé/\n\n\u0001🙂 \ud83d""#),
            ("{}", "{}"),
            ("[ ]", "[]"),
            ("null", "null"),
            (r#"{"a":"\\","b":"\""}"#, r#"{"a":"\\","b":"\""}"#),
        ] {
            assert_eq!(compact(Raw::new(text)), written.encode_utf16().count() as u64, "{text}");
        }
    }

    #[test]
    fn strings_count_as_they_read() {
        for (text, units) in [(r#""é\u00e9\n🙂\ud83d\ude42\\""#, 8), (r#""""#, 0), ("\"日本\"", 2)] {
            assert_eq!(string(Raw::new(text)), Some(units), "{text}");
        }
        assert_eq!(string(Raw::new("5")), None);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_string_is_as_long_as_it_reads(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![r"\\", r"\n", r#"\""#, r"\/", r"\u005c", r"\ud83d\ude42", "u", "n", "é", "🙂", "x"]),
                0..40,
            )
        ) {
            let text = format!("\"{}\"", parts.concat());
            let read: String = serde_json::from_str(&text).unwrap();
            proptest::prop_assert_eq!(string(Raw::new(&text)), Some(read.encode_utf16().count() as u64));
            proptest::prop_assert_eq!(string_end(text.as_bytes(), 0), Some(text.len()));
            let written = serde_json::to_string(&read).unwrap();
            proptest::prop_assert_eq!(compact(Raw::new(&text)), written.encode_utf16().count() as u64);
        }
    }

    #[test]
    fn deep_nesting_is_no_stack_overflow() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(compact(Raw::new(&deep)), 400_000);
    }
}
