//! The archive of tool responses: one record per body, and an index with a row for each.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::lenient;

/// One archived tool response.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Archived {
    /// The tool call's id, as its file is named.
    #[serde(deserialize_with = "lenient::leaf")]
    pub id: String,
    /// The session, as file names carry it.
    #[serde(deserialize_with = "lenient::leaf")]
    pub sid: String,
    /// The tool's name; empty when the client named none.
    #[serde(deserialize_with = "lenient::leaf")]
    pub tool: String,
    /// The tool's input as it was sent.
    pub tool_input: Option<Box<RawValue>>,
    /// When, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
    /// Length of the body in UTF-16 units.
    #[serde(deserialize_with = "lenient::whole")]
    pub chars: i64,
    /// The response as readable text.
    pub body: String,
}

/// One row of the index, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArchiveRow {
    /// The tool call's id, as its file is named.
    #[serde(deserialize_with = "lenient::leaf")]
    pub id: String,
    /// When it was archived, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
    /// The tool's name.
    #[serde(deserialize_with = "lenient::leaf")]
    pub tool: String,
    /// Length of the body in UTF-16 units.
    #[serde(deserialize_with = "lenient::whole")]
    pub chars: i64,
    /// The start of the body, white space collapsed, at most 160 UTF-16 units.
    #[serde(deserialize_with = "lenient::leaf")]
    pub preview: String,
    /// The id as the client wrote it, where that is not its file name.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub raw_id: Option<String>,
    /// When it was last replayed, epoch milliseconds: what was used lately is evicted last.
    #[serde(deserialize_with = "lenient::leaf", skip_serializing_if = "Option::is_none")]
    pub used: Option<i64>,
    /// Keys that si does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
