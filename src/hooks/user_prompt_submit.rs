//! On every prompt: the task-change hint.

use anyhow::Result;

use super::{Call, Reply};

/// run.
pub fn run(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}
