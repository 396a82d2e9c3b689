//! The shapes of the files: one typed record each, in a file named after the room that uses it.
//!
//! Keys are those of the JavaScript original, so that a user can move from it, or back, in the middle of a session.
//! A record that is read, changed and written again keeps the keys it does not know (`#[serde(flatten)] extra`).

pub mod archive;
pub mod compaction;
pub mod compaction_log;
pub mod git;
pub mod lenient;
pub mod quota;
pub mod shape;
pub mod totals;
