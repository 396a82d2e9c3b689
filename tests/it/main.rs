//! Behaviour through the real binary, and the golden tables.

mod compaction;
mod support;

mod archive;
mod git;
mod golden;
mod hostile;
mod lanes;
mod memory;
mod readme;
mod setup;
mod statusline;
mod totals;
mod watch;
