//! Lines of files that grow while they are read: forwards in blocks, backwards in blocks, and only those that matter.
//!
//! Blocks are read at their place in the file, never the whole file and never a mapping of it, so a file that shrinks
//! meanwhile ends the reading instead of the process. A line is handed out whole; one that no needle is in is not even
//! looked for, and one that is longer than a block is not kept while its end is looked for.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

/// The longest line that is handed out, in bytes. The API's own limits keep replies far below it.
pub(crate) const MAX_LINE: u64 = 8 << 20;

/// How much is read at once when much is to be read. What is searched must still be in the cache of the core that read it:
/// twice as much is read at a third of the speed.
const BLOCK: usize = 128 << 10;
/// How much is read at once from the end of a file.
const TAIL_BLOCK: usize = 64 << 10;

/// What a line must hold to be handed out, and how long it may be; every line is, if there is no needle.
#[derive(Debug)]
pub(crate) struct Needles<'n> {
    all: Vec<Finder<'n>>,
    /// In bytes.
    longest: u64,
    /// Lines that were too long to be handed out.
    passed_over: Cell<u64>,
}

impl<'n> Needles<'n> {
    pub(crate) fn new(texts: &[&'n str]) -> Needles<'n> {
        let all = texts.iter().map(|text| Finder::new(text.as_bytes())).collect();
        Needles { all, longest: MAX_LINE, passed_over: Cell::new(0) }
    }

    /// Hands out lines of up to `longest` bytes.
    pub(crate) fn up_to(self, longest: u64) -> Needles<'n> {
        Needles { longest, ..self }
    }

    /// How many lines held a needle and were too long to be handed out.
    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over.get()
    }

    fn is_in(&self, line: &[u8]) -> bool {
        self.all.is_empty() || self.all.iter().any(|needle| needle.find(line).is_some())
    }

    /// The bytes of a block that must be seen again with the next one, so that no needle is missed between the two.
    fn overlap(&self) -> usize {
        self.all.iter().map(|needle| needle.needle().len()).max().unwrap_or(1) - 1
    }

    /// Reads one line; none if it is too long or is there no more.
    fn read_line(&self, file: &File, from: u64, to: u64) -> io::Result<Option<Vec<u8>>> {
        if to - from > self.longest {
            self.passed_over.set(self.passed_over.get() + 1);
            return Ok(None);
        }
        let mut line = vec![0; (to - from) as usize];
        match file.read_exact_at(&mut line, from) {
            Ok(()) => Ok(Some(line)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Visits, in order, the lines between `from` and `to` (both at the start of a line, or `to` at the end of the file)
/// that hold a needle, without their line break. Returns the offset just past the last line break; what lies behind it
/// is a line still being written and is not visited.
pub(crate) fn scan(
    file: &File,
    from: u64,
    to: u64,
    needles: &Needles<'_>,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<u64> {
    let mut buffer = vec![0; BLOCK.min(usize::try_from(to.saturating_sub(from)).unwrap_or(BLOCK))];
    // `buffer[..kept]` is the start of a line, which begins at `line` in the file.
    let (mut line, mut kept) = (from, 0);
    loop {
        let at = line + kept as u64;
        let read = read_some(file, &mut buffer[kept..], at, to)?;
        if read == 0 {
            return Ok(line);
        }
        let filled = kept + read;
        let Some(end) = memrchr(b'\n', &buffer[kept..filled]).map(|end| kept + end + 1) else {
            kept = filled;
            if kept == buffer.len() {
                match long_line(file, line, to, needles, &mut buffer)? {
                    None => return Ok(line),
                    Some((next, long)) => {
                        if long.is_some_and(|long| visit(&long).is_break()) {
                            return Ok(next);
                        }
                        (line, kept) = (next, 0);
                    }
                }
            }
            continue;
        };
        if let Some(stop) = visit_block(&buffer[..end], needles, &mut visit) {
            return Ok(line + stop as u64);
        }
        buffer.copy_within(end..filled, 0);
        line += end as u64;
        kept = filled - end;
    }
}

/// Like [`scan`], and then visits what is there of the last line, should it have no line break.
pub(crate) fn scan_whole(
    file: &File,
    from: u64,
    to: u64,
    needles: &Needles<'_>,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut flow = ControlFlow::Continue(());
    let end = scan(file, from, to, needles, |line| {
        flow = visit(line);
        flow
    })?;
    if flow.is_continue()
        && end < to
        && let Some(line) = needles.read_line(file, end, to)?
        && needles.is_in(&line)
    {
        let _ = visit(&line); // the last one in any case
    }
    Ok(())
}

/// Visits the lines of a block that ends with a line break; returns where it stopped, if a visit asked for it.
fn visit_block(block: &[u8], needles: &Needles<'_>, visit: &mut impl FnMut(&[u8]) -> ControlFlow<()>) -> Option<usize> {
    let mut start = 0;
    let mut next: Vec<Option<usize>> = needles.all.iter().map(|needle| needle.find(block)).collect();
    while start < block.len() {
        let hit = if needles.all.is_empty() { Some(start) } else { next.iter().flatten().min().copied() };
        let hit = hit?;
        let begin = memrchr(b'\n', &block[start..hit]).map_or(start, |at| start + at + 1);
        let end = memchr(b'\n', &block[hit..]).map_or(block.len(), |at| hit + at + 1);
        if visit(&block[begin..end - 1]).is_break() {
            return Some(end);
        }
        start = end;
        for (next, needle) in next.iter_mut().zip(&needles.all) {
            if next.is_some_and(|at| at < end) {
                *next = needle.find(&block[end..]).map(|at| end + at);
            }
        }
    }
    None
}

/// Finds the end of a line that is longer than `buffer`, which is used to look for it. Returns where the next line
/// starts, and the line itself if it holds a needle and is not too long; none if it has no end yet.
fn long_line(
    file: &File,
    line: u64,
    to: u64,
    needles: &Needles<'_>,
    buffer: &mut [u8],
) -> io::Result<Option<(u64, Option<Vec<u8>>)>> {
    let overlap = needles.overlap();
    let (mut at, mut seen) = (line, false);
    loop {
        let read = read_some(file, buffer, at, to)?;
        let end = memchr(b'\n', &buffer[..read]);
        seen |= needles.is_in(&buffer[..end.unwrap_or(read)]);
        if let Some(end) = end {
            let end = at + end as u64;
            return Ok(Some((end + 1, if seen { needles.read_line(file, line, end)? } else { None })));
        }
        if read <= overlap || at + read as u64 >= to {
            return Ok(None);
        }
        at += (read - overlap) as u64;
    }
}

/// Fills `buffer` from `at` on, not past `to`, as far as the file goes; 0 at its end.
fn read_some(file: &File, buffer: &mut [u8], at: u64, to: u64) -> io::Result<usize> {
    let room = usize::try_from(to.saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
    let mut filled = 0;
    while filled < room {
        match file.read_at(&mut buffer[filled..room], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The start of the first line at or behind `at`; `to` when none starts before it.
pub(crate) fn next_line(file: &File, at: u64, to: u64) -> io::Result<u64> {
    let Some(mut from) = at.checked_sub(1) else { return Ok(0) };
    if at >= to {
        return Ok(to);
    }
    let mut buffer = [0; 8 << 10];
    loop {
        let read = read_some(file, &mut buffer, from, to)?;
        if let Some(end) = memchr(b'\n', &buffer[..read]) {
            return Ok(from + end as u64 + 1);
        }
        if read == 0 {
            return Ok(to);
        }
        from += read as u64;
    }
}

/// Visits the lines that hold a needle from `to` backwards, the unfinished last one included, as far as they begin at or
/// behind `from`.
pub(crate) fn scan_back(
    file: &File,
    from: u64,
    to: u64,
    needles: &Needles<'_>,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    // `window` is the file from `start` up to the line that was visited last.
    let (mut window, mut start) = (Vec::new(), to);
    let mut visit = |line: &[u8]| if needles.is_in(line) { visit(line) } else { ControlFlow::Continue(()) };
    loop {
        if let Some(end) = memrchr(b'\n', &window) {
            if visit(&window[end + 1..]).is_break() {
                return Ok(());
            }
            window.truncate(end);
        } else if start <= from {
            if next_line(file, from, to)? == from {
                let _ = visit(&window); // the last one in any case
            }
            return Ok(());
        } else if window.len() >= BLOCK {
            let end = start + window.len() as u64;
            let Some(begin) = line_begin(file, from, start)? else { return Ok(()) };
            if needles.read_line(file, begin, end)?.is_some_and(|line| visit(&line).is_break()) || begin == 0 {
                return Ok(());
            }
            window.clear();
            start = begin - 1;
        } else if !extend_back(file, from, &mut start, &mut window)? {
            return Ok(());
        }
    }
}

/// Puts the block before `start` in front of `window`; false when the file no longer reaches that far.
fn extend_back(file: &File, from: u64, start: &mut u64, window: &mut Vec<u8>) -> io::Result<bool> {
    let size = (TAIL_BLOCK as u64).min(*start - from);
    let mut block = vec![0; size as usize];
    *start -= size;
    let read = read_some(file, &mut block, *start, *start + size)?;
    block.append(window);
    *window = block;
    Ok(read as u64 == size)
}

/// Where the line begins that `before` lies in; none when it begins before `from`.
fn line_begin(file: &File, from: u64, before: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; BLOCK];
    let mut end = before;
    while end > from {
        let size = (BLOCK as u64).min(end - from);
        let read = read_some(file, &mut buffer[..size as usize], end - size, end)?;
        if let Some(at) = memrchr(b'\n', &buffer[..read]) {
            return Ok(Some(end - size + at as u64 + 1));
        }
        end -= size;
    }
    Ok((next_line(file, from, before)? == from).then_some(from))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const NEEDLE: &str = "\"usage\"";

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn forwards(file: &File, from: u64, to: u64, needles: &[&str]) -> (Vec<Vec<u8>>, u64) {
        let mut seen = Vec::new();
        let end = scan(file, from, to, &Needles::new(needles), |line| {
            seen.push(line.to_vec());
            ControlFlow::Continue(())
        });
        (seen, end.unwrap())
    }

    fn backwards(file: &File, from: u64, to: u64, needles: &[&str]) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        scan_back(file, from, to, &Needles::new(needles), |line| {
            seen.push(line.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
        seen
    }

    /// A line of about `length` bytes, with the needle `at` bytes from its start if it fits there.
    fn line(length: usize, at: Option<usize>) -> Vec<u8> {
        let mut line = vec![b'x'; length];
        if let Some(at) = at.filter(|at| at + NEEDLE.len() <= length) {
            line[at..at + NEEDLE.len()].copy_from_slice(NEEDLE.as_bytes());
        }
        line
    }

    fn any_line() -> impl Strategy<Value = Vec<u8>> {
        let around = |at: usize| at.saturating_sub(9)..at + 9;
        let length = prop_oneof![
            6 => 0..300usize,
            2 => around(TAIL_BLOCK),
            2 => around(BLOCK),
            1 => around(BLOCK + TAIL_BLOCK),
            1 => around(3 * BLOCK),
        ];
        let at = prop_oneof![3 => 0..200usize, 1 => around(TAIL_BLOCK), 1 => around(BLOCK), 1 => around(2 * BLOCK)];
        (length, prop::option::of(at)).prop_map(|(length, at)| line(length, at))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_ways_see_the_lines_that_splitting_the_whole_would_give(
            lines in prop::collection::vec(any_line(), 0..9),
            finished: bool,
            cut in 0.0..1.0f64,
        ) {
            let mut bytes = lines.join(&b'\n');
            if finished {
                bytes.push(b'\n');
            }
            let file = file_of(&bytes);
            let to = bytes.len() as u64;
            let whole = memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
            for needles in [&[NEEDLE][..], &["y", NEEDLE], &[]] {
                let wanted = |line: &&[u8]| needles.is_empty() || memchr::memmem::find(line, NEEDLE.as_bytes()).is_some();
                let split = |bytes: &[u8]| -> Vec<Vec<u8>> {
                    bytes.split(|byte| *byte == b'\n').filter(wanted).map(<[u8]>::to_vec).collect()
                };
                let (seen, end) = forwards(&file, 0, to, needles);
                prop_assert_eq!(end as usize, whole);
                prop_assert!(seen == split(bytes[..whole].strip_suffix(b"\n").unwrap_or_default()) || whole == 0 && seen.is_empty());
                let mut all = split(&bytes);
                all.reverse();
                prop_assert!(backwards(&file, 0, to, needles) == all);
                // From somewhere in the middle, only what begins there counts.
                let from = (cut * to as f64) as u64;
                let begin = next_line(&file, from, to).unwrap();
                let mut rest = split(&bytes[begin as usize..]);
                rest.reverse();
                let seen = backwards(&file, from, to, needles);
                prop_assert!(seen == rest || begin == to && seen.is_empty());
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_its_neighbours_are_not() {
        let long = line(MAX_LINE as usize + 1, Some(5));
        let bytes = [line(50, Some(3)), long, line(60, Some(9)), Vec::new()].join(&b'\n');
        let file = file_of(&bytes);
        let (seen, end) = forwards(&file, 0, bytes.len() as u64, &[NEEDLE]);
        assert_eq!((seen.iter().map(Vec::len).collect::<Vec<_>>(), end), (vec![50, 60], bytes.len() as u64));
        let seen = backwards(&file, 0, bytes.len() as u64, &[NEEDLE]);
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [60, 50]);
        for (longest, passed_over) in [(MAX_LINE, 1), (MAX_LINE + 1, 0)] {
            let needles = Needles::new(&[NEEDLE]).up_to(longest);
            let mut seen = 0;
            let visit = |_: &[u8]| {
                seen += 1;
                ControlFlow::Continue(())
            };
            scan(&file, 0, bytes.len() as u64, &needles, visit).unwrap();
            assert_eq!((seen, needles.passed_over()), (3 - passed_over, passed_over));
        }
    }

    #[test]
    fn a_file_that_shrank_ends_the_reading() {
        let bytes = [line(50, Some(3)), line(60, Some(9)), Vec::new()].join(&b'\n');
        let file = file_of(&bytes);
        let more = bytes.len() as u64 + 500_000;
        assert_eq!(forwards(&file, 0, more, &[NEEDLE]).1, bytes.len() as u64);
        assert!(backwards(&file, 0, more, &[NEEDLE]).is_empty());
        assert_eq!(forwards(&file, bytes.len() as u64 + 5, more, &[NEEDLE]).0.len(), 0);
    }

    #[test]
    fn a_visit_that_has_enough_ends_it() {
        let bytes = [line(50, Some(3)), line(60, Some(9)), Vec::new()].join(&b'\n');
        let file = file_of(&bytes);
        let mut seen = 0;
        let stop = |_: &[u8]| {
            seen += 1;
            ControlFlow::Break(())
        };
        assert_eq!(scan(&file, 0, bytes.len() as u64, &Needles::new(&[NEEDLE]), stop).unwrap(), 51);
        assert_eq!(seen, 1);
    }
}
