//! Behaviour through the real binary, and the golden tables.

mod support;

mod git;
mod golden;
mod lanes;
