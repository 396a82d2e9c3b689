//! Starting `git` so that it answers or is killed, writes nothing into the repository, and runs nothing that the
//! repository names: no fsmonitor, no hook, no filter, no external diff, no textconv, no pager, no fetch.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::head::{Place, is_id};
use crate::env::Env;
use crate::process::{self, Limits};
use crate::store::file;

/// The largest config file of a repository that is read; with a larger one git is not started.
pub(super) const MAX_CONFIG: u64 = 1 << 20;
/// The most that is read of an answer; a longer one counts as none, since a part of it would give wrong numbers.
const MAX_OUTPUT: usize = 4 << 20;

/// Variables by which git could be led to another repository, and a program of its own for diffs.
const UNSET: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
];

/// A `git` that may be asked about one work tree until its deadline.
pub(super) struct Git<'a> {
    env: &'a Env,
    program: OsString,
    args: Vec<OsString>,
    deadline: Instant,
    give_up: &'a dyn Fn() -> bool,
}

impl<'a> Git<'a> {
    /// Prepares to ask; none when there is no git, or when it could not be kept from running what the repository names.
    pub(super) fn new(env: &'a Env, place: &Place, budget: Duration, give_up: &'a dyn Fn() -> bool) -> Option<Git<'a>> {
        let deadline = Instant::now() + budget;
        let mut git =
            Git { env, program: process::find(env, "git")?.into(), args: base_args(&place.root), deadline, give_up };
        for name in git.filters(place)? {
            for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                let mut setting = OsString::from("filter.");
                setting.push(&name);
                setting.push(format!(".{key}={value}"));
                git.args.extend(["-c".into(), setting]);
            }
        }
        Some(git)
    }

    /// The answer to one command; none when git failed, was late, or said more than can be used.
    pub(super) fn ask(&self, args: &[&str]) -> Option<Vec<u8>> {
        let words: Vec<OsString> = self.args.iter().cloned().chain(args.iter().map(OsString::from)).collect();
        let set = [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // A partial clone would fetch what it lacks, by way of programs that its config names.
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
        ];
        let set = set.map(|(key, value)| (key, OsStr::new(value)));
        let deadline = self.deadline.saturating_duration_since(Instant::now());
        let limits = Limits { set: &set, unset: UNSET, max_output: MAX_OUTPUT, deadline, ..Limits::default() };
        let outcome = process::run_unless(self.env, &self.program, &words, &limits, self.give_up).ok()?;
        (outcome.code == Some(0) && outcome.stdout.len() < MAX_OUTPUT).then_some(outcome.stdout)
    }

    /// Names of all filters that the repository's own config mentions; none when they cannot be told.
    fn filters(&self, place: &Place) -> Option<Vec<OsString>> {
        let mut names = Vec::new();
        for path in [place.common_dir.join("config"), place.git_dir.join("config.worktree")] {
            let bytes = match file::open_user(&path) {
                Ok(None) => continue,
                _ => file::read_user(&path, MAX_CONFIG).ok()??,
            };
            if !headers(&bytes, &mut names) {
                names = self.included_filters()?;
                break;
            }
        }
        names.sort();
        names.dedup();
        // git splits `-c key=value` at the first `=`; a name with one in it could not be emptied.
        let plain = |name: &Vec<u8>| !name.iter().any(|byte| matches!(byte, b'=' | b'\n' | 0));
        names.iter().all(plain).then(|| names.into_iter().map(OsString::from_vec).collect())
    }

    /// The same from git itself, for a config that includes other files.
    fn included_filters(&self) -> Option<Vec<Vec<u8>>> {
        // Without a match git exits 1, so a setting that is always there is asked for too.
        let pattern = "^filter\\.|^core\\.repositoryformatversion$";
        let answer =
            self.ask(&["config", "--show-scope", "--includes", "-z", "--name-only", "--get-regexp", pattern])?;
        let mut fields = answer.split(|byte| *byte == 0);
        let mut names = Vec::new();
        while let (Some(scope), Some(key)) = (fields.next(), fields.next()) {
            if matches!(scope, b"local" | b"worktree")
                && let Some(rest) = key.strip_prefix(b"filter.")
                && let Some(dot) = rest.iter().rposition(|byte| *byte == b'.')
            {
                names.push(rest[..dot].to_vec());
            }
        }
        Some(names)
    }
}

/// A path from the top of the work tree as git takes it: no pattern, in upper or lower case.
pub(super) fn pathspec(path: &str) -> String {
    format!(":(top,literal,icase){path}")
}

fn base_args(root: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--no-optional-locks".into(), "--no-pager".into(), "-C".into(), root.into()];
    for setting in
        ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "log.showSignature=false"]
    {
        args.extend(["-c".into(), setting.into()]);
    }
    args
}

/// Collects the names of `[filter "name"]` headers, wherever a bracket could open one: one name too many does no harm.
/// False when the config includes other files.
fn headers(config: &[u8], names: &mut Vec<Vec<u8>>) -> bool {
    let mut complete = true;
    for at in memchr::memchr_iter(b'[', config) {
        let rest = config[at + 1..].trim_ascii_start();
        let end = rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.')));
        let section = rest[..end.unwrap_or(rest.len())].to_ascii_lowercase();
        if section.starts_with(b"include") {
            complete = false;
        } else if let Some(name) = section.strip_prefix(b"filter.") {
            names.push(name.to_vec());
        } else if section == b"filter"
            && let Some(quoted) = rest[section.len()..].trim_ascii_start().strip_prefix(b"\"")
        {
            names.push(unquote(quoted));
        }
    }
    complete
}

/// The text up to the closing quote, `\x` standing for `x`.
fn unquote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' | b'\n' => break,
            b'\\' => out.extend(bytes.next()),
            other => out.push(*other),
        }
    }
    out
}

/// HEAD as git tells it: the full name of the branch and the commit, each if there is one. For repositories whose refs
/// are not files.
pub(super) fn head(env: &Env, root: &Path, deadline: Duration) -> Option<(Option<String>, Option<String>)> {
    let never = || false;
    let git = Git {
        env,
        program: process::find(env, "git")?.into(),
        args: base_args(root),
        deadline: Instant::now() + deadline,
        give_up: &never,
    };
    let line = |answer: Option<Vec<u8>>| answer.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_string());
    let name = line(git.ask(&["symbolic-ref", "-q", "HEAD"]));
    let id = line(git.ask(&["rev-parse", "-q", "--verify", "HEAD"])).filter(|id| is_id(id));
    // Past the deadline a missing answer says nothing: an unborn branch has no commit, a late git only has not told it.
    let in_time = Instant::now() < git.deadline;
    (in_time && (name.is_some() || id.is_some())).then_some((name, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_filter_is_seen() {
        let config = br#"
[core]
	bare = false
[filter "lfs"] clean = git-lfs clean
[ Filter	"a \"b\" \\c"]
[filter.Old]
	x = "[filter \"in a value\"]"
; [filter "commented"]
[filterx "no"]
"#;
        let mut names = Vec::new();
        assert!(headers(config, &mut names));
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, ["lfs", "a \"b\" \\c", "old", "commented"].map(String::from));
        assert!(!headers(b"[includeIf \"gitdir:x\"]\npath = y", &mut Vec::new()));
    }
}
