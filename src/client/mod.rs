//! What Claude Code defines: payloads on stdin, transcripts, usage and prices, project folders, settings.json.
//! When the client changes, only this room changes.

pub(crate) mod cursor;
pub mod json;
pub mod json_edit;
pub mod json_len;
mod lines;
pub mod part;
pub mod payload;
mod pieces;
pub mod pricing;
pub mod project;
mod row;
pub mod settings;
pub mod stdin;
mod tally;
pub mod thinking;
pub mod totals;
pub mod transcript;
pub mod usage;
