//! Prices and context windows by model id, as the client itself uses them.
//!
//! Measured on client 2.1.332 by giving it a million tokens of one kind at a time; `tests/golden/model_prices.json` holds
//! the figures, and a test compares the table with it.

use super::usage::Usage;
use crate::config;

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Input past the cache.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Writes to the cache that live five minutes.
    pub cache_write_5m: f64,
    /// Writes to the cache that live one hour.
    pub cache_write_1h: f64,
    /// Reads from the cache.
    pub cache_read: f64,
}

/// What is known of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The context window in tokens.
    pub window: u64,
    /// Its prices.
    pub prices: Prices,
}

const M200K: u64 = 200_000;
const M1: u64 = 1_000_000;

const fn prices(input: f64, output: f64, cache_write_5m: f64, cache_write_1h: f64, cache_read: f64) -> Prices {
    Prices { input, output, cache_write_5m, cache_write_1h, cache_read }
}

const OPUS_5_5: Prices = prices(4.0, 20.0, 5.0, 8.0, 0.2);
const OPUS: Prices = prices(5.0, 25.0, 6.25, 10.0, 0.5);
const SONNET: Prices = prices(3.0, 15.0, 3.75, 6.0, 0.3);
const FABLE: Prices = prices(10.0, 50.0, 12.5, 20.0, 1.0);

/// One row per model: id without provider, date and marks; window; prices.
const MODELS: &[(&str, u64, Prices)] = &[
    ("claude-fable-5", M1, FABLE),
    ("claude-mythos-5", M1, FABLE),
    ("claude-opus-5-5", M1, OPUS_5_5),
    ("claude-opus-5", M1, OPUS),
    ("claude-opus-4-8", M1, OPUS),
    ("claude-opus-4-7", M1, OPUS),
    ("claude-opus-4-6", M200K, OPUS),
    ("claude-opus-4-5", M200K, OPUS),
    ("claude-sonnet-5-5", M1, prices(2.0, 10.0, 2.5, 4.0, 0.1)),
    ("claude-sonnet-5", M1, prices(2.0, 10.0, 2.5, 4.0, 0.2)),
    ("claude-sonnet-4-6", M200K, SONNET),
    ("claude-sonnet-4-5", M200K, SONNET),
    ("claude-sonnet-4", M200K, SONNET),
    ("claude-3-7-sonnet", M200K, SONNET),
    ("claude-3-5-sonnet", M200K, SONNET),
    ("claude-haiku-5-5", M1, prices(0.5, 0.5, 0.625, 1.0, 0.05)),
    ("claude-haiku-4-5", M200K, prices(1.0, 5.0, 1.25, 2.0, 0.1)),
    ("claude-3-5-haiku", M200K, prices(0.8, 4.0, 1.0, 1.6, 0.08)),
];

/// Window and prices of a model id in any of its forms: plain, dated, Bedrock, Vertex, an ARN, marked `[1m]`.
///
/// An unknown model is priced like `claude-opus-5-5`, as the client does.
pub fn lookup(model: &str) -> Model {
    let name = plain(model);
    let known = MODELS.iter().find(|(id, ..)| *id == name);
    let prices = known.map_or(OPUS_5_5, |row| row.2);
    let window = match known {
        _ if marked_1m(model) => M1,
        Some((_, window, _)) => *window,
        None => guess_window(model),
    };
    Model { window, prices }
}

/// The context cap in tokens, by falling authority: the user's, the client's `context_window_size`, the model's.
///
/// `used` tokens above a cap that the client or the table gave prove it wrong: then it is the next known window. A user's
/// cap stays. `display_name` stands in for a missing or empty id.
pub fn context_cap(
    user: Option<f64>,
    client: Option<u64>,
    model_id: Option<&str>,
    display_name: Option<&str>,
    used: u64,
) -> f64 {
    if let Some(cap) = user.filter(|cap| cap.is_finite() && *cap > 0.0) {
        return cap;
    }
    let name = model_id.filter(|id| !id.is_empty()).or(display_name).unwrap_or("");
    let cap = client.filter(|&size| size > 0).unwrap_or_else(|| lookup(name).window);
    if used <= cap {
        return cap as f64;
    }
    [M200K, M1].into_iter().find(|&window| window >= used).unwrap_or(cap.max(M1)) as f64
}

/// The id without provider, date, version and marks: `us.anthropic.claude-opus-4-8-v1:0` is `claude-opus-4-8`.
fn plain(model: &str) -> String {
    let lower = model.to_ascii_lowercase();
    let start = lower.find("claude-").unwrap_or(0);
    let name = &lower[start..];
    let name = &name[..name.find(['[', '@', ':', '/']).unwrap_or(name.len())];
    let name = cut_suffix(name, |end| end.strip_prefix('v').is_some_and(all_digits));
    let name = name.strip_suffix("-latest").or_else(|| name.strip_suffix("-1m")).unwrap_or(name);
    let name = cut_suffix(name, |end| end.len() == 8 && all_digits(end));
    name.replace('.', "-")
}

/// Drops what follows the last `-` if `test` says so.
fn cut_suffix(name: &str, test: impl Fn(&str) -> bool) -> &str {
    match name.rsplit_once('-') {
        Some((rest, end)) if test(end) => rest,
        _ => name,
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name is marked as having the long window: `1m` at the start of a word, or the number written out.
fn marked_1m(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let starts_word = |at: usize| !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    lower.contains("1000000") || lower.match_indices("1m").any(|(at, _)| starts_word(at))
}

/// The window of an unknown model: 1M for Opus and Sonnet of generation 4 and later. A generation is one digit alone:
/// a date or a longer number behind the name tells nothing.
fn guess_window(name: &str) -> u64 {
    let lower = name.to_ascii_lowercase();
    let generation_4 = |family: &str| {
        lower.match_indices(family).any(|(at, _)| {
            let rest = &lower[at + family.len()..];
            let digits = rest.strip_prefix(['-', ' ', '_']).unwrap_or(rest).as_bytes();
            matches!(digits.first(), Some(b'4'..=b'9')) && !digits.get(1).is_some_and(u8::is_ascii_digit)
        })
    };
    if generation_4("opus") || generation_4("sonnet") { M1 } else { M200K }
}

impl Prices {
    /// What a usage cost, in dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let one_hour = usage.cache_creation_1h.min(usage.cache_creation);
        let five_minutes = usage.cache_creation - one_hour;
        (usage.input as f64 * self.input
            + usage.output as f64 * self.output
            + five_minutes as f64 * self.cache_write_5m
            + one_hour as f64 * self.cache_write_1h
            + usage.cache_read as f64 * self.cache_read)
            / 1e6
    }

    /// What cache reads saved against the price of uncached input, in dollars.
    pub fn saved(&self, usage: &Usage) -> f64 {
        usage.cache_read as f64 * (self.input - self.cache_read).max(0.0) / 1e6
    }

    /// These prices, those that the user set in their place. The user names no price for one-hour writes: they cost
    /// twice the input.
    pub fn with(self, user: &config::Prices) -> Prices {
        Prices {
            input: user.input.unwrap_or(self.input),
            output: user.output.unwrap_or(self.output),
            cache_write_5m: user.cache_creation.unwrap_or(self.cache_write_5m),
            cache_write_1h: user.input.map_or(self.cache_write_1h, |input| input * 2.0),
            cache_read: user.cache_read.unwrap_or(self.cache_read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_measured_one() {
        let text = include_str!("../../tests/golden/model_prices.json");
        let measured: serde_json::Value = serde_json::from_str(text).unwrap();
        for (id, row) in measured["models"].as_object().unwrap() {
            let model = lookup(id);
            let number = |key: &str| row[key].as_f64().unwrap();
            assert_eq!(model.window, row["context_window"].as_u64().unwrap(), "{id}");
            let want = prices(
                number("input"),
                number("output"),
                number("cache_write_5m"),
                number("cache_write_1h"),
                number("cache_read"),
            );
            assert_eq!(model.prices, want, "{id}");
        }
    }

    #[test]
    fn every_form_of_an_id_is_the_same_model() {
        for (id, name) in [
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
            ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
                "claude-haiku-4-5",
            ),
            ("claude-3-5-sonnet-v2@20241022", "claude-3-5-sonnet"),
            ("anthropic/claude-opus-4.8", "claude-opus-4-8"),
            ("Claude-Opus-4-8[1m]", "claude-opus-4-8"),
            ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
            ("claude-sonnet-4-6-1m", "claude-sonnet-4-6"),
        ] {
            assert_eq!(plain(id), name, "{id}");
        }
        assert_eq!(lookup("claude-unheard-of-9").prices, OPUS_5_5);
        assert_eq!(lookup("global.anthropic.claude-sonnet-4-6-v1:0[1m]").window, M1);
    }

    #[test]
    fn a_cap_below_what_is_used_is_the_next_known_window_unless_the_user_set_it() {
        let cap = |user, client, used| context_cap(user, client, Some("claude-haiku-4-5"), None, used);
        assert_eq!(cap(None, None, 200_000), 200_000.0);
        assert_eq!(cap(None, None, 200_001), 1_000_000.0);
        assert_eq!(cap(None, Some(200_000), 360_236), 1_000_000.0);
        assert_eq!(cap(None, Some(100_000), 150_000), 200_000.0);
        assert_eq!(cap(None, Some(1_000_000), 1_200_000), 1_000_000.0);
        assert_eq!(cap(Some(123.5), Some(200_000), 360_236), 123.5);
        for unusable in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(cap(Some(unusable), Some(500_000), 0), 500_000.0, "{unusable}");
        }
    }

    #[test]
    fn one_hour_writes_cost_twice_the_input_when_the_user_set_prices() {
        let user = config::Prices { input: Some(10.0), cache_creation: Some(12.5), ..config::Prices::default() };
        let usage = Usage { cache_creation: 1_000_000, cache_creation_1h: 600_000, ..Usage::default() };
        assert!((FABLE.with(&user).cost(&usage) - 17.0).abs() < 1e-9);
    }
}
