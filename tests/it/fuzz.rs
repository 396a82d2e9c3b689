//! The properties of `tests/properties/`, for every file of `tests/corpus/` and for mutations of these. What a fuzzer
//! finds (see CONTRIBUTING.md) is kept as one more file there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestError, TestRunner};

use crate::properties::{TARGETS, Target};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a target's corpus, by name.
fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(root().join("tests/corpus").join(name)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// The words of a target's dictionary, which has the format of libFuzzer: one in quotes on each line, `\xNN` for a byte.
fn dictionary(name: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(root().join(format!("tests/corpus/{name}.dict"))).unwrap();
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    let words: Vec<Vec<u8>> = quoted.map(unescaped).collect();
    assert!(!words.is_empty());
    words
}

fn unescaped(quoted: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), quoted.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let (byte, behind) = match (first, behind) {
            (b'\\', [b'x', hex @ ..]) => {
                (u8::from_str_radix(std::str::from_utf8(&hex[..2]).unwrap(), 16).unwrap(), &hex[2..])
            }
            (b'\\', [byte, behind @ ..]) => (*byte, behind),
            (byte, behind) => (*byte, behind),
        };
        out.push(byte);
        rest = behind;
    }
    out
}

/// One change to an input.
#[derive(Debug, Clone)]
enum Edit {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index, usize),
    /// A piece of the input, or of another file of the corpus, is copied to another place.
    Copy(Index, usize, Index),
    Cross(Index, Index, Index),
}

fn edits(words: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<Edit>> {
    let one = prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        4 => (any::<Index>(), prop::sample::select(words)).prop_map(|(at, word)| Edit::Insert(at, word)),
        2 => (any::<Index>(), 1..40usize).prop_map(|(at, length)| Edit::Delete(at, length)),
        2 => (any::<Index>(), 1..200usize, any::<Index>()).prop_map(|(from, length, to)| Edit::Copy(from, length, to)),
        1 => (any::<Index>(), any::<Index>(), any::<Index>()).prop_map(|(file, from, at)| Edit::Cross(file, from, at)),
    ];
    prop::collection::vec(one, 0..12)
}

fn edited(corpus: &[(PathBuf, Vec<u8>)], seed: Index, edits: &[Edit]) -> Vec<u8> {
    let mut bytes = seed.get(corpus).1.clone();
    for edit in edits {
        let len = bytes.len();
        let place = |index: &Index| index.index(len + 1);
        match edit {
            Edit::Set(at, byte) if len > 0 => bytes[at.index(len)] = *byte,
            Edit::Set(..) => {}
            Edit::Insert(at, word) => drop(bytes.splice(place(at)..place(at), word.iter().copied())),
            Edit::Delete(at, length) => drop(bytes.drain(place(at)..(place(at) + length).min(len))),
            Edit::Copy(from, length, to) => {
                let piece = bytes[place(from)..(place(from) + length).min(len)].to_vec();
                bytes.splice(place(to)..place(to), piece);
            }
            Edit::Cross(file, from, at) => {
                let other = &file.get(corpus).1;
                bytes.truncate(place(at));
                bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
        }
    }
    bytes
}

/// Checks a target's corpus, and then `cases` mutations of it.
fn run(name: &str, cases: u32) {
    let Target { check, .. } = TARGETS.into_iter().find(|target| target.name == name).unwrap();
    let corpus = corpus(name);
    for (path, bytes) in &corpus {
        let held = std::panic::catch_unwind(|| check(bytes));
        assert!(held.is_ok(), "{} (what did not hold stands above)", path.display());
    }
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let strategy = (any::<Index>(), edits(dictionary(name)));
    let result = TestRunner::new(config).run(&strategy, |(seed, edits)| {
        check(&edited(&corpus, seed, &edits));
        Ok(())
    });
    if let Err(TestError::Fail(why, (seed, edits))) = result {
        let bytes = edited(&corpus, seed, &edits);
        panic!("{name}: {why}\nkeep this input in tests/corpus/{name}: b\"{}\"", bytes.escape_ascii());
    }
    result.unwrap();
}

/// A test for each target, with the number of mutations that takes a second or two.
macro_rules! targets {
    ($($name:ident: $cases:literal,)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), $cases);
        })*

        #[test]
        fn every_target_has_its_test_its_corpus_and_its_fuzzer() {
            let tests = BTreeSet::from([$(stringify!($name)),*]);
            assert_eq!(tests, TARGETS.iter().map(|target| target.name).collect());
            let manifest = root().join("fuzz/Cargo.toml");
            for name in tests {
                assert!(corpus(name).len() > 1, "{name}");
                // The crate that is published has no fuzzers.
                if let Ok(manifest) = std::fs::read_to_string(&manifest) {
                    assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name}");
                    let fuzzer = std::fs::read_to_string(root().join(format!("fuzz/targets/{name}.rs"))).unwrap();
                    assert!(fuzzer.contains(&format!("properties::{name}::check")), "{name}");
                }
            }
        }
    };
}

targets! {
    claude_md: 600,
    config: 200,
    glob: 1000,
    payload: 150,
    pins: 400,
    session_context: 400,
    settings_edit: 300,
    transcript: 150,
}
