//! Behaviour through the real binary, and the golden tables.

mod support;

mod archive;
mod compaction;
mod git;
mod golden;
mod hostile;
mod lanes;
mod memory;
mod readme;
mod reports;
mod settings;
mod setup;
mod statusline;
mod totals;
mod watch;
