//! Literal words, found whatever their case, in text and in the raw JSON that holds the text.
//!
//! A word of ASCII is found by its rarest byte. Another one is compared character by character, but only where a part of
//! it that can be found fast stands nearby. Both are first looked for in the raw row, so that few rows are parsed.

use std::ops::Range;

use memchr::{memchr2_iter, memmem};

/// ASCII from common to rare, as transcripts hold it; what is not listed is rarer.
const COMMON: &[u8] = b" e\"tanio0srl1c2d:,u-p4m53678h9fgb/_w.yvk{}()[]";
/// The shortest run of ASCII in another word that is worth looking for by itself.
const RUN: usize = 3;

/// One word to look for.
#[derive(Debug)]
pub struct Word {
    text: Text,
    raw: RawSearch,
}

#[derive(Debug)]
enum Text {
    Ascii(Ascii),
    /// No character of it has another case.
    Caseless(Box<memmem::Finder<'static>>),
    Folded(Vec<char>),
}

/// What a row must hold for the word to be in it.
#[derive(Debug)]
enum RawSearch {
    /// A part of the word that JSON never escapes.
    Part(Ascii),
    /// One of these, or any escape.
    AnyOf(Vec<memmem::Finder<'static>>),
    /// Nothing: the word is all escapes.
    All,
}

impl Word {
    /// A word as it was typed; none when it is empty.
    pub fn new(word: &str) -> Option<Word> {
        let first = word.chars().next()?;
        let part = word.split(|c: char| !c.is_ascii() || c.is_ascii_control() || matches!(c, '"' | '\\' | '/'));
        let part = part.max_by_key(|part| part.len()).unwrap_or("");
        if word.is_ascii() {
            let raw = if part.is_empty() { RawSearch::All } else { RawSearch::Part(Ascii::new(part)) };
            return Some(Word { text: Text::Ascii(Ascii::new(word)), raw });
        }
        let raw = if part.len() >= RUN {
            RawSearch::Part(Ascii::new(part))
        } else {
            let rare = word.chars().find(|c| !c.is_ascii()).unwrap_or(first);
            let mut forms: Vec<_> = variants(rare).map(|c| memmem::Finder::new(&c.to_string()).into_owned()).collect();
            forms.push(memmem::Finder::new("\\u").into_owned());
            RawSearch::AnyOf(forms)
        };
        let text = match word.chars().all(is_caseless) {
            true => Text::Caseless(Box::new(memmem::Finder::new(word).into_owned())),
            false => Text::Folded(word.chars().map(fold).collect()),
        };
        Some(Word { text, raw })
    }

    /// Whether the text of a row of JSON may hold the word.
    pub fn may_be_in(&self, row: &[u8]) -> bool {
        match &self.raw {
            RawSearch::Part(part) => part.find(row).is_some(),
            RawSearch::AnyOf(forms) => forms.iter().any(|form| form.find(row).is_some()),
            RawSearch::All => true,
        }
    }

    /// Where the word stands next in `text`, from the byte `from` on.
    pub fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match &self.text {
            Text::Ascii(ascii) => {
                let at = from + ascii.find(&text.as_bytes()[from..])?;
                Some(at..at + ascii.lower.len())
            }
            Text::Caseless(finder) => {
                let at = from + finder.find(&text.as_bytes()[from..])?;
                Some(at..at + finder.needle().len())
            }
            Text::Folded(word) => {
                text[from..].char_indices().filter(|(_, c)| fold(*c) == word[0]).find_map(|(at, _)| {
                    let mut rest = text[from + at..].char_indices();
                    let whole = word.iter().all(|want| rest.next().is_some_and(|(_, c)| fold(c) == *want));
                    whole.then(|| from + at..text.len() - rest.as_str().len())
                })
            }
        }
    }
}

/// Case away: upper, then lower, so that both sigmas are one. A letter whose other case is several stays.
fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let upper = only(c.to_uppercase()).unwrap_or(c);
    only(upper.to_lowercase()).unwrap_or(upper)
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

/// Whether a character beyond ASCII has one form only.
fn is_caseless(c: char) -> bool {
    !c.is_ascii() && c.to_lowercase().eq([c]) && c.to_uppercase().eq([c])
}

/// All characters that fold to the same one as `c`.
fn variants(c: char) -> impl Iterator<Item = char> {
    let folded = fold(c);
    // No letter with case lies beyond; one without has no variants.
    let cased = ('\u{80}'..'\u{1f000}').filter(move |other| fold(*other) == folded);
    let plain = is_caseless(c);
    plain.then_some(c).into_iter().chain(cased.filter(move |_| !plain))
}

/// A text of ASCII to be found in any case.
#[derive(Debug)]
struct Ascii {
    lower: Vec<u8>,
    /// The place of its rarest byte.
    rare: usize,
}

impl Ascii {
    fn new(text: &str) -> Ascii {
        let lower = text.to_ascii_lowercase().into_bytes();
        let rank = |byte: &u8| COMMON.iter().position(|common| common == byte).unwrap_or(COMMON.len());
        let rare = (0..lower.len()).max_by_key(|at| rank(&lower[*at])).unwrap_or(0);
        Ascii { lower, rare }
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        let byte = self.lower[self.rare];
        memchr2_iter(byte, byte.to_ascii_uppercase(), text.get(self.rare..)?).find(|at| {
            let candidate = text.get(*at..at + self.lower.len());
            candidate.is_some_and(|candidate| candidate.eq_ignore_ascii_case(&self.lower))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(word: &str, text: &str) -> Vec<String> {
        let word = Word::new(word).unwrap();
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(hit) = word.find(text, at) {
            found.push(text[hit.clone()].to_string());
            at = hit.end;
        }
        found
    }

    #[test]
    fn words_are_literal_and_their_case_does_not_matter() {
        for (word, text, want) in [
            ("foo(bar[baz", "int FOO(bar[baz], x", vec!["FOO(bar[baz"]),
            ("$1.50", "costs $1.50, not $1x50", vec!["$1.50"]),
            ("a.b*c", "aXbbc a.b*c A.B*C", vec!["a.b*c", "A.B*C"]),
            ("+++", "++++++", vec!["+++", "+++"]),
            ("éclair", "Éclair ÉCLAIR eclair", vec!["Éclair", "ÉCLAIR"]),
            ("ÉCLAIR", "éclair", vec!["éclair"]),
            ("straße", "STRASSE Straße STRAẞE", vec!["Straße", "STRAẞE"]),
            ("東京", "京東京", vec!["東京"]),
            ("ΟΔΟΣ", "οδός οδος οδοσ", vec!["οδος", "οδοσ"]),
            ("😀", "x😀y", vec!["😀"]),
            ("ab", "b", vec![]),
        ] {
            assert_eq!(all(word, text), want, "{word} in {text}");
        }
        assert!(Word::new("").is_none());
    }

    #[test]
    fn a_row_that_holds_the_word_in_any_spelling_is_not_passed_over() {
        for (word, row) in [
            ("C:\\dir\\new", r#"{"c":"C:\\dir\\new"}"#),
            ("\\", r#"{"c":"\\"}"#),
            ("say \"hi\"", r#"{"c":"SAY \"hi\""}"#),
            ("src/a.rs", r#"{"c":"src\/A.RS"}"#),
            ("éclair", r#"{"c":"\u00c9clair"}"#),
            ("東京", r#"{"c":"\u6771\u4eac"}"#),
            ("東京", r#"{"c":"東京"}"#),
            ("é", r#"{"c":"É"}"#),
            ("Σ", r#"{"c":"ς"}"#),
        ] {
            assert!(Word::new(word).unwrap().may_be_in(row.as_bytes()), "{word} in {row}");
        }
        for (word, row) in [("東京", "{\"c\":\"京\"}"), ("éclair", "{\"c\":\"claim\"}"), ("zz", "{\"c\":\"z z\"}")]
        {
            assert!(!Word::new(word).unwrap().may_be_in(row.as_bytes()), "{word} in {row}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_word_in_a_text_is_found_in_the_text_and_in_its_row(
            before in "(?s).{0,20}", word in "[a-zA-Z0-9\"\\\\/é東🙂ß.]{1,6}", after in "(?s).{0,20}",
        ) {
            let text = format!("{before}{word}{after}");
            let found = Word::new(&word.to_uppercase()).filter(|_| word.to_uppercase().chars().count() == word.chars().count());
            for looked_for in [Word::new(&word), found].into_iter().flatten() {
                let hit = looked_for.find(&text, 0).unwrap();
                prop_assert!(hit.start <= before.len());
                let row = serde_json::json!({"c": text}).to_string();
                prop_assert!(looked_for.may_be_in(row.as_bytes()), "{}", row);
            }
        }
    }
}
