//! Locks that another process holds for ever.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use si::store::StateFile;

use crate::kept::Kept;
use crate::world::{ALL, World, tree};

/// Every lock file and every file of pending deltas of a world, locked until the answer is dropped.
fn hold(world: &World) -> Vec<File> {
    let pending = [StateFile::ToolCount(&world.sid), StateFile::TokenBudget(&world.sid)];
    let pending = pending.map(|state| PathBuf::from(format!("{}.pending", world.path(state).display())));
    let known = tree(&world.sandbox.tmp).into_iter().map(|(path, _)| path).filter(|path| is_lock(path));
    let extra = ["claude-session-intel-log.lock", "claude-sweep.lock"].map(|name| world.sandbox.tmp.join(name));
    let all: BTreeSet<PathBuf> = known.chain(pending).chain(extra).collect();
    all.iter().map(|path| held(path)).collect()
}

fn held(path: &Path) -> File {
    let file = File::options().create(true).append(true).open(path).unwrap();
    fs2::FileExt::lock_exclusive(&file).unwrap();
    file
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "lock")
}

#[test]
fn locks_that_are_held_for_ever_are_given_up_soon() {
    let world = World::busy();
    let kept = Kept::of(&world);
    let locks = hold(&world);
    assert!(locks.len() > 10, "{}", locks.len());
    for name in ALL {
        world.expect(name, "held locks");
    }
    kept.check("held locks");
    drop(locks);
    world.expect("post-tool-use", "locks that are free again");
}

#[test]
fn what_was_counted_under_a_held_lock_is_folded_in_later() {
    let world = World::busy();
    let before = world.counted();
    let lock = held(&world.sandbox.tmp.join(format!("claude-tool-count-{}.lock", world.sid)));
    let names = ["post-tool-use", "PostToolUse", "token-budget"];
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| world.expect(name, "a held lock"));
        }
    });
    assert_eq!(world.counted(), before);
    drop(lock);
    world.expect("post-tool-use", "a lock that is free again");
    assert_eq!(world.counted(), before + names.len() as u64 + 1);
}

/// Each lock alone, so that no other one hides its wait.
#[test]
fn each_lock_alone_holds_nobody_up() {
    let world = World::busy();
    let kept = Kept::of(&world);
    let locks: Vec<PathBuf> =
        tree(&world.sandbox.tmp).into_iter().map(|(path, _)| path).filter(|path| is_lock(path)).collect();
    for path in locks {
        let lock = held(&path);
        for name in crate::world::names() {
            world.expect(name, &format!("{} held", path.display()));
        }
        drop(lock);
        kept.check(&format!("{} held", path.display()));
    }
}
