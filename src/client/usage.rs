//! Token usage of API messages: what one message used, how it is read from the client's JSON, and sums of it.

use super::json::{Object, Raw};

/// Tokens of one API message, or a sum over many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that was neither read from nor written to the cache.
    pub input: u64,
    /// Everything generated, thinking included.
    pub output: u64,
    /// Input written to the cache, whatever its lifetime.
    pub cache_creation: u64,
    /// The part of `cache_creation` that lives one hour; the rest lives five minutes.
    pub cache_creation_1h: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// The part of `output` that was thinking; none where the client does not tell.
    pub thinking: Option<u64>,
}

impl Usage {
    /// Reads a `usage` object. Wrong types read as absent, what is absent as 0.
    ///
    /// The split by lifetime may be missing, all zero, or name only one lifetime, and so may the flat counter: the
    /// larger of the two is the total, and what no lifetime claims lives five minutes.
    pub fn parse(usage: &Object<'_>) -> Usage {
        let number = |key: &str| usage.get(key).and_then(count).unwrap_or(0);
        let split = usage.get("cache_creation").and_then(Raw::object).unwrap_or_default();
        let lifetime = |key: &str| split.get(key).and_then(count).unwrap_or(0);
        let lifetimes = (lifetime("ephemeral_5m_input_tokens"), lifetime("ephemeral_1h_input_tokens"));
        Usage {
            input: number("input_tokens"),
            output: number("output_tokens"),
            cache_read: number("cache_read_input_tokens"),
            thinking: usage.at(&["output_tokens_details", "thinking_tokens"]).and_then(count),
            ..Usage::default()
        }
        .with_writes(number("cache_creation_input_tokens"), lifetimes)
    }

    /// Sets the cache writes from the flat counter and from the split into five minutes and one hour.
    pub(crate) fn with_writes(self, flat: u64, (five_minutes, one_hour): (u64, u64)) -> Usage {
        let cache_creation = flat.max(five_minutes.saturating_add(one_hour));
        Usage { cache_creation, cache_creation_1h: one_hour, ..self }
    }

    /// The size of the context that the message was sent with.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.cache_creation).saturating_add(self.cache_read)
    }

    /// Whether the frame says nothing about the context, as those of errors and of client-made replies do.
    pub fn is_empty(&self) -> bool {
        self.context() == 0
    }

    /// The share of the cacheable prefix that was read from the cache, 0 to 1; none when nothing was cacheable.
    pub fn hit_ratio(&self) -> Option<f64> {
        let cacheable = self.cache_read.saturating_add(self.cache_creation);
        (cacheable > 0).then(|| self.cache_read as f64 / cacheable as f64)
    }

    /// Both together; thinking is not summed.
    pub(crate) fn plus(&self, other: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            cache_creation_1h: self.cache_creation_1h.saturating_add(other.cache_creation_1h),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            thinking: None,
        }
    }

    /// Input, output, cache writes and cache reads together.
    pub fn total(&self) -> u64 {
        self.context().saturating_add(self.output)
    }
}

/// More tokens than any window or message will hold: what is above is nonsense.
pub(crate) const MAX_TOKENS: u64 = 1_000_000_000;

/// A token count: a non-negative number of sane size, also one that was written as text.
pub(crate) fn count(raw: Raw<'_>) -> Option<u64> {
    raw.u64().or_else(|| Raw::new(&raw.str()?).u64()).filter(|&tokens| tokens <= MAX_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Usage {
        Usage::parse(&Object::parse(text).unwrap())
    }

    #[test]
    fn cache_writes_are_whole_when_the_split_is_zero_partial_or_alone() {
        let check = |text: &str, all: u64, one_hour: u64| {
            let usage = parse(text);
            assert_eq!((usage.cache_creation, usage.cache_creation_1h), (all, one_hour), "{text}");
        };
        check(r#"{"cache_creation_input_tokens":345,"cache_creation":{"ephemeral_1h_input_tokens":0}}"#, 345, 0);
        check(r#"{"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":40}}"#, 100, 40);
        check(r#"{"cache_creation":{"ephemeral_5m_input_tokens":80,"ephemeral_1h_input_tokens":2}}"#, 82, 2);
        check(r#"{"cache_creation_input_tokens":7,"cache_creation":null}"#, 7, 0);
    }

    #[test]
    fn wrong_types_count_as_nothing_and_harm_no_neighbour() {
        let usage = parse(
            r#"{"input_tokens":[1],"output_tokens":"250","cache_read_input_tokens":-3,"cache_creation_input_tokens":1e14,"x":1}"#,
        );
        assert_eq!(usage, Usage { output: 250, ..Usage::default() });
        assert!(usage.is_empty());
        assert_eq!(usage.hit_ratio(), None);
    }
}
