//! The zones of the context: one set of limits for status line, budget and suggestion, learnt from past compactions
//! where there are enough of them.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::client::{pricing, totals};
use crate::compaction::history;
use crate::config::{self, Config};
use crate::env::Env;
use crate::store::records::compaction_log::HistoryEntry;
use crate::store::{Sid, StateFile, Store};

/// Compactions with known tokens that learning needs.
const MIN_SAMPLES: usize = 5;
/// The last so many compactions say how often dropped directories were missed.
const REGRET_OVER: usize = 10;
/// Windows from this size on have the fixed base.
const LARGE_WINDOW: u64 = 500_000;
/// Yellow begins so far below a learnt orange, and red at least so far above.
const YELLOW_BELOW: u64 = 80_000;
const RED_ABOVE: u64 = 60_000;
/// Learnt limits are news when one of them moved so far.
const ANNOUNCE_STEP: u64 = 10_000;
/// The largest window that there is.
pub const LARGEST_WINDOW: u64 = 1_000_000;
/// Windows of a client, in tokens; anything else is nonsense.
pub const WINDOW_RANGE: std::ops::RangeInclusive<u64> = 1_000..=100_000_000;

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
/// `anchor` is where the session started; `window` the context window, where the caller knows it (see [`window`]; else
/// the one that the status line left for this session).
pub fn in_force(env: &Env, store: Store<'_>, config: &Config, anchor: &Path, sid: &Sid, window: Option<u64>) -> Limits {
    let config = config.for_project(anchor);
    let window = window.or_else(|| store.read_count(StateFile::ContextWindow(sid), WINDOW_RANGE));
    let base = Base::new(&config.statusline.zones, window);
    if !config.learn.enabled {
        return base.limits();
    }
    let history = history::lessons(store);
    if history.len() < MIN_SAMPLES {
        return base.limits();
    }
    let cost = || totals::stored(&store, env, sid).map(|totals| totals.session.cost(&config.statusline.prices));
    adapt(&history, &base, &anchor.to_string_lossy(), cost)
}

/// The context window of a session as the hooks know it, for [`in_force`]: the user's `statusline.contextCap`, else what
/// the client told the status line, else what the model is known for. None when nothing is known of it.
pub fn window(store: Store<'_>, config: &Config, sid: &Sid, model: Option<&str>, used: u64) -> Option<u64> {
    let told = store.read_count(StateFile::ContextWindow(sid), WINDOW_RANGE);
    let user = config.statusline.context_cap;
    let known = told.is_some() || user.is_some() || model.is_some_and(|model| !model.is_empty());
    known.then(|| pricing::context_cap(user, told, model, None, used) as u64)
}

/// Whether so few tokens are in context that no limit, however learnt, can be reached: most calls of a session need not
/// read the history.
pub fn is_below_all(config: &Config, window: Option<u64>, tokens: u64) -> bool {
    // A project's own limits are not looked up here; as soon as there are any, this cannot tell.
    config.statusline.per_project.is_empty()
        && tokens < Base::new(&config.statusline.zones, window).yellow.saturating_mul(7) / 10
}

/// The limits that learning starts from, and how far it may move them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    yellow: u64,
    orange: u64,
    red: u64,
    /// Distances of learnt limits, scaled to the window.
    yellow_below: u64,
    red_above: u64,
    /// What no limit exceeds.
    ceiling: u64,
}

impl Base {
    /// The user's limits, or on a small window, where the user set none, shares of it.
    pub fn new(zones: &config::Zones, window: Option<u64>) -> Base {
        let small = window.filter(|window| *window < LARGE_WINDOW && zones.set == [false; 3]);
        let Some(window) = small else {
            let orange = zones.orange.max(zones.yellow);
            let (yellow, red) = (zones.yellow, zones.red.max(orange));
            return Base { yellow, orange, red, yellow_below: YELLOW_BELOW, red_above: RED_ABOVE, ceiling: u64::MAX };
        };
        let [yellow, orange, red, ceiling] = [60, 75, 90, 95].map(|percent| window * percent / 100);
        let scaled = |distance: u64| distance * red / 400_000;
        Base { yellow, orange, red, yellow_below: scaled(YELLOW_BELOW), red_above: scaled(RED_ABOVE), ceiling }
    }

    fn limits(&self) -> Limits {
        Limits { yellow: self.yellow, orange: self.orange, red: self.red, adaptive: None }
    }

    /// Within 30 % of `base`, and below the ceiling.
    fn clamp(&self, value: f64, base: u64) -> f64 {
        let [low, high] = [7, 13].map(|tenths| (base.saturating_mul(tenths) / 10) as f64);
        value.clamp(low, high).min(self.ceiling as f64)
    }
}

/// Moves the base to where past compactions happened: those of this project if five of them have usable tokens, else
/// all. `cost` tells what this session has cost; it is asked only where it can matter.
pub fn adapt(history: &[HistoryEntry], base: &Base, project: &str, cost: impl FnOnce() -> Option<f64>) -> Limits {
    let usable = |entry: &HistoryEntry| entry.tokens.filter(|tokens| tokens.is_finite() && *tokens > 0.0);
    // A line without usable tokens is a compaction all the same: its regret and its cost count.
    let is_own = |entry: &&HistoryEntry| !project.is_empty() && entry.cwd == project;
    let own: Vec<&HistoryEntry> = history.iter().filter(is_own).collect();
    let of_project = own.iter().filter_map(|entry| usable(entry)).count() >= MIN_SAMPLES;
    let pool = if of_project { own } else { history.iter().collect() };
    let tokens: Vec<f64> = pool.iter().filter_map(|entry| usable(entry)).collect();
    let Some(found) = percentiles(&tokens).filter(|found| found.count >= MIN_SAMPLES) else { return base.limits() };

    // Tenths and hundredths as whole numbers: 0.9 and 1.05 are not exact in binary, and the results are rounded down.
    let mut orange = base.clamp((found.p50 * 9.0 / 10.0).floor(), base.orange);
    let recent = &pool[pool.len().saturating_sub(REGRET_OVER)..];
    let regret_rate = recent.iter().map(|entry| entry.regret_count).sum::<f64>() / recent.len() as f64;
    if regret_rate >= 1.0 {
        orange = base.clamp((orange * 11.0 / 10.0).floor(), base.orange);
    }
    // The original counted each message several times, so its costs say nothing here.
    let ours = pool.iter().filter(|entry| entry.by.as_deref() == Some("si"));
    let costs: Vec<f64> = ours.filter_map(|entry| entry.cost).filter(|cost| cost.is_finite() && *cost > 0.0).collect();
    let dear = percentiles(&costs).filter(|costs| costs.count >= MIN_SAMPLES);
    let cost_tightened = dear.is_some_and(|costs| cost().is_some_and(|cost| cost > costs.p75));
    if cost_tightened {
        orange = base.clamp((orange * 88.0 / 100.0).floor(), base.orange);
    }
    let yellow = base.clamp(orange - base.yellow_below as f64, base.yellow);
    let red = (found.p90 * 105.0 / 100.0).floor().max(orange + base.red_above as f64);
    let red = base.clamp(red, base.red);
    let adaptive =
        Adaptive { samples: found.count, of_project, p50: found.p50, p90: found.p90, regret_rate, cost_tightened };
    Limits { yellow: yellow as u64, orange: orange as u64, red: red as u64, adaptive: Some(adaptive) }
}

/// Learnt limits that have not been announced yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// Whether nothing was ever announced for this project.
    pub first: bool,
}

/// Whether learnt limits are news for a project (never announced, or one of them moved by 10,000 tokens since), and
/// remembers them as announced if so. `project` is where the session started.
pub fn announce(store: Store<'_>, project: Option<&str>, limits: &Limits, now_ms: i64) -> Result<Option<News>> {
    let Some(learnt) = &limits.adaptive else { return Ok(None) };
    let project = project.filter(|project| !project.is_empty()).unwrap_or("default");
    let now = [("yellow", limits.yellow), ("orange", limits.orange), ("red", limits.red)];
    let news = |announced: &Map<String, Value>| {
        let before = announced.get(project).and_then(Value::as_object);
        let moved = |(name, now): &(&str, u64)| {
            before.and_then(|before| before.get(*name)?.as_u64()).is_none_or(|b| b.abs_diff(*now) >= ANNOUNCE_STEP)
        };
        now.iter().any(moved).then_some(News { first: before.is_none() })
    };
    let read = || store.read_json::<Map<String, Value>>(StateFile::ZonesAnnounced).unwrap_or_default();
    if news(&read()).is_none() {
        return Ok(None);
    }
    let guard = store.lock(StateFile::ZonesAnnounced)?;
    let mut announced = read();
    let news = news(&announced);
    if news.is_some() {
        let mut entry: Map<String, Value> = now.iter().map(|(name, limit)| (name.to_string(), json!(limit))).collect();
        entry.insert("sampleCount".into(), json!(learnt.samples));
        entry.insert("t".into(), json!(now_ms));
        announced.insert(project.into(), Value::Object(entry));
        guard.write_json(StateFile::ZonesAnnounced, &announced)?;
    }
    Ok(news)
}

/// Percentiles of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// How many values.
    pub count: usize,
}

/// `sorted[min(n − 1, floor(n × p))]`; none for no values.
pub fn percentiles(values: &[f64]) -> Option<Percentiles> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied();
    Some(Percentiles { p50: at(50)?, p75: at(75)?, p90: at(90)?, count: sorted.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(rows: &[(f64, f64, f64)]) -> Vec<HistoryEntry> {
        let row = |(tokens, cost, regret): &(f64, f64, f64)| HistoryEntry {
            cwd: "/p".into(),
            tokens: Some(*tokens),
            cost: Some(*cost),
            regret_count: *regret,
            by: Some("si".into()),
            ..HistoryEntry::default()
        };
        rows.iter().map(row).collect()
    }

    fn base() -> Base {
        Base::new(&config::Zones::default(), None)
    }

    fn limits(history: &[HistoryEntry], cost: Option<f64>) -> [u64; 3] {
        let limits = adapt(history, &base(), "/p", || cost);
        [limits.yellow, limits.orange, limits.red]
    }

    #[test]
    fn learnt_limits_follow_the_percentiles_rounded_down() {
        let mixed = [
            (261_001.0, 0.0, 0.0),
            (290_000.0, 0.0, 0.0),
            (255_000.0, 0.0, 0.0),
            (300_000.0, 0.0, 0.0),
            (400_007.0, 0.0, 0.0),
        ];
        assert_eq!(limits(&history(&mixed), None), [181_000, 261_000, 420_007]);
        let half = history(&[(250_005.0, 0.0, 0.0); 5]);
        assert_eq!(limits(&half, None), [145_004, 225_004, 285_004]);
    }

    #[test]
    fn each_limit_stays_within_thirty_percent_of_its_base() {
        assert_eq!(limits(&history(&[(60_000.0, 0.0, 0.0); 6]), None), [140_000, 210_000, 280_000]);
        assert_eq!(limits(&history(&[(950_000.0, 0.0, 9.0); 6]), None), [260_000, 390_000, 520_000]);
    }

    #[test]
    fn soft_regret_does_not_move_zones() {
        let mut soft = history(&[(280_000.0, 0.0, 0.0); 10]);
        for entry in &mut soft {
            entry.extra.insert("softRegretCount".into(), 9.into());
        }
        assert_eq!(limits(&soft, None), [172_000, 252_000, 312_000]);
        assert_eq!(limits(&history(&[(280_000.0, 0.0, 1.0); 10]), None), [197_200, 277_200, 337_200]);
    }

    #[test]
    fn a_dear_session_moves_orange_in_by_costs_that_si_wrote() {
        let rows: Vec<_> = (1..=8).map(|n| (300_000.0, f64::from(n), 0.0)).collect();
        let ours = history(&rows);
        assert_eq!(limits(&ours, Some(7.0)), [190_000, 270_000, 330_000]);
        assert_eq!(limits(&ours, Some(7.01)), [157_600, 237_600, 315_000]);
        let theirs: Vec<_> = ours.into_iter().map(|entry| HistoryEntry { by: None, ..entry }).collect();
        assert_eq!(limits(&theirs, Some(99.0)), [190_000, 270_000, 330_000]);
    }

    #[test]
    fn a_project_with_too_few_usable_tokens_falls_back_to_all() {
        let mut rows = history(&[(250_000.0, 0.0, 0.0); 7]);
        for entry in &mut rows[..5] {
            entry.cwd = "/q".into();
        }
        rows.extend(history(&[(0.0, 0.0, 0.0); 5]));
        let limits = adapt(&rows, &base(), "/p", || None);
        assert_eq!(limits.adaptive.map(|adaptive| (adaptive.of_project, adaptive.samples)), Some((false, 7)));
    }

    #[test]
    fn a_compaction_of_unknown_size_counts_with_its_regret_and_cost() {
        let mut rows = history(&[(280_000.0, 0.0, 0.0); 5]);
        rows.extend(history(&[(0.0, 2.0, 2.0); 5]));
        rows[5].tokens = None;
        assert_eq!(limits(&rows, None), [197_200, 277_200, 337_200]);
        assert_eq!(limits(&rows, Some(2.5)), [163_936, 243_936, 303_936]);
    }

    #[test]
    fn lines_that_name_no_project_are_of_none() {
        let mut rows = history(&[(250_000.0, 0.0, 0.0); 6]);
        rows.iter_mut().for_each(|entry| entry.cwd.clear());
        let learnt = adapt(&rows, &base(), "", || None).adaptive;
        assert_eq!(learnt.map(|learnt| learnt.of_project), Some(false));
    }

    #[test]
    fn a_small_window_has_shares_of_itself_unless_the_user_set_zones() {
        let small = Base::new(&config::Zones::default(), Some(200_000));
        assert_eq!((small.yellow, small.orange, small.red), (120_000, 150_000, 180_000));
        let learnt = adapt(&history(&[(190_000.0, 0.0, 0.0); 6]), &small, "/p", || None);
        assert_eq!([learnt.yellow, learnt.orange, learnt.red], [135_000, 171_000, 190_000]);
        let chosen = config::Zones { yellow: 100_000, set: [true, false, false], ..config::Zones::default() };
        assert_eq!(Base::new(&chosen, Some(200_000)).orange, 300_000);
        assert_eq!(Base::new(&config::Zones::default(), Some(1_000_000)).orange, 300_000);
    }

    #[test]
    fn zones_begin_at_their_limits() {
        let limits = base().limits();
        for (tokens, zone) in [
            (0, Zone::Green),
            (199_999, Zone::Green),
            (200_000, Zone::Yellow),
            (300_000, Zone::Orange),
            (400_000, Zone::Red),
        ] {
            assert_eq!(limits.zone(tokens), zone, "{tokens}");
        }
        assert_eq!(Zone::parse("orange"), Some(Zone::Orange));
        assert_eq!(Zone::parse("Orange"), None);
    }
}
