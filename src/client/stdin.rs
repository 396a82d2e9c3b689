//! Reads the one JSON document on standard input, bounded in size and in time.
//!
//! A host may leave the pipe open. So whenever nothing more is there for the moment, what came so far is tried as a
//! whole document; only an incomplete one is waited for, and no longer than the lane's patience.

use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::json::Object;

/// The most that is read, in bytes.
pub const MAX: usize = 64 << 20;

/// How much is read at once at first, in bytes: a payload without a long result. It doubles with what came.
const FIRST: usize = 16 << 10;

/// How much longer a document is waited for when so many bytes of it came: a busy machine takes seconds over many
/// megabytes.
const MORE_FOR: (usize, Duration) = (1 << 20, Duration::from_millis(250));

/// Reads standard input to its end, to a complete JSON object, to [`MAX`] bytes, or until `patience` is over; it grows with
/// what came.
pub fn read(patience: Duration) -> Vec<u8> {
    let stdin = std::io::stdin();
    let begun = Instant::now();
    let deadline = |bytes: &[u8]| begun + patience + MORE_FOR.1 * (bytes.len() / MORE_FOR.0) as u32;
    let mut bytes = Vec::new();
    while bytes.len() < MAX {
        if !ready(&stdin, Duration::ZERO) {
            if ends_object(&bytes) {
                break;
            }
            let left = deadline(&bytes).saturating_duration_since(Instant::now());
            if left.is_zero() || !ready(&stdin, left) {
                break;
            }
        }
        // Straight into the document, past the standard library's buffer: it would be one more copy.
        bytes.reserve(bytes.len().max(FIRST));
        match rustix::io::read(&stdin, spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
        if Instant::now() >= deadline(&bytes) && !ends_object(&bytes) {
            break;
        }
    }
    bytes.truncate(MAX);
    bytes
}

fn ends_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b"}") && Object::parse(&super::json::decode(bytes)).is_some()
}

fn ready(stdin: &std::io::Stdin, wait: Duration) -> bool {
    let wait = Timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos() as _ };
    // An error is left to the read that follows.
    poll(&mut [PollFd::new(stdin, PollFlags::IN)], Some(&wait)).map_or(true, |count| count > 0)
}
