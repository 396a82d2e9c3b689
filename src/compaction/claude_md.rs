//! The managed block in a project's CLAUDE.md: rules for the model between two marker lines. What is between them is
//! ours and is renewed with each version; what is outside is the user's and never changes by a byte.
//!
//! A marker counts only where it is alone on its line and outside of a fenced code block. The file may have any line
//! ends, no last one, a byte order mark or bytes that are no text.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::env::Env;
use crate::git::{self, DirtyFile, Head};
use crate::store::{StateFile, Store};
use crate::watch::root_dir;

const BEGIN: &str = "<!-- BEGIN session-intelligence:rules -->";
const END: &str = "<!-- END session-intelligence:rules -->";
const RULES: &str = include_str!("../../templates/claude-md-rules.md");
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What [`inject`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Injected {
    /// The file was created.
    Created(PathBuf),
    /// The block was added to a file that was there.
    Added(PathBuf),
    /// The block was renewed or mended.
    Renewed(PathBuf),
    /// Nothing was to be done.
    Unchanged,
}

/// Puts the block into the CLAUDE.md of the project at `root`, or renews it there.
pub fn inject(store: Store<'_>, root: &Path) -> Result<Injected> {
    let state = StateFile::ClaudeMd(root);
    let Some(path) = store.path(state) else { return Ok(Injected::Unchanged) };
    check_target(&path, root)?;
    let existed = path.symlink_metadata().is_ok();
    let look = || match store.read(state) {
        Some(bytes) if is_wide(&bytes) => {
            bail!("{} is UTF-16 or no text; saved as UTF-8, it gets the session rules", path.display())
        }
        Some(bytes) => Ok(bytes),
        None if path.metadata().is_ok() => bail!("{} is not a regular file of sane size", path.display()),
        None => Ok(Vec::new()),
    };
    // Nearly always there is nothing to do, and then no lock is taken.
    if merge(&look()?).is_none() {
        return Ok(Injected::Unchanged);
    }
    let guard = store.lock(state)?;
    let before = look()?;
    let Some(after) = merge(&before) else { return Ok(Injected::Unchanged) };
    guard.write(state, &after)?;
    let had_block = lines(&before).any(|(_, line)| is_marker(line, BEGIN));
    Ok(match (existed, had_block) {
        (false, _) => Injected::Created(path),
        (true, false) => Injected::Added(path),
        (true, true) => Injected::Renewed(path),
    })
}

/// Takes the block out of the CLAUDE.md of the project at `root`; a file that then holds nothing is removed. Says whether
/// there was one.
pub fn withdraw(store: Store<'_>, root: &Path) -> Result<bool> {
    let state = StateFile::ClaudeMd(root);
    let has_block = || store.read(state).is_some_and(|bytes| strip(&bytes).is_some());
    let Some(path) = store.path(state).filter(|_| has_block()) else { return Ok(false) };
    check_target(&path, root)?;
    let guard = store.lock(state)?;
    let Some(after) = store.read(state).and_then(|before| strip(&before)) else { return Ok(false) };
    if after.trim_ascii().is_empty() && path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        guard.remove(state)?;
    } else {
        guard.write(state, &after)?;
    }
    Ok(true)
}

/// The folder whose CLAUDE.md is the project's: the nearest one upwards with `.git`, else with another project marker;
/// never the home folder, and nothing at or above it.
pub fn project_folder(env: &Env, anchor: &Path) -> Option<PathBuf> {
    let home = env.home.as_deref();
    let is_home = |folder: &Path| {
        home.is_some_and(|home| folder == home || folder.canonicalize().ok() == home.canonicalize().ok())
    };
    let below: Vec<&Path> =
        anchor.ancestors().take_while(|folder| folder.parent().is_some() && !is_home(folder)).collect();
    let with_git = below.iter().find(|folder| folder.join(".git").exists());
    let with_marker = || below.iter().find(|folder| root_dir::is_project(folder));
    with_git.or_else(with_marker).map(|folder| folder.to_path_buf())
}

/// Refuses a file that is somebody else's, and a link that leads out of the project to anything but Markdown: whoever
/// made the repository would choose what is written to.
fn check_target(path: &Path, root: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let own = |path: &Path| path.metadata().is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
    if !own(root) {
        bail!("{} belongs to another user", root.display());
    }
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let Ok(target) = path.canonicalize() else { bail!("{} is a link that leads nowhere", path.display()) };
    let inside = root.canonicalize().is_ok_and(|root| target.starts_with(root));
    let markdown = target.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    if !own(&target) || !(inside || markdown) {
        bail!("{} leads to {}, which is left alone", path.display(), target.display());
    }
    Ok(())
}

/// Whether a changed file of the work tree is a CLAUDE.md in which nothing but our block is new: nobody's work.
pub fn is_our_change(store: Store<'_>, head: &Head, file: &DirtyFile) -> bool {
    let path = Path::new(&file.path);
    let folder = path.parent().filter(|_| path.file_name().is_some_and(|name| name == "CLAUDE.md"));
    let content = folder.and_then(|folder| store.read(StateFile::ClaudeMd(&head.root.join(folder))));
    let Some(rest) = content.and_then(|content| strip(&content)) else { return false };
    match git::committed(head, &file.path) {
        Some(before) => strip(&before).unwrap_or(before) == rest,
        None => rest.trim_ascii().is_empty(),
    }
}

/// Whether the bytes are UTF-16 text, or none at all: a line of ours in between would make it unreadable.
fn is_wide(content: &[u8]) -> bool {
    content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff") || content.contains(&0)
}

/// The content with exactly one block in it, up to date; none when it is so already.
pub fn merge(content: &[u8]) -> Option<Vec<u8>> {
    let (bom, content) = match content.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => (&[][..], content),
    };
    let line_end = match content.iter().position(|byte| *byte == b'\n') {
        Some(at) if content[..at].ends_with(b"\r") => "\r\n",
        // Whatever is put behind it makes it the first line end.
        None if content.ends_with(b"\r") => "\r\n",
        _ => "\n",
    };
    let block = block(line_end);
    let found = blocks(content);
    let mut out = bom.to_vec();
    let mut kept = 0;
    for (i, (from, to)) in found.iter().enumerate() {
        out.extend_from_slice(&content[kept..*from]);
        // A second block is one too many: it goes, with what it holds.
        if i == 0 {
            out.extend_from_slice(block.as_bytes());
            if *to < content.len() || content[*from..*to].ends_with(b"\n") {
                out.extend_from_slice(line_end.as_bytes());
            }
        }
        kept = *to;
    }
    out.extend_from_slice(&content[kept..]);
    if found.is_empty() {
        // One line end always: an empty line where the last line is whole, else what it lacks. `strip` takes it away.
        if !content.is_empty() {
            out.extend_from_slice(line_end.as_bytes());
        }
        out.extend_from_slice(block.as_bytes());
        out.extend_from_slice(line_end.as_bytes());
    }
    (out[bom.len()..] != *content).then_some(out)
}

/// The content without our blocks, and without the line end that was put before one at the end; none when there is no
/// block in it.
pub fn strip(content: &[u8]) -> Option<Vec<u8>> {
    let (bom, content) = match content.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => (&[][..], content),
    };
    let found = blocks(content);
    let (last, _) = *found.last()?;
    let mut out = bom.to_vec();
    let mut kept = 0;
    for (from, to) in found {
        out.extend_from_slice(&content[kept..from]);
        kept = to;
    }
    out.extend_from_slice(&content[kept..]);
    if kept == content.len() {
        let opening = content[last..].split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let gap = if opening.ends_with(b"\r\n") { &b"\r\n"[..] } else { b"\n" };
        if out.ends_with(gap) {
            out.truncate(out.len() - gap.len());
        }
    }
    Some(out)
}

/// The block without a line end after it.
fn block(line_end: &str) -> String {
    [BEGIN].into_iter().chain(RULES.trim_end().lines()).chain([END]).collect::<Vec<_>>().join(line_end)
}

/// Where our blocks are: from the first byte of the opening line to past the line end of the closing one. Of a block
/// whose end is missing, as much counts as is word for word what we write.
///
/// What is in a block decides nothing about what is behind it, so that a block which is renewed leaves all others where
/// they were.
fn blocks(content: &[u8]) -> Vec<(usize, usize)> {
    let lines: Vec<(usize, &[u8])> = lines(content).collect();
    let end = |line: usize| lines.get(line).map_or(content.len(), |(start, _)| *start);
    let fences = Fences::new(&lines);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, line)) = lines.get(at) {
        if !is_marker(line, BEGIN) {
            at = fences.closed_behind(&lines, at).unwrap_or(at + 1);
            continue;
        }
        let next = lines[at + 1..].iter().position(|(_, line)| is_marker(line, BEGIN) || is_marker(line, END));
        at = match next.map(|ahead| at + 1 + ahead) {
            Some(closing) if is_marker(lines[closing].1, END) => closing + 1,
            _ => at + 1 + as_written(&lines[at + 1..]),
        };
        found.push((*start, end(at)));
    }
    found
}

/// How many lines are, one after the other, as we write them.
fn as_written(lines: &[(usize, &[u8])]) -> usize {
    let ours = lines.iter().zip(RULES.trim_end().lines());
    ours.take_while(|((_, line), expected)| trim_line_end(line) == expected.as_bytes()).count()
}

/// Fenced code blocks, whose lines are no markers. A fence that is never closed is none: taking it at its word would hide
/// our own block behind it for ever.
struct Fences {
    /// For each line, the longest fence of backticks and of tildes that could close one, on it or behind it.
    ahead: Vec<[usize; 2]>,
}

/// A line that starts with three of a fence's characters or more.
struct Fence {
    tilde: bool,
    length: usize,
    /// Whether nothing else is on the line, so that it may close a fence.
    bare: bool,
}

impl Fence {
    fn of(line: &[u8]) -> Option<Fence> {
        let line = line.trim_ascii();
        let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = line.iter().take_while(|byte| **byte == mark).count();
        // Three backticks with more behind on the line are code in the line, not a fence.
        let inline = mark == b'`' && line[length..].contains(&b'`');
        (length >= 3 && !inline).then_some(Fence { tilde: mark == b'~', length, bare: length == line.len() })
    }
}

impl Fences {
    fn new(lines: &[(usize, &[u8])]) -> Fences {
        let mut ahead = vec![[0; 2]; lines.len() + 1];
        for (at, (_, line)) in lines.iter().enumerate().rev() {
            ahead[at] = ahead[at + 1];
            if let Some(fence) = Fence::of(line).filter(|fence| fence.bare) {
                let longest = &mut ahead[at][usize::from(fence.tilde)];
                *longest = fence.length.max(*longest);
            }
        }
        Fences { ahead }
    }

    /// The line behind the fenced block that begins at `at`; none where none begins.
    fn closed_behind(&self, lines: &[(usize, &[u8])], at: usize) -> Option<usize> {
        let open = Fence::of(lines[at].1)?;
        if self.ahead[at + 1][usize::from(open.tilde)] < open.length {
            return None;
        }
        let closes = |fence: Fence| fence.bare && fence.tilde == open.tilde && fence.length >= open.length;
        let ahead = lines[at + 1..].iter().position(|(_, line)| Fence::of(line).is_some_and(closes))?;
        Some(at + 1 + ahead + 1)
    }
}

fn is_marker(line: &[u8], marker: &str) -> bool {
    line.trim_ascii() == marker.as_bytes()
}

fn trim_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Lines with their ends, and where they start.
fn lines(content: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    content.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_can_be_taken_out_again() {
        for content in ["x\n", "x", "# Top\n\ntext\n", "\u{feff}x\r\ny\r\n", "a\r\nb\n", "a\nb\r", "", "\n"] {
            let with = merge(content.as_bytes()).unwrap();
            assert_eq!(strip(&with).as_deref(), Some(content.as_bytes()), "{content:?}");
            assert_eq!(strip(content.as_bytes()), None);
        }
        let middle = format!("a\n{}\nb\n", block("\n"));
        assert_eq!(strip(middle.as_bytes()).as_deref(), Some(&b"a\nb\n"[..]));
    }

    fn merged(content: &str) -> String {
        let after =
            merge(content.as_bytes()).map_or_else(|| content.to_string(), |out| String::from_utf8(out).unwrap());
        assert_eq!(merge(after.as_bytes()), None, "a second time changes nothing: {after}");
        after
    }

    fn shown(content: &str) -> String {
        merged(content).replace(&block("\n"), "[BLOCK]").replace(&block("\r\n"), "[BLOCK]")
    }

    #[test]
    fn what_is_outside_the_block_stays_byte_for_byte() {
        let old = format!("{BEGIN}\nold rules\n{END}");
        for (content, want) in [
            (String::new(), "[BLOCK]\n"),
            ("x\n".into(), "x\n\n[BLOCK]\n"),
            ("x".into(), "x\n[BLOCK]\n"),
            (format!("# Top\n{old}\n# Bottom $& $1\n"), "# Top\n[BLOCK]\n# Bottom $& $1\n"),
            (format!("a\n  {old}"), "a\n[BLOCK]"),
            (format!("a\r\n{old}\r\nb\r\n").replace("\nold", "\r\nold"), "a\r\n[BLOCK]\r\nb\r\n"),
            (format!("Docs: between `{BEGIN}` and `{END}`.\r\n"), ""),
            (format!("{old}\n\n{old}\ntail\n"), "[BLOCK]\n\ntail\n"),
            (format!("```\n{old}\n```\n"), ""),
            (format!("~~~md\n```\n{old}\n~~~\n"), ""),
            (format!("never closed:\n```\n{old}\n"), "never closed:\n```\n[BLOCK]\n"),
            (format!("{BEGIN}\nbroken\n```\n{old}\n```\n"), &format!("[BLOCK]\nbroken\n```\n{old}\n```\n")),
            (format!("{END}\nx\n{BEGIN}\n"), &format!("{END}\nx\n[BLOCK]\n")),
            (format!("{BEGIN}\nbroken\n"), "[BLOCK]\nbroken\n"),
            (format!("{BEGIN}\n{BEGIN}\nold\n{END}\n"), "[BLOCK]\n"),
            (format!("{BEGIN}\n{RULES}mine\n"), "[BLOCK]\nmine\n"),
        ] {
            let kept = format!("{content}\r\n[BLOCK]\r\n");
            let kept_lf = format!("{content}\n[BLOCK]\n");
            let shown = shown(&content);
            let ok = if want.is_empty() { shown == kept || shown == kept_lf } else { shown == want };
            assert!(ok, "{content:?} became {shown:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_and_a_byte_order_mark_stay() {
        let after = merge(b"\xef\xbb\xbfa\xff\xfe\nb\n").unwrap();
        assert!(after.starts_with(b"\xef\xbb\xbfa\xff\xfe\nb\n\n<!-- BEGIN"));
        assert_eq!(merge(&after), None);
    }

    #[test]
    fn a_block_with_other_line_ends_is_up_to_date() {
        let windows = merged("a\r\n");
        assert!(!windows.replace("\r\n", "").contains('\n'));
    }

    #[test]
    fn the_file_goes_to_the_repository_and_never_to_the_home_folder() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_tests(dir.path());
        let home = env.home.clone().unwrap();
        let deep = home.join("repo/pkg/src");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(project_folder(&env, &deep), None);
        std::fs::create_dir(home.join(".git")).unwrap();
        assert_eq!(project_folder(&env, &deep), None, "a home folder under version control");
        assert_eq!(project_folder(&env, &home), None);
        std::fs::File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(home.join("repo/pkg/Cargo.toml"))
            .unwrap();
        assert_eq!(project_folder(&env, &deep), Some(home.join("repo/pkg")));
        std::fs::create_dir(home.join("repo/.git")).unwrap();
        assert_eq!(project_folder(&env, &deep), Some(home.join("repo")));
    }
}
