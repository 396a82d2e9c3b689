//! Pins: text that the user chose to keep, brought back word for word after every compaction.

use crate::hooks::Call;
use crate::store::{Sid, Store};

/// The block with this session's pins for a session start, at most `room` units long as [`units`] counts; none when
/// there is nothing to bring back. Every source may call it: a fork first takes over its parent's pins, and old files
/// of other sessions are swept.
pub fn inject(_call: &Call<'_>, _room: usize) -> Option<String> {
    None
}

/// How many pins a session has; none without a pin file.
pub fn count(_store: &Store<'_>, _sid: &Sid) -> Option<usize> {
    None
}

/// Length of `text` inside a JSON string, in UTF-16 units: what it takes of a hook's reply.
pub fn units(text: &str) -> usize {
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
    fn units_are_those_of_the_reply() {
        let all: String = (0..0x80).filter_map(char::from_u32).chain("é日🙂\u{2028}".chars()).collect();
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(units(&all), json.encode_utf16().count() - 2);
    }
}
