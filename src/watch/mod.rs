//! What a session is doing: tokens, zones, where its tool calls land, when its task changes.

pub mod anchors;
pub mod bands;
pub mod budget;
pub mod glob;
pub mod phase;
pub mod rollup;
pub mod root_dir;
pub mod seen;
pub mod shape;
pub mod suggestion;
pub mod task_change;
pub mod zones;
