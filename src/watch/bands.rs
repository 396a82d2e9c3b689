//! Sorting the directories of a session into hot, warm and cold.

use crate::store::records::shape::{Rollup, ShapeEntry};

/// What decides the score of a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scoring {
    /// Where in the token span it was last touched.
    #[default]
    Recency,
    /// How often it was touched, on a logarithmic scale.
    Frequency,
    /// 0.6 × recency + 0.4 × frequency.
    Hybrid,
}

impl Scoring {
    /// Reads a name; an unknown one means the default.
    pub fn parse(name: &str) -> Scoring {
        match name {
            "frequency" => Scoring::Frequency,
            "hybrid" => Scoring::Hybrid,
            _ => Scoring::Recency,
        }
    }
}

/// How a log is to be analysed.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// What decides the score.
    pub scoring: Scoring,
    /// The least score of a warm directory; none for the default, 0.4.
    pub warm_cutoff: Option<f64>,
    /// Globs whose directories are always hot.
    pub preserve: &'a [String],
    /// Files of the repository, relative to it, whose touched directories are always hot.
    pub anchors: &'a [String],
    /// Where the session started: roots recorded against another folder are corrected.
    pub cwd: Option<&'a str>,
    /// Path segments of a root directory; none for the default, 2.
    pub depth: Option<usize>,
    /// Roots of earlier compactions.
    pub rollup: Option<&'a Rollup>,
}

/// The directories of a session by band, and what else its log shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Analysis {
    /// Still in active use; the five with the highest scores.
    pub hot: Vec<Root>,
    /// Of middling recency; at most five.
    pub warm: Vec<Root>,
    /// Untouched for most of the session; at most five.
    pub cold: Vec<Root>,
    /// The domain shift, where one was seen.
    pub shift: Option<Shift>,
    /// How many tokens of the context are roughly spent in cold directories.
    pub stale_tokens: u64,
    /// Tokens between the first and the last touch of a directory.
    pub total_span: u64,
    /// Entries with a directory.
    pub total_calls: usize,
    /// The last five phase events.
    pub events: Vec<PhaseMark>,
}

/// A directory in its band.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Root {
    /// The directory.
    pub root: String,
    /// Token budget at its first touch.
    pub first: i64,
    /// Token budget at its last touch.
    pub last: i64,
    /// Calls that touched it.
    pub count: i64,
    /// Up to three of its files, as tools were given them.
    pub samples: Vec<String>,
    /// Whether a preserve glob or an anchor put it among the hot ones.
    pub allowlisted: bool,
    /// 0 to 1, three digits.
    pub recency: f64,
    /// 0 to 1, three digits.
    pub frequency: f64,
    /// 0 to 1, three digits.
    pub score: f64,
}

/// Work moved from some directories to others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shift {
    /// Directories of the first calls alone; at most three, may be empty.
    pub from: Vec<String>,
    /// Directories of the last calls alone; at most three.
    pub to: Vec<String>,
    /// Overlap of the two, 0 to 1, two digits.
    pub jaccard: f64,
}

/// A commit, push or pull request.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseMark {
    /// `commit`, `push` or `pr`.
    pub event: String,
    /// Token budget when it happened.
    pub tok: i64,
}

/// Analyses a log; none when it holds too little (fewer than five entries with a directory, or no token span).
pub fn analyse(_entries: &[ShapeEntry], _options: &Options<'_>) -> Option<Analysis> {
    None
}
