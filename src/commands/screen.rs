//! The way out of a terminal command: whatever an answer is made of, what reaches a terminal has no control character but
//! line ends, tabs and our own colours.
//!
//! Commands clean what they show where they know what it is; this is the door behind all of them, so that none can be
//! forgotten. Into a pipe or a file text goes word for word.

use std::io::{self, Write};

use crate::text;

/// A writer that lets only printable text through, if it leads to a terminal.
pub struct Screen<W> {
    to: W,
    is_terminal: bool,
}

impl<W: Write> Screen<W> {
    /// Wraps a writer; `is_terminal` says whether it leads to one.
    pub fn new(to: W, is_terminal: bool) -> Screen<W> {
        Screen { to, is_terminal }
    }
}

impl<W: Write> Write for Screen<W> {
    /// Takes all of `bytes`; a character or a colour is never cut between two calls, since answers are made of texts.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_terminal {
            self.to.write_all(text::printable(&String::from_utf8_lossy(bytes)).as_bytes())?;
        } else {
            self.to.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
