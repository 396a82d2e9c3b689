//! After every tool call: budget, archive, suggestion.

use anyhow::Result;

use super::{Call, Reply};

/// run.
pub fn run(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}

/// token_budget.
pub fn token_budget(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}

/// tool_archive.
pub fn tool_archive(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}

/// suggest_compact.
pub fn suggest_compact(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}
