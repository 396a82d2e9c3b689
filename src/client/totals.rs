//! Totals of a transcript, from the stored offset on.

use std::path::Path;

use super::transcript::Boundary;
use super::usage::Usage;
use crate::config;
use crate::env::Env;
use crate::store::{Sid, Store};

/// Tokens by model, and what they cost at the prices in force when asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spent {
    models: Vec<(String, Usage)>,
    dollars: f64,
    saved: f64,
}

impl Spent {
    /// Dollars: each model at its own prices, or every model at those that the user set.
    pub fn cost(&self, _user: &config::Prices) -> f64 {
        self.dollars
    }

    /// Dollars that cache reads saved.
    pub fn saved(&self, _user: &config::Prices) -> f64 {
        self.saved
    }

    /// Tokens of all models together.
    pub fn usage(&self) -> Usage {
        self.models.first().map(|(_, usage)| *usage).unwrap_or_default()
    }
}

/// What a session has used so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// The whole session.
    pub session: Spent,
    /// Since its last compaction; none before the first.
    pub since_compaction: Option<Spent>,
    /// The 60 minutes up to now.
    pub last_hour: Spent,
    /// How many compactions there were.
    pub compactions: u64,
    /// The last of them.
    pub boundary: Option<Boundary>,
}

/// Brings the stored totals of a session up to the end of its transcript and returns them. A last line that is complete
/// but for its newline counts in what is returned, not in what is stored. None when the transcript cannot be read or is
/// empty.
///
/// `session_id` is the payload's: rows of another session, which a fork copied, were paid there. `user` are the prices
/// that the user set; they decide only the dollar figures that are stored for the JavaScript original.
pub fn update(
    _store: &Store<'_>,
    _env: &Env,
    _sid: &Sid,
    _session_id: Option<&str>,
    _transcript: &Path,
    _user: &config::Prices,
) -> Option<Totals> {
    None
}

/// The totals as they were last stored, without reading the transcript.
pub fn stored(_store: &Store<'_>, _env: &Env, _sid: &Sid) -> Option<Totals> {
    None
}
