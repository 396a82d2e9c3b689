//! Behaviour through the real binary, and the golden tables.

mod support;

mod golden;
mod lanes;
