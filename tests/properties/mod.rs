//! What must hold for every input, however odd: one module for each kind of input, with one `check` that panics where it
//! does not hold.
//!
//! The fuzzers (`fuzz/`) call a check with whatever bytes they come up with; `tests/it/fuzz.rs` calls all of them with
//! the files of `tests/corpus/` and with mutations of these. So each property is written once.

#![allow(dead_code, reason = "each fuzzer uses one of the checks")]
#![allow(clippy::disallowed_methods, reason = "a check makes the files that it has read")]

pub mod claude_md;
pub mod config;
pub mod glob;
pub mod payload;
pub mod pins;
pub mod session_context;
pub mod settings_edit;
pub mod transcript;

use std::cell::OnceCell;
use std::path::Path;

use si::Env;

/// A kind of input, by the name of its fuzzer and of its folder in the corpus.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Panics where a property does not hold for these bytes.
    pub check: fn(&[u8]),
}

/// All kinds of input.
pub const TARGETS: [Target; 8] = [
    Target { name: "claude_md", check: claude_md::check },
    Target { name: "config", check: config::check },
    Target { name: "glob", check: glob::check },
    Target { name: "payload", check: payload::check },
    Target { name: "pins", check: pins::check },
    Target { name: "session_context", check: session_context::check },
    Target { name: "settings_edit", check: settings_edit::check },
    Target { name: "transcript", check: transcript::check },
];

/// Calls `work` with a hermetic environment whose folders are empty. Each thread makes its own once, so that a check
/// costs no more than what it puts there.
pub fn in_world<T>(work: impl FnOnce(&Env) -> T) -> T {
    thread_local! {
        static ROOT: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    ROOT.with(|root| {
        let root = root.get_or_init(|| tempfile::tempdir().expect("a temp folder"));
        for folder in ["home", "tmp", "work"] {
            empty(&root.path().join(folder));
        }
        work(&Env::for_tests(root.path()))
    })
}

fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // Folders that every environment has are kept; what is in them goes.
            empty(&path);
            let _ = if path.ends_with(".claude") { Ok(()) } else { std::fs::remove_dir(&path) };
        } else {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// A number that depends on every byte: where a check has to choose (where to cut, what to change), it chooses by it, so
/// that an input always takes the same way.
pub fn dice(bytes: &[u8]) -> impl FnMut(usize) -> usize + use<> {
    let mut state = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    move |sides| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if sides == 0 { 0 } else { (state >> 33) as usize % sides }
    }
}

/// Panics unless `text` may be written to a terminal: it holds no control character but line ends, no escape sequence but
/// colours, nothing that turns the direction of writing or that cannot be seen.
pub fn assert_printable(what: &str, text: &str) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = colour(rest) {
            rest = &rest[length..];
            continue;
        }
        assert!(first == '\n' || !is_harmful(first), "{what}: {first:?} in {text:?}");
        rest = &rest[first.len_utf8()..];
    }
}

/// The length of the colour sequence that `text` starts with.
fn colour(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\u{1b}[")?;
    let end = body.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    body[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

/// Characters that a terminal obeys instead of showing, or that make one text look like another. Joiners and variation
/// selectors stay out of it, since emoji are made with them.
fn is_harmful(c: char) -> bool {
    let bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let unseen = matches!(
        c,
        '\u{200b}' | '\u{200c}' | '\u{2060}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || bidirectional || unseen
}
