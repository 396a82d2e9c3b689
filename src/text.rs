//! Untrusted text to safe cells: stripping control characters, display widths, cuts that never split a character.

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

fn is_unsafe(c: char) -> bool {
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
    }
}
