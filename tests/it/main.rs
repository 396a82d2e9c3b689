//! Behaviour through the real binary, and the golden tables.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests make files, start programs, read their switches and say how much they ran"
)]

#[path = "../properties/mod.rs"]
mod properties;
mod support;

mod archive;
mod compaction;
mod fuzz;
mod git;
mod golden;
mod hostile;
mod lanes;
mod memory;
mod per_project;
mod readme;
mod reports;
mod scripts;
mod security;
mod settings;
mod setup;
mod statusline;
mod terminal;
mod totals;
mod watch;
