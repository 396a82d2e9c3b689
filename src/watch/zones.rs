//! The zones of the context: one set of limits for status line, budget and suggestion.

use std::path::Path;

use crate::config::Config;
use crate::env::Env;
use crate::store::{Sid, Store};

/// How full the context is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// Work freely.
    #[default]
    Green,
    /// Compact between tasks.
    Yellow,
    /// Quality drifts.
    Orange,
    /// Compact now.
    Red,
}

impl Zone {
    /// The name in state files, logs and cells.
    pub fn name(self) -> &'static str {
        match self {
            Zone::Green => "green",
            Zone::Yellow => "yellow",
            Zone::Orange => "orange",
            Zone::Red => "red",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Zone> {
        [Zone::Green, Zone::Yellow, Zone::Orange, Zone::Red].into_iter().find(|zone| zone.name() == name)
    }
}

/// Where the zones begin, in tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Yellow begins here.
    pub yellow: u64,
    /// Orange begins here.
    pub orange: u64,
    /// Red begins here.
    pub red: u64,
    /// What they were learnt from; none for limits that are not.
    pub adaptive: Option<Adaptive>,
}

/// What adaptive limits rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptive {
    /// How many past compactions.
    pub samples: usize,
    /// Whether they are this project's alone.
    pub of_project: bool,
    /// Median of their tokens.
    pub p50: f64,
    /// 90th percentile of their tokens.
    pub p90: f64,
    /// Hard regret per compaction over the last ten.
    pub regret_rate: f64,
    /// Whether this session's cost moved orange in.
    pub cost_tightened: bool,
}

impl Limits {
    /// The zone of a token count.
    pub fn zone(&self, tokens: u64) -> Zone {
        match tokens {
            n if n >= self.red => Zone::Red,
            n if n >= self.orange => Zone::Orange,
            n if n >= self.yellow => Zone::Yellow,
            _ => Zone::Green,
        }
    }
}

/// The limits in force for a session.
///
/// `anchor` is where the session started; `window` the client's context window, where the caller knows it (else the one
/// that the status line left for this session).
pub fn in_force(
    _env: &Env,
    _store: Store<'_>,
    config: &Config,
    _anchor: &Path,
    _sid: &Sid,
    _window: Option<u64>,
) -> Limits {
    let zones = &config.statusline.zones;
    Limits { yellow: zones.yellow, orange: zones.orange, red: zones.red, adaptive: None }
}
