//! Carrying the roots of the shape log across compactions, so that cutting the log does not forget them.

use anyhow::Result;

use super::bands::{self, Options, Tally};
use crate::store::records::shape::{RolledRoot, Rollup, ShapeEntry};
use crate::store::{Guard, Sid, StateFile, Store};

/// How many roots are kept: the most used; of equally used ones the newer.
const MAX_ROOTS: usize = 100;

/// What earlier compactions of the session have rolled up.
pub fn read(store: Store<'_>, sid: &Sid) -> Option<Rollup> {
    store.read_json(StateFile::Rollup(sid))
}

/// The token budget up to which entries are rolled up; 0 before the first compaction.
pub fn rolled_through(store: Store<'_>, sid: &Sid) -> u64 {
    read(store, sid).map_or(0, |rollup| rollup.rolled_through_tok.max(0) as u64)
}

/// Rolls the entries that are not yet in it up into the session's rollup, and writes it.
///
/// `guard` holds the lock of [`StateFile::Rollup`], which is also that of the shape log.
pub fn roll(
    guard: &Guard<'_>,
    sid: &Sid,
    entries: &[ShapeEntry],
    options: &Options<'_>,
    now_ms: i64,
) -> Result<Rollup> {
    let rollup = rolled(read(guard.store(), sid).unwrap_or_default(), entries, options, now_ms);
    guard.write_json(StateFile::Rollup(sid), &rollup)?;
    Ok(rollup)
}

/// The rollup after a compaction: `earlier`, and of `entries` those that are newer.
pub fn rolled(earlier: Rollup, entries: &[ShapeEntry], options: &Options<'_>, now_ms: i64) -> Rollup {
    let options = Options { rollup: Some(&earlier), ..options.clone() };
    let mut tally = Tally::new(&options);
    tally.add_rollup();
    for entry in entries {
        if let Some(root) = bands::healed_root(entry, &options) {
            tally.add(&root, entry);
        }
    }
    let mut roots = tally.into_roots();
    if roots.len() > MAX_ROOTS {
        roots.sort_by(|a, b| b.count.cmp(&a.count).then(b.last.cmp(&a.last)));
        roots.truncate(MAX_ROOTS);
    }
    let last = entries.iter().map(|entry| entry.tok).max().unwrap_or(0);
    let mut rollup =
        Rollup { rolled_through_tok: earlier.rolled_through_tok.max(last), updated_at: now_ms, ..Rollup::default() };
    for root in roots {
        let carried = RolledRoot {
            count: root.count,
            first: root.first,
            last: root.last,
            samples: root.samples,
            allowlisted: root.allowlisted,
        };
        rollup.put(&root.root, &carried);
    }
    rollup
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowlisting_survives_a_rollup() {
        let entry = ShapeEntry {
            tok: 10,
            root: Some("src/a".into()),
            file: Some("/w/src/a/x.ts".into()),
            ..ShapeEntry::default()
        };
        let anchors = ["src/a/x.ts".to_string()];
        let options = Options { anchors: &anchors, cwd: Some("/w"), ..Options::default() };
        let rollup = rolled(Rollup::default(), &[entry], &options, 1);
        let later: Vec<ShapeEntry> = (0..6)
            .map(|n| ShapeEntry {
                tok: 1000 + n * 1000,
                root: Some("lib/b".into()),
                file: Some("/w/lib/b/y.ts".into()),
                ..ShapeEntry::default()
            })
            .collect();
        let options = Options { rollup: Some(&rollup), cwd: Some("/w"), ..Options::default() };
        let analysis = bands::analyse(&later, &options).unwrap();
        assert!(analysis.hot.iter().any(|root| root.root == "src/a" && root.allowlisted));
    }

    #[test]
    fn entries_are_rolled_up_once() {
        let entry = ShapeEntry { tok: 10, root: Some("src".into()), ..ShapeEntry::default() };
        let once = rolled(Rollup::default(), std::slice::from_ref(&entry), &Options::default(), 1);
        let twice = rolled(once.clone(), &[entry], &Options::default(), 1);
        assert_eq!(once, twice);
        assert_eq!(twice.rolled_through_tok, 10);
    }
}
