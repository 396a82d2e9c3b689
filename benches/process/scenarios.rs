//! What is measured, each beside its floor.

use std::fs;

use super::{Bench, SESSION, Scenario, line_kept};

/// After so many calls every file that grows with the calls has reached its bound; the counter is set by hand.
const SATURATED: usize = 3000;
/// How many calls a young session has had at least, and half of what it has at most.
const YOUNG: usize = 10;

impl Bench {
    pub(super) fn scenarios<'a>(&'a self, pairs: usize) -> Vec<Scenario<'a>> {
        let few = (pairs / 10).max(5);
        let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
        let base = |name: &str, args: &str, pairs: usize, prepare: Box<dyn Fn(usize) -> Vec<u8> + 'a>| Scenario {
            name: name.into(),
            args: words(args),
            program: None,
            prepare,
            floor: None,
            floor_input: None,
            cwd: self.repo(),
            pairs,
        };
        let line = |mib: u32| self.statusline_payload(mib);
        // Sessions of their own, so that neither draws from what the other stored.
        let apart = move |mib: u32| {
            let text = String::from_utf8(line(mib)).unwrap();
            text.replacen(&format!("\"{SESSION}\""), &format!("\"{SESSION}-{mib}\""), 1).into_bytes()
        };
        let git = || Some(words("git --no-optional-locks status --porcelain"));
        vec![
            base("si --version", "--version", pairs, Box::new(|_| Vec::new())),
            base("redraw, nothing new, 48 MB", "statusline", pairs, Box::new(move |_| line(48))),
            base(
                "redraw after one more turn, 48 MB",
                "statusline",
                pairs,
                Box::new(move |run| {
                    self.append_turn(&self.transcript_kept(48), run);
                    line_kept(self, 48)
                }),
            ),
            base("redraw, tokens alone", "statusline", pairs, Box::new(move |_| line(48))),
            Scenario {
                floor: Some(vec![self.si_text(), "statusline".into()]),
                floor_input: Some(Box::new(move |_| apart(1))),
                ..base(
                    "growth: redraw with 200 MB, floor with 1 MB",
                    "statusline",
                    pairs,
                    Box::new(move |_| apart(200)),
                )
            },
            Scenario {
                floor: Some(vec![self.si_text(), "hook".into(), "post-tool-use".into()]),
                floor_input: Some(Box::new(move |run| {
                    if run % YOUNG == 0 {
                        self.live("young", YOUNG);
                    }
                    self.read_call("young", 1_000_000 + run)
                })),
                ..base(
                    "growth: post-tool-use after 100,000 calls, floor after 10",
                    "hook post-tool-use",
                    pairs,
                    Box::new(move |run| {
                        if run == 0 {
                            self.live("grown", SATURATED);
                            fs::write(self.tmp.join("claude-tool-count-grown"), "100000").unwrap();
                        }
                        self.read_call("grown", 1_000_000 + run)
                    }),
                )
            },
            base(
                "first redraw ever, 48 MB",
                "statusline",
                few,
                Box::new(move |_| {
                    self.forget();
                    line(48)
                }),
            ),
            base(
                "first redraw ever, 200 MB",
                "statusline",
                few,
                Box::new(move |_| {
                    self.forget();
                    line(200)
                }),
            ),
            base(
                "post-tool-use, 2 KB",
                "hook post-tool-use",
                pairs,
                Box::new(move |run| self.hook_payload("PostToolUse", run, 2 << 10)),
            ),
            base(
                "post-tool-use, 1 MB",
                "hook post-tool-use",
                pairs,
                Box::new(move |run| self.hook_payload("PostToolUse", 100_000 + run, 1 << 20)),
            ),
            base(
                "post-tool-use, 20 MB",
                "hook post-tool-use",
                few,
                Box::new(move |run| self.hook_payload("PostToolUse", 200_000 + run, 20 << 20)),
            ),
            Scenario {
                floor: git(),
                ..base(
                    "user-prompt-submit, floor git status",
                    "hook user-prompt-submit",
                    few * 2,
                    Box::new(move |run| self.hook_payload("UserPromptSubmit", run, 0)),
                )
            },
            Scenario {
                floor: git(),
                ..base(
                    "pre-compact, floor git status",
                    "hook pre-compact",
                    few * 2,
                    Box::new(move |run| self.hook_payload("PreCompact", run, 0)),
                )
            },
            Scenario {
                floor: git(),
                ..base(
                    "session-start, floor git status",
                    "hook session-start",
                    few * 2,
                    Box::new(move |run| self.hook_payload("SessionStart", run, 0)),
                )
            },
            base(
                "recover, 200 MB, ASCII",
                "recover --session 5e5510a1-be9c-4a11-9d3f-000000000048-200 zoneinfo transition",
                5,
                Box::new(|_| Vec::new()),
            ),
            base(
                "recover, 200 MB, not ASCII",
                "recover --session 5e5510a1-be9c-4a11-9d3f-000000000048-200 日本語 naïve",
                5,
                Box::new(|_| Vec::new()),
            ),
        ]
    }
}
