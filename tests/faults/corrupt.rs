//! A damaged copy of every state file, one at a time, in the middle of a session.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::kept::Kept;
use crate::world::{World, names, tree};

/// Ways in which a file is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Empty,
    Half,
    Binary,
    OtherJson,
    WrongLeaves,
    Huge,
    Folder,
    Fifo,
    Link,
}

const DAMAGES: [Damage; 9] = [
    Damage::Empty,
    Damage::Half,
    Damage::Binary,
    Damage::OtherJson,
    Damage::WrongLeaves,
    Damage::Huge,
    Damage::Folder,
    Damage::Fifo,
    Damage::Link,
];

impl Damage {
    /// Puts the damage in the place of `path`, which held `was`.
    fn plant(self, world: &World, path: &Path, was: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let planted = (0..100).any(|_| {
            let _ = std::fs::remove_dir_all(path).or_else(|_| std::fs::remove_file(path));
            // A detached refresh may have been quicker.
            self.put(world, path, was).is_ok()
        });
        assert!(planted, "{self:?} {}", path.display());
    }

    fn put(self, world: &World, path: &Path, was: &[u8]) -> std::io::Result<()> {
        let wrong = r#"{"t":"x","cwd":5,"roots":7,"callsSince":{},"regretHits":"no","rolledThroughTok":-9e99,"id":[],
            "wiredStatuslinePrev":8,"seededContexts":"y","offset":-1,"files":{},"detail":[],"fetchedAt":9e99}"#;
        match self {
            Damage::Empty => std::fs::write(path, ""),
            Damage::Half => std::fs::write(path, &was[..was.len() / 2]),
            Damage::Binary => std::fs::write(path, b"\x00\xff\x1b]8;;\x07{\"a\"\n\xc3"),
            Damage::OtherJson => std::fs::write(path, "[1,null,\"x\"]\n"),
            Damage::WrongLeaves => std::fs::write(path, wrong.replace('\n', " ")),
            Damage::Huge => {
                std::fs::write(path, was)?;
                std::fs::File::options().append(true).open(path)?.set_len(20 << 20)
            }
            Damage::Folder => std::fs::create_dir(path),
            Damage::Fifo => {
                let made = rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0);
                made.map_err(Into::into)
            }
            Damage::Link => symlink(victim(world), path),
        }
    }

    /// Whether a file with this damage still holds something that somebody may want back.
    fn holds_something(self) -> bool {
        matches!(self, Damage::Half | Damage::Binary | Damage::OtherJson | Damage::Huge)
    }
}

fn victim(world: &World) -> PathBuf {
    world.sandbox.root().join("victim")
}

/// What was in the folders of a world, to be put back before the next damage.
struct Saved(Vec<(PathBuf, Vec<u8>)>);

impl Saved {
    fn of(world: &World) -> Saved {
        let sandbox = &world.sandbox;
        let rules = sandbox.cwd.join("CLAUDE.md");
        let mut files = tree(&sandbox.home);
        files.extend(tree(&sandbox.tmp));
        files.push((rules.clone(), std::fs::read(&rules).unwrap()));
        Saved(files)
    }

    fn restore(&self, world: &World) {
        for folder in [&world.sandbox.home, &world.sandbox.tmp] {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                // A detached refresh may be writing in there.
                let _ = std::fs::remove_dir_all(entry.path()).or_else(|_| std::fs::remove_file(entry.path()));
            }
        }
        let rules = world.sandbox.cwd.join("CLAUDE.md");
        let _ = std::fs::remove_dir_all(&rules).or_else(|_| std::fs::remove_file(&rules));
        for (path, bytes) in &self.0 {
            world.sandbox.write(path, bytes);
        }
    }
}

fn each_file(damage: Damage) {
    let world = World::busy();
    let kept = Kept::of(&world);
    let saved = Saved::of(&world);
    let irreplaceable = Kept::irreplaceable(&world);
    world.sandbox.write(&victim(&world), "theirs");
    for path in world.state_files() {
        saved.restore(&world);
        let was = std::fs::read(&path).unwrap_or_else(|_| b"7\n".into());
        let what = format!("{damage:?} in the place of {}", path.display());
        for name in names() {
            damage.plant(&world, &path, &was);
            let planted = std::fs::metadata(&path).map_or(0, |meta| meta.len());
            let output = world.expect(name, &what);
            assert!(!output.stdout.contains('\x07'), "{name}, {what}: {output:?}", output = output.stdout);
            assert_eq!(world.sandbox.read(victim(&world)), "theirs", "{name}, {what}");
            if irreplaceable.contains(&path) && damage.holds_something() {
                assert!(is_there(&path, planted), "{name}, {what}: lost");
            }
        }
        kept.check_where(&what, |other| other != path);
    }
}

/// Whether a file of this size is still at `path` or was set aside beside it.
fn is_there(path: &Path, size: u64) -> bool {
    let aside = format!("{}.corrupt.", path.file_name().unwrap().to_str().unwrap());
    let beside = std::fs::read_dir(path.parent().unwrap()).unwrap().flatten();
    let kin = beside.filter(|entry| {
        let name = entry.file_name();
        entry.path() == path || name.to_str().is_some_and(|name| name.starts_with(&aside))
    });
    // A block of ours may have been added to a file of the user's.
    kin.into_iter().any(|entry| entry.metadata().is_ok_and(|meta| meta.len() >= size))
}

#[test]
fn a_damaged_state_file_disturbs_nobody_and_takes_nothing_else_with_it() {
    let waiting = Mutex::new(DAMAGES.to_vec());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(damage) = { waiting.lock().unwrap().pop() } {
                    each_file(damage);
                }
            });
        }
    });
}
