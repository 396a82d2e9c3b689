//! What must not be lost: archived tool results, pins, and the raw transcript.

pub mod archive;
pub mod pins;
pub mod recall;
