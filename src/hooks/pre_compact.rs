//! Before a compaction: guidance.

use anyhow::Result;

use super::{Call, Reply};

/// run.
pub fn run(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}
