//! Reading transcripts for what they say about the context: the end backwards, the start forwards.
//!
//! A transcript is the client's, grows while it is read, and may be anything: missing, a pipe, huge, cut in the middle of
//! a row. What cannot be read is absent, and what is not understood is passed over.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::json::{self, Object};
use super::lines::{self, Needles};
use super::row::{self, NEEDLES, Row, Says};
use super::usage::Usage;
use crate::store::file;
use crate::store::records::totals::BoundaryRecord;

/// How far back the end of a transcript is searched, in bytes.
const TAIL: u64 = 64 << 20;
/// Subagents' files that are read, and how many folders deep they may lie below their own.
const MAX_SUBAGENTS: usize = 5000;
const SUBAGENT_FOLDERS: usize = 3;
/// How far the first timestamp is looked for, in bytes.
const HEAD: u64 = 1 << 20;

/// The latest message of the main conversation that says how large the context is.
#[derive(Debug, Clone, PartialEq)]
pub struct Latest {
    /// Its usage.
    pub usage: Usage,
    /// Its model id; empty when the row names none.
    pub model: String,
    /// When it was written, epoch milliseconds.
    pub at_ms: Option<i64>,
}

/// A compaction, as its `compact_boundary` row tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// When it happened, epoch milliseconds.
    pub at_ms: Option<i64>,
    /// Context before it, in tokens.
    pub pre_tokens: Option<u64>,
    /// Context after it, in tokens.
    pub post_tokens: Option<u64>,
    /// `manual` or `auto`.
    pub trigger: Option<String>,
}

impl From<BoundaryRecord> for Boundary {
    fn from(record: BoundaryRecord) -> Boundary {
        let BoundaryRecord { at_ms, pre_tokens, post_tokens, trigger } = record;
        Boundary { at_ms, pre_tokens, post_tokens, trigger }
    }
}

/// The end of a transcript: whichever of the two is newer, and never a usage that a compaction has outdated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tail {
    /// The latest main-chain usage, if no compaction came after it.
    pub latest: Option<Latest>,
    /// The last compaction, if no main-chain usage came after it.
    pub boundary: Option<Boundary>,
}

impl Tail {
    /// Tokens in context now: the latest usage, else what the compaction left; none when neither is known.
    pub fn context(&self) -> Option<u64> {
        self.latest.as_ref().map(|latest| latest.usage.context()).or_else(|| self.boundary.as_ref()?.post_tokens)
    }
}

/// Opens a transcript for reading; with it, its length now.
pub(crate) fn open(path: &Path) -> Option<(File, u64)> {
    let file = file::open_user(path).ok().flatten()?;
    let size = file.metadata().ok()?.len();
    Some((file, size))
}

/// Reads the end of a transcript backwards; none when it cannot be read. Rows of subagents, of errors and of the client's
/// own making do not count.
pub fn tail(path: &Path) -> Option<Tail> {
    let mut tail = Tail::default();
    rows_back(path, &NEEDLES, |row| {
        if let Some((usage, model)) = row.context() {
            tail.latest = Some(Latest { usage: *usage, model: model.to_owned(), at_ms: row.at_ms });
            return ControlFlow::Break(());
        }
        match row.says {
            Says::Compacted(boundary) if !row.sidechain => {
                tail.boundary = Some(boundary);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    })?;
    Some(tail)
}

/// The first usage of the main conversation after `since_ms`, in the order of the file, among those that are `wanted`; if
/// the searched end of the transcript reaches back to it.
pub fn first_usage_after(path: &Path, since_ms: i64, wanted: impl Fn(&Usage) -> bool) -> Option<Usage> {
    let mut first = None;
    rows_back(path, &NEEDLES[..1], |row| {
        let Some(at) = row.at_ms else { return ControlFlow::Continue(()) };
        if at <= since_ms {
            return ControlFlow::Break(());
        }
        match row.says {
            Says::Used { usage, .. }
                if !row.sidechain && row.kind.as_deref() == Some("assistant") && wanted(&usage) =>
            {
                first = Some(usage);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    first
}

/// The first timestamp in the first megabyte, epoch milliseconds.
pub fn first_timestamp_ms(path: &Path) -> Option<i64> {
    let (file, size) = open(path)?;
    let mut first = None;
    let visit = |line: &[u8]| {
        let text = json::decode(line);
        let row = Object::parse(&text).unwrap_or_default();
        first = row.get("timestamp").or_else(|| row.at(&["message", "timestamp"])).and_then(row::moment);
        if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    lines::scan_whole(&file, 0, size.min(HEAD), &Needles::new(&["\"timestamp\""]), visit).ok()?;
    first
}

/// Visits the parsed rows that hold a needle, from the end backwards; none when the file cannot be read.
fn rows_back(path: &Path, needles: &[&str], mut visit: impl FnMut(Row<'_>) -> ControlFlow<()>) -> Option<()> {
    let (file, size) = open(path)?;
    lines::scan_back(&file, size.saturating_sub(TAIL), size, &Needles::new(needles), |line| {
        Row::all(line).rev().try_for_each(&mut visit)
    })
    .ok()
}

/// The files of a session's subagents: what tells each of them from the others, and where it is, by name. Those of one run
/// of a workflow lie in a folder of their own.
pub fn subagents(transcript: &Path) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    in_folder(&transcript.with_extension("").join("subagents"), "", SUBAGENT_FOLDERS, &mut files);
    files.sort_unstable();
    files
}

fn in_folder(folder: &Path, above: &str, levels: usize, files: &mut Vec<(String, PathBuf)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if files.len() >= MAX_SUBAGENTS {
            return;
        }
        if name.ends_with(".jsonl") {
            files.push((format!("{above}{name}"), entry.path()));
        } else if levels > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            in_folder(&entry.path(), &format!("{above}{name}/"), levels - 1, files);
        }
    }
}

/// Calls `visit` with each line from the end of the file backwards, as far as it begins in the last `max_bytes`. Line
/// breaks are cut off; a line over 8 MB is passed over.
pub fn each_line_backwards(path: &Path, max_bytes: u64, mut visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
    let Some((file, size)) = open(path) else { return };
    let all = Needles::new(&[]);
    // A file that fails half-way has told what it had to tell.
    let _ = lines::scan_back(&file, size.saturating_sub(max_bytes), size, &all, |line| visit(trim(line)));
}

/// The longest line that [`each_line`] hands out, in bytes. A tool's answer is written into one line, and again with the
/// details of the call.
pub const LONGEST_LINE: u64 = 64 << 20;

/// Calls `visit` with each line from the start of the file on, the unfinished last one included. Line breaks are cut off.
/// Returns how many lines were over [`LONGEST_LINE`] and so passed over.
pub fn each_line(path: &Path, mut visit: impl FnMut(&[u8]) -> ControlFlow<()>) -> u64 {
    let Some((file, size)) = open(path) else { return 0 };
    let all = Needles::new(&[]).up_to(LONGEST_LINE);
    // A file that fails half-way has told what it had to tell.
    let _ = lines::scan_whole(&file, 0, size, &all, |line| visit(trim(line)));
    all.passed_over()
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_text<T>(text: &str, ask: impl FnOnce(&Path) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        file::write_atomic(&path, text.as_bytes()).unwrap();
        ask(&path)
    }

    fn reply(tokens: u64) -> String {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"m{tokens}\",\"usage\":{{\"input_tokens\":{tokens}}}}}}}\n"
        )
    }

    const BOUNDARY: &str = "{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\
        \"compactMetadata\":{\"trigger\":\"auto\",\"preTokens\":300000,\"postTokens\":2896}}\n";

    #[test]
    fn the_context_is_that_of_the_latest_reply_or_what_a_compaction_left() {
        let context = |text: &str| with_text(text, tail).unwrap().context();
        assert_eq!(context(""), None);
        assert_eq!(context(&(reply(5) + &reply(7))), Some(7));
        assert_eq!(context(&(reply(5) + BOUNDARY)), Some(2896));
        assert_eq!(context(&(reply(5) + BOUNDARY + &reply(9))), Some(9));
        assert_eq!(context(&(reply(5) + &BOUNDARY.replace("2896", "null"))), None);
        let side = |row: &str| row.replacen('{', "{\"isSidechain\":true,", 1);
        assert_eq!(context(&(reply(5) + &side(&reply(1)) + &side(BOUNDARY))), Some(5));
        assert_eq!(context(&(reply(5) + &reply(0) + &reply(3).replace("}}}", "}"))), Some(5));
        let half = reply(8);
        assert_eq!(context(&(reply(5) + half.trim_end())), Some(8));
        assert_eq!(context(&(reply(5) + &half[..half.len() / 2])), Some(5));
        let giant = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}\n", "x".repeat(9 << 20));
        assert_eq!(context(&(reply(5) + &giant)), Some(5));
    }

    #[test]
    fn the_first_usage_after_a_moment_is_the_first_that_is_wanted() {
        let at = |tokens, second: u8| {
            let row = format!("{{\"timestamp\":\"2026-01-02T03:04:{second:02}.000Z\",");
            reply(tokens).replacen('{', &row, 1)
        };
        let text = at(1, 4) + &at(2, 5) + &at(3, 6) + &reply(9) + &at(4, 7) + &at(5, 8);
        let first = |wanted: fn(&Usage) -> bool| {
            with_text(&text, |path| first_usage_after(path, 1_767_323_045_000, wanted)).map(|usage| usage.input)
        };
        assert_eq!(first(|_| true), Some(3));
        assert_eq!(first(|usage| usage.input > 3), Some(4));
        assert_eq!(first(|usage| usage.input > 5), None);
    }

    #[test]
    fn the_first_timestamp_is_looked_for_in_the_first_megabyte() {
        let first = |text: &str| with_text(text, first_timestamp_ms);
        let pad = |length: usize| format!("{{\"pad\":\"{}\"}}\n", "x".repeat(length));
        let row = "{\"timestamp\":\"2026-01-02T03:04:05.000Z\"}";
        assert_eq!(first(&(pad(10_000) + row)), Some(1_767_323_045_000));
        assert_eq!(first(&(pad(900_000) + row + "\n")), Some(1_767_323_045_000));
        assert_eq!(first(&(pad(1 << 20) + row + "\n")), None);
        assert_eq!(first(&("{\"timestamp\":\"soon\"}\n".to_owned() + row)), Some(1_767_323_045_000));
    }

    #[test]
    fn lines_are_the_same_both_ways() {
        let text = "one\r\ntwo\n\nthree";
        let collect = |path: &Path| {
            let (mut forwards, mut backwards) = (Vec::new(), Vec::new());
            each_line(path, |line| {
                forwards.push(line.to_vec());
                ControlFlow::Continue(())
            });
            each_line_backwards(path, 1 << 20, |line| {
                backwards.push(line.to_vec());
                ControlFlow::Continue(())
            });
            backwards.reverse();
            (forwards, backwards)
        };
        let (forwards, backwards) = with_text(text, collect);
        assert_eq!(forwards, [&b"one"[..], b"two", b"", b"three"]);
        assert_eq!(backwards, forwards);
    }
}
