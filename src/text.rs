//! Untrusted text to safe cells: stripping control characters, display widths, cuts that never split a character; and
//! numbers, money and durations as people read them.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Removes what must not reach a terminal or a prompt from outside: control characters (so every escape sequence loses
/// its head), bidirectional overrides and zero-width characters. Tabs and line breaks become one space. Joiners inside
/// emoji stay, since they belong to what is seen. Borrowed when there is nothing to remove.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_unsafe(c) || matches!(c, '\u{200d}' | '\u{fe0f}')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{200d}' | '\u{fe0f}' if out.chars().next_back().is_some_and(is_emoji_like) => out.push(c),
            '\u{200d}' | '\u{fe0f}' => {}
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Removes what must not reach a terminal from a whole answer: like [`sanitize`], but lines and tabs stay, and so do the
/// colours that si itself puts in. Borrowed when there is nothing to remove.
pub fn printable(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !is_unsafe(c);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = colour_len(rest).unwrap_or(c.len_utf8());
        if taken > c.len_utf8() || stays(c) {
            out.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

/// The length of the colour sequence that `text` starts with.
fn colour_len(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\x1b[")?;
    let end = body.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    body[end..].starts_with('m').then_some("\x1b[".len() + end + 1)
}

/// Whether a character must not reach a terminal from outside: control, bidirectional and zero-width characters.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{061c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn is_emoji_like(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '#' | '*' | '0'..='9')
}

/// Columns that `text` takes on a terminal: wide characters and emoji two, combining marks none. No escape sequences.
pub fn width(text: &str) -> usize {
    let mut total = 0;
    let mut last = 0;
    let mut joined = false;
    for c in text.chars() {
        match c {
            '\u{200d}' => joined = true,
            // The emoji form of a narrow sign is drawn in two columns.
            '\u{fe0f}' => {
                total += 2usize.saturating_sub(last).min(1) * usize::from(last == 1);
                last = 2;
            }
            _ => {
                let columns = UnicodeWidthChar::width(c).unwrap_or(0);
                if !(joined && columns == 2) {
                    total += columns;
                }
                joined = false;
                if columns > 0 {
                    last = columns;
                }
            }
        }
    }
    total
}

/// Cuts `text` to at most `max` columns, the last one an ellipsis where something was cut.
pub fn fit(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    if max == 0 {
        return Cow::Borrowed("");
    }
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        if width(&text[..next]) > max - 1 {
            break;
        }
        end = next;
    }
    // A joiner or a selector at the cut belongs to the character that went.
    let kept = text[..end].trim_end_matches(['\u{200d}', '\u{fe0f}']).trim_end();
    Cow::Owned(format!("{kept}…"))
}

/// Length in UTF-16 code units, which is how the client counts characters.
pub fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The longest start of `text` of at most `max` UTF-16 units; a character is never split.
pub fn cut_utf16(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > max {
            return &text[..at];
        }
    }
    text
}

/// Cuts `text` to at most `max` UTF-16 units, the last one an ellipsis where something was cut.
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if utf16_len(text) <= max {
        return Cow::Borrowed(text);
    }
    let kept = cut_utf16(text, max.saturating_sub(1)).trim_end_matches(['\u{200d}', '\u{fe0f}']);
    Cow::Owned(format!("{kept}…"))
}

/// `value` with `digits` decimals (at most 3), ties away from zero on the exact binary value, as JavaScript's `toFixed`
/// rounds; Rust's own formatting rounds ties to even.
pub fn fixed(value: f64, digits: u32) -> String {
    let digits = digits.min(3);
    // A tie is an odd multiple of 2^-(digits + 1): nothing else ends exactly one digit further in both systems.
    let halves = value.abs() * f64::from(1 << (digits + 1));
    let tie = halves < 9.0e12 && halves.fract() == 0.0 && halves % 2.0 == 1.0;
    let away = if tie { value + value.signum() * 1e-4 } else { value };
    format!("{away:.*}", digits as usize)
}

/// A value rounded to a whole number, halves up, as JavaScript's `Math.round` does.
pub fn round(value: f64) -> f64 {
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// Dollars with cents: `$7.56`.
pub fn money(dollars: f64) -> String {
    format!("${}", fixed(dollars, 2))
}

/// Tokens in whole thousands, halves up: `950`, `425k`; from 999,500 on in millions with up to two decimals: `1M`,
/// `1.25M`.
pub fn tokens_whole(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_500 => format!("{}k", (tokens + 500) / 1_000),
        _ => {
            let millions = fixed(tokens as f64 / 1e6, 2);
            format!("{}M", millions.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

/// Tokens with a decimal: `950`, `60.4k`, `75.30M`.
pub fn tokens_fine(tokens: f64) -> String {
    if tokens < 1e3 {
        format!("{tokens}")
    } else if tokens < 1e6 {
        format!("{}k", fixed(tokens / 1e3, 1))
    } else {
        format!("{}M", fixed(tokens / 1e6, 2))
    }
}

/// Tokens as advice names them: `950`, `260k`, `1.3M`.
pub fn tokens_rough(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", (tokens + 500) / 1_000),
        _ => format!("{}M", fixed(tokens as f64 / 1e6, 1)),
    }
}

/// Dollars as advice names them: `$9.99`, `$12.3`, `$492`; empty for what is no cost.
pub fn money_rough(dollars: f64) -> String {
    match dollars {
        _ if dollars > 0.0 && dollars < 10.0 => format!("${}", fixed(dollars, 2)),
        10.0..100.0 => format!("${}", fixed(dollars, 1)),
        100.0..f64::INFINITY => format!("${}", fixed(dollars, 0)),
        _ => String::new(),
    }
}

/// A span of milliseconds: `0m`, `42m`, `3hr 42m`, `2hr`, `2d 19hr`. What is negative or not finite is `0m`.
pub fn duration(ms: f64) -> String {
    let minutes = if ms.is_finite() && ms > 0.0 { (ms / 60_000.0) as u64 } else { 0 };
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    match (days, hours, minutes) {
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, 0) => format!("{hours}hr"),
        (0, hours, minutes) => format!("{hours}hr {minutes}m"),
        (days, 0, _) => format!("{days}d"),
        (days, hours, _) => format!("{days}d {hours}hr"),
    }
}

/// How long ago something was, in short: `now` below a minute and in the future, `5m ago`, `25h1m ago`.
pub fn ago(ms: i64) -> String {
    let minutes = ms.max(0) / 60_000;
    match (minutes / 60, minutes % 60) {
        (0, 0) => "now".into(),
        (0, minutes) => format!("{minutes}m ago"),
        (hours, minutes) => format!("{hours}h{minutes}m ago"),
    }
}

/// Length of `text` inside a JSON string, in UTF-16 units: what it takes of a hook's reply.
pub fn json_units(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..'\u{20}' => 6,
            c => c.len_utf16(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_lose_their_control_characters() {
        for (attack, left) in [
            ("main\x1b]52;c;aGk=\x07", "main]52;c;aGk="),
            ("a\rb", "a b"),
            ("\u{202e}evil", "evil"),
            ("x\u{200b}y\u{feff}", "xy"),
            ("\u{9b}31mred", "31mred"),
            ("plain ✨ 日本", "plain ✨ 日本"),
            ("👩\u{200d}💻 ok", "👩\u{200d}💻 ok"),
        ] {
            assert_eq!(sanitize(attack), left, "{attack:?}");
        }
    }

    #[test]
    fn an_answer_keeps_its_lines_and_colours_alone() {
        for (text, left) in [
            ("a\tb\n\x1b[32m+c\x1b[0m\n", "a\tb\n\x1b[32m+c\x1b[0m\n"),
            ("\x1b]0;t\x07\x1b[2Jx\r\u{9b}31m\u{202e}\x7f", "]0;t[2Jx31m"),
            ("\x1b[31", "[31"),
            ("\x1b\x1b[1;31mx", "\x1b[1;31mx"),
        ] {
            assert_eq!(printable(text), left, "{text:?}");
        }
    }

    #[test]
    fn widths_follow_the_terminal() {
        for (text, columns) in
            [("abc", 3), ("日本", 4), ("e\u{301}", 1), ("🔥", 2), ("⚠\u{fe0f}", 2), ("👩\u{200d}💻", 2), ("▰▱", 2)]
        {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn cuts_never_split_a_character() {
        for (text, max, want) in
            [("abcdef", 4, "abc…"), ("日本語", 4, "日…"), ("ab", 2, "ab"), ("abc", 1, "…"), ("abc", 0, "")]
        {
            assert_eq!(fit(text, max), want, "{text:?} to {max}");
        }
        assert_eq!(cut_utf16("a🔥b", 2), "a");
        assert_eq!(cut_utf16("a🔥b", 3), "a🔥");
        assert_eq!(cut("🙂🙂🙂", 4), "🙂…");
        assert_eq!(cut("abc", 0), "…");
    }

    #[test]
    fn halves_round_away_from_zero_only_when_they_are_exact() {
        for (value, digits, want) in [
            (1.25, 1, "1.3"),
            (0.125, 2, "0.13"),
            (-0.125, 2, "-0.13"),
            (1.005, 2, "1.00"),
            (7.555, 2, "7.55"),
            (0.375, 2, "0.38"),
            (2.5, 0, "3"),
            (999.95, 1, "1000.0"),
            (1e15, 2, "1000000000000000.00"),
        ] {
            assert_eq!(fixed(value, digits), want, "{value} to {digits}");
        }
    }

    #[test]
    fn context_sizes_are_whole_thousands() {
        for (tokens, want) in [
            (0, "0"),
            (950, "950"),
            (999, "999"),
            (1_499, "1k"),
            (1_500, "2k"),
            (425_300, "425k"),
            (999_499, "999k"),
            (999_500, "1M"),
            (1_000_000, "1M"),
            (1_250_000, "1.25M"),
            (1_500_000, "1.5M"),
        ] {
            assert_eq!(tokens_whole(tokens), want);
        }
    }

    #[test]
    fn spans_name_their_two_largest_units() {
        for (ms, want) in [
            (0.0, "0m"),
            (7_199_999.0, "1hr 59m"),
            (7_200_000.0, "2hr"),
            (241_200_000.0, "2d 19hr"),
            (-1.0, "0m"),
            (f64::NAN, "0m"),
            (f64::INFINITY, "0m"),
        ] {
            assert_eq!(duration(ms), want, "{ms}");
        }
        assert_eq!([-1, 59_999, 60_000, 90_000_000].map(ago), ["now", "now", "1m ago", "25h0m ago"]);
    }
}
