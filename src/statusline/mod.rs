//! The status line: payload in, rows out.

use std::ffi::OsString;

use anyhow::Result;

use crate::env::Env;

/// Renders the rows for the payload on standard input; empty when there is nothing to show.
pub fn run(_args: &[OsString], _env: &Env) -> Result<String> {
    Ok(String::new())
}
