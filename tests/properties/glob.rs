//! Globs: the state machine says what a naive matcher says. That no pattern is slow shows by the fuzzer's own limit of
//! time for one input: a clock in here would also count what a busy machine did meanwhile.

use si::watch::glob::{Glob, Globs};

/// Past this the naive matcher is not asked.
const SHORT: usize = 64;

/// The input is a pattern, a NUL, and the path that it is held against.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (pattern, path) = text.split_once('\0').unwrap_or((&text, ""));
    let glob = Glob::new(pattern);
    assert_eq!(glob.is_none(), pattern.is_empty());
    let matches = glob.as_ref().is_some_and(|glob| glob.matches(path));
    let globs = Globs::new(&[pattern]);
    assert_eq!(globs.any(path), matches);
    let hit = globs.hit_path(path, Some("/w"));
    assert!(
        hit || !matches || path.ends_with('/') || path.is_empty(),
        "{pattern:?} matches {path:?}, which it does not hit"
    );
    if hit && !path.is_empty() && !path.chars().any(|c| c.is_whitespace() || "'\"`;|&<>(){}=,:$".contains(c)) {
        assert!(
            globs.hit_command(&format!("cat {path} | head"), Some("/w")),
            "{pattern:?} hits {path:?}, not the command"
        );
    }
    if pattern.len() <= SHORT && path.len() <= SHORT && !pattern.is_empty() {
        let (pattern, path): (Vec<u16>, Vec<u16>) = (pattern.encode_utf16().collect(), path.encode_utf16().collect());
        assert_eq!(matches, naive(&pattern, &path), "{text:?}");
    }
}

/// Whether a pattern matches, straight from the words of the rule; tries every way.
fn naive(pattern: &[u16], path: &[u16]) -> bool {
    let mut known = vec![None; (pattern.len() + 1) * (path.len() + 1)];
    try_all(pattern, path, &mut known, path.len() + 1)
}

fn try_all(pattern: &[u16], path: &[u16], known: &mut [Option<bool>], width: usize) -> bool {
    let at = pattern.len() * width + path.len();
    if let Some(known) = known[at] {
        return known;
    }
    let unit = |c: char| c as u16;
    let starts = |text: &str| text.encode_utf16().zip(pattern).filter(|(a, b)| a == *b).count() == text.len();
    let in_line = |c: &u16| ![0x0a, 0x0d, 0x2028, 0x2029].contains(c);
    let run = |of: &dyn Fn(&u16) -> bool| path.iter().take_while(|c| of(c)).count();
    let found = if pattern.is_empty() {
        path.is_empty()
    } else if starts("/**") && pattern.len() == 3 {
        path.is_empty() || path[0] == unit('/') && path[1..].iter().all(in_line)
    } else if starts("**/") {
        let folders = (0..run(&in_line)).filter(|at| path[*at] == unit('/'));
        let mut rests: Vec<usize> = folders.map(|at| at + 1).collect();
        rests.push(0);
        rests.into_iter().any(|at| try_all(&pattern[3..], &path[at..], known, width))
    } else if starts("**") {
        (0..=run(&in_line)).any(|at| try_all(&pattern[2..], &path[at..], known, width))
    } else if starts("*") {
        (0..=run(&|c| *c != unit('/'))).any(|at| try_all(&pattern[1..], &path[at..], known, width))
    } else {
        let fits = path.first().is_some_and(|c| if starts("?") { *c != unit('/') } else { *c == pattern[0] });
        fits && try_all(&pattern[1..], &path[1..], known, width)
    };
    known[at] = Some(found);
    found
}
