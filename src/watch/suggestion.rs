//! The suggestion to compact: when it is due, and its words.
//!
//! It is advice in five layers: how full the context is, what the session's tool calls show, where detail can be kept,
//! what /compact does by itself, and what the zones rest on. The model reads it, so by default no figure stands in it:
//! the same state gives the same bytes, and the prompt cache keeps hitting.

use std::path::PathBuf;

use anyhow::Result;

use super::zones::{Limits, Zone};
use crate::store::{Guard, Sid, StateFile};
use crate::text;

/// After the first advisory by number of tool calls, one every so many.
const ADVISORY_STEP: u64 = 25;
/// The longest diagnosis, in UTF-16 units: directory names come from outside.
const OBSERVED_MAX: usize = 600;

/// A move from one zone to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The zone that was last reported.
    pub from: Zone,
    /// The zone now.
    pub to: Zone,
}

impl Move {
    /// Whether it calls for a suggestion: a rise into orange or red.
    pub fn is_due(self) -> bool {
        self.to > self.from && self.to >= Zone::Orange
    }
}

/// Notes the zone that a session is in; a move when that is another one than before. A fall re-arms what lies above.
///
/// `guard` holds the lock of [`StateFile::ZoneState`].
pub fn enter(guard: &Guard<'_>, sid: &Sid, to: Zone) -> Result<Option<Move>> {
    let state = StateFile::ZoneState(sid);
    let from = guard.store().read_text(state).and_then(|name| Zone::parse(name.trim())).unwrap_or_default();
    if from == to {
        return Ok(None);
    }
    guard.write(state, to.name().as_bytes())?;
    Ok(Some(Move { from, to }))
}

/// What a suggestion says.
#[derive(Debug)]
pub struct Suggestion<'a> {
    /// The zone that was entered: orange or red.
    pub zone: Zone,
    /// Tokens in context.
    pub tokens: u64,
    /// Dollars that the session has cost, where known.
    pub cost: Option<f64>,
    /// The diagnosis of the shape log; empty where there is none.
    pub observed: String,
    /// Whether to speak of memory files, and in which folder they are, where that is known.
    pub memory: Option<Option<PathBuf>>,
    /// The limits in force.
    pub limits: &'a Limits,
    /// Whether learnt limits are news.
    pub announce: bool,
    /// Whether to leave out every figure.
    pub stable: bool,
}

impl Suggestion<'_> {
    /// The text, its last line naming the switch that silences it.
    pub fn text(&self) -> String {
        let mut lines = vec![self.header()];
        if !self.observed.is_empty() {
            lines.push(format!("Observed: {}.", text::cut(&text::sanitize(&self.observed), OBSERVED_MAX)));
        }
        if let Some(folder) = &self.memory {
            let place = folder.as_ref().map_or_else(String::new, |folder| format!(" under {}", folder.display()));
            lines.push(format!(
                "Optional: while the detail is still at hand, write what should outlast a compaction into auto-memory\
                 {place} (project_session_*.md, reference_*.md, indexed in MEMORY.md)."
            ));
        }
        lines.push(
            "When the time comes, a plain `/compact` will do: it is given preserve and drop hints from what the tools \
             of this session touched, and words after it are followed too."
                .into(),
        );
        lines.extend(self.footnotes());
        lines.push("To silence this feedback: CLAUDE_COMPACT_AUTOBLOCK=0, or `si set compact.autoblock false`.".into());
        lines.join("\n")
    }

    fn header(&self) -> String {
        let (name, meaning) = match self.zone {
            Zone::Red => ("Red zone", "The context is long enough that details are likely to get lost in it."),
            _ => ("Drift zone", "The context is long enough that answers begin to drift from it."),
        };
        let figures = match (self.stable, self.cost) {
            (true, _) => String::new(),
            (false, None | Some(0.0)) => format!(" — ~{} tokens in context", text::tokens_rough(self.tokens)),
            (false, Some(cost)) => {
                format!(" — ~{} tokens in context, {} spent", text::tokens_rough(self.tokens), text::money_rough(cost))
            }
        };
        format!(
            "[StrategicCompact] {name}{figures}. {meaning} This is advice, not a stop: go on where the task needs all of it."
        )
    }

    fn footnotes(&self) -> Vec<String> {
        let Some(learnt) = &self.limits.adaptive else { return Vec::new() };
        if self.stable {
            let news = "(The zones have moved with past compactions; `si status` shows where they begin.)";
            return if self.announce { vec![news.into()] } else { Vec::new() };
        }
        let [orange, red] = [self.limits.orange, self.limits.red].map(text::tokens_rough);
        let scope = if learnt.of_project { "this project" } else { "all projects" };
        let mut notes =
            vec![format!("(Zones adapted to {scope}: orange={orange}, red={red}, {} past compacts.)", learnt.samples)];
        if learnt.cost_tightened {
            notes.push("(This session costs more than three of four past ones, so orange begins earlier.)".into());
        }
        notes
    }
}

/// The advisory for the user after `calls` tool calls: at `threshold` and every 25 calls from there on, else none.
///
/// `context` are its tokens, and whether they are an estimate.
pub fn advisory(calls: u64, threshold: u64, context: (u64, bool), zone: Zone) -> Option<String> {
    if calls < threshold || !(calls - threshold).is_multiple_of(ADVISORY_STEP) {
        return None;
    }
    let context = match context {
        (0, _) => String::new(),
        (tokens, estimated) => {
            let about = if estimated { "~" } else { "" };
            format!(" (context: {about}{} tokens, {} zone)", text::tokens_rough(tokens), zone.name())
        }
    };
    Some(format!("si: {calls} tool calls in this session{context}. Between two tasks is the moment for /compact."))
}

/// The news of learnt limits, for the user.
pub fn announcement(limits: &Limits, first: bool) -> Option<String> {
    let learnt = limits.adaptive.as_ref()?;
    let [yellow, orange, red] = [limits.yellow, limits.orange, limits.red].map(text::tokens_rough);
    let what = if first { "zones are now learnt" } else { "learnt zones have moved" };
    let scope = if learnt.of_project { "this project's" } else { "your" };
    Some(format!(
        "si: {what} from {scope} last {} compactions: yellow {yellow}, orange {orange}, red {red}.",
        learnt.samples
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::zones::Adaptive;

    fn limits() -> Limits {
        let adaptive = Adaptive {
            samples: 7,
            of_project: true,
            p50: 279_000.0,
            p90: 300_000.0,
            regret_rate: 0.0,
            cost_tightened: true,
        };
        Limits { yellow: 171_000, orange: 251_000, red: 317_000, adaptive: Some(adaptive) }
    }

    fn suggestion(limits: &Limits, stable: bool) -> Suggestion<'_> {
        Suggestion {
            zone: Zone::Orange,
            tokens: 260_400,
            cost: Some(1.434),
            observed: "shifted src/auth → src/billing · hot: src/billing\x1b[m".into(),
            memory: Some(Some("/h/.claude/projects/-p/memory".into())),
            limits,
            announce: false,
            stable,
        }
    }

    #[test]
    fn no_figure_stands_in_the_stable_text() {
        let limits = limits();
        let text = suggestion(&limits, true).text();
        let without_switch = text.replace("AUTOBLOCK=0", "");
        assert!(!without_switch.contains(|c: char| c.is_ascii_digit()), "{text}");
        assert!(!text.contains('\x1b') && text.contains("src/auth → src/billing"), "{text}");
        assert!(text.lines().last().unwrap().contains("CLAUDE_COMPACT_AUTOBLOCK=0"));
        assert_eq!(text, suggestion(&limits, true).text());
    }

    #[test]
    fn figures_and_footnotes_stand_in_the_other() {
        let limits = limits();
        let text = suggestion(&limits, false).text();
        for part in ["~260k tokens", "$1.43 spent", "orange=251k, red=317k, 7 past compacts", "costs more", "/compact"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.lines().count(), 7);
    }

    #[test]
    fn an_advisory_comes_at_the_threshold_and_every_25_calls() {
        let due: Vec<u64> = (0..=110).filter(|calls| advisory(*calls, 50, (0, false), Zone::Green).is_some()).collect();
        assert_eq!(due, [50, 75, 100]);
        for (estimated, size) in
            [(true, "(context: ~260k tokens, yellow zone)"), (false, "(context: 260k tokens, yellow zone)")]
        {
            let text = advisory(50, 50, (260_000, estimated), Zone::Yellow).unwrap();
            assert!(text.contains("50 tool calls") && text.contains(size), "{text}");
        }
    }

    #[test]
    fn a_rise_into_orange_or_red_is_due_once() {
        let dir = tempfile::tempdir().unwrap();
        let env = crate::env::Env::for_tests(dir.path());
        let (store, sid) = (crate::store::Store::new(&env), Sid::new("s"));
        let guard = store.lock(StateFile::ZoneState(&sid)).unwrap();
        use Zone::*;
        for (zone, due) in [
            (Green, None),
            (Yellow, Some(false)),
            (Orange, Some(true)),
            (Orange, None),
            (Red, Some(true)),
            (Red, None),
            (Orange, Some(false)),
            (Red, Some(true)),
            (Green, Some(false)),
            (Orange, Some(true)),
        ] {
            assert_eq!(enter(&guard, &sid, zone).unwrap().map(Move::is_due), due, "{zone:?}");
        }
    }
}
