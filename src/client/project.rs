//! Which project folder of the client belongs to a session: `<config dir>/projects/<encoded path>`.

use std::path::{Component, Path, PathBuf};

use super::payload::Payload;
use crate::env::Env;

/// The longest encoded name that stands for a path by itself, in UTF-16 units.
const MAX: usize = 200;

/// A project folder of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Its name below `projects`.
    pub enc: String,
    /// Its path; it need not exist yet.
    pub dir: PathBuf,
}

impl Folder {
    /// Where the client's own memory lies: `MEMORY.md` and the notes that it names.
    pub fn memory(&self) -> PathBuf {
        self.dir.join("memory")
    }
}

/// The name that the client gives to the folder of a path: every UTF-16 unit outside `A-Za-z0-9` becomes `-`; past 200
/// units the rest is replaced by `-` and a hash of the whole path in base 36.
pub fn encode(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut name = String::with_capacity(text.len());
    let mut hash = 0i32;
    for unit in text.encode_utf16() {
        hash = hash.wrapping_mul(31).wrapping_add(i32::from(unit as i16) & 0xffff);
        let plain = u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric);
        name.push(plain.map_or('-', char::from));
    }
    if name.len() > MAX {
        name.truncate(MAX);
        name.push('-');
        name.push_str(&base36(hash.unsigned_abs()));
    }
    name
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// The session's project folder: the parent of the transcript if that lies directly below `projects`; else that of the
/// session anchor, of the payload's project folder, or of its working folder, in that order, or of its nearest ancestor
/// that has one. When none exists yet, the anchor's own, to be made. None without a configuration folder.
pub fn folder(env: &Env, payload: &Payload<'_>, anchor: Option<&Path>) -> Option<Folder> {
    if let Some(folder) = payload.transcript_path().and_then(|path| of_transcript(env, &path)) {
        return Some(folder);
    }
    let start = anchor.map(Path::to_path_buf).or_else(|| payload.start_dir());
    let start = start.unwrap_or_else(|| env.cwd.clone());
    existing(env, &start).or_else(|| named(env, encode(&start)))
}

/// The folder that a session began in, as far as the payload tells, else the one it is in now: a session that has moved
/// into a folder of its project still writes its transcript where it began. Another work tree below the project is a
/// place of its own.
pub fn start_dir(payload: &Payload<'_>) -> Option<PathBuf> {
    let now = payload.start_dir()?;
    let transcript = payload.transcript_path();
    let folder = transcript.as_deref().and_then(|path| path.parent()?.file_name()?.to_str());
    let began = folder.and_then(|folder| now.ancestors().position(|dir| encode(dir) == folder)).unwrap_or(0);
    let moved_out = now.ancestors().take(began).any(|dir| dir.join(".git").symlink_metadata().is_ok());
    now.ancestors().nth(if moved_out { 0 } else { began }).map(PathBuf::from)
}

/// The folder of a path, or of its nearest ancestor that has one; none when there is none.
pub fn existing(env: &Env, path: &Path) -> Option<Folder> {
    path.ancestors().filter_map(|ancestor| named(env, encode(ancestor))).find(|folder| folder.dir.is_dir())
}

fn named(env: &Env, enc: String) -> Option<Folder> {
    let dir = env.in_claude("projects")?.join(&enc);
    Some(Folder { enc, dir })
}

/// The folder that a transcript lies in, if it is a child of `projects` and its path takes no way round (`..`).
pub fn of_transcript(env: &Env, transcript: &Path) -> Option<Folder> {
    if transcript.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let projects = env.in_claude("projects")?;
    let dir = transcript.parent()?;
    let above = dir.parent()?;
    // The client may name the folder by another way to it than we do (a linked home).
    let same = above == projects || above.canonicalize().ok()? == projects.canonicalize().ok()?;
    let enc = dir.file_name()?.to_str()?.to_owned();
    same.then(|| named(env, enc))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_client() {
        let check = |path: &str, name: &str| assert_eq!(encode(Path::new(path)), name, "{path}");
        check("/w/my.proj_x y/ünï", "-w-my-proj-x-y--n-");
        check("/my.proj_x y/ünï😀+(1)", "-my-proj-x-y--n-----1-");
        check("/", "-");
        check(&format!("/{}", "a".repeat(250)), &format!("-{}-feo44x", "a".repeat(199)));
        check(&format!("/w/{}", "ü/".repeat(120)), &format!("-w-{}-7bupyn", "-".repeat(197)));
    }

    fn folder_of(env: &Env, payload: &str, anchor: Option<&str>) -> String {
        folder(env, &Payload::parse(payload).unwrap(), anchor.map(Path::new)).unwrap().enc
    }

    #[test]
    fn the_transcript_names_the_folder_only_from_below_projects() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let projects = env.in_claude("projects").unwrap();
        let at = |path: &str| {
            let path = format!("{}/{path}", projects.display());
            folder_of(&env, &format!(r#"{{"transcript_path":"{path}","cwd":"/w/p/src"}}"#), Some("/w/p"))
        };
        assert_eq!(at("-w-other/s.jsonl"), "-w-other");
        assert_eq!(at("-w-other/sub/s.jsonl"), "-w-p");
        assert_eq!(at("../projects/-w-other/s.jsonl"), "-w-p");
        assert_eq!(at("s.jsonl"), "-w-p");
        let linked = dir.path().join("linked");
        std::fs::create_dir_all(&projects).unwrap();
        std::os::unix::fs::symlink(projects.parent().unwrap(), &linked).unwrap();
        let path = linked.join("projects/-w-other/s.jsonl");
        assert_eq!(of_transcript(&env, &path).unwrap().dir, projects.join("-w-other"));
    }

    #[test]
    fn a_session_began_where_its_transcript_says_unless_it_moved_to_another_work_tree() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("my.app");
        std::fs::create_dir_all(root.join("web/src")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("trees/side/web/.git")).unwrap();
        let began = |folder: &str, cwd: &Path| {
            let payload = serde_json::json!({"transcript_path": format!("/c/projects/{folder}/s.jsonl"), "cwd": cwd});
            start_dir(&Payload::parse(&payload.to_string()).unwrap())
        };
        let enc = encode(&root);
        for cwd in [root.clone(), root.join("web"), root.join("web/src")] {
            assert_eq!(began(&enc, &cwd), Some(root.clone()));
            assert_eq!(began("-w-other", &cwd), Some(cwd));
        }
        let tree = root.join("trees/side/web");
        assert_eq!(began(&enc, &tree), Some(tree));
        assert_eq!(start_dir(&Payload::parse(r#"{"cwd": "/w/app"}"#).unwrap()), Some("/w/app".into()));
        assert_eq!(start_dir(&Payload::default()), None);
    }

    #[test]
    fn an_anchor_below_a_project_belongs_to_the_nearest_one_that_exists() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let projects = env.in_claude("projects").unwrap();
        for name in ["-srv-my-app", "-srv-my-app-pkg", "-srv-orchid"] {
            std::fs::create_dir_all(projects.join(name)).unwrap();
        }
        let find = |path: &str| existing(&env, Path::new(path)).map(|folder| folder.enc);
        assert_eq!(find("/srv/my_app/pkg/src").as_deref(), Some("-srv-my-app-pkg"));
        assert_eq!(find("/srv/my.app/src").as_deref(), Some("-srv-my-app"));
        assert_eq!(find("/srv/orchidea"), None);
        assert_eq!(folder_of(&env, "{}", Some("/srv/orchidea")), "-srv-orchidea");
        assert_eq!(folder_of(&env, r#"{"cwd":"/srv/orchid/x"}"#, None), "-srv-orchid");
        let drifted = r#"{"cwd":"/srv/orchid","workspace":{"project_dir":"/srv/my-app"}}"#;
        assert_eq!(folder_of(&env, drifted, None), "-srv-my-app");
    }
}
