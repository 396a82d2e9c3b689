//! Host strings to file names: the one place where an id from outside becomes part of a path.

use sha2::{Digest, Sha256};

/// A session id that is safe in a file name: only `[A-Za-z0-9_-]`, 1 to 120 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sid(String);

impl Sid {
    /// Cleans an id as the state files name it: other characters are removed, `default` stands for nothing, and a
    /// name over 120 characters becomes its first 100, `-`, and 16 hex digits of its SHA-256.
    pub fn new(raw: &str) -> Sid {
        Sid(clean(raw, 120).unwrap_or_else(|| "default".into()))
    }

    /// The cleaned id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Sid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Cleans any outside id to `[A-Za-z0-9_-]`, at most `max` characters; none when nothing is left.
///
/// Over `max`, the first `max - 20` characters stay, then `-` and 16 hex digits of the SHA-256 of the whole cleaned
/// name, so that two long ids that differ only at their end stay apart.
pub fn clean(raw: &str, max: usize) -> Option<String> {
    let name: String = raw.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    if name.is_empty() {
        return None;
    }
    if name.len() <= max {
        return Some(name);
    }
    Some(format!("{}-{}", &name[..max - 20], sha256_hex(name.as_bytes(), 16)))
}

/// The first `digits` hex digits of the SHA-256 of `bytes`.
pub fn sha256_hex(bytes: &[u8], digits: usize) -> String {
    hex(&Sha256::digest(bytes), digits)
}

/// The first `digits` hex digits of the SHA-1 of `bytes` (a file name of the JavaScript original needs it).
pub fn sha1_hex(bytes: &[u8], digits: usize) -> String {
    hex(&sha1::Sha1::digest(bytes), digits)
}

fn hex(digest: &[u8], digits: usize) -> String {
    let mut text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_ids_become_plain_names() {
        for (raw, want) in
            [("abc-1_X", "abc-1_X"), ("../../etc/passwd", "etcpasswd"), ("a\0b/c", "abc"), ("…", "default")]
        {
            assert_eq!(Sid::new(raw).as_str(), want, "{raw:?}");
        }
    }

    #[test]
    fn long_ids_keep_their_difference() {
        let [one, two] = ["1", "2"].map(|end| Sid::new(&("x".repeat(5000) + end)));
        assert_ne!(one, two);
        assert_eq!(one.as_str().len(), 117);
    }
}
