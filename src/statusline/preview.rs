//! `si statusline --preview`: a built-in sample session in each zone, for choosing a layout without Claude Code.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::context::{Compaction, Context, Deploy, Money, Source, Task, Tokens};
use super::layout::Bar;
use super::quota::{Quota, Window};
use super::style::{Role, paint};
use crate::client::payload::Payload;
use crate::client::usage::Usage;
use crate::config::Config;
use crate::env::Env;
use crate::git::{Head, Kind, WorkTree};
use crate::watch::zones::{Limits, Zone};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const SAMPLE: &str = "sample";
const WINDOW: u64 = 1_000_000;

/// The sample session in each zone, under a heading with the zone's name and where it begins. The user's own layout,
/// separator, colours and zones count, and `COLUMNS`.
pub fn render(env: &Env, config: &Config) -> String {
    let zones = &config.statusline.zones;
    let limits = Limits { yellow: zones.yellow, orange: zones.orange, red: zones.red, adaptive: None };
    let samples = [
        (Zone::Green, limits.yellow / 2, 0),
        (Zone::Yellow, limits.yellow + (limits.orange - limits.yellow) / 3, limits.yellow),
        (Zone::Orange, limits.orange + (limits.red - limits.orange) / 3, limits.orange),
        (Zone::Red, limits.red + limits.red / 16, limits.red),
    ];
    let blocks = samples.map(|(zone, tokens, from)| {
        let text = payload(env).to_string();
        let payload = Payload::parse(&text).unwrap_or_default();
        let ctx = Context::new(env, config, &payload);
        fill(&ctx, tokens, limits.clone());
        let mut block = String::new();
        let bar = Bar { used: zone as u64 + 1, cap: 4, role: Role::of(zone) };
        for span in bar.spans(4) {
            paint(&mut block, span.role, &span.text, config.statusline.colors);
        }
        block.push_str(&format!(" {} from {}\n", zone.name(), crate::text::tokens_whole(from)));
        block.push_str(&super::render(&ctx, env.columns()));
        block
    });
    blocks.join("\n\n")
}

fn payload(env: &Env) -> Value {
    let home = env.home.as_deref().unwrap_or(std::path::Path::new("/home/you"));
    json!({
        "session_id": "82cc15b9-0000-4000-8000-000000000000",
        "cwd": home.join("work/orchid"),
        "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "output_style": {"name": "default"},
        "effort": {"level": "high"},
        "workspace": {"git_worktree": "orchid-bar"},
        "pr": {"number": 164, "review_state": "pending"},
        "prompt_cache": {"warm": true, "ttl": "5m", "expires_at": env.now_ms / 1000 + 100, "recache_tokens_if_cold": 180_000},
    })
}

fn set<T>(source: &Source<T>, value: T) {
    let _ = source.set((value, SAMPLE)); // a new context holds nothing yet
}

fn fill(ctx: &Context<'_>, tokens: u64, limits: Limits) {
    let sources = &ctx.sources;
    let latest =
        Usage { input: 12, cache_creation: 3_000, cache_read: tokens.saturating_sub(3_012), ..Usage::default() };
    let session =
        Usage { input: 7_400, output: 503_000, cache_creation: 210_000, cache_read: 84_900_000, ..Usage::default() };
    let head = Head {
        name: "feat/164-statusline".into(),
        kind: Kind::Branch,
        id: None,
        root: PathBuf::new(),
        git_dir: PathBuf::new(),
        common_dir: PathBuf::new(),
    };
    let window = |percent, in_ms| Some(Window { percent, resets_ms: Some(ctx.env.now_ms + in_ms + MINUTE_MS / 2) });
    set(&sources.anchor, ctx.dir());
    set(&sources.tokens, Some(Tokens { count: tokens, estimated: false }));
    set(&sources.cap, ctx.config.statusline.context_cap.map_or(WINDOW, |cap| cap as u64));
    set(&sources.limits, limits);
    set(&sources.usage, Some(latest));
    set(&sources.flow, Some(session));
    set(&sources.money, Money { cost: Some(31.56), saved: Some(114.78) });
    set(&sources.last_hour, Some(4.2));
    let since = Money { cost: Some(12.34), saved: Some(68.2) };
    set(&sources.compaction, Some(Compaction { age_ms: Some(82 * MINUTE_MS), since }));
    set(&sources.compactions, Some(3));
    set(&sources.session_ms, Some(67.0 * HOUR_MS as f64));
    set(&sources.thinking, 32_000);
    set(&sources.tools, 612);
    set(&sources.quota, Quota { block: window(36.0, 82 * MINUTE_MS), week: window(61.0, 29 * HOUR_MS) });
    set(&sources.head, Some(head));
    let tree = WorkTree { dirty: Some(3), added: Some(235), deleted: Some(16), ahead: Some(2), behind: Some(1) };
    set(&sources.work_tree, Some(tree));
    set(&sources.task, Some(Task { text: "feat — statusline v2".into(), issue: None, stale: false }));
    set(&sources.deploy, Some(Deploy { target: "gateway".into(), age_ms: 5 * MINUTE_MS }));
    set(&sources.pins, Some(3));
}
