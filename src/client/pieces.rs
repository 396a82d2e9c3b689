//! A long file of lines that several threads read: each takes the next piece, and what it read is handed on in the order
//! of the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use super::lines;

/// What a thread reads at a time, in bytes.
const PIECE: u64 = 2 << 20;
/// How many threads read at the most.
const MAX_THREADS: usize = 4;
/// How many pieces wait for one before them: bounds the memory they take.
const MAX_WAITING: usize = 8;

/// Reads the lines between `from`, where one begins, and `to`. `read` is given two offsets that lines begin at and answers
/// what stands between them, and the offset just past the last line break there; `take` is given the answers in the order
/// of the file. Returns the last of those offsets; an error, should a piece not be readable, with the offset up to which
/// all were. A panic of `take` is one of this function.
pub(crate) fn read<T: Send>(
    file: &File,
    from: u64,
    to: u64,
    read: impl Fn(u64, u64) -> io::Result<(T, u64)> + Sync,
    take: impl FnMut(T) + Send,
) -> Result<u64, u64> {
    let state = State { next: 0, turn: 0, waiting: BTreeMap::new(), take, end: from, failed: false };
    let pieces = Pieces { file, from, to, read, state: Mutex::new(state), taken: Condvar::new() };
    let threads = match to - from {
        ..=PIECE => 1,
        _ => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS)),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| pieces.work());
        }
        pieces.work();
    });
    let state = pieces.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if state.failed { Err(state.end) } else { Ok(state.end) }
}

struct Pieces<'f, T, R, F> {
    file: &'f File,
    from: u64,
    to: u64,
    read: R,
    state: Mutex<State<T, F>>,
    /// Told when pieces were handed on.
    taken: Condvar,
}

struct State<T, F> {
    /// The next piece that no thread took yet.
    next: u64,
    /// The next piece to be handed on.
    turn: u64,
    /// Pieces that were read before their turn; none for those that no line begins in.
    waiting: BTreeMap<u64, Option<(T, u64)>>,
    take: F,
    end: u64,
    failed: bool,
}

impl<T, R: Fn(u64, u64) -> io::Result<(T, u64)>, F: FnMut(T)> Pieces<'_, T, R, F> {
    fn work(&self) -> Option<()> {
        let mut state = self.state.lock().ok()?;
        loop {
            let piece = state.next;
            state.next += 1;
            drop(state);
            let begin = self.from + piece * PIECE;
            if begin >= self.to {
                return Some(());
            }
            // A thread that ended here would leave the others waiting for its piece.
            let read = catch_unwind(AssertUnwindSafe(|| self.piece(begin)));
            state = self.state.lock().ok()?;
            match read {
                Ok(Ok(read)) => drop(state.waiting.insert(piece, read)),
                _ => state.failed = true,
            }
            state.hand_on();
            self.taken.notify_all();
            let full = |state: &mut State<T, F>| !state.failed && state.waiting.len() >= MAX_WAITING;
            state = self.taken.wait_while(state, full).ok().filter(|state| !state.failed)?;
        }
    }

    /// Reads the lines that begin in the piece from `begin` on.
    fn piece(&self, begin: u64) -> io::Result<Option<(T, u64)>> {
        let end = (begin + PIECE).min(self.to);
        let first = if begin == self.from { begin } else { lines::next_line(self.file, begin, end)? };
        if first == end {
            return Ok(None);
        }
        (self.read)(first, lines::next_line(self.file, end, self.to)?).map(Some)
    }
}

impl<T, F: FnMut(T)> State<T, F> {
    fn hand_on(&mut self) {
        while let Some(piece) = self.waiting.remove(&self.turn) {
            self.turn += 1;
            if let Some((read, end)) = piece {
                self.end = end;
                (self.take)(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::ops::ControlFlow;

    use super::*;
    use crate::client::lines::Needles;

    /// A file of these lines, and its size.
    fn file_of(lines: &[Vec<u8>]) -> (File, u64) {
        let mut file = tempfile::tempfile().unwrap();
        let bytes = lines.join(&b'\n');
        file.write_all(&bytes).unwrap();
        (file, bytes.len() as u64)
    }

    /// The lengths of the lines between two offsets.
    fn lengths(file: &File, from: u64, to: u64) -> io::Result<(Vec<usize>, u64)> {
        let mut lengths = Vec::new();
        let end = lines::scan(file, from, to, &Needles::new(&[]), |line| {
            lengths.push(line.len());
            ControlFlow::Continue(())
        })?;
        Ok((lengths, end))
    }

    #[test]
    fn every_line_comes_once_and_in_order_however_long_it_is() {
        let piece = PIECE as usize;
        // Lines that end just before, at and just behind the borders of pieces, that fill several, and many short ones.
        let sizes = [piece - 1, piece - 2, piece, 0, 1, 2 * piece + 7, piece / 2, piece / 2 - 3, 3 * piece];
        let mut wanted: Vec<usize> = sizes.iter().copied().chain((0..30_000).map(|index| index % 301)).collect();
        wanted.extend([3 * piece + 1, 5]);
        let lines: Vec<Vec<u8>> = wanted.iter().map(|length| vec![b'x'; *length]).collect();
        let (file, to) = file_of(&lines);
        // The last line has no line break and is no whole line.
        wanted.pop();
        let mut seen = Vec::new();
        let end = read(&file, 0, to, |from, to| lengths(&file, from, to), |lines| seen.extend(lines));
        assert_eq!(end, Ok(to - 5));
        assert_eq!(seen, wanted);
        let from = sizes[0] as u64 + 1;
        seen.clear();
        let end = read(&file, from, to, |from, to| lengths(&file, from, to), |lines| seen.extend(lines));
        assert_eq!((end, seen.as_slice()), (Ok(to - 5), &wanted[1..]));
    }

    #[test]
    fn what_lies_before_a_piece_that_cannot_be_read_is_handed_on() {
        let lines: Vec<Vec<u8>> = (0..40).map(|_| vec![b'x'; PIECE as usize / 2 - 1]).collect();
        let (file, to) = file_of(&lines);
        for panics in [false, true] {
            let mut seen = 0;
            let some = |from, to| match from {
                from if from < 7 * PIECE => lengths(&file, from, to),
                _ if panics => panic!("on purpose"),
                _ => Err(io::ErrorKind::Other.into()),
            };
            let end = read(&file, 0, to, some, |lines| seen += lines.len() as u64);
            let Err(end) = end else { panic!("{end:?}") };
            // A thread that saw the failure may leave what it read itself.
            assert!(end <= 7 * PIECE && seen * PIECE / 2 == end, "{end} {seen}");
        }
        let all = |from, to| lengths(&file, from, to);
        assert!(catch_unwind(|| read(&file, 0, to, all, |_| panic!("on purpose"))).is_err());
    }

    #[test]
    fn a_file_that_shrank_ends_the_reading() {
        let lines: Vec<Vec<u8>> = (0..40).map(|_| vec![b'x'; PIECE as usize / 4 - 1]).collect();
        let (file, to) = file_of(&lines);
        let mut seen = 0;
        let end = read(&file, 0, 3 * to, |from, to| lengths(&file, from, to), |lines| seen += lines.len());
        assert_eq!((end, seen), (Ok(to - PIECE / 4 + 1), 39));
    }
}
