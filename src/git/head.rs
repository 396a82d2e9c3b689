//! Where a work tree stands, from the files of its repository.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{command, history};
use crate::env::Env;
use crate::store::file;

/// What HEAD names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A branch with at least one commit.
    Branch,
    /// No branch, but a commit that a tag names.
    Tag,
    /// No branch and no tag: a commit.
    Detached,
    /// A branch without a commit.
    Unborn,
}

/// Where a work tree stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Branch, tag or short commit id. It comes from outside: sanitise it before it is shown.
    pub name: String,
    /// What `name` is.
    pub kind: Kind,
    /// Full id of the commit; none on an unborn branch.
    pub id: Option<String>,
    /// The top folder of the work tree.
    pub root: PathBuf,
    /// The repository's folder for this work tree (`.git`, or what a `.git` file names).
    pub git_dir: PathBuf,
    /// The repository's folder that all its work trees share.
    pub common_dir: PathBuf,
}

/// HEAD of the work tree that `dir` is in; none outside of one, in a bare repository, or where the repository belongs to
/// another user. Reads a handful of small files; only a detached HEAD that was not seen before, or not with the tags
/// there are, opens the repository, to look for one.
///
/// A repository that does not answer within `deadline` has no tag, and no HEAD where only git can read it.
pub fn head(env: &Env, dir: &Path, deadline: Duration) -> Option<Head> {
    let Place { root, git_dir, common_dir } = Place::of(env, dir)?;
    let text = read_line(&git_dir.join("HEAD"))?;
    let (mut name, id) = match text.strip_prefix("ref:") {
        // HEAD of a repository that keeps its refs in tables holds a dummy.
        Some(full) if full.trim() == "refs/heads/.invalid" => command::head(env, &root, deadline)?,
        Some(full) => (Some(full.trim().to_string()), resolve(&git_dir, &common_dir, full.trim(), 0)),
        None => (None, Some(text)),
    };
    if id.as_deref().is_some_and(|id| !is_id(id)) {
        return None;
    }
    let kind = if name.is_some() { Kind::Branch } else { Kind::Detached };
    let mut head = Head { name: String::new(), kind, id, root, git_dir, common_dir };
    (head.name, head.kind) = match (name.take(), &head.id) {
        (Some(full), id) => {
            let short = full.strip_prefix("refs/heads/").or_else(|| full.strip_prefix("refs/")).unwrap_or(&full);
            (short.to_string(), if id.is_some() { Kind::Branch } else { Kind::Unborn })
        }
        (None, Some(id)) => match history::tag(env, &head, deadline) {
            Some(tag) => (tag, Kind::Tag),
            None => (id[..7].to_string(), Kind::Detached),
        },
        (None, None) => return None,
    };
    Some(head)
}

/// The folders of a work tree and its repository.
pub(super) struct Place {
    pub(super) root: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
}

impl Place {
    /// Looks upwards from `dir` as git does: to the next file system and to `GIT_CEILING_DIRECTORIES`, no further.
    pub(super) fn of(env: &Env, dir: &Path) -> Option<Place> {
        let start = dir.canonicalize().ok()?;
        let device = start.metadata().ok()?.dev();
        let ceilings: Vec<PathBuf> =
            env.var("GIT_CEILING_DIRECTORIES").map(|list| std::env::split_paths(list).collect()).unwrap_or_default();
        for folder in start.ancestors() {
            let below = folder != start;
            if below && (ceilings.iter().any(|ceiling| ceiling == folder) || folder.metadata().ok()?.dev() != device) {
                return None;
            }
            let dot_git = folder.join(".git");
            match dot_git.metadata() {
                Ok(meta) if meta.is_dir() && is_repository(&dot_git) => return Place::new(folder, dot_git),
                Ok(meta) if meta.is_file() => {
                    let text = read_line(&dot_git)?;
                    let target = folder.join(text.strip_prefix("gitdir:")?.trim());
                    // A .git file that leads nowhere ends the search, as in git.
                    return is_repository(&target).then(|| Place::new(folder, target)).flatten();
                }
                _ if is_repository(folder) => return None, // inside of a bare repository, or of a .git folder
                _ => {}
            }
        }
        None
    }

    fn new(root: &Path, git_dir: PathBuf) -> Option<Place> {
        let common_dir = match read_line(&git_dir.join("commondir")) {
            Some(path) => git_dir.join(path),
            None => git_dir.clone(),
        };
        let mine = |path: &Path| path.metadata().is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
        let owned = [root, &root.join(".git"), &git_dir, &common_dir].into_iter().all(mine);
        // A linked work tree of a bare repository is none itself.
        let bare = git_dir == common_dir && is_bare(&common_dir);
        (owned && !bare).then(|| Place { root: root.to_path_buf(), git_dir, common_dir })
    }
}

fn is_repository(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok()
        && (dir.join("commondir").is_file() || (dir.join("objects").is_dir() && dir.join("refs").is_dir()))
}

/// Whether the repository's config says `core.bare = true`.
fn is_bare(common_dir: &Path) -> bool {
    let Ok(Some(bytes)) = file::read_user(&common_dir.join("config"), command::MAX_CONFIG) else { return false };
    let mut in_core = false;
    let mut bare = false;
    for line in String::from_utf8_lossy(&bytes).lines() {
        let line = line.trim().to_ascii_lowercase();
        if line.starts_with('[') {
            in_core = line.starts_with("[core]");
        }
        let setting = line.rsplit(']').next().unwrap_or("");
        if in_core && let Some(rest) = setting.trim().strip_prefix("bare") {
            match rest.trim().strip_prefix('=').map(|value| value.split(['#', ';']).next().unwrap_or("").trim()) {
                Some(value) => bare = matches!(value, "true" | "yes" | "on" | "1"),
                None => bare |= rest.trim().is_empty(), // a key alone is true
            }
        }
    }
    bare
}

/// The commit that a ref names; none when it does not exist. Names of names are followed a few steps.
fn resolve(git_dir: &Path, common_dir: &Path, name: &str, depth: usize) -> Option<String> {
    if depth > 5 || Path::new(name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        return None;
    }
    let own = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|prefix| name.starts_with(prefix));
    let base = if own || !name.starts_with("refs/") { git_dir } else { common_dir };
    match read_line(&base.join(name)) {
        Some(text) => match text.strip_prefix("ref:") {
            Some(next) => resolve(git_dir, common_dir, next.trim(), depth + 1),
            None => is_id(&text).then_some(text),
        },
        None => packed(common_dir, name),
    }
}

/// Looks a ref up in `packed-refs`, line by line: it may hold hundreds of thousands.
fn packed(common_dir: &Path, name: &str) -> Option<String> {
    let mut reader = BufReader::with_capacity(64 << 10, file::open_user(&common_dir.join("packed-refs")).ok()??);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_ascii_end();
        if let Some(id) = line.strip_suffix(name.as_bytes()).and_then(|rest| rest.strip_suffix(b" ")) {
            return String::from_utf8(id.to_vec()).ok().filter(|id| is_id(id));
        }
    }
}

/// The text of a small file without its line end; none when it cannot be read.
fn read_line(path: &Path) -> Option<String> {
    let bytes = file::read_user(path, 64 << 10).ok()??;
    Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_string())
}

/// Whether a text is a full object id, SHA-1 or SHA-256.
pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name under which answers about a work tree are stored.
pub(super) fn key(root: &Path) -> String {
    crate::store::key::sha256_hex(OsStr::as_bytes(root.as_os_str()), 16)
}
