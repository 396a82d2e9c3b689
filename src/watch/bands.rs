//! Sorting the directories of a session into hot, warm and cold, and seeing what else its shape log shows.

use std::collections::{BTreeSet, HashMap};

use super::glob::Globs;
use super::root_dir::{self, Kind};
use crate::store::records::shape::{Rollup, ShapeEntry};
use crate::text;

/// A score from here on is hot.
const HOT: f64 = 0.8;
/// A score from here on is warm, where nothing else is configured.
const WARM: f64 = 0.4;
/// Entries with a directory that an analysis needs.
const MIN_CALLS: usize = 5;
/// How many first and last calls a domain shift compares.
const SHIFT_CALLS: usize = 10;
/// Less overlap than this is a shift.
const SHIFT_BELOW: f64 = 0.3;
/// Directories per band, and phase events.
const SHOWN: usize = 5;
/// Directories on either side of a shift, and in a line.
const NAMED: usize = 3;
/// Sample files of a directory.
const SAMPLES: usize = 3;
/// Stale tokens below this are not worth a figure.
const STALE_FROM: u64 = 20_000;

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
    /// Globs of secrets: their files are never samples, their directories never named.
    pub secret: &'a [String],
    /// Files of the repository, relative to it, whose touched directories are always hot.
    pub anchors: &'a [String],
    /// Directories that earlier compactions dropped and the session then missed: never cold.
    pub missed: &'a [String],
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

impl Root {
    fn add_sample(&mut self, file: &str) {
        if self.samples.len() < SAMPLES && !self.samples.iter().any(|sample| sample == file) {
            self.samples.push(file.into());
        }
    }
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
pub fn analyse(entries: &[ShapeEntry], options: &Options<'_>) -> Option<Analysis> {
    let placed: Vec<(String, &ShapeEntry)> =
        entries.iter().filter_map(|entry| Some((healed_root(entry, options)?, entry))).collect();
    if placed.len() < MIN_CALLS {
        return None;
    }
    let begin = placed.first()?.1.tok;
    let span = placed.last()?.1.tok.checked_sub(begin).filter(|span| *span > 0)?;
    let mut roots = Tally::new(options);
    for (root, entry) in &placed {
        roots.add(root, entry);
    }
    // Last, so that samples are of this window before they are of earlier ones.
    roots.add_rollup();
    let secret = Globs::new(options.secret);
    let mut analysis = roots.into_bands(begin, span, options);
    analysis.shift = shift(&placed, &secret);
    analysis.total_span = span as u64;
    analysis.total_calls = placed.len();
    let events = entries.iter().filter_map(|e| Some(PhaseMark { event: e.event.clone()?, tok: e.tok }));
    analysis.events = events.collect();
    let skip = analysis.events.len().saturating_sub(SHOWN);
    analysis.events.drain(..skip);
    Some(analysis)
}

/// The root of an entry; that of an absolute path is taken anew, since it may have been recorded against a folder
/// that the session had drifted to. None for an entry that touched no path.
pub fn healed_root(entry: &ShapeEntry, options: &Options<'_>) -> Option<String> {
    let recorded = entry.root.as_deref().filter(|root| !root.is_empty())?;
    let (Some(cwd), Some(file)) = (options.cwd, entry.file.as_deref().filter(|file| file.starts_with('/'))) else {
        return Some(recorded.into());
    };
    let depth = options.depth.unwrap_or(root_dir::DEFAULT_DEPTH);
    let root = root_dir::root_of(file, Kind::File, depth, Some(cwd));
    // The log does not say whether the path named a folder; a recorded root that is the path's own end does.
    if root != recorded && file.trim_end_matches('/').ends_with(&format!("/{recorded}")) {
        return Some(root_dir::root_of(file, Kind::Folder, depth, Some(cwd)));
    }
    Some(root).filter(|root| !root.is_empty())
}

/// Counts per directory, in the order of their first touch.
pub(super) struct Tally<'a> {
    roots: Vec<Root>,
    index: HashMap<String, usize>,
    preserve: Globs,
    secret: Globs,
    options: &'a Options<'a>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(options: &'a Options<'a>) -> Tally<'a> {
        Tally {
            roots: Vec::new(),
            index: HashMap::new(),
            preserve: Globs::new(options.preserve),
            secret: Globs::new(options.secret),
            options,
        }
    }

    /// Adds what earlier compactions rolled up.
    pub(super) fn add_rollup(&mut self) {
        for (name, rolled) in self.options.rollup.into_iter().flat_map(Rollup::each) {
            let preserved = rolled.allowlisted
                || self.is_preserved(&name, None)
                || rolled.samples.iter().any(|file| self.is_preserved(&name, Some(file)));
            let root = self.root(&name, rolled.first);
            root.count += rolled.count;
            root.first = root.first.min(rolled.first);
            root.last = root.last.max(rolled.last);
            root.allowlisted |= preserved;
            rolled.samples.iter().for_each(|sample| root.add_sample(sample));
        }
    }

    /// Counts one entry, unless the rollup holds it already.
    pub(super) fn add(&mut self, root: &str, entry: &ShapeEntry) {
        if self.options.rollup.is_some_and(|rollup| entry.tok <= rollup.rolled_through_tok) {
            return;
        }
        let file = entry.file.as_deref();
        let preserved = self.is_preserved(root, file);
        let sample = file.filter(|file| !self.secret.hit_path(file, self.options.cwd));
        let root = self.root(root, entry.tok);
        root.count += 1;
        root.first = root.first.min(entry.tok);
        root.last = root.last.max(entry.tok);
        root.allowlisted |= preserved;
        if let Some(sample) = sample {
            root.add_sample(sample);
        }
    }

    fn root(&mut self, name: &str, tok: i64) -> &mut Root {
        let at = *self.index.entry(name.to_string()).or_insert_with(|| {
            self.roots.push(Root { root: name.into(), first: tok, last: tok, ..Root::default() });
            self.roots.len() - 1
        });
        &mut self.roots[at]
    }

    fn is_preserved(&self, root: &str, file: Option<&str>) -> bool {
        let Some(file) = file else { return self.preserve.any(root) };
        let inside = self.options.cwd.and_then(|cwd| file.strip_prefix(cwd.trim_end_matches('/'))?.strip_prefix('/'));
        let globbed =
            self.preserve.any(root) || self.preserve.any(file) || inside.is_some_and(|f| self.preserve.any(f));
        globbed || self.options.anchors.iter().any(|anchor| anchor == inside.unwrap_or(file))
    }

    /// The counts as they are, in the order of the first touch.
    pub(super) fn into_roots(self) -> Vec<Root> {
        self.roots
    }

    fn into_bands(mut self, begin: i64, span: i64, options: &Options<'_>) -> Analysis {
        let most = self.roots.iter().map(|root| root.count).max().unwrap_or(1).max(1);
        let all: i64 = self.roots.iter().map(|root| root.count).sum();
        for root in &mut self.roots {
            let recency = ((root.last - begin) as f64 / span as f64).clamp(0.0, 1.0);
            let frequency = (1.0 + root.count as f64).ln() / (1.0 + most as f64).ln();
            let score = match options.scoring {
                Scoring::Recency => recency,
                Scoring::Frequency => frequency,
                Scoring::Hybrid => 0.6 * recency + 0.4 * frequency,
            };
            [root.recency, root.frequency, root.score] = [recency, frequency, score].map(|n| rounded(n, 3));
        }
        self.roots.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.last.cmp(&a.last)));
        let warm_from = options.warm_cutoff.filter(|cut| cut.is_finite()).map_or(WARM, |cut| cut.clamp(0.01, 0.799));
        let mut analysis = Analysis::default();
        let mut cold_calls = 0;
        for root in self.roots {
            let band = if root.allowlisted || root.score >= HOT {
                &mut analysis.hot
            } else if root.score >= warm_from || options.missed.contains(&root.root) {
                &mut analysis.warm
            } else {
                cold_calls += root.count;
                &mut analysis.cold
            };
            if band.len() < SHOWN && !self.secret.hit_path(&root.root, None) {
                band.push(root);
            }
        }
        // Rolled-up calls are in both sums, so that the share stays a share and never exceeds the span.
        analysis.stale_tokens = (span as i128 * i128::from(cold_calls) / i128::from(all.max(1))).max(0) as u64;
        analysis
    }
}

fn shift(placed: &[(String, &ShapeEntry)], secret: &Globs) -> Option<Shift> {
    if placed.len() < 2 * SHIFT_CALLS {
        return None;
    }
    let names = |part: &[(String, &ShapeEntry)]| {
        let mut seen = BTreeSet::new();
        let in_order = part.iter().map(|(root, _)| root.clone()).filter(|root| seen.insert(root.clone()));
        in_order.collect::<Vec<_>>()
    };
    let first = names(&placed[..SHIFT_CALLS]);
    let last = names(&placed[placed.len() - SHIFT_CALLS..]);
    let both = first.iter().filter(|root| last.contains(root)).count();
    let jaccard = both as f64 / (first.len() + last.len() - both) as f64;
    let only = |these: &[String], those: &[String]| {
        these.iter().filter(|root| !those.contains(root)).cloned().collect::<Vec<_>>()
    };
    let [from, to] = [only(&first, &last), only(&last, &first)];
    let named = |roots: &[String]| {
        roots.iter().filter(|root| !secret.hit_path(root, None)).take(NAMED).cloned().collect::<Vec<_>>()
    };
    // Where work went to a secret place alone, there is no news to tell.
    let told = to.is_empty() || !named(&to).is_empty();
    (jaccard < SHIFT_BELOW && told).then(|| Shift { from: named(&from), to: named(&to), jaccard: rounded(jaccard, 2) })
}

impl Analysis {
    /// The diagnosis in a line: shift, stale directories, hot directories. Empty when there is nothing to say.
    ///
    /// With `stable` no figure stands in it and the directories are in the order of their names, so that the same
    /// state gives the same bytes.
    pub fn one_line(&self, stable: bool) -> String {
        let names = |band: &[Root]| {
            let mut names: Vec<&str> = band.iter().map(|root| root.root.as_str()).take(NAMED).collect();
            if stable {
                names.sort_unstable();
            }
            names.join(", ")
        };
        let mut parts = Vec::new();
        if let Some(shift) = &self.shift {
            let from = if shift.from.is_empty() { "(earlier context)".into() } else { shift.from.join(",") };
            parts.push(format!("shifted {from} → {}", shift.to.join(",")));
        }
        if self.stale_tokens >= STALE_FROM && !self.cold.is_empty() {
            let figure = if stable { String::new() } else { format!("~{} ", text::tokens_rough(self.stale_tokens)) };
            parts.push(format!("{figure}stale in {}", names(&self.cold)));
        }
        if !self.hot.is_empty() {
            parts.push(format!("hot: {}", names(&self.hot)));
        }
        parts.join(" · ")
    }
}

fn rounded(number: f64, digits: u32) -> f64 {
    text::fixed(number, digits).parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(rows: &[(i64, &str)]) -> Vec<ShapeEntry> {
        let entry = |(n, (tok, file)): (usize, &(i64, &str))| ShapeEntry {
            t: n as i64,
            tok: *tok,
            tool: Some("Read".into()),
            root: Some(root_dir::root_of(file, Kind::File, 2, Some("/w"))),
            file: Some((*file).into()),
            event: None,
        };
        rows.iter().enumerate().map(entry).collect()
    }

    fn names(band: &[Root]) -> Vec<&str> {
        band.iter().map(|root| root.root.as_str()).collect()
    }

    fn three_bands() -> Vec<ShapeEntry> {
        log(&[
            (0, "/w/old/tests/a.ts"),
            (100, "/w/old/tests/b.ts"),
            (50_000, "/w/mid/lib/a.ts"),
            (90_000, "/w/new/src/a.ts"),
            (100_000, "/w/new/src/.env"),
        ])
    }

    #[test]
    fn recency_is_the_default_scoring() {
        let analysis = analyse(&three_bands(), &Options::default()).unwrap();
        assert_eq!(names(&analysis.hot), ["new/src"]);
        assert_eq!(names(&analysis.warm), ["mid/lib"]);
        assert_eq!(names(&analysis.cold), ["old/tests"]);
    }

    #[test]
    fn an_anchored_file_protects_its_directory_only_when_touched() {
        let anchors = ["old/tests/b.ts".to_string(), "other/dir/x.ts".to_string()];
        let options = Options { anchors: &anchors, cwd: Some("/w"), ..Options::default() };
        let analysis = analyse(&three_bands(), &options).unwrap();
        assert_eq!(names(&analysis.hot), ["new/src", "old/tests"]);
        assert!(analysis.hot[1].allowlisted && analysis.cold.is_empty());
    }

    #[test]
    fn a_directory_missed_before_is_warm_instead_of_cold() {
        let missed = ["old/tests".to_string()];
        let analysis = analyse(&three_bands(), &Options { missed: &missed, ..Options::default() }).unwrap();
        assert_eq!(names(&analysis.warm), ["mid/lib", "old/tests"]);
        assert!(analysis.cold.is_empty());
        assert_eq!(analysis.stale_tokens, 0);
    }

    #[test]
    fn secrets_are_neither_samples_nor_named() {
        let secret = ["**/.env".to_string(), "**/tests".to_string()];
        let analysis = analyse(&three_bands(), &Options { secret: &secret, ..Options::default() }).unwrap();
        assert_eq!(analysis.hot[0].samples, ["/w/new/src/a.ts"]);
        assert!(analysis.cold.is_empty());
    }

    #[test]
    fn a_shift_names_no_secret_place() {
        let entries: Vec<(i64, &str)> =
            (0..30).map(|n| (1000 + n * 100, if n < 20 { "/w/src/a/x.rs" } else { "/w/secrets/k/x" })).collect();
        let secret = ["**/*secret*".to_string()];
        let analysis = |secret| analyse(&log(&entries), &Options { secret, ..Options::default() }).unwrap();
        assert!(analysis(&[]).shift.is_some());
        assert_eq!(analysis(&secret).shift, None);
    }

    #[test]
    fn stale_tokens_never_exceed_the_span() {
        let mut rollup = Rollup { rolled_through_tok: 50_000, ..Rollup::default() };
        rollup.put("gone/dir", &crate::store::records::shape::RolledRoot { count: 900, ..Default::default() });
        let entries = log(&[
            (60_000, "/w/a/b/1"),
            (61_000, "/w/a/b/1"),
            (62_000, "/w/a/b/1"),
            (63_000, "/w/a/b/1"),
            (64_000, "/w/a/b/1"),
        ]);
        let analysis = analyse(&entries, &Options { rollup: Some(&rollup), ..Options::default() }).unwrap();
        assert_eq!(names(&analysis.cold), ["gone/dir"]);
        assert!(analysis.stale_tokens <= analysis.total_span, "{}", analysis.stale_tokens);
    }

    #[test]
    fn the_stable_line_holds_no_figure_and_sorts_by_name() {
        let mut analysis = analyse(&three_bands(), &Options::default()).unwrap();
        analysis.cold.insert(0, Root { root: "z/z".into(), ..Root::default() });
        analysis.stale_tokens = 40_000;
        assert_eq!(analysis.one_line(true), "stale in old/tests, z/z · hot: new/src");
        assert_eq!(analysis.one_line(false), "~40k stale in z/z, old/tests · hot: new/src");
    }
}
