//! `si`: session intelligence for Claude Code.
//!
//! One process answers one call: it freezes its surroundings into [`Env`], reads one JSON document, asks small pure
//! modules, writes small private files, and answers once. Arrows point one way, down this list:
//!
//! - `run`, `cli`: the lanes (hook, status line, terminal) and their error policy: the only code that knows exit codes.
//! - `commands`: one file per terminal command. `hooks`: one file per hook, order but no rules. `statusline`: the rows.
//! - `memory` (archive, pins, recall), `compaction` (what happens around /compact), `watch` (what the session is doing).
//! - `call`: what a hook and the rooms that serve it are handed.
//! - `git`: the only room that names libgit2 or starts git. `process`: every other program that is ever started.
//! - `config`: the table of keys and everything made from it.
//! - `client`: what Claude Code defines: payloads, transcripts, usage, prices, project folders, settings.json.
//! - `store`: our files: names, private opens, atomic writes, locks, records.
//! - `log`, `text`, `env`: the debug log, untrusted text to safe cells, the surroundings.

pub mod call;
pub mod cli;
pub mod client;
pub mod commands;
pub mod compaction;
pub mod config;
pub mod env;
pub mod git;
pub mod hooks;
pub mod log;
pub mod memory;
pub mod process;
pub mod run;
pub mod statusline;
pub mod store;
pub mod text;
pub mod watch;

pub use env::Env;
pub use run::run;
