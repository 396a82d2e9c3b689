//! The only reader of ambient things: variables, home, temp folder, clock, working folder, terminal.
//!
//! [`Env::from_process`] freezes them once at start; everything else receives values. Two cells of one status line
//! therefore never disagree about the time, and tests build an [`Env`] by hand with [`Env::for_tests`].

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, FixedOffset, Local, NaiveDate, NaiveDateTime, Offset, TimeZone, Utc};

/// A frozen picture of the surroundings of this process.
#[derive(Debug, Clone)]
pub struct Env {
    /// The user's home folder; none when neither `HOME` nor the user database names one.
    pub home: Option<PathBuf>,
    /// The client's configuration folder: `$CLAUDE_CONFIG_DIR`, else `~/.claude`; none without a home.
    pub claude_dir: Option<PathBuf>,
    /// The temp folder that per-session state lives in: `$TMPDIR` if absolute, else `/tmp`.
    pub tmp: PathBuf,
    /// The working folder of the process; `/` when it was deleted.
    pub cwd: PathBuf,
    /// The running binary, links resolved.
    pub exe: Option<PathBuf>,
    /// What the running binary was called as: a path, or a name on `PATH`.
    pub called: Option<OsString>,
    /// Wall clock at start, milliseconds since 1970.
    pub now_ms: i64,
    /// Monotonic clock at start: every deadline counts from here.
    pub started: Instant,
    /// Numeric user id.
    pub uid: u32,
    /// Whether standard input, output and error are terminals.
    pub tty: Tty,
    vars: Vec<(OsString, OsString)>,
    zone: Zone,
    waited_ms: Arc<AtomicU64>,
}

/// Which standard streams are terminals.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tty {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

#[derive(Debug, Clone, Copy)]
enum Zone {
    Local,
    Fixed(FixedOffset),
}

impl Env {
    /// Reads the surroundings of the running process. `SI_NOW` (epoch milliseconds) replaces the clock, for tests.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads ambient things")]
    pub fn from_process() -> Env {
        let vars: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let get =
            |name: &str| vars.iter().find(|(key, _)| key == name).map(|(_, value)| value).filter(|v| !v.is_empty());
        // An empty HOME says that there is none; only an absent one is looked up in the user database.
        let absent = !vars.iter().any(|(key, _)| key == "HOME");
        let looked_up = || if absent { dirs::home_dir() } else { None };
        let home = get("HOME").or_else(|| get("USERPROFILE")).map(PathBuf::from).or_else(looked_up);
        let home = home.filter(|path| path.is_absolute());
        let claude_dir = claude_dir(get("CLAUDE_CONFIG_DIR").map(PathBuf::from), home.as_deref());
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let now_ms = get("SI_NOW").and_then(|text| text.to_str()?.parse().ok()).unwrap_or(clock);
        Env {
            claude_dir,
            tmp: get("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute()).unwrap_or_else(|| "/tmp".into()),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            exe: std::env::current_exe().ok(),
            called: std::env::args_os().next(),
            now_ms,
            started: Instant::now(),
            uid: rustix::process::getuid().as_raw(),
            tty: Tty {
                stdin: std::io::stdin().is_terminal(),
                stdout: std::io::stdout().is_terminal(),
                stderr: std::io::stderr().is_terminal(),
            },
            zone: Zone::Local,
            waited_ms: Arc::default(),
            home,
            vars,
        }
    }

    /// A hermetic environment below `root` (`home`, `tmp`, `work` are made there), in UTC, at 2026-01-02 03:04:05.
    pub fn for_tests(root: &Path) -> Env {
        let [home, tmp, cwd] = ["home", "tmp", "work"].map(|name| root.join(name));
        for folder in [home.join(".claude"), tmp.clone(), cwd.clone()] {
            let _ = std::fs::create_dir_all(folder); // a test that needs it fails on use
        }
        Env {
            claude_dir: Some(home.join(".claude")),
            home: Some(home),
            tmp,
            cwd,
            exe: None,
            called: None,
            now_ms: 1_767_323_045_000,
            started: Instant::now(),
            uid: rustix::process::getuid().as_raw(),
            tty: Tty::default(),
            zone: Zone::Fixed(Utc.fix()),
            vars: Vec::new(),
            waited_ms: Arc::default(),
        }
    }

    /// The same surroundings with one variable set: for tests.
    pub fn with_var(mut self, name: &str, value: &str) -> Env {
        self.vars.retain(|(key, _)| key != name);
        self.vars.push((name.into(), value.into()));
        if name == "CLAUDE_CONFIG_DIR" {
            self.claude_dir = claude_dir(Some(value.into()), self.home.as_deref());
        }
        self
    }

    /// The value of a variable; none when unset, empty or not Unicode.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.vars.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.to_str()).filter(|v| !v.is_empty())
    }

    /// Whether a switch variable is on: any value but empty and `0`.
    pub fn switch(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| value != "0")
    }

    /// All variables, for handing on to a child process.
    pub fn vars(&self) -> &[(OsString, OsString)] {
        &self.vars
    }

    /// A moment as local time.
    pub fn local(&self, ms: i64) -> DateTime<FixedOffset> {
        let utc = DateTime::<Utc>::from_timestamp_millis(ms).unwrap_or_default();
        match self.zone {
            Zone::Local => utc.with_timezone(&Local).fixed_offset(),
            Zone::Fixed(offset) => utc.with_timezone(&offset),
        }
    }

    /// [`parse_iso`] for what a person's script wrote: a time without an offset is local.
    pub fn parse_time(&self, text: &str) -> Option<i64> {
        let local = || {
            let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
            let at = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text.trim(), form).ok())?;
            Some(match self.zone {
                Zone::Local => Local.from_local_datetime(&at).earliest()?.timestamp_millis(),
                Zone::Fixed(offset) => offset.from_local_datetime(&at).earliest()?.timestamp_millis(),
            })
        };
        parse_iso(text).or_else(local)
    }

    /// A moment as `2026-01-02T03:04:05.678Z`, the way the state files hold it.
    pub fn iso(&self, ms: i64) -> String {
        let utc = DateTime::<Utc>::from_timestamp_millis(ms).unwrap_or_default();
        utc.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }

    /// What is left of `budget` since the process started; zero when it is used up.
    pub fn remaining(&self, budget: Duration) -> Duration {
        budget.saturating_sub(self.started.elapsed())
    }

    /// How long this process has waited in vain for locks.
    pub fn waited(&self) -> Duration {
        Duration::from_millis(self.waited_ms.load(Ordering::Relaxed))
    }

    /// Notes a wait for a lock that was not had.
    pub fn add_wait(&self, wait: Duration) {
        self.waited_ms.fetch_add(wait.as_millis() as u64, Ordering::Relaxed);
    }

    /// Terminal columns from `COLUMNS`; none when absent or nonsense (the client sets it for the status line).
    pub fn columns(&self) -> Option<usize> {
        self.var("COLUMNS")?.trim().parse().ok().filter(|&columns| columns > 0)
    }

    /// A path below the client's configuration folder.
    pub fn in_claude(&self, relative: &str) -> Option<PathBuf> {
        Some(self.claude_dir.as_ref()?.join(relative))
    }
}

fn claude_dir(named: Option<PathBuf>, home: Option<&Path>) -> Option<PathBuf> {
    named.filter(|path| path.is_absolute()).or_else(|| home.map(|home| home.join(".claude")))
}

/// Parses `2026-01-02T03:04:05.678Z` and its kin (offsets allowed, with or without a colon; seconds may be missing) to
/// epoch milliseconds. A date alone is its midnight in UTC, as ECMAScript has it.
pub fn parse_iso(text: &str) -> Option<i64> {
    let text = text.trim();
    let looser = |_| {
        let zoned = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"];
        let date =
            || Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?.and_utc().fixed_offset());
        zoned.iter().find_map(|form| DateTime::parse_from_str(text, form).ok()).or_else(date)
    };
    DateTime::parse_from_rfc3339(text).map_or_else(looser, Some).map(|moment| moment.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_on_for_anything_but_empty_and_zero() {
        let env = Env::for_tests(Path::new("/nonexistent/si"));
        for (value, on) in [("1", true), ("yes", true), ("0", false), ("", false)] {
            assert_eq!(env.clone().with_var("X", value).switch("X"), on, "{value:?}");
        }
    }

    #[test]
    fn a_script_may_leave_the_offset_out() {
        let env = Env::for_tests(Path::new("/nonexistent/si"));
        for same in ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T03:04:05.000"] {
            assert_eq!(env.parse_time(same), Some(env.now_ms), "{same}");
        }
        assert_eq!(env.parse_time("2026-01-02T03:04"), Some(env.now_ms - 5_000));
        assert_eq!(env.parse_time("soon"), None);
    }

    #[test]
    fn moments_round_trip_through_iso() {
        let env = Env::for_tests(Path::new("/nonexistent/si"));
        assert_eq!(env.iso(env.now_ms), "2026-01-02T03:04:05.000Z");
        assert_eq!(parse_iso("2026-01-02T04:04:05+01:00"), Some(env.now_ms));
        for same in ["2026-01-02T03:04:05+0000", "2026-01-02 03:04:05Z", "2026-01-02T05:04:05.000+0200"] {
            assert_eq!(parse_iso(same), Some(env.now_ms), "{same}");
        }
        assert_eq!(parse_iso("2026-01-02T03:04Z"), Some(env.now_ms - 5_000));
        assert_eq!(parse_iso("2026-01-02"), parse_iso("2026-01-02T00:00:00Z"));
        for nothing in ["yesterday", "", "2026-13-02", "2026-01-02T03:04:05", "2026-01-02T"] {
            assert_eq!(parse_iso(nothing), None, "{nothing}");
        }
    }
}
