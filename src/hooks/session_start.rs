//! At session start: bootstrap, pins, resume block.

use anyhow::Result;

use super::{Call, Reply};

/// run.
pub fn run(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}

/// bootstrap.
pub fn bootstrap(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}

/// pin_inject.
pub fn pin_inject(_call: &Call<'_>) -> Result<Reply> {
    Ok(Reply::silent())
}
