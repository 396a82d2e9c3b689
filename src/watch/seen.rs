//! Tool calls that were counted: a plugin and a settings file may both fire the same hook for one call.

use anyhow::Result;

use crate::compaction::history::last_lines;
use crate::store::{Guard, Sid, StateFile, key};

/// How many calls are remembered at least.
const REMEMBERED: usize = 256;
/// From how many bytes on the older calls are forgotten: twice what usual ids take, so that most calls only append.
const LARGE: usize = 16 << 10;
/// Longer ids are remembered by their hash.
const LONGEST: usize = 128;

/// Remembers a tool call by its raw id; false when it was remembered already. Without an id every call is new.
///
/// `guard` holds the lock of [`StateFile::ToolSeen`], which is also that of the counters.
pub fn remember(guard: &Guard<'_>, sid: &Sid, id: Option<&str>) -> Result<bool> {
    let Some(id) = id else { return Ok(true) };
    let line = if id.len() > LONGEST || id.chars().any(char::is_control) {
        format!("sha256:{}", key::sha256_hex(id.as_bytes(), 64))
    } else {
        id.to_string()
    };
    let seen = StateFile::ToolSeen(sid);
    let mut text = guard.store().read_text(seen).unwrap_or_default();
    if text.lines().any(|remembered| remembered == line) {
        return Ok(false);
    }
    if text.len() < LARGE {
        guard.append(seen, &line)?;
    } else {
        text.push_str(&line);
        text.push('\n');
        guard.write(seen, last_lines(text.as_bytes(), REMEMBERED))?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::store::Store;

    #[test]
    fn a_call_is_new_once_whatever_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let (store, sid) = (Store::new(&env), Sid::new("s"));
        let guard = store.lock(StateFile::ToolSeen(&sid)).unwrap();
        let long = "x".repeat(100_000);
        for id in ["toolu_1", "a\nb", "../../x\0", &long] {
            assert!(remember(&guard, &sid, Some(id)).unwrap(), "{id:.20}");
            assert!(!remember(&guard, &sid, Some(id)).unwrap(), "{id:.20}");
        }
        assert!(remember(&guard, &sid, None).unwrap());
        assert!(remember(&guard, &sid, None).unwrap());
        let id = |n: usize| format!("toolu_01AbCdEfGhIjKlMnOpQrSt{n:04}");
        for n in 0..2000 {
            assert!(remember(&guard, &sid, Some(&id(n))).unwrap());
            assert!(!remember(&guard, &sid, Some(&id(n.saturating_sub(REMEMBERED - 1)))).unwrap(), "{n}");
            let size = store.read_text(StateFile::ToolSeen(&sid)).unwrap().len();
            assert!(size < LARGE + LONGEST || n == 0, "{size}");
        }
    }
}
