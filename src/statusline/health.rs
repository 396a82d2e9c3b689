//! Service health: one dot per configured service, from the last probe's answer. Redraws only read the answers; a
//! detached process probes with curl.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use super::layout::Cell;
use super::style::Role;
use crate::config::{Config, ServiceHealth};
use crate::env::Env;
use crate::process::{self, Limits};
use crate::store::{StateFile, Store};

/// The answer of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probe {
    code: u16,
    at_ms: i64,
}

impl Probe {
    fn read(store: Store<'_>, name: &str) -> Option<Probe> {
        let text = store.read_text(StateFile::Health(name))?;
        let (code, at_ms) = text.trim().split_once(' ')?;
        Some(Probe { code: code.parse().ok()?, at_ms: at_ms.trim().parse().ok()? })
    }

    fn is_due(self, service: &ServiceHealth, now_ms: i64) -> bool {
        let ttl_ms = service.ttl_sec.saturating_mul(1000).min(i64::MAX as u64) as i64;
        // An answer from the future would never be renewed.
        !(-1000..ttl_ms).contains(&now_ms.saturating_sub(self.at_ms))
    }
}

/// `[●●○]`; none where no service is configured. Starts the probes that are due.
pub fn cell(env: &Env, store: Store<'_>, config: &Config, project: Option<&Path>) -> Option<Cell> {
    let services = &config.statusline.service_health;
    if services.is_empty() {
        return None;
    }
    let mut cell = Cell::new(Role::Dim, "[");
    let mut due = false;
    for service in services {
        let probe = Probe::read(store, &service.name);
        due |= probe.is_none_or(|probe| probe.is_due(service, env.now_ms)) && !is_running(store, service);
        cell = match probe.map(|probe| probe.code) {
            Some(200..300) => cell.and(Role::Green, "●"),
            Some(300..400) => cell.and(Role::Yellow, "●"),
            Some(_) => cell.and(Role::Red, "●"),
            None => cell.and(Role::Grey, "○"),
        };
    }
    if due {
        let mut args = vec!["refresh".into(), "health".into()];
        args.extend(project.map(|dir| dir.as_os_str().to_owned()));
        let _ = process::detach_self(env, &args); // without it the next redraw tries again
    }
    Some(cell.and(Role::Dim, "]"))
}

fn is_running(store: Store<'_>, service: &ServiceHealth) -> bool {
    store.lock_within(StateFile::Health(&service.name), Duration::ZERO).is_err()
}

/// Probes every service that is due, all at once: the body of `si refresh health`.
pub fn refresh(env: &Env, store: Store<'_>, config: &Config) {
    std::thread::scope(|scope| {
        for service in &config.statusline.service_health {
            scope.spawn(move || probe(env, store, service));
        }
    });
}

fn probe(env: &Env, store: Store<'_>, service: &ServiceHealth) {
    let file = StateFile::Health(&service.name);
    // Held while the probe runs, so that redraws in the meantime start no second one.
    let Ok(guard) = store.lock_within(file, Duration::ZERO) else { return };
    if Probe::read(store, &service.name).is_some_and(|probe| !probe.is_due(service, env.now_ms)) {
        return;
    }
    let seconds = format!("{:.3}", service.timeout_ms as f64 / 1000.0);
    let args = [
        "--silent",
        "--output",
        "/dev/null",
        "--max-time",
        &seconds,
        "--proto",
        "=http,https",
        "--write-out",
        "%{http_code}",
        "--url",
        &service.url,
    ];
    let limits = Limits {
        max_output: 16,
        deadline: Duration::from_millis(service.timeout_ms.saturating_add(1000)),
        ..Limits::default()
    };
    let outcome = process::run(env, OsStr::new("curl"), &args, &limits);
    let code = outcome.ok().and_then(|outcome| String::from_utf8(outcome.stdout).ok()?.trim().parse::<u16>().ok());
    let now_ms = env.now_ms + env.started.elapsed().as_millis() as i64;
    let _ = guard.write(file, format!("{:03} {now_ms}", code.unwrap_or(0)).as_bytes()); // asked again next time
}
