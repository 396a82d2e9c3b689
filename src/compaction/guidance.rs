//! The guidance that a compaction's summarizer gets: what the user wrote, what the session really did, and what is to be
//! saved beside the summary.
//!
//! The client cuts it at 10,000 UTF-16 units, so what matters least goes first: the directives about memory, then the
//! cold directories, the user's own hints last. With `stable` nothing stands in it that changes from one compaction to
//! the next while directories, sections and commits stay the same: no figure, no date, no session id, no file of the
//! moment; directories are in the order of their names.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::follow_ups::{self, Sources};
use super::session_context::{self, SessionContext};
use crate::text;
use crate::watch::bands::{Analysis, Root};

/// The longest guidance, UTF-16 units: what the client takes.
pub const MAX: usize = 10_000;
/// The most of it that the hints of session-context.md take.
const MAX_HINTS: usize = 8_000;
/// Where the hints are too long, no line of them is longer than this.
const MAX_LINE: usize = 1_000;
/// From how many stale tokens on a figure is worth telling.
const STALE_FROM: u64 = 20_000;
/// How old a section may be, milliseconds.
const STALE_SECTION_MS: i64 = 3 * 86_400_000;
/// Sample files of a directory that are named.
const SAMPLES: usize = 2;
const RULE: &str = "────────────";

/// The sections that are passed on, in order: how their heading begins, and our label.
const SECTIONS: [(&str, &str); 5] = [
    (session_context::CURRENT_TASK, "CURRENT TASK:"),
    (session_context::KEY_FILES, "KEY FILES (must preserve):"),
    ("Key Decisions", "KEY DECISIONS (must preserve):"),
    ("On Compact", "ON COMPACT (your words):"),
    ("Completed Tasks", "SAFE TO DROP (resolved — keep only one-line summaries):"),
];

/// What a guidance is made of.
pub struct Input<'a> {
    /// session-context.md.
    pub context: &'a SessionContext,
    /// Its path.
    pub context_path: &'a Path,
    /// Now, epoch milliseconds.
    pub now_ms: i64,
    /// What the shape log shows; none when it holds too little.
    pub analysis: Option<&'a Analysis>,
    /// Where detail can be saved; none when that is turned off.
    pub memory: Option<Memory<'a>>,
    /// Whether the next start resumes the task.
    pub resumes: bool,
    /// Whether the bytes must not change without need.
    pub stable: bool,
}

/// The client's memory of a project.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a> {
    /// Its folder.
    pub dir: &'a Path,
    /// Files that may hold follow-ups.
    pub sources: &'a Sources,
    /// The name of this session's note where it may change: local date and the session's first 8 characters.
    pub note: &'a str,
}

/// A guidance, ready to be printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guidance {
    /// The text; empty when there is nothing to say.
    pub text: String,
    /// Headings of the sections that were passed on.
    pub sections: Vec<String>,
    /// Directories that it lists as safe to drop: exactly those.
    pub dropped: Vec<String>,
}

/// Writes the guidance.
pub fn write(input: &Input<'_>) -> Guidance {
    let (hints, sections) = hints(input);
    let shape = |cold: bool| input.analysis.map_or_else(String::new, |analysis| shape(analysis, input.stable, cold));
    let memory = input.memory.map_or_else(String::new, |memory| offload(&memory, input.stable));
    let review = input.memory.map_or_else(String::new, |memory| review(&memory, input.stable));
    let closing = if input.resumes {
        "After the compaction any short message (c will do) resumes the task.\n".to_string()
    } else {
        String::new()
    };
    // From the whole to what is never left out.
    let (whole, warm) = (shape(true), shape(false));
    let attempts: [(bool, Vec<&str>); 5] = [
        (true, vec![&hints, &whole, &memory, &review, &closing]),
        (true, vec![&hints, &whole, &review, &closing]),
        (true, vec![&hints, &whole, &closing]),
        (false, vec![&hints, &warm, &closing]),
        (false, vec![&hints]),
    ];
    let joined = |blocks: &[&str]| {
        let blocks: Vec<&str> = blocks.iter().copied().filter(|block| !block.is_empty()).collect();
        blocks.join("\n")
    };
    let fitting = attempts.iter().map(|(cold, blocks)| (*cold, joined(blocks)));
    let (cold, text) = fitting.clone().find(|(_, text)| text::utf16_len(text) <= MAX).unwrap_or_default();
    let dropped = input.analysis.filter(|_| cold).map_or_else(Vec::new, |analysis| names(&analysis.cold, input.stable));
    Guidance { text, sections, dropped }
}

/// The user's own words, and what si filled in from a commit.
fn hints(input: &Input<'_>) -> (String, Vec<String>) {
    let mut body = String::new();
    let mut passed_on = Vec::new();
    let context = input.context;
    for (heading, label) in SECTIONS {
        let begins =
            |name: &str| name.get(..heading.len()).is_some_and(|start| session_context::is_named(start, heading));
        let found = context.sections.iter().find(|(name, body)| begins(name) && !body.is_empty());
        let Some((name, section)) = found else { continue };
        passed_on.push(name.to_string());
        let autofilled = section.lines().next().and_then(session_context::sentinel).is_some();
        let since = context.unchanged_since(name).unwrap_or(input.now_ms);
        if !autofilled && input.now_ms - since > STALE_SECTION_MS {
            let label = label.trim_end_matches(':');
            let _ = writeln!(
                body,
                "\n{label}: left out, nobody has changed it for over 3 days (see {})",
                input.context_path.display()
            );
            continue;
        }
        // The mark of a filled section is for si alone, and its commit id would change the bytes.
        let told = section.lines().skip(usize::from(autofilled));
        let lines: Vec<String> = told.map(|line| text::sanitize(line).trim_end().to_string()).collect();
        let _ = write!(body, "\n{label}\n{}\n", lines.join("\n"));
        if autofilled {
            body.push_str("(from the last commit, not from a person: the conversation knows better)\n");
        }
    }
    if body.is_empty() {
        return (body, passed_on);
    }
    let mut whole = format!("COMPACTION GUIDANCE (from session-context.md):\n{RULE}{body}");
    if text::utf16_len(&whole) <= MAX_HINTS {
        return (whole, passed_on);
    }
    // One endless line must not cost the sections after it.
    if whole.lines().any(|line| text::utf16_len(line) > MAX_LINE) {
        whole = whole.lines().map(shortened).collect();
        if text::utf16_len(&whole) <= MAX_HINTS {
            return (whole, passed_on);
        }
    }
    let closing = format!("(cut here for length; the rest is in {})\n", input.context_path.display());
    let room = MAX_HINTS.saturating_sub(text::utf16_len(&closing));
    let kept = text::cut_utf16(&whole, room);
    let kept = kept.rfind('\n').map_or(kept, |end| &kept[..=end]);
    (format!("{kept}{closing}"), passed_on)
}

/// A line with its end, cut to [`MAX_LINE`].
fn shortened(line: &str) -> String {
    let kept = text::cut_utf16(line, MAX_LINE);
    format!("{kept}{}\n", if kept.len() < line.len() { "…" } else { "" })
}

fn shape(analysis: &Analysis, stable: bool, cold: bool) -> String {
    let mut out = String::new();
    if let Some(shift) = &analysis.shift {
        let side = |dirs: &[String]| if dirs.is_empty() { "(earlier work)".into() } else { shown_names(dirs) };
        let _ = writeln!(out, "\nDOMAIN SHIFT DETECTED: {} → {}", side(&shift.from), side(&shift.to));
        if !stable {
            let _ = writeln!(out, "(Jaccard overlap {} across recent tool calls)", shift.jaccard);
        }
    }
    let mut band = |heading: &str, roots: &[Root], calls: &str| {
        if !roots.is_empty() {
            let _ = writeln!(out, "\n{heading}");
            for root in ordered(roots, stable) {
                let _ = writeln!(out, "  - {}", directory(root, stable, calls));
            }
        }
    };
    band("PRESERVE (recently active, still in use):", &analysis.hot, "calls");
    band("KEEP AS ONE-LINE SUMMARIES (used on the way, may be needed again):", &analysis.warm, "calls");
    if cold && !analysis.cold.is_empty() {
        let figure = if !stable && analysis.stale_tokens >= STALE_FROM {
            format!(", ~{} tokens", text::tokens_rough(analysis.stale_tokens))
        } else {
            String::new()
        };
        let heading = format!("SAFE TO DROP (untouched for most of the session{figure}):");
        band(&heading, &analysis.cold, "calls earlier");
        out.push_str("One line on what came of the work there is enough: its detail no longer carries anything.\n");
    }
    let markers = markers(analysis, stable);
    if !markers.is_empty() {
        let _ = writeln!(out, "\nPHASE MARKERS OBSERVED:\n{}", markers.join("\n"));
    }
    if out.is_empty() { out } else { format!("OBSERVED CONTEXT SHAPE (auto-generated from tool usage):\n{RULE}{out}") }
}

fn markers(analysis: &Analysis, stable: bool) -> Vec<String> {
    if stable {
        let kinds: BTreeSet<&str> = analysis.events.iter().map(|mark| mark.event.as_str()).collect();
        return kinds.into_iter().map(|kind| format!("  - {}", text::sanitize(kind))).collect();
    }
    let mark = |event: &str, tok: i64| {
        format!("  - {} at ~{} tokens", text::sanitize(event), text::tokens_rough(tok.max(0) as u64))
    };
    analysis.events.iter().map(|event| mark(&event.event, event.tok)).collect()
}

/// The roots in the order in which they are shown: by name, or as the analysis ranked them.
fn ordered(roots: &[Root], stable: bool) -> Vec<&Root> {
    let mut roots: Vec<&Root> = roots.iter().collect();
    if stable {
        roots.sort_by(|a, b| a.root.cmp(&b.root));
    }
    roots
}

/// The names of a band's directories, in the order in which they are shown.
pub fn names(roots: &[Root], stable: bool) -> Vec<String> {
    ordered(roots, stable).into_iter().map(|root| root.root.clone()).collect()
}

fn shown_names(dirs: &[String]) -> String {
    let mut dirs: Vec<String> = dirs.iter().map(|dir| shown(dir)).collect();
    dirs.sort_unstable();
    dirs.join(", ")
}

fn shown(dir: &str) -> String {
    if dir == "." { "./ (files at the top)".into() } else { text::sanitize(dir).into_owned() }
}

fn directory(root: &Root, stable: bool, calls: &str) -> String {
    let name = shown(&root.root);
    if stable {
        return name;
    }
    let calls = if root.count == 1 { calls.replacen("calls", "call", 1) } else { calls.to_string() };
    let samples: Vec<_> = root.samples.iter().take(SAMPLES).map(|sample| text::sanitize(sample)).collect();
    let samples = if samples.is_empty() { String::new() } else { format!(" — e.g. {}", samples.join(", ")) };
    format!("{name} ({} {calls}){samples}", root.count)
}

fn offload(memory: &Memory<'_>, stable: bool) -> String {
    let note = if stable { "project_session_*.md" } else { memory.note };
    format!(
        "MEMORY OFFLOAD CHECKPOINT (pre-compact):\n{RULE}\n\
         The summary replaces the detail of this session. Whatever should outlive it goes into the summary under \
         \"For memory\"; as soon as tools can be used again, save it as auto-memory in\n\
         {}/\n\
         with the front matter and the MEMORY.md line that your system prompt asks for. Two files at most, and none \
         where there is nothing new:\n  \
         1. {note} (type: project) — decisions and their reasons, files changed, follow-ups, and whatever took \
         several attempts to find out. One file a session: extend it if it is there.\n  \
         2. reference_*.md — only for a recipe, layout or rule worth reusing that this session found.\n",
        text::sanitize(&memory.dir.to_string_lossy())
    )
}

/// Asks to strike follow-ups that shipped, in the files that have open ones.
fn review(memory: &Memory<'_>, stable: bool) -> String {
    let mut files = Vec::new();
    for path in memory.sources.iter().filter(|path| !follow_ups::of_file(path).is_empty()) {
        let is_note = memory.sources.session.as_deref() == Some(path);
        let shown = text::sanitize(&path.to_string_lossy()).into_owned();
        files.push(match is_note && stable {
            true => format!("  - {}/project_session_*.md, the newest", text::sanitize(&memory.dir.to_string_lossy())),
            false => format!("  - {shown}"),
        });
    }
    if files.is_empty() {
        return String::new();
    }
    format!(
        "PRIORITIES REVIEW:\n{RULE}\nOpen follow-ups stand in\n{}\n\
         Where the work behind a bullet under Follow-ups, Next steps, Next priorities or TODO has visibly shipped in \
         this session, strike the bullet there (~~like this~~); struck ones are not brought up again. In doubt, leave \
         it.\n",
        files.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::project::Folder;
    use crate::watch::bands::{PhaseMark, Shift};

    fn root(name: &str, count: i64) -> Root {
        Root {
            root: name.into(),
            count,
            samples: vec![format!("{name}/a.ts"), format!("{name}/b.ts")],
            ..Root::default()
        }
    }

    fn analysis() -> Analysis {
        Analysis {
            hot: vec![root("src/z", 15), root("src/billing", 1)],
            warm: vec![root("lib/mid", 3)],
            cold: vec![root("tests/browser", 12)],
            shift: Some(Shift {
                from: vec!["src/auth".into()],
                to: vec!["src/z".into(), "src/billing".into()],
                jaccard: 0.12,
            }),
            stale_tokens: 82_000,
            events: ["push", "commit", "commit"]
                .iter()
                .map(|e| PhaseMark { event: (*e).into(), tok: 145_000 })
                .collect(),
            ..Analysis::default()
        }
    }

    fn context(content: &str) -> SessionContext {
        let mut context = session_context::interpret(content, None);
        context.modified_ms = Some(0);
        context
    }

    /// Writes a guidance with everything in it.
    fn written(content: &str, now_ms: i64, analysis: &Analysis, stable: bool) -> Guidance {
        let folder = Folder { enc: "-p".into(), dir: "/c/projects/-p".into() };
        let (dir, sources) = (folder.memory(), Sources::of(&folder));
        let memory = Memory { dir: &dir, sources: &sources, note: "project_session_2026-01-02_82cc15b9.md" };
        write(&Input {
            context: &context(content),
            context_path: &sources.context,
            now_ms,
            analysis: Some(analysis),
            memory: Some(memory),
            resumes: true,
            stable,
        })
    }

    const NOTES: &str = "## Completed Tasks (safe to drop details)\n- css\n## On Compact\nPRESERVE: a\nDROP: b\n\
        ## Key Decisions\n- keep it\n## Key Files\n- src/a.ts\n## Current Task\ntype: fix — loop\n- (hint)\n## Other\nno\n";

    #[test]
    fn sections_come_in_a_fixed_order_under_fixed_labels() {
        let text = written(NOTES, 0, &analysis(), true).text;
        let labels = [
            "COMPACTION GUIDANCE (from session-context.md):",
            "CURRENT TASK:\ntype: fix — loop\n",
            "KEY FILES (must preserve):\n- src/a.ts\n",
            "KEY DECISIONS (must preserve):\n- keep it\n",
            "ON COMPACT (your words):\nPRESERVE: a\nDROP: b\n",
            "SAFE TO DROP (resolved — keep only one-line summaries):\n- css\n",
            "OBSERVED CONTEXT SHAPE (auto-generated from tool usage):",
            "DOMAIN SHIFT DETECTED: src/auth → src/billing, src/z\n",
            "PRESERVE (recently active, still in use):\n  - src/billing\n  - src/z\n",
            "SAFE TO DROP (untouched for most of the session):\n  - tests/browser\n",
            "PHASE MARKERS OBSERVED:\n  - commit\n  - push\n",
            "MEMORY OFFLOAD CHECKPOINT (pre-compact):",
            "project_session_*.md",
            "resumes the task",
        ];
        let mut at = 0;
        for label in labels {
            let found = text[at..].find(label);
            at += found.unwrap_or_else(|| panic!("{label:?} is not after byte {at} of\n{text}"));
        }
        assert!(!text.contains("(hint)") && !text.contains("\nno\n"));
        let in_other_case = NOTES.lines().map(|line| match line.strip_prefix("## ") {
            Some(heading) => format!("## {}\n", heading.to_lowercase()),
            None => format!("{line}\n"),
        });
        assert_eq!(written(&in_other_case.collect::<String>(), 0, &analysis(), true).text, text);
    }

    #[test]
    fn a_stable_guidance_holds_no_figure_that_changes() {
        let mut other = analysis();
        other.hot.reverse();
        other.hot[0].count = 99;
        other.hot[1].samples = vec!["src/z/other.ts".into()];
        other.stale_tokens = 5;
        other.shift.as_mut().unwrap().jaccard = 0.2;
        other.shift.as_mut().unwrap().to.reverse();
        other.events.push(PhaseMark { event: "commit".into(), tok: 1 });
        assert_eq!(written(NOTES, 0, &analysis(), true), written(NOTES, 60_000, &other, true));
        let verbose = written(NOTES, 0, &analysis(), false).text;
        for figure in [
            "Jaccard overlap 0.12",
            "src/z (15 calls) — e.g. src/z/a.ts, src/z/b.ts",
            "(1 call)",
            "~82k tokens",
            "commit at ~145k",
            "2026-01-02_82cc15b9",
        ] {
            assert!(verbose.contains(figure), "{figure} in\n{verbose}");
        }
    }

    #[test]
    fn cold_directories_are_always_listed_and_the_figure_only_when_it_is_large() {
        let small = Analysis { stale_tokens: 19_999, ..analysis() };
        let guidance = written("", 0, &small, false);
        assert!(guidance.text.contains("SAFE TO DROP (untouched for most of the session):\n  - tests/browser"));
        assert_eq!(guidance.dropped, ["tests/browser"]);
    }

    #[test]
    fn sections_that_nobody_changed_for_days_are_named_and_not_quoted() {
        let day = 86_400_000;
        let filled = "## Current Task\n<!-- si:autofill sha=1a2b3c4 -->\ntype: feat — x\n## Key Decisions\n- keep it\n";
        let text = written(filled, 4 * day, &analysis(), true).text;
        assert!(text.contains("type: feat — x\n(from the last commit"), "what si fills in is always current");
        assert!(!text.contains("keep it"));
        assert!(text.contains("KEY DECISIONS (must preserve): left out"));
        assert!(text.contains("/c/projects/-p/session-context.md"));
        assert!(written(filled, 2 * day, &analysis(), true).text.contains("keep it"));
    }

    #[test]
    fn what_matters_least_is_left_out_first() {
        let long = |lines: usize| {
            format!("## Key Decisions\n{}", "- a decision of some length, with its reason\n".repeat(lines))
        };
        let many =
            Analysis { hot: (0..5).map(|n| root(&format!("src/{n}{}", "x".repeat(200)), 1)).collect(), ..analysis() };
        for (lines, analysis, memory, cold) in
            [(10, analysis(), true, true), (172, many.clone(), false, true), (172, with_long_cold(many), false, false)]
        {
            let guidance = written(&long(lines), 0, &analysis, true);
            assert!(text::utf16_len(&guidance.text) <= MAX);
            assert_eq!(guidance.text.contains("MEMORY OFFLOAD"), memory, "{lines}");
            assert_eq!(guidance.text.contains("SAFE TO DROP (untouched"), cold, "{lines}");
            assert_eq!(guidance.dropped.is_empty(), !cold, "what is dropped is exactly what is listed");
            assert!(guidance.text.contains("PRESERVE (recently active"));
        }
        let cut = written(&long(400), 0, &analysis(), true).text;
        assert!(
            cut.contains("with its reason\n(cut here for length; the rest is in /c/projects/-p/session-context.md)\n")
        );
        assert!(text::utf16_len(cut.split("OBSERVED CONTEXT SHAPE").next().unwrap()) <= MAX_HINTS + 1);
    }

    fn with_long_cold(analysis: Analysis) -> Analysis {
        Analysis { cold: (0..5).map(|n| root(&format!("old/{n}{}", "y".repeat(200)), 1)).collect(), ..analysis }
    }

    #[test]
    fn nothing_brings_control_characters() {
        let mut hostile = analysis();
        hostile.hot[0].root = "src/\x1b]52;c;x\x07".into();
        let text = written("## Current Task\n\x1b[31mred\u{202e}\n", 0, &hostile, false).text;
        assert!(!text.chars().any(|c| c != '\n' && text::is_unsafe(c)));
    }

    #[test]
    fn without_anything_to_say_nothing_is_said() {
        let input = Input {
            context: &SessionContext::default(),
            context_path: Path::new("/x"),
            now_ms: 0,
            analysis: None,
            memory: None,
            resumes: false,
            stable: true,
        };
        assert_eq!(write(&input), Guidance::default());
    }
}
