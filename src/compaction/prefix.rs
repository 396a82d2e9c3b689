//! The fingerprint of the guidance: whether it is byte for byte what it was at the last compaction of the same project,
//! so that the prefix after it is found in the prompt cache. What si fills in from a commit may change, so it is left
//! out before comparing.

use anyhow::Result;
use serde::Serialize;

use crate::env::Env;
use crate::store::key::sha256_hex;
use crate::store::records::compaction::Prefix;
use crate::store::{StateFile, Store};
use crate::text;

/// How many differing lines are reported.
const MAX_LINES: usize = 3;
/// How much of a differing line is reported, UTF-16 units.
const MAX_UNITS: usize = 120;

/// How a guidance compares with the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// SHA-256 of the normalised text, hex.
    pub hash: String,
    /// Whether there was no last one.
    pub first: bool,
    /// What is different, where anything is.
    pub drift: Option<Drift>,
}

/// A guidance that is not what it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// The fingerprint of the last one.
    pub previous: String,
    /// Its age in whole seconds; none where it was not noted.
    pub age_s: Option<i64>,
    /// The first differing lines.
    pub lines: Vec<LineDifference>,
}

/// One line that differs; a side is none where that text is shorter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineDifference {
    /// From 1.
    pub line: usize,
    /// As it was.
    pub prev: Option<String>,
    /// As it is.
    pub next: Option<String>,
}

/// Compares a guidance with the last one of the session's project, and stores it as the last one.
pub fn compare(env: &Env, store: Store<'_>, anchor: &str, guidance: &str) -> Result<Comparison> {
    let text = normalise(guidance);
    let hash = sha256_hex(text.as_bytes(), 64);
    let key = file_key(anchor);
    let file = StateFile::Prefix(&key);
    let guard = store.lock(file)?;
    let last = store.read_json::<Prefix>(file).filter(|last| !last.hash.is_empty());
    let drift = last.as_ref().filter(|last| last.hash != hash).map(|last| Drift {
        previous: last.hash.clone(),
        age_s: last.t.map(|t| (env.now_ms - t).max(0) / 1000),
        lines: differences(&last.text, &text),
    });
    guard.write_json(file, &Prefix { hash: hash.clone(), text, t: Some(env.now_ms) })?;
    Ok(Comparison { hash, first: last.is_none(), drift })
}

/// The name part of the file that holds a project's fingerprint.
pub fn file_key(anchor: &str) -> String {
    let anchor = if anchor.is_empty() { "default" } else { anchor };
    sha256_hex(anchor.as_bytes(), 16)
}

/// Takes out what si filled in: from a sentinel to the next blank line, heading, or the end.
pub fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("<!--") {
        let Some(end) = rest[at..].find("-->").map(|length| at + length + 3) else { break };
        if !is_sentinel(&rest[at..end]) {
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        out.push_str(&rest[..at]);
        out.push_str("<!-- si:autofill -->");
        let body = &rest[end..];
        let length = ["\n\n", "\n## "].iter().filter_map(|stop| body.find(stop)).min().unwrap_or(body.len());
        rest = &body[length..];
    }
    out + rest
}

/// Whether a comment is an autofill sentinel, whatever the length of its commit id.
fn is_sentinel(comment: &str) -> bool {
    let sha = || {
        let inner = comment.strip_prefix("<!--")?.strip_suffix("-->")?.trim().strip_prefix("si:autofill")?;
        inner.trim_start().strip_prefix("sha=")
    };
    sha().is_some_and(|sha| !sha.is_empty() && sha.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn differences(prev: &str, next: &str) -> Vec<LineDifference> {
    let [prev, next] = [prev, next].map(|text| text.split('\n').collect::<Vec<_>>());
    let cut = |line: Option<&&str>| line.map(|line| text::cut_utf16(line, MAX_UNITS).to_string());
    (0..prev.len().max(next.len()))
        .filter(|i| prev.get(*i) != next.get(*i))
        .take(MAX_LINES)
        .map(|i| LineDifference { line: i + 1, prev: cut(prev.get(i)), next: cut(next.get(i)) })
        .collect()
}
