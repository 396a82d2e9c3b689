//! What a person or a variable may write for a key, turned into JSON, and what is said when it cannot be.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::Config;
use super::table::{Accepts, FieldType, Key, Kind, Spec};
use crate::client::json::Raw;

impl Key {
    /// The JSON text that a variable stands for; none when it holds nothing that it may.
    pub(super) fn read_variable(&self, accepts: Accepts, text: &str) -> Option<String> {
        let truth = |value: bool| Some(value.to_string());
        match (accepts, text) {
            (Accepts::Zero | Accepts::ZeroOne, "0") => truth(false),
            (Accepts::One | Accepts::ZeroOne, "1") => truth(true),
            (Accepts::Zero | Accepts::One | Accepts::ZeroOne, _) | (Accepts::TurnsOff, "0") => None,
            (Accepts::TurnsOff | Accepts::AnythingTurnsOff, _) => truth(false),
            (Accepts::Commas, _) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(Value::from_iter(items).to_string())
            }
            (Accepts::Preset, _) => {
                super::preset(text.trim()).map(|fields| Value::from_iter(fields.to_vec()).to_string())
            }
            (Accepts::Value, _) => match self.spec.kind {
                Kind::Count(..) => self.checked(leading_number(text)?),
                Kind::Text => Some(Value::from(text).to_string()),
                _ => self.parse_value(text).ok(),
            },
        }
    }

    /// Reads what a person typed for this key, to JSON text. The error says what is accepted, with an example.
    pub fn parse_value(&self, typed: &str) -> Result<String, String> {
        let trimmed = typed.trim();
        let json = match self.spec.kind {
            Kind::Switch => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" => Some("true".to_string()),
                "false" | "off" | "no" => Some("false".to_string()),
                _ => None,
            },
            Kind::Count(..) => human_number(trimmed).filter(|number| number.fract() == 0.0).and_then(number_json),
            Kind::Number(..) => human_number(trimmed).and_then(number_json),
            // A text may be given bare or as a JSON string.
            Kind::Text | Kind::Word(_) => match Raw::new(trimmed).str() {
                Some(_) => Some(trimmed.to_string()),
                None => Some(Value::from(typed).to_string()),
            },
            Kind::List if !trimmed.starts_with('[') => {
                let items = trimmed.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(Value::from_iter(items).to_string())
            }
            Kind::List | Kind::Services | Kind::Projects => Some(trimmed.to_string()),
        };
        json.and_then(|json| self.checked(json)).ok_or_else(|| self.accepted())
    }

    /// Whether a value of the file can be used as it stands.
    pub fn fits(&self, raw: Raw<'_>) -> bool {
        (self.load)(&mut Config::default(), raw, &Spec { clamp: false, ..self.spec })
    }

    fn checked(&self, json: String) -> Option<String> {
        let whole = serde_json::from_str::<IgnoredAny>(&json).is_ok();
        (whole && self.fits(Raw::new(&json)) && self.says_all(&json)).then_some(json)
    }

    /// A list of services is read leniently, entry by entry; what is typed must be whole.
    fn says_all(&self, json: &str) -> bool {
        self.spec.kind != Kind::Services
            || Raw::new(json).items().is_some_and(|items| {
                let mut probe = Config::default();
                (self.load)(&mut probe, Raw::new(json), &self.spec)
                    && (self.value)(&probe).and_then(|value| Some(value.as_array()?.len())) == Some(items.len())
            })
    }

    /// The accepted form, with an example: ends a sentence.
    pub fn accepted(&self) -> String {
        match self.spec.kind {
            Kind::Switch => format!("true or false, for example {}", self.default_value() != Some(true.into())),
            Kind::Count(min, max) => {
                let (min, max) = (min as f64, max as f64);
                format!("a whole number {}, for example {}", range(min, max), self.example(min, max))
            }
            Kind::Number(min, max) => format!("a number {}, for example {}", range(min, max), self.example(min, max)),
            Kind::Text => r#"a text, for example "two words""#.into(),
            Kind::Word(words) => {
                let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
                format!("one of {}, for example {}", words.join(", "), words[0])
            }
            Kind::List => r#"a JSON list of texts, for example '["first", "second"]'"#.into(),
            Kind::Services => {
                r#"a JSON list of services, for example '[{"name": "api", "url": "https://example.com/health"}]'"#
                    .into()
            }
            Kind::Projects => r#"a JSON object by project folder, for example '{"/path/of/project": {}}'"#.into(),
        }
    }

    fn example(&self, min: f64, max: f64) -> String {
        let default = self.default_value().and_then(|value| value.as_f64());
        human(default.unwrap_or(200_000.0).clamp(min, max))
    }
}

/// `from 1 to 5`; an end that only keeps nonsense out is not worth a word.
pub(super) fn range(min: f64, max: f64) -> String {
    if max >= 1e9 { format!("from {} up", human(min)) } else { format!("from {} to {}", human(min), human(max)) }
}

/// Reads a value for a key that is not in the table: JSON, or a number as a person writes it, else a text.
pub(super) fn parse_free(typed: &str) -> String {
    let trimmed = typed.trim();
    if serde_json::from_str::<IgnoredAny>(trimmed).is_ok() {
        return trimmed.to_string();
    }
    human_number(trimmed).and_then(number_json).unwrap_or_else(|| Value::from(typed).to_string())
}

fn number_json(number: f64) -> Option<String> {
    FieldType::value(&number).map(|value| value.to_string())
}

/// A number as the form shows it: `200k`, `1.5m`, `0.4`.
pub fn human(number: f64) -> String {
    let (scaled, unit) = match number.abs() {
        size if size >= 1e6 => (number / 1e6, "m"),
        size if size >= 1e4 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    // Only what reads back as the same number is shortened.
    let short = format!("{scaled}{unit}");
    if short.len() < 8 && human_number(&short) == Some(number) { short } else { format!("{number}") }
}

/// The whole number that a variable begins with, as JSON: scripts hand over what they computed, and 3.9 calls are 3.
/// `200k`, `1.5m` and `1_000` are what they say.
fn leading_number(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains(['k', 'K', 'm', 'M', '_'])
        && let Some(number) = human_number(text)
    {
        return number_json(number.trunc());
    }
    let digits = text.strip_prefix('+').unwrap_or(text);
    let sign = usize::from(digits.starts_with('-'));
    let end = digits[sign..].find(|c: char| !c.is_ascii_digit()).map_or(digits.len(), |end| sign + end);
    Some(digits[..end].parse::<i64>().ok()?.to_string())
}

/// `200000`, `200k`, `1.5m`, `1_000`: a finite number, as a person writes one.
fn human_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1e3),
        (at, 'm' | 'M') => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    let plain = digits.trim_end().replace('_', "");
    if !plain.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None; // `inf` and `nan` are numbers to the parser
    }
    // 1.1m is 1100000, not 1100000.0000000001.
    let number = plain.parse::<f64>().ok()? * factor;
    let number = if factor > 1.0 { (number * 1e3).round() / 1e3 } else { number };
    Some(number).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::key;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, want) in [
            ("200k", Some(200_000.0)),
            ("1.5m", Some(1_500_000.0)),
            ("1.1M", Some(1_100_000.0)),
            ("1_000", Some(1000.0)),
            ("-5", Some(-5.0)),
            (".5", Some(0.5)),
            ("0x10", None),
            ("inf", None),
            ("nan", None),
            ("k", None),
            ("", None),
        ] {
            assert_eq!(human_number(text), want, "{text:?}");
        }
        for (number, text) in [(200_000.0, "200k"), (1_500_000.0, "1.5m"), (4096.0, "4096"), (10_485_760.0, "10485760")]
        {
            assert_eq!(human(number), text);
        }
    }

    #[test]
    fn a_variable_counts_by_the_number_it_begins_with() {
        for (text, want) in [
            ("75", Some("75")),
            (" 42 ", Some("42")),
            ("3.9", Some("3")),
            ("12abc", Some("12")),
            ("1e3", Some("1")),
            ("+5", Some("5")),
            ("8k", Some("8000")),
            ("1_000", Some("1000")),
            ("0005", Some("5")),
            ("0x10", None),
            ("-5", None),
            ("soon", None),
            ("99999999999999999999", None),
            ("", None),
        ] {
            let read = key("compact.threshold").unwrap().read_variable(Accepts::Value, text);
            assert_eq!(read.as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_accepted_form() {
        for (path, typed) in [
            ("compact.threshold", "soon"),
            ("compact.threshold", "0"),
            ("compact.threshold", "3.9"),
            ("compact.autoblock", "1"),
            ("shape.rootDirDepth", "99"),
            ("shape.scoring", "best"),
            ("taskChange.sameDomainScore", "1.5"),
            ("statusline.serviceHealth", r#"[{"name":"api"}]"#),
            ("statusline.perProject", "[]"),
            ("statusline.fields", r#"["a",1]"#),
        ] {
            let key = key(path).unwrap();
            assert_eq!(key.parse_value(typed), Err(key.accepted()), "{path} {typed}");
            assert!(key.accepted().contains("for example"), "{path}");
        }
    }

    #[test]
    fn the_example_of_every_key_is_accepted() {
        for key in crate::config::KEYS {
            let accepted = key.accepted();
            let example = accepted.rsplit("for example ").next().unwrap().trim_matches('\'');
            assert!(key.parse_value(example).is_ok(), "{}: {example}", key.path);
        }
    }

    #[test]
    fn free_keys_take_json_numbers_and_text() {
        for (typed, json) in
            [("12345678901234567890", "12345678901234567890"), ("5k", "5000"), ("hi you", "\"hi you\"")]
        {
            assert_eq!(parse_free(typed), json);
        }
    }
}
