//! The five-hour and the seven-day quota: from the client where it sends them, else from the last answer of the usage
//! endpoint. Redraws only read that answer; a detached process renews it.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::layout::Cell;
use super::style::Role;
use crate::client::json::{Object, Raw};
use crate::config::Config;
use crate::env::{Env, parse_iso};
use crate::process::{self, Limits};
use crate::store::records::quota::{Figures, QuotaCache, QuotaLock};
use crate::store::{StateFile, Store, file};
use crate::text;

/// How long an answer is good for.
const TTL_MS: i64 = 180_000;
/// How long a refresh that was started keeps others from starting.
const LOCK_MS: i64 = 30_000;
/// After a failure the next try waits this long, then twice as long each time, up to [`MAX_WAIT_MS`].
const FIRST_WAIT_MS: i64 = 5 * 60_000;
const MAX_WAIT_MS: i64 = 40 * 60_000;
const HOUR_MS: i64 = 3_600_000;
/// A quota can be overdrawn, but not by this much: what is above is nonsense.
const MAX_PERCENT: f64 = 1000.0;
/// No quota starts anew later than this; a time beyond it is nonsense.
const MAX_SPAN_MS: i64 = 32 * 24 * HOUR_MS;

const URL: &str = "https://api.anthropic.com/api/oauth/usage";
const KEYCHAIN_ITEM: &str = "Claude Code-credentials";

/// How much of one quota is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Percent, as told.
    pub percent: f64,
    /// When it starts anew, epoch milliseconds.
    pub resets_ms: Option<i64>,
}

/// Both quotas.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quota {
    /// The five-hour block.
    pub block: Option<Window>,
    /// The seven days.
    pub week: Option<Window>,
}

impl Quota {
    /// What the client sends as `rate_limits`.
    pub fn of_payload(payload: &Object<'_>, now_ms: i64) -> Option<Quota> {
        let limits = payload.get("rate_limits")?.object()?;
        let window = |name: &str| {
            let window = limits.get(name)?.object()?;
            let percent = window.get("used_percentage")?.amount(MAX_PERCENT)?;
            let resets = window.get("resets_at").and_then(Raw::value);
            Window { percent, resets_ms: resets.as_ref().and_then(moment) }.sane(now_ms)
        };
        Some(Quota { block: window("five_hour"), week: window("seven_day") })
    }

    /// The figures of the last good answer. One without a reset time is void when its quota must have started anew.
    pub fn of_cache(answer: &Answer, now_ms: i64) -> Quota {
        let figures = &answer.cache.figures;
        let age_ms = now_ms.saturating_sub(answer.cache.fetched_at.unwrap_or(answer.written_ms));
        let window = |percent: Option<f64>, resets: &Value, span_ms: i64| {
            let percent = percent.filter(|percent| (0.0..=MAX_PERCENT).contains(percent))?;
            let window = Window { percent, resets_ms: moment(resets) };
            window.sane(now_ms).filter(|window| window.resets_ms.is_some() || age_ms < span_ms)
        };
        Quota {
            block: window(figures.session_usage, &figures.session_reset_at, 5 * HOUR_MS),
            week: window(figures.weekly_usage, &figures.weekly_reset_at, 7 * 24 * HOUR_MS),
        }
    }
}

impl Window {
    /// A figure from before its reset says nothing about now, and a reset that is years away is none.
    fn sane(self, now_ms: i64) -> Option<Window> {
        let resets_ms = self.resets_ms.filter(|&at| at <= now_ms.saturating_add(MAX_SPAN_MS));
        Some(Window { resets_ms, ..self }).filter(|window| window.resets_ms.is_none_or(|at| at > now_ms))
    }

    /// `b:47% r:1hr 12m`: green below 60, yellow below 85, orange below 95, then red.
    pub fn cell(&self, label: &str, now_ms: i64) -> Cell {
        let percent = text::round(self.percent);
        let role = match percent {
            p if p >= 95.0 => Role::Red,
            p if p >= 85.0 => Role::Orange,
            p if p >= 60.0 => Role::Yellow,
            _ => Role::Green,
        };
        let cell = Cell::new(role, format!("{label}:{percent}%"));
        match self.resets_ms.filter(|at| *at > now_ms) {
            Some(at) => {
                cell.and(Role::Plain, " ").and(Role::Dim, format!("r:{}", text::duration((at - now_ms) as f64)))
            }
            None => cell,
        }
    }
}

/// A reset time: ISO 8601, epoch milliseconds or epoch seconds. None for anything else.
pub fn moment(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => parse_iso(text),
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| *number > 0.0 && *number < 1e15)?;
            // Seconds until the year 5138, milliseconds from 1973 on.
            Some(if number < 1e11 { number * 1000.0 } else { number } as i64)
        }
        _ => None,
    }
}

/// The stored answer, and when it was written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What is in the file.
    pub cache: QuotaCache,
    /// Its modification time, epoch milliseconds.
    pub written_ms: i64,
}

impl Answer {
    /// Reads the stored answer; none when there is none that can be read.
    pub fn read(store: Store<'_>) -> Option<Answer> {
        let cache = store.read_json(StateFile::QuotaCache)?;
        let meta = std::fs::symlink_metadata(store.path(StateFile::QuotaCache)?).ok()?;
        let written_ms = meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000;
        Some(Answer { cache, written_ms })
    }

    /// Whether it is past its time. One from the future counts as that too, or it would never be renewed.
    pub fn is_stale(&self, now_ms: i64) -> bool {
        !(-LOCK_MS..TTL_MS).contains(&(now_ms - self.written_ms))
    }

    fn is_due(&self, now_ms: i64) -> bool {
        match self.cache.next_try_at {
            Some(at) => now_ms >= at || at > now_ms + MAX_WAIT_MS,
            None => self.cache.error.is_some() || self.is_stale(now_ms),
        }
    }
}

/// Starts a refresh if the stored answer is due, none is under way, there is a token to ask with, and nothing forbids
/// traffic that the user did not ask for. Says whether it did.
pub fn refresh_if_due(env: &Env, store: Store<'_>, config: &Config, answer: Option<&Answer>) -> bool {
    let wanted = config.statusline.quota && env.var("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC").is_none();
    if !wanted || answer.is_some_and(|answer| !answer.is_due(env.now_ms)) || is_locked(env, store) {
        return false;
    }
    // The keychain is left to the refresh: asking it takes longer than a redraw.
    if !cfg!(target_os = "macos") && token_from_file(env).is_none() {
        return false;
    }
    let Ok(guard) = store.lock_within(StateFile::QuotaLock, Duration::ZERO) else { return false };
    if is_locked(env, store) || guard.write_json(StateFile::QuotaLock, &QuotaLock { t: env.now_ms }).is_err() {
        return false;
    }
    process::detach_self(env, &["refresh".into(), "quota".into()]).is_ok()
}

fn is_locked(env: &Env, store: Store<'_>) -> bool {
    let lock = store.read_json::<QuotaLock>(StateFile::QuotaLock).unwrap_or_default();
    (-LOCK_MS..LOCK_MS).contains(&(env.now_ms - lock.t))
}

/// Asks the usage endpoint and stores what it said: the body of `si refresh quota`.
pub fn refresh(env: &Env, store: Store<'_>) -> Result<()> {
    let outcome = match token(env) {
        Some(token) => ask(env, &token).and_then(|(status, body)| parse_response(status, &body)),
        None => Err("no-credentials"),
    };
    let guard = store.lock(StateFile::QuotaCache)?;
    let last = store.read_json::<QuotaCache>(StateFile::QuotaCache).unwrap_or_default();
    guard.write_json(StateFile::QuotaCache, &after(last, outcome, env.now_ms))
}

/// What is stored after an attempt: new figures, or the last good ones with the failure and the time of the next try.
pub fn after(last: QuotaCache, outcome: Result<Figures, &'static str>, now_ms: i64) -> QuotaCache {
    match outcome {
        Ok(figures) => QuotaCache { figures, fetched_at: Some(now_ms), extra: last.extra, ..QuotaCache::default() },
        Err(error) => {
            let wait = (FIRST_WAIT_MS << last.failures.min(8)).min(MAX_WAIT_MS);
            let has_figures = last.figures != Figures::default();
            QuotaCache {
                error: Some(error.into()),
                fetched_at: last.fetched_at.filter(|_| has_figures).or(Some(now_ms)),
                next_try_at: Some(now_ms + wait),
                failures: last.failures.saturating_add(1),
                ..last
            }
        }
    }
}

/// What the endpoint's answer says, or one word for why it says nothing.
pub fn parse_response(status: u16, body: &str) -> Result<Figures, &'static str> {
    match status {
        200 => {}
        429 => return Err("rate-limited"),
        _ => return Err("api-error"),
    }
    let body: Value = serde_json::from_str(body).map_err(|_| "parse-error")?;
    let number = |path: &str| body.pointer(path).and_then(Value::as_f64);
    let time = |path: &str| {
        let time = body.pointer(path).filter(|value| value.is_string() || value.is_number());
        time.cloned().unwrap_or(Value::Null)
    };
    Ok(Figures {
        session_usage: number("/five_hour/utilization"),
        session_reset_at: time("/five_hour/resets_at"),
        weekly_usage: number("/seven_day/utilization"),
        weekly_reset_at: time("/seven_day/resets_at"),
        extra_usage_enabled: body.pointer("/extra_usage/is_enabled") == Some(&Value::Bool(true)),
        extra_usage_limit: number("/extra_usage/monthly_limit"),
        extra_usage_used: number("/extra_usage/used_credits"),
        extra_usage_utilization: number("/extra_usage/utilization"),
    })
}

fn ask(env: &Env, token: &str) -> Result<(u16, String), &'static str> {
    // The token goes in by curl's standard input, where no list of processes shows it.
    let config = format!(
        "url = \"{URL}\"\nheader = \"Authorization: Bearer {token}\"\nheader = \"anthropic-beta: oauth-2025-04-20\"\n"
    );
    let args = ["--silent", "--max-time", "10", "--proto", "=https", "--write-out", "\n%{http_code}", "--config", "-"];
    let limits = Limits {
        stdin: config.as_bytes(),
        max_output: 1 << 20,
        deadline: Duration::from_secs(12),
        ..Limits::default()
    };
    let outcome = process::run(env, OsStr::new("curl"), &args, &limits).map_err(|_| "network")?;
    let output = String::from_utf8_lossy(&outcome.stdout);
    let (body, status) = output.rsplit_once('\n').ok_or("network")?;
    match status.trim().parse() {
        Ok(0) | Err(_) => Err("network"),
        Ok(status) => Ok((status, body.to_owned())),
    }
}

/// The token to ask with: the keychain's on macOS, else the one in the client's credentials file.
fn token(env: &Env) -> Option<String> {
    let keychain = || {
        let args = ["find-generic-password", "-s", KEYCHAIN_ITEM, "-w"];
        let limits = Limits { max_output: 1 << 16, deadline: Duration::from_secs(5), ..Limits::default() };
        let outcome = process::run(env, OsStr::new("security"), &args, &limits).ok()?;
        parse_token(&String::from_utf8_lossy(&outcome.stdout))
    };
    if cfg!(target_os = "macos") { keychain().or_else(|| token_from_file(env)) } else { token_from_file(env) }
}

fn token_from_file(env: &Env) -> Option<String> {
    let bytes = file::read_user(&env.in_claude(".credentials.json")?, 1 << 20).ok()??;
    parse_token(&String::from_utf8_lossy(&bytes))
}

/// The OAuth token in a credentials document; none when there is none that could stand in a header.
pub fn parse_token(document: &str) -> Option<String> {
    let token = Object::parse(document.trim())?.at(&["claudeAiOauth", "accessToken"])?.str()?;
    let usable = !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
    usable.then(|| token.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_keep_the_last_figures_and_wait_longer_each_time() {
        let figures = Figures { session_usage: Some(47.0), ..Figures::default() };
        let mut cache = after(QuotaCache::default(), Ok(figures.clone()), 1000);
        for minutes in [5, 10, 20, 40, 40] {
            cache = after(cache, Err("rate-limited"), 2000);
            assert_eq!(cache.figures, figures);
            assert_eq!(cache.fetched_at, Some(1000));
            assert_eq!(cache.next_try_at, Some(2000 + minutes * 60_000));
        }
        cache = after(cache, Ok(figures), 3000);
        assert_eq!((cache.error, cache.next_try_at, cache.failures), (None, None, 0));
    }

    #[test]
    fn an_answer_is_due_when_it_is_old_failed_or_from_the_future() {
        let now = 1_000_000_000;
        let answer = |written_ms, error: Option<&str>, next_try_at| Answer {
            cache: QuotaCache { error: error.map(Into::into), next_try_at, ..QuotaCache::default() },
            written_ms,
        };
        for (answer, due) in [
            (answer(now - 175_000, None, None), false),
            (answer(now - 185_000, None, None), true),
            (answer(now + 3_600_000, None, None), true),
            (answer(now, Some("network"), None), true),
            (answer(now, Some("network"), Some(now + 1)), false),
            (answer(now, Some("network"), Some(now)), true),
            (answer(now, Some("network"), Some(now + MAX_WAIT_MS + 1)), true),
        ] {
            assert_eq!(answer.is_due(now), due, "{answer:?}");
        }
    }

    #[test]
    fn figures_are_shown_until_their_reset_and_no_longer() {
        let now = 1_772_711_000_000;
        let payload = |resets: Value| {
            let text =
                json!({"rate_limits": {"five_hour": {"used_percentage": 46.6, "resets_at": resets}}}).to_string();
            Quota::of_payload(&Object::parse(&text).unwrap(), now).unwrap().block
        };
        for future in [json!(now / 1000 + 60), json!(now + 60_000), json!("2026-03-05T11:44:20Z")] {
            assert_eq!(payload(future.clone()).unwrap().resets_ms, Some(now + 60_000), "{future}");
        }
        assert_eq!(payload(json!(now / 1000 - 60)), None);
        assert_eq!(payload(json!("soon")).unwrap(), Window { percent: 46.6, resets_ms: None });
        let cached = |fetched_at| {
            let figures = Figures { session_usage: Some(1.0), weekly_usage: Some(2.0), ..Figures::default() };
            let cache = QuotaCache { figures, fetched_at: Some(fetched_at), ..QuotaCache::default() };
            Quota::of_cache(&Answer { cache, written_ms: now }, now)
        };
        assert!(cached(now).block.is_some());
        assert_eq!(cached(now - 6 * HOUR_MS).block, None);
        assert!(cached(now - 6 * HOUR_MS).week.is_some());
    }

    #[test]
    fn a_token_that_could_break_out_of_its_header_is_none() {
        let document = |token: &str| json!({"claudeAiOauth": {"accessToken": token}}).to_string();
        assert_eq!(parse_token(&document("sk-ant-oat01-x_y")).as_deref(), Some("sk-ant-oat01-x_y"));
        for bad in ["", "a\nurl = \"http://evil\"", "a\"b", "a b", "a\\b", "ü"] {
            assert_eq!(parse_token(&document(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn a_quota_cache_of_another_version_keeps_its_keys() {
        let text = r#"{"sessionUsage":"47","weeklyUsage":31,"fetchedAt":5.0,"unknown":[1]}"#;
        let cache: QuotaCache = serde_json::from_str(text).unwrap();
        assert_eq!((cache.figures.session_usage, cache.figures.weekly_usage), (None, Some(31.0)));
        assert_eq!(serde_json::to_value(&cache).unwrap()["unknown"], json!([1]));
    }
}
