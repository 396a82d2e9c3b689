//! What si tells about a repository, and what it leaves alone in one.

#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use si::git::{self, Kind, WorkTree};
use si::store::Store;

use crate::support::Sandbox;

/// Long enough for any scan of a small repository on a loaded machine.
const PATIENT: Duration = Duration::from_secs(20);

fn repo(sandbox: &Sandbox) -> PathBuf {
    let commit = json!({"commits": [{"files": {"src/a.ts": "1\n2\n3\n", "b.txt": "x\n"}, "message": "feat: one"}]});
    sandbox.repo(&sandbox.cwd, &commit);
    sandbox.cwd.clone()
}

fn head(sandbox: &Sandbox, dir: &Path) -> Option<(String, Kind)> {
    git::head(&sandbox.env(), dir, PATIENT).map(|head| (head.name, head.kind))
}

/// The state of the working tree around `dir`.
fn scan_tree(env: &si::Env, dir: &Path, deadline: Duration) -> Option<WorkTree> {
    git::work_tree(env, Store::new(env), &git::head(env, dir, PATIENT)?, deadline)
}

fn named(name: &str, kind: Kind) -> Option<(String, Kind)> {
    Some((name.to_string(), kind))
}

fn executable(sandbox: &Sandbox, path: &Path, script: &str) {
    sandbox.write_program(path, script);
}

/// A `git` on a PATH of its own, in front of the real one.
fn shim(sandbox: &Sandbox, script: &str) -> si::Env {
    let bin = sandbox.root().join("bin");
    executable(sandbox, &bin.join("git"), script);
    let path = format!("{}:{}", bin.display(), sandbox.env().var("PATH").unwrap());
    sandbox.env().with_var("PATH", &path)
}

#[test]
fn a_branch_is_named_from_any_folder_of_its_work_tree() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    sandbox.git(&dir, &["checkout", "-q", "-b", "fix/164-login"], &[]);
    assert_eq!(head(&sandbox, &dir.join("src")), named("fix/164-login", Kind::Branch));
    let id = sandbox.git(&dir, &["rev-parse", "HEAD"], &[]);
    assert_eq!(git::head(&sandbox.env(), &dir, PATIENT).unwrap().id, Some(id.clone()));
    sandbox.git(&dir, &["pack-refs", "--all", "--prune"], &[]);
    let packed = git::head(&sandbox.env(), &dir, PATIENT).unwrap();
    assert_eq!((packed.kind, packed.id), (Kind::Branch, Some(id)));
}

#[test]
fn before_the_first_commit_the_unborn_branch_is_named() {
    let sandbox = Sandbox::new();
    sandbox.git(&sandbox.cwd, &["init", "-q", "-b", "trunk"], &[]);
    sandbox.write(&sandbox.cwd.join("a"), "a");
    assert_eq!(head(&sandbox, &sandbox.cwd), named("trunk", Kind::Unborn));
    let env = sandbox.env();
    let tree = scan_tree(&env, &sandbox.cwd, PATIENT).unwrap();
    assert_eq!(tree, WorkTree { dirty: Some(1), ..WorkTree::default() });
}

#[test]
fn a_detached_head_is_named_by_its_tag_or_its_short_id() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    sandbox.git(&dir, &["tag", "light"], &[]);
    sandbox.git(&dir, &["commit", "-q", "--allow-empty", "-m", "two"], &[]);
    sandbox.git(&dir, &["tag", "-a", "v2.0.0", "-m", "x"], &[]);
    sandbox.git(&dir, &["commit", "-q", "--allow-empty", "-m", "three"], &[]);
    for (commit, name) in [("HEAD~2", "light"), ("HEAD~1", "v2.0.0")] {
        let id = sandbox.git(&dir, &["rev-parse", &format!("main{}", &commit[4..])], &[]);
        sandbox.git(&dir, &["checkout", "-q", &id], &[]);
        assert_eq!(head(&sandbox, &dir), named(name, Kind::Tag), "{commit}");
        assert_eq!(head(&sandbox, &dir), named(name, Kind::Tag), "{commit}, from the stored answer");
    }
    let id = sandbox.git(&dir, &["rev-parse", "main"], &[]);
    sandbox.git(&dir, &["checkout", "-q", &id], &[]);
    assert_eq!(head(&sandbox, &dir), named(&id[..7], Kind::Detached));
    sandbox.git(&dir, &["tag", "late"], &[]);
    assert_eq!(head(&sandbox, &dir), named("late", Kind::Tag), "made where HEAD stands already");
    sandbox.git(&dir, &["tag", "-d", "late"], &[]);
    assert_eq!(head(&sandbox, &dir), named(&id[..7], Kind::Detached));
}

#[test]
fn linked_work_trees_and_submodules_have_their_own_branch() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    sandbox.git(&dir, &["worktree", "add", "-q", "-b", "side-work", "wt"], &[]);
    assert_eq!(head(&sandbox, &dir.join("wt/src")), named("side-work", Kind::Branch));
    sandbox.git(&dir, &["pack-refs", "--all", "--prune"], &[]);
    assert_eq!(head(&sandbox, &dir.join("wt")), named("side-work", Kind::Branch));

    let library = sandbox.root().join("lib");
    sandbox.repo(&library, &json!({"commits": [{"files": {"l": "1"}, "message": "x"}]}));
    let lib = library.to_str().unwrap();
    sandbox.git(&dir, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "sub"], &[]);
    sandbox.git(&dir.join("sub"), &["checkout", "-q", "-b", "sub-branch"], &[]);
    assert_eq!(head(&sandbox, &dir.join("sub")), named("sub-branch", Kind::Branch));
    assert_eq!(head(&sandbox, &dir), named("main", Kind::Branch));
}

#[test]
fn bare_foreign_broken_and_missing_repositories_are_none() {
    let sandbox = Sandbox::new();
    assert_eq!(head(&sandbox, &sandbox.cwd), None);
    assert_eq!(head(&sandbox, &sandbox.cwd.join("missing")), None);
    let bare = sandbox.root().join("bare.git");
    sandbox.git(sandbox.root(), &["init", "-q", "--bare", "bare.git"], &[]);
    assert_eq!(head(&sandbox, &bare), None);
    assert_eq!(head(&sandbox, &bare.join("refs")), None);
    // The layout in which work trees hang below a hidden bare repository.
    let layout = sandbox.root().join("layout");
    sandbox.write(&layout.join(".git"), "gitdir: ../bare.git\n");
    assert_eq!(head(&sandbox, &layout), None);
    sandbox.write(&layout.join(".git"), "gitdir: ../nowhere\n");
    assert_eq!(head(&sandbox, &layout), None);

    let dir = repo(&sandbox);
    assert_eq!(head(&sandbox, &dir.join(".git")), None);
    sandbox.write(&dir.join(".git/HEAD"), "ref: ../../../etc/passwd\n");
    assert_eq!(git::head(&sandbox.env(), &dir, PATIENT).unwrap().id, None);
    sandbox.write(&dir.join(".git/HEAD"), "nonsense\n");
    assert_eq!(head(&sandbox, &dir), None);
    sandbox.write(&dir.join(".git/HEAD"), "ref: refs/heads/main\n");
    if sandbox.env().uid == 0 {
        std::os::unix::fs::chown(dir.join(".git"), Some(12345), None).unwrap();
        assert_eq!(head(&sandbox, &dir), None);
    }
}

#[test]
fn a_ceiling_ends_the_search() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let env = sandbox.env().with_var("GIT_CEILING_DIRECTORIES", dir.to_str().unwrap());
    assert!(git::head(&env, &dir, PATIENT).is_some());
    assert!(git::head(&env, &dir.join("src"), PATIENT).is_none());
}

#[test]
fn refs_in_tables_are_asked_of_git() {
    let sandbox = Sandbox::new();
    let probe = std::process::Command::new("git")
        .args(["init", "-q", "--ref-format=reftable", "-b", "trunk", sandbox.cwd.to_str().unwrap()])
        .output()
        .unwrap();
    if !probe.status.success() {
        return; // a git older than the format
    }
    // git has a deadline here, which a busy machine may pass: then the answer is none, never another one.
    let asked = || {
        let begun = Instant::now();
        loop {
            match head(&sandbox, &sandbox.cwd) {
                None if begun.elapsed() < PATIENT => {}
                answer => return answer,
            }
        }
    };
    assert_eq!(asked(), named("trunk", Kind::Unborn));
    sandbox.git(&sandbox.cwd, &["commit", "-q", "--allow-empty", "-m", "one"], &[]);
    let after = asked();
    assert_eq!(after, named("trunk", Kind::Branch));
}

#[test]
fn a_scan_counts_entries_lines_and_distance() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let clone = sandbox.root().join("clone");
    sandbox.git(sandbox.root(), &["clone", "-q", dir.to_str().unwrap(), "clone"], &[]);
    sandbox.git(&dir, &["commit", "-q", "--allow-empty", "-m", "two"], &[]);
    sandbox.git(&clone, &["fetch", "-q"], &[]);
    for message in ["mine", "more"] {
        sandbox.git(&clone, &["commit", "-q", "--allow-empty", "-m", message], &[]);
    }
    sandbox.write(&clone.join("src/a.ts"), "1\ntwo\n3\n4\n");
    sandbox.write(&clone.join("new file"), "n\n");
    let env = sandbox.env();
    let tree = scan_tree(&env, &clone.join("src"), PATIENT).unwrap();
    let want = WorkTree { dirty: Some(2), added: Some(2), deleted: Some(1), ahead: Some(2), behind: Some(1) };
    assert_eq!(tree, want);
    let files = git::dirty_files(&env, &clone, PATIENT).unwrap();
    let files: Vec<_> = files.iter().map(|file| (file.code.as_str(), file.path.as_str())).collect();
    assert_eq!(files, [(" M", "src/a.ts"), ("??", "new file")]);
}

#[test]
fn a_stored_answer_stands_until_something_says_otherwise() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let mut env = sandbox.env();
    let scan = |env: &si::Env| scan_tree(env, &dir, PATIENT).unwrap().dirty;
    assert_eq!(scan(&env), Some(0));
    sandbox.write(&dir.join("new"), "n");
    assert_eq!(scan(&env), Some(0), "nothing said so");
    git::mark_stale(&env, Store::new(&env), &dir.join("src"));
    env.now_ms += 5;
    assert_eq!(scan(&env), Some(1), "a hook said so");
    sandbox.write(&dir.join("newer"), "n");
    assert_eq!(scan(&env), Some(1));
    env.now_ms += 31_000;
    assert_eq!(scan(&env), Some(2), "its age said so");
    sandbox.git(&dir, &["add", "new", "newer"], &[]);
    sandbox.git(&dir, &["commit", "-q", "-m", "two"], &[]);
    assert_eq!(scan(&env), Some(0), "HEAD and the index said so");
    sandbox.git(&dir, &["checkout", "-q", "-b", "other"], &[]);
    sandbox.write(&dir.join("third"), "n");
    assert_eq!(scan(&env), Some(1), "the branch said so");
}

#[test]
fn a_mark_set_during_a_scan_outlives_it() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let env = sandbox.env();
    scan_tree(&env, &dir, PATIENT).unwrap();
    let mut later = env.clone();
    later.now_ms += 10;
    git::mark_stale(&later, Store::new(&later), &dir);
    // Nor does an earlier mark that still stands hide it.
    later.now_ms += 10;
    git::mark_stale(&later, Store::new(&later), &dir);
    let mut env = env;
    env.now_ms += 15;
    // This scan's process began before the last mark, so its answer may lack the change.
    scan_tree(&env, &dir, PATIENT).unwrap();
    let record = record(&sandbox);
    assert_eq!((record["stale"].as_bool(), record["dirty"].as_u64()), (Some(true), Some(0)));
}

fn record(sandbox: &Sandbox) -> Value {
    let name = format!("claude-git-{}.json", si::store::key::sha256_hex(sandbox.cwd.to_str().unwrap().as_bytes(), 16));
    serde_json::from_str(&sandbox.read(sandbox.tmp.join(name))).unwrap()
}

#[test]
fn a_scan_leaves_index_and_lock_alone() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    // Stat data in the index that no longer fits: a git that refreshes would write it again.
    let old = std::time::UNIX_EPOCH + Duration::from_secs(978_307_200);
    std::fs::File::options().append(true).open(dir.join("b.txt")).unwrap().set_modified(old).unwrap();
    let before = std::fs::read(dir.join(".git/index")).unwrap();
    let env = sandbox.env();
    assert_eq!(scan_tree(&env, &dir, PATIENT).unwrap().dirty, Some(0));
    git::dirty_files(&env, &dir, PATIENT).unwrap();
    assert_eq!(std::fs::read(dir.join(".git/index")).unwrap(), before);
    assert!(!dir.join(".git/index.lock").exists());
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let canary = sandbox.root().join("canary");
    let evil = sandbox.root().join("evil.sh");
    executable(&sandbox, &evil, &format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\nexit 0\n", canary.display()));
    let evil = evil.to_str().unwrap();
    sandbox.write(&dir.join(".gitattributes"), "*.ts filter=bad diff=bad\n*.txt filter=included\n*.md filter=wt\n");
    sandbox.git(&dir, &["add", "-A"], &[]);
    sandbox.git(&dir, &["commit", "-q", "-m", "attributes"], &[]);
    let included = sandbox.root().join("included.config");
    sandbox
        .write(&included, format!("[filter \"included\"]\n\tprocess = {evil}\n\tclean = {evil}\n\trequired = true\n"));
    for (key, value) in [
        ("core.fsmonitor", evil),
        ("core.pager", evil),
        ("core.sshCommand", evil),
        ("core.gitProxy", evil),
        ("diff.external", evil),
        ("diff.bad.command", evil),
        ("diff.bad.textconv", evil),
        ("filter.bad.clean", evil),
        ("filter.bad.smudge", evil),
        ("filter.bad.required", "true"),
        ("gpg.program", evil),
        ("log.showSignature", "true"),
        ("include.path", included.to_str().unwrap()),
        ("extensions.worktreeConfig", "true"),
        ("status.submoduleSummary", "true"),
    ] {
        sandbox.git(&dir, &["config", key, value], &[]);
    }
    sandbox.git(&dir, &["config", "--worktree", "filter.wt.clean", evil], &[]);
    for hook in ["post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction"] {
        let path = dir.join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(evil, path).unwrap();
    }
    for name in ["src/a.ts", "b.txt", "c.md"] {
        sandbox.write(&dir.join(name), "changed\n");
    }
    let env = sandbox.env();
    let store = Store::new(&env);
    let head = git::head(&env, &dir.join("src"), PATIENT).unwrap();
    assert_eq!(scan_tree(&env, &dir, PATIENT).unwrap().dirty, Some(3));
    assert_eq!(git::dirty_files(&env, &dir, PATIENT).unwrap().len(), 3);
    assert_eq!(git::last_commit(&env, &head, PATIENT).unwrap().subject, "attributes");
    git::commit_files(&head);
    git::recent_files(&env, &dir, env.now_ms - 86_400_000, &[], PATIENT);
    git::ask_anew(&env, store, &dir);
    let mut later = env.clone();
    later.now_ms += 10;
    git::refresh(&later, store, &dir);
    assert!(!canary.exists(), "{}", sandbox.read(&canary));
    // The trap does work: an unguarded git steps into it.
    sandbox.git(&dir, &["status", "--porcelain"], &[]);
    assert!(canary.exists());
}

#[test]
fn a_filter_that_cannot_be_emptied_keeps_git_from_being_started() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let config = dir.join(".git/config");
    let with_filter = sandbox.read(&config) + "[filter \"a=b\"]\n\tclean = /bin/false\n";
    sandbox.write(&config, with_filter);
    assert_eq!(git::dirty_files(&sandbox.env(), &dir, PATIENT), None);
}

#[test]
fn a_git_in_the_working_folder_is_not_found() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    executable(&sandbox, &dir.join("git"), "#!/bin/sh\ntouch ran\n");
    let env = sandbox.env().with_var("PATH", ".:");
    assert_eq!(git::dirty_files(&env, &dir, PATIENT), None);
    assert!(!dir.join("ran").exists());
}

#[test]
fn a_git_that_hangs_costs_its_deadline_and_is_killed() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let env = sandbox.env();
    sandbox.write(&dir.join("new"), "n");
    assert_eq!(scan_tree(&env, &dir, PATIENT).unwrap().dirty, Some(1));
    let pid = sandbox.root().join("pid");
    let mut env = shim(&sandbox, &format!("#!/bin/sh\necho $$ > '{}'\nexec sleep 25\n", pid.display()));
    env.now_ms += 31_000;
    let begun = Instant::now();
    let tree = scan_tree(&env, &dir, Duration::from_millis(400)).unwrap();
    assert_eq!(tree.dirty, Some(1), "the stored answer");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let gone = |pid: &Path| !Path::new("/proc").join(sandbox.read(pid).trim()).exists();
    assert!(gone(&pid) || !Path::new("/proc/self").exists());
}

#[test]
fn a_refresh_is_given_up_when_a_new_session_asks_anew() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let started = sandbox.root().join("started");
    let env = shim(&sandbox, &format!("#!/bin/sh\ntouch '{}'\nexec sleep 25\n", started.display()));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let refresh = scope.spawn(|| git::refresh(&env, Store::new(&env), &dir));
        while !started.exists() && begun.elapsed() < PATIENT {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut later = env.clone();
        later.now_ms += 10;
        // A second refresh of the same work tree leaves at once.
        git::refresh(&later, Store::new(&later), &dir);
        git::ask_anew(&later, Store::new(&later), &dir);
        refresh.join().unwrap();
    });
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[test]
fn a_slow_scan_is_left_to_the_detached_process() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    let real = si::process::find(&sandbox.env(), "git").unwrap();
    let env = shim(&sandbox, &format!("#!/bin/sh\nsleep 0.3\nexec '{}' \"$@\"\n", real.display()));
    let path = env.var("PATH").unwrap().to_string();
    sandbox.write(&dir.join("new"), "n");
    assert_eq!(scan_tree(&env, &dir, Duration::from_millis(50)), None);
    let output = sandbox.si(["refresh", "git", dir.to_str().unwrap()]).var("PATH", &path).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output}");
    let tree = scan_tree(&env, &dir, Duration::from_millis(50)).unwrap();
    assert_eq!(tree.dirty, Some(1));
    assert!(record(&sandbox)["took"].as_u64().unwrap() >= 300);
}

#[test]
fn a_diff_that_does_not_come_does_not_take_the_count_with_it() {
    let sandbox = Sandbox::new();
    let dir = repo(&sandbox);
    sandbox.write(&dir.join("b.txt"), "changed");
    let real = si::process::find(&sandbox.env(), "git").unwrap();
    let script = format!("#!/bin/sh\ncase \"$*\" in *' diff '*) exit 1 ;; esac\nexec '{}' \"$@\"\n", real.display());
    let env = shim(&sandbox, &script);
    let path = env.var("PATH").unwrap().to_string();
    for _ in 0..2 {
        let tree = scan_tree(&env, &dir, PATIENT).unwrap();
        assert_eq!((tree.dirty, tree.added), (Some(1), None));
        sandbox.si(["refresh", "git", dir.to_str().unwrap()]).var("PATH", &path).run();
    }
    assert_eq!((record(&sandbox)["dirty"].as_u64(), record(&sandbox)["added"].as_u64()), (Some(1), None));
}

#[test]
fn history_tells_commits_and_their_files() {
    let sandbox = Sandbox::new();
    let spec = json!({"commits": [
        {"files": {"old.ts": "1\n2\n3\n4\n"}, "message": "one", "age_s": 200_000},
        {"files": {"old.ts": null, "src/ф.ts": "1\n2\n3\n4\n", "gone.md": "x"}, "message": "move\nit\n\nbody", "age_s": 5000},
        {"files": {"gone.md": null, "b": "1"}, "message": "third", "age_s": 4000},
    ]});
    let ids = sandbox.repo(&sandbox.cwd, &spec);
    let env = sandbox.env();
    let head = git::head(&env, &sandbox.cwd, PATIENT).unwrap();
    let last = git::last_commit(&env, &head, PATIENT).unwrap();
    assert_eq!((last.id.as_str(), last.subject.as_str()), (ids[2].as_str(), "third"));
    assert_eq!(git::commit_files(&head), ["b", "gone.md"]);
    let commits: Vec<_> =
        git::commits_since(&head, env.now_ms - 10_000_000, 5).into_iter().map(|c| c.subject).collect();
    assert_eq!(commits, ["third", "move it"]);
    let recent = |within: &[&str]| {
        let within: Vec<String> = within.iter().map(ToString::to_string).collect();
        git::recent_files(&env, &sandbox.cwd, env.now_ms - 7_200_000, &within, PATIENT)
    };
    assert_eq!(recent(&["SRC", "b*"]), ["src/ф.ts"]);
    assert_eq!(recent(&[]), ["b", "gone.md", "src/ф.ts"]);
    // The subject is stored, so that the next redraw need not open the repository.
    std::fs::remove_dir_all(sandbox.cwd.join(".git/objects")).unwrap();
    std::fs::create_dir(sandbox.cwd.join(".git/objects")).unwrap();
    let head = git::head(&env, &sandbox.cwd, PATIENT).unwrap();
    assert_eq!(git::last_commit(&env, &head, PATIENT).unwrap().subject, "third");
}
