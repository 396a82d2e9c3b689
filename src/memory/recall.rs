//! Recall: what was said before, dug out of the raw transcript, which a compaction never shortens.

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem;

use crate::client::json::{self, Object};
use crate::client::transcript;

/// How many compactions a transcript holds.
pub fn compactions(path: &Path) -> u64 {
    let mark = memmem::Finder::new("compact_boundary");
    let mut count = 0;
    transcript::each_line(path, |line| {
        if mark.find(line).is_some() && Object::parse(&json::decode(line)).is_some_and(|row| is_boundary(&row)) {
            count += 1;
        }
        ControlFlow::Continue(())
    });
    count
}

/// Whether a row marks a compaction of the main conversation.
fn is_boundary(row: &Object<'_>) -> bool {
    let is = |key: &str, value: &str| row.str(key).is_some_and(|text| text == value);
    is("type", "system")
        && is("subtype", "compact_boundary")
        && row.get("isSidechain").and_then(|flag| flag.bool()) != Some(true)
}
