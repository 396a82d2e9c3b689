//! The table of fields, and one small function for each: what it shows, or none for nothing.

use std::path::Path;

use super::context::{Context, Money};
use super::emoji;
use super::health;
use super::layout::{Bar, Cell, Flex, STAYS};
use super::quota;
use super::style::Role;
use crate::client::json::Raw;
use crate::client::{pricing, usage};
use crate::compaction::session_context;
use crate::text;

/// Savings below this are not worth a cell, dollars.
const LEAST_SAVED: f64 = 0.10;
/// Costs below this would read as nothing, dollars.
const LEAST_COST: f64 = 0.01;
/// From this age on, a compaction is long ago.
const OLD_COMPACTION_MS: i64 = 2 * 3_600_000;
/// The longest folder that is shown whole, in UTF-16 units.
const MAX_CWD: usize = 60;
/// The most that is shown of a target, style or name from outside, in columns.
const MAX_NAME: usize = 40;
/// How near its end a cache must be to be worth a cell: a quarter of its lifetime, but this at least.
const LEAST_CACHE_WARNING_MS: f64 = 120_000.0;

/// One field of the status line.
pub struct Field {
    /// What the configuration calls it.
    pub name: &'static str,
    /// What it shows, for the documentation.
    pub about: &'static str,
    /// How long it stays when a row is too narrow: the least goes first, [`STAYS`] never.
    pub rank: u8,
    /// Makes its cell; none where there is nothing to show.
    pub render: fn(&Context<'_>) -> Option<Cell>,
}

const fn field(name: &'static str, rank: u8, render: fn(&Context<'_>) -> Option<Cell>, about: &'static str) -> Field {
    Field { name, about, rank, render }
}

/// The word that begins a row among the configured fields.
pub const NEWLINE: &str = "newline";

/// Every field.
#[rustfmt::skip]
pub const FIELDS: &[Field] = &[
    field("model", 55, model, "Model, with the output style where it is not the default"),
    field("project", 55, project, "Name of the working folder"),
    field("branch", 60, branch, "Git branch, else tag or commit"),
    field("dirty", 45, dirty, "Changed files of the working tree"),
    field("diffstat", 40, diffstat, "Lines added and deleted in the working tree"),
    field("issue", 40, issue, "Issue number in the branch name or the task"),
    field("tokens", STAYS, tokens, "Context: bar, tokens in use, window, percent; coloured by zone"),
    field("contextPct", 85, context_pct, "Percent of the window, without the bar"),
    field("zone", 90, zone, "Name of the zone"),
    field("tools", 25, tools, "Tool calls of the session"),
    field("session", 40, session, "How long the session has lasted"),
    field("thinking", 25, thinking, "Thinking tokens of recent turns, from `thinkingMinDisplay` on"),
    field("sessionId", 20, session_id, "First eight characters of the session id"),
    field("cost", 50, cost, "What the session cost"),
    field("costSaved", 50, cost_saved, "What the session cost and what the prompt cache saved"),
    field("tokenFlow", 30, token_flow, "Tokens of the session: all, in, out, from the cache"),
    field("cacheHit", 45, cache_hit, "Share of the latest turn's prefix that came from the cache"),
    field("cacheTokens", 25, cache_tokens, "The latest turn's prefix: read from the cache / written to it"),
    field("cacheSaved", 25, cache_saved, "What the prompt cache saved"),
    field("compactAge", 60, compact_age, "Time since the last compaction; red from two hours on"),
    field("compactCost", 45, compact_cost, "Cost and savings since the last compaction"),
    field("blockUsage", 70, block_usage, "Five-hour quota in use and time until it starts anew"),
    field("weekUsage", 65, week_usage, "Seven-day quota in use and time until it starts anew"),
    field("cwd", 50, cwd, "Working folder"),
    field("deploy", 35, deploy, "What was deployed last, and how long ago"),
    field("outputStyle", 25, output_style, "Output style"),
    field("health", 45, health, "A dot for each service of `serviceHealth`"),
    field("task", 50, task, "The task: from session-context.md, else the last commit"),
    field("emoji", 10, emoji, "An emoji for zone, deploy, task or working tree"),
    field("emoji2", 10, emoji2, "An emoji for deploy, cost, length or tool calls of the session"),
    field("cacheTtl", 50, cache_ttl, "Time until the prompt cache expires and what a cold turn would cost, when that is near"),
    field("effort", 30, effort, "Reasoning effort"),
    field("worktree", 40, worktree, "Name of the linked work tree"),
    field("pr", 40, pull_request, "Pull request of the branch"),
    field("aheadBehind", 35, ahead_behind, "Commits ahead of and behind the upstream branch"),
    field("compactions", 25, compactions, "How many compactions the session has had"),
    field("burn", 35, burn, "Dollars an hour, over the last hour"),
    field("pins", 35, pin_count, "How many pins the session has"),
];

/// The field of a name.
pub fn by_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

fn dim(text: impl Into<String>) -> Option<Cell> {
    Some(Cell::new(Role::Dim, text))
}

/// Text from outside, safe, without blanks around it; none when nothing is left.
fn outside(text: &str) -> Option<String> {
    let safe = text::sanitize(text);
    let safe = safe.trim();
    (!safe.is_empty()).then(|| safe.to_owned())
}

fn name(text: &str) -> Option<String> {
    outside(text).map(|text| text::fit(&text, MAX_NAME).into_owned())
}

fn model(ctx: &Context<'_>) -> Option<Cell> {
    let known = ["display_name", "id"].iter().find_map(|key| outside(&ctx.given_str(&["model", key])?));
    let mut label = known.unwrap_or_else(|| "claude".into());
    if let Some(style) = given_style(ctx).filter(|style| !style.eq_ignore_ascii_case("default")) {
        label = format!("{label} · {style}");
    }
    Some(Cell::new(Role::Dim, label).flexible(Flex::End))
}

/// The output style that the client sends: `{name}`, or a bare text from older ones.
fn given_style(ctx: &Context<'_>) -> Option<String> {
    let style = ctx.given(&["output_style"]).or_else(|| ctx.given(&["outputStyle"]))?;
    let text = style.str().or_else(|| style.object()?.str("name"))?;
    name(&text)
}

fn output_style(ctx: &Context<'_>) -> Option<Cell> {
    let style = given_style(ctx).or_else(|| name(ctx.env.var("CLAUDE_OUTPUT_STYLE")?))?;
    dim(format!("style:{style}"))
}

fn project(ctx: &Context<'_>) -> Option<Cell> {
    Some(Cell::new(Role::Dim, outside(last_name(&ctx.cwd_text()?))?).flexible(Flex::End))
}

/// The last name of a path; the root and a path of dots are their own.
fn last_name(path: &str) -> &str {
    let bare = path.trim_end_matches('/');
    if bare.is_empty() { path } else { bare.rsplit('/').next().unwrap_or(bare) }
}

fn branch(ctx: &Context<'_>) -> Option<Cell> {
    Some(Cell::new(Role::Dim, outside(&ctx.head()?.name)?).flexible(Flex::End))
}

fn dirty(ctx: &Context<'_>) -> Option<Cell> {
    let files = ctx.work_tree()?.dirty.filter(|&files| files > 0)?;
    dim(format!("±{files}"))
}

fn diffstat(ctx: &Context<'_>) -> Option<Cell> {
    let tree = ctx.work_tree()?;
    match (tree.added?, tree.deleted?) {
        (0, 0) => None,
        (added, deleted) => dim(format!("(+{added},-{deleted})")),
    }
}

fn issue(ctx: &Context<'_>) -> Option<Cell> {
    let of_branch = || session_context::issue_from_ref(&ctx.head()?.name);
    let of_task = || ctx.task()?.issue.clone();
    dim(of_branch().or_else(of_task)?)
}

fn tokens(ctx: &Context<'_>) -> Option<Cell> {
    let Some(tokens) = ctx.tokens() else {
        return Some(Cell::new(Role::Green, "▰▱▱▱ idle"));
    };
    let role = Role::of(ctx.zone().unwrap_or_default());
    let cap = ctx.cap();
    let share = format!("/{} ({}%)", text::tokens_whole(cap), percent(tokens.count, cap));
    let mut cell = Cell { bar: Some(Bar { used: tokens.count, cap, role }), ..Cell::default() };
    if tokens.estimated {
        cell = cell.and(Role::Dim, "~");
    }
    Some(cell.and(role, text::tokens_whole(tokens.count)).and(Role::Dim, share))
}

fn percent(used: u64, cap: u64) -> u64 {
    text::round(used as f64 * 100.0 / cap.max(1) as f64) as u64
}

fn context_pct(ctx: &Context<'_>) -> Option<Cell> {
    let tokens = ctx.tokens()?;
    let role = Role::of(ctx.zone()?);
    Some(Cell::new(role, format!("ctx:{}%", percent(tokens.count, ctx.cap()))))
}

fn zone(ctx: &Context<'_>) -> Option<Cell> {
    let zone = ctx.zone()?;
    Some(Cell::new(Role::of(zone), zone.name()))
}

fn tools(ctx: &Context<'_>) -> Option<Cell> {
    match ctx.tools() {
        0 => None,
        1 => dim("1 tool"),
        count => dim(format!("{count} tools")),
    }
}

fn session(ctx: &Context<'_>) -> Option<Cell> {
    let ms = ctx.session_ms().filter(|&ms| ms > 0.0)?;
    dim(text::duration(ms))
}

fn thinking(ctx: &Context<'_>) -> Option<Cell> {
    let tokens = ctx.thinking();
    let shown = tokens > 0 && tokens >= ctx.config.statusline.thinking_min_display;
    shown.then(|| Cell::new(Role::Dim, format!("think:{}", text::tokens_whole(tokens))))
}

fn session_id(ctx: &Context<'_>) -> Option<Cell> {
    let id = outside(&ctx.session_id()?)?;
    dim(format!("sid:{}", id.chars().take(8).collect::<String>()))
}

fn cost(ctx: &Context<'_>) -> Option<Cell> {
    let cost = ctx.money().cost.filter(|&cost| cost != 0.0)?;
    dim(text::money(cost))
}

fn cost_saved(ctx: &Context<'_>) -> Option<Cell> {
    both(ctx.money())
}

fn compact_cost(ctx: &Context<'_>) -> Option<Cell> {
    both(ctx.compaction()?.since)
}

/// `c$12.34 / s$68.20`, without the half that is trivial.
fn both(money: Money) -> Option<Cell> {
    let half = |label: &str, dollars: Option<f64>, least: f64| {
        dollars.filter(|&dollars| dollars >= least).map(|dollars| format!("{label}{}", text::money(dollars)))
    };
    let halves = [half("c", money.cost, LEAST_COST), half("s", money.saved, LEAST_SAVED)];
    let shown: Vec<String> = halves.into_iter().flatten().collect();
    (!shown.is_empty()).then(|| Cell::new(Role::Dim, shown.join(" / ")))
}

fn token_flow(ctx: &Context<'_>) -> Option<Cell> {
    let usage = ctx.flow().filter(|usage| usage.total() > 0)?;
    let fine = |tokens: u64| text::tokens_fine(tokens as f64);
    let entered = usage.input.saturating_add(usage.cache_creation);
    let [all, entered, left, cached] = [usage.total(), entered, usage.output, usage.cache_read].map(fine);
    dim(format!("{all} ↓{entered} ↑{left} c{cached}"))
}

fn cache_hit(ctx: &Context<'_>) -> Option<Cell> {
    let percent = text::round(ctx.usage()?.hit_ratio()? * 100.0);
    let role = match percent {
        p if p >= 70.0 => Role::DimGreen,
        p if p >= 30.0 => Role::DimYellow,
        _ => Role::DimRed,
    };
    Some(Cell::new(role, format!("cache:{percent}%")))
}

fn cache_tokens(ctx: &Context<'_>) -> Option<Cell> {
    let usage = ctx.usage()?;
    usage.hit_ratio()?;
    dim(format!("prefix:{}/{}", text::tokens_whole(usage.cache_read), text::tokens_whole(usage.cache_creation)))
}

fn cache_saved(ctx: &Context<'_>) -> Option<Cell> {
    let saved = ctx.money().saved.filter(|&saved| saved >= LEAST_SAVED)?;
    dim(format!("saved:{}", text::money(saved)))
}

fn compact_age(ctx: &Context<'_>) -> Option<Cell> {
    let age_ms = ctx.compaction()?.age_ms?;
    let role = if age_ms >= OLD_COMPACTION_MS { Role::Red } else { Role::Dim };
    Some(Cell::new(role, format!("compact:{} ago", text::duration(age_ms as f64))))
}

fn block_usage(ctx: &Context<'_>) -> Option<Cell> {
    Some(ctx.quota().block?.cell("b", ctx.env.now_ms))
}

fn week_usage(ctx: &Context<'_>) -> Option<Cell> {
    Some(ctx.quota().week?.cell("w", ctx.env.now_ms))
}

fn cwd(ctx: &Context<'_>) -> Option<Cell> {
    let cwd = outside(&ctx.cwd_text()?)?;
    let home = ctx.env.home.as_deref().and_then(Path::to_str).map(|home| home.trim_end_matches('/'));
    let inside = home.filter(|home| !home.is_empty()).and_then(|home| cwd.strip_prefix(home));
    let path = match inside.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => format!("~{rest}"),
        None => cwd,
    };
    Some(Cell::new(Role::Dim, shorten_path(&path)).flexible(Flex::Path))
}

/// A path of at most [`MAX_CWD`] units: the middle goes; the last name always stays whole.
fn shorten_path(path: &str) -> String {
    if text::utf16_len(path) <= MAX_CWD {
        return path.into();
    }
    let leaf = last_name(path);
    let room = MAX_CWD.saturating_sub(text::utf16_len(leaf) + 2);
    format!("{}…/{leaf}", text::cut_utf16(path, room))
}

fn deploy(ctx: &Context<'_>) -> Option<Cell> {
    let deploy = ctx.deploy()?;
    dim(format!("deploy:{} {}", name(&deploy.target)?, text::ago(deploy.age_ms)))
}

fn health(ctx: &Context<'_>) -> Option<Cell> {
    let project = if ctx.config.statusline.service_health.is_empty() { None } else { ctx.anchor() };
    health::cell(ctx.env, ctx.store, ctx.config, project.map(std::path::PathBuf::as_path))
}

fn task(ctx: &Context<'_>) -> Option<Cell> {
    const STALE: &str = " (stale)";
    let task = ctx.task()?;
    let max = ctx.config.statusline.max_task_length;
    let text = outside(&task.text)?;
    let shown = if task.stale {
        format!("{}{STALE}", text::fit(&text, max.saturating_sub(STALE.len())))
    } else {
        text::fit(&text, max).into_owned()
    };
    Some(Cell::new(Role::Dim, shown).flexible(Flex::End))
}

fn emoji(ctx: &Context<'_>) -> Option<Cell> {
    let state = emoji::State {
        zone: ctx.zone().unwrap_or_default(),
        task: ctx.task().map_or("", |task| task.text.as_str()),
        dirty: ctx.work_tree().and_then(|tree| tree.dirty).is_some_and(|files| files > 0),
        deployed_ms: ctx.deploy().map(|deploy| deploy.age_ms),
    };
    glued(emoji::state(&state))
}

fn emoji2(ctx: &Context<'_>) -> Option<Cell> {
    let activity = emoji::Activity {
        deployed_ms: ctx.deploy().map(|deploy| deploy.age_ms),
        cost: ctx.money().cost.unwrap_or(0.0),
        session_ms: ctx.session_ms().unwrap_or(0.0),
        tools: ctx.tools(),
    };
    glued(emoji::activity(&activity))
}

fn glued(emoji: &str) -> Option<Cell> {
    Some(Cell { glued: true, ..Cell::new(Role::Plain, emoji) })
}

fn cache_ttl(ctx: &Context<'_>) -> Option<Cell> {
    let cache = ctx.given(&["prompt_cache"])?.object()?;
    let expires_ms = quota::moment(&cache.get("expires_at").and_then(Raw::value)?)? as f64;
    let lifetime = cache.str("ttl");
    let left_ms = expires_ms - ctx.env.now_ms as f64;
    let warning_ms = lifetime.as_deref().and_then(lifetime_ms).unwrap_or(0.0) / 4.0;
    let cold = left_ms <= 0.0 || cache.get("warm").and_then(Raw::bool) == Some(false);
    if !cold && left_ms > warning_ms.max(LEAST_CACHE_WARNING_MS) {
        return None;
    }
    let prices = pricing::lookup(&ctx.model_id()).prices.with(&ctx.config.statusline.prices);
    let one_hour = lifetime.as_deref().is_some_and(|text| text.ends_with('h'));
    let price = if one_hour { prices.cache_write_1h } else { prices.cache_write_5m };
    let tokens = cache.get("recache_tokens_if_cold").and_then(usage::count).filter(|&tokens| tokens > 0);
    let price = tokens.map(|tokens| text::money(tokens as f64 * price / 1e6));
    let left = (!cold).then(|| format!("ttl:{}", text::duration(left_ms)));
    match (left, price) {
        (Some(left), Some(price)) => dim(format!("{left} cold:{price}")),
        (Some(left), None) => dim(left),
        (None, Some(price)) => dim(format!("cold:{price}")),
        (None, None) => dim("cold"),
    }
}

/// `5m` or `1h` in milliseconds.
fn lifetime_ms(text: &str) -> Option<f64> {
    let unit = text.chars().next_back()?;
    let number: f64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    match unit {
        's' => Some(number * 1e3),
        'm' => Some(number * 60e3),
        'h' => Some(number * 3600e3),
        _ => None,
    }
}

fn effort(ctx: &Context<'_>) -> Option<Cell> {
    let level = ctx.given_str(&["effort", "level"]).or_else(|| ctx.given_str(&["effort"]))?;
    dim(format!("effort:{}", name(&level)?))
}

fn worktree(ctx: &Context<'_>) -> Option<Cell> {
    let told = ctx.given_str(&["workspace", "git_worktree"]).or_else(|| ctx.given_str(&["worktree", "name"]))?;
    Some(Cell::new(Role::Dim, format!("wt:{}", name(last_name(&told))?)).flexible(Flex::End))
}

fn pull_request(ctx: &Context<'_>) -> Option<Cell> {
    let told = ctx.given(&["pr"])?.object()?;
    let number = told.get("number").and_then(usage::count).filter(|&number| number > 0)?;
    // GitLab's merge requests come by the same way and have signs of their own.
    let label = if told.str("kind").as_deref() == Some("mr") { "MR !" } else { "PR #" };
    dim(match told.str("review_state").and_then(|state| name(&state)) {
        Some(state) => format!("{label}{number} {}", state.replace('_', " ")),
        None => format!("{label}{number}"),
    })
}

fn ahead_behind(ctx: &Context<'_>) -> Option<Cell> {
    let tree = ctx.work_tree()?;
    let half = |sign: &str, count: Option<u64>| count.filter(|&n| n > 0).map(|n| format!("{sign}{n}"));
    let shown: Vec<String> = [half("⇡", tree.ahead), half("⇣", tree.behind)].into_iter().flatten().collect();
    (!shown.is_empty()).then(|| Cell::new(Role::Dim, shown.join(" ")))
}

fn compactions(ctx: &Context<'_>) -> Option<Cell> {
    match ctx.compactions()? {
        0 => None,
        1 => dim("1 compaction"),
        count => dim(format!("{count} compactions")),
    }
}

fn burn(ctx: &Context<'_>) -> Option<Cell> {
    let dollars = ctx.last_hour().filter(|&dollars| dollars >= LEAST_COST)?;
    dim(format!("{}/hr", text::money(dollars)))
}

fn pin_count(ctx: &Context<'_>) -> Option<Cell> {
    let count = ctx.pins().filter(|&count| count > 0)?;
    dim(format!("pins:{count}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_preset_is_made_of_them() {
        for (at, field) in FIELDS.iter().enumerate() {
            assert!(FIELDS[..at].iter().all(|other| other.name != field.name), "{}", field.name);
            assert!(!field.about.ends_with('.') && field.name != NEWLINE, "{}", field.name);
        }
        for (preset, names) in crate::config::PRESETS {
            for name in *names {
                assert!(*name == NEWLINE || by_name(name).is_some(), "{preset}: {name}");
            }
        }
    }

    #[test]
    fn a_long_path_keeps_its_last_name() {
        let long = format!("/srv/{}/leaf", "🙂".repeat(27));
        assert_eq!(shorten_path(&long), format!("/srv/{}…/leaf", "🙂".repeat(24)));
        assert_eq!(shorten_path(&format!("/a/{}", "y".repeat(59))), format!("…/{}", "y".repeat(59)));
        assert_eq!(["/srv/app//", "/", "", "..", "a/b"].map(last_name), ["app", "/", "", "..", "b"]);
    }
}
