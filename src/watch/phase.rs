//! Phase events: a tool call that committed, pushed, or moved a pull request along.

use memchr::memmem;

use crate::client::json::{Object, Raw};
use crate::client::payload::ToolResponse;

/// What a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A commit, a tag, a merge, a rebase that went on.
    Commit,
    /// A push.
    Push,
    /// A pull request made, approved, merged or closed.
    Pr,
}

/// How much of an output is looked at, in bytes from its start and from its end: git reports last.
const LOOKED_AT: usize = 64 << 10;

impl Phase {
    /// The name in the shape log.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Commit => "commit",
            Phase::Push => "push",
            Phase::Pr => "pr",
        }
    }
}

/// The phase event of a call: from its command, else from what the client says about it, else from its output.
///
/// Only a shell command can be one (`Bash`, as the client spells it, or `bash`).
pub fn of_call(tool: &str, input: Option<Raw<'_>>, response: Option<&ToolResponse<'_>>) -> Option<Phase> {
    if !matches!(tool, "Bash" | "bash") {
        return None;
    }
    let command = input.and_then(Raw::object).and_then(|input| input.str("command"));
    if let Some(phase) = command.as_deref().and_then(of_command) {
        return Some(phase);
    }
    let response = response?;
    if response.raw().text().starts_with('"') {
        return of_string(response.raw());
    }
    let Some(object) = response.object() else {
        // A list of content blocks, or anything else: its JSON text is searched as one line.
        return of_output(response.raw().text());
    };
    of_operation(object).or_else(|| ["stdout", "stderr"].iter().find_map(|stream| of_string(object.get(stream)?)))
}

/// From a JSON string; of a long one only the ends are read, cut at line ends.
fn of_string(raw: Raw<'_>) -> Option<Phase> {
    let inner = raw.text().strip_prefix('"')?.strip_suffix('"')?;
    if inner.len() <= 2 * LOOKED_AT {
        return of_output(&raw.str()?);
    }
    let bytes = inner.as_bytes();
    // A line end is written `\n`, unless the backslash is itself the second half of an escape.
    let is_line_end = |at: &usize| bytes[..*at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0;
    let tail_from = bytes.len() - LOOKED_AT;
    let tail = memmem::find_iter(&bytes[tail_from..], b"\\n").map(|at| tail_from + at).find(is_line_end);
    let head = memmem::rfind_iter(&bytes[..LOOKED_AT], b"\\n").find(is_line_end);
    let parts = [tail.map(|at| &inner[at + 2..]), head.map(|at| &inner[..at])];
    let parts = parts.into_iter().flatten().filter(|part| may_tell(part));
    parts.into_iter().find_map(|part| of_part(&Raw::new(&format!("\"{part}\"")).str()?))
}

/// Whether JSON text can hold a line that tells something: any such line has one of these signs, unless an escape with a
/// code hides it.
fn may_tell(text: &str) -> bool {
    let bytes = text.as_bytes();
    let tells = |line: &[u8]| matches!(line, [b'[', ..] | [b't' | b'T', b'o' | b'O', ..]);
    let escape_tells = |at: usize| match &bytes[at + 1..] {
        [b'n', line @ ..] => tells(line),
        escape => escape.first() == Some(&b'u'),
    };
    tells(bytes) || memmem::find(bytes, b"pull").is_some() || memchr::memchr_iter(b'\\', bytes).any(escape_tells)
}

/// From the `gitOperation` that the client adds to the results of git commands: an object with a key per thing done.
fn of_operation(response: &Object<'_>) -> Option<Phase> {
    let operation = response.get("gitOperation")?.object()?;
    let merged = || matches!(operation.at(&["branch", "action"])?.str()?.as_ref(), "merged" | "rebased").then_some(());
    if operation.get("pr").is_some() {
        Some(Phase::Pr)
    } else if operation.get("push").is_some() {
        Some(Phase::Push)
    } else {
        (operation.get("commit").is_some() || merged().is_some()).then_some(Phase::Commit)
    }
}

/// From a command line: any of its commands may be one.
pub fn of_command(command: &str) -> Option<Phase> {
    commands(command).into_iter().find_map(|words| of_words(&words))
}

/// The words of each command of a command line, cut at `;`, `&`, `|` and line ends outside of quotes, assignments and
/// git's own options before the subcommand left out. What stands in quotes, in a comment or in a here-document is text.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut in_word = false;
    let mut quote = None;
    let mut heredoc: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"'), '\\') => word.extend(chars.next()),
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, in_word) = (Some(c), true),
            (None, '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(c) => {
                    word.push(c);
                    in_word = true;
                }
            },
            (None, '#') if !in_word => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '<') if chars.next_if_eq(&'<').is_some() => {
                chars.next_if_eq(&'-');
                while chars.next_if(|c| *c == ' ').is_some() {}
                let mut end = String::new();
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !";&|<>()".contains(*c)) {
                    end.push(c);
                }
                heredoc = Some(end.trim_matches(['\'', '"', '\\']).to_string()).filter(|end| !end.is_empty());
            }
            (None, c) if c.is_whitespace() || ";&|".contains(c) => {
                if in_word || !word.is_empty() {
                    commands.last_mut().expect("never empty").push(std::mem::take(&mut word));
                }
                in_word = false;
                if c == '\n'
                    && let Some(end) = heredoc.take()
                {
                    skip_heredoc(&mut chars, &end);
                }
                if ";&|\n".contains(c) {
                    commands.push(Vec::new());
                }
            }
            (None, c) => {
                word.push(c);
                in_word = true;
            }
        }
    }
    if in_word {
        commands.last_mut().expect("never empty").push(word);
    }
    commands
}

fn skip_heredoc(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, end: &str) {
    let mut line = String::new();
    for c in chars.by_ref() {
        if c != '\n' {
            line.push(c);
        } else if line.trim() == end {
            return;
        } else {
            line.clear();
        }
    }
}

/// Whether a command line only records or inspects work (`git add`, `git status`, `gh pr …`), by its first command. The
/// subcommand ends where a word does, so that `git diff-tree` counts too.
pub fn is_housekeeping(command: &str) -> bool {
    let commands = commands(command);
    let Some((program, subcommand, _)) = commands.iter().find(|words| !words.is_empty()).and_then(|w| split(w)) else {
        return false;
    };
    let subcommand = subcommand.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
    match program {
        "git" => matches!(subcommand, "add" | "commit" | "push" | "status" | "log" | "diff" | "show" | "stash" | "tag"),
        "gh" => subcommand == "pr",
        _ => false,
    }
}

fn of_words(words: &[String]) -> Option<Phase> {
    let (program, subcommand, rest) = split(words)?;
    let has = |options: &[&str]| rest.iter().any(|word| options.contains(&word.as_str()));
    match (program, subcommand) {
        ("git", "commit" | "tag" | "merge") => Some(Phase::Commit),
        ("git", "rebase") if has(&["--continue"]) => Some(Phase::Commit),
        ("git", "push") => Some(Phase::Push),
        ("gh", "pr") => match rest.first()?.as_str() {
            "create" | "merge" | "close" => Some(Phase::Pr),
            "review" if has(&["--approve", "-a"]) => Some(Phase::Pr),
            _ => None,
        },
        _ => None,
    }
}

/// Program, subcommand and the rest of a command; assignments before it and git's own options are left out.
fn split(words: &[String]) -> Option<(&str, &str, &[String])> {
    let words = &words[words.iter().take_while(|word| is_assignment(word)).count()..];
    let (program, mut rest) = words.split_first()?;
    while program == "git" && rest.first()?.starts_with('-') {
        // Some of git's options take the next word as their value.
        let takes_value = matches!(rest[0].as_str(), "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace");
        rest = rest.get(1 + usize::from(takes_value)..)?;
    }
    let (subcommand, rest) = rest.split_first()?;
    Some((program, subcommand, rest))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// From an output: a push line first, then a pull request's address, then a commit line.
pub fn of_output(text: &str) -> Option<Phase> {
    let head = crate::text::cut_utf16(text, LOOKED_AT);
    let tail_at = text.len().saturating_sub(LOOKED_AT).max(head.len());
    let tail_at = (tail_at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    [&text[tail_at..], head].into_iter().find_map(of_part)
}

fn of_part(text: &str) -> Option<Phase> {
    let mut found = None;
    let names_pull = memmem::find(text.as_bytes(), b"pull").is_some();
    for line in text.lines() {
        if is_push(line) {
            return Some(Phase::Push);
        }
        if is_commit(line) {
            found.get_or_insert(Phase::Commit);
        }
        if names_pull && is_pull_request(line) {
            found = Some(Phase::Pr);
        }
    }
    found
}

/// `To <remote>`: an ssh or https address, or a host of GitHub or GitLab.
fn is_push(line: &str) -> bool {
    if !line.starts_with(['t', 'T']) {
        return false;
    }
    let Some((word, remote)) = line.split_once([' ', '\t']) else { return false };
    let remote = remote.trim_start().to_ascii_lowercase();
    let host = remote.split([':', '/']).next().unwrap_or("");
    word.eq_ignore_ascii_case("to")
        && (["git@", "https://", "http://", "ssh://", "git://"].iter().any(|scheme| remote.starts_with(scheme))
            || matches!(host.rsplit('@').next(), Some("github.com" | "gitlab.com")))
}

/// `[branch 1a2b3c4] subject`, as git prints after a commit.
fn is_commit(line: &str) -> bool {
    let Some((inside, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else { return false };
    let Some((branch, id)) = inside.rsplit_once(' ') else { return false };
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    !branch.is_empty() && (7..=40).contains(&id.len()) && id.bytes().all(hex)
}

fn is_pull_request(line: &str) -> bool {
    if line.contains("Merge pull request #") {
        return true;
    }
    let Some((_, rest)) = line.split_once("://github.com/") else { return false };
    let mut parts = rest.split('/');
    let named =
        parts.next().is_some_and(|owner| !owner.is_empty()) && parts.next().is_some_and(|repo| !repo.is_empty());
    named && parts.next() == Some("pull") && parts.next().is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(command: &str, response: &str) -> Option<Phase> {
        let input = serde_json::json!({ "command": command }).to_string();
        of_call("Bash", Some(Raw::new(&input)), Some(&ToolResponse::new(Raw::new(response))))
    }

    #[test]
    fn a_command_counts_wherever_it_stands_in_the_line() {
        for (command, phase) in [
            ("git add . && git commit -m 'x; git push'", Some(Phase::Commit)),
            ("cd x && git push", Some(Phase::Push)),
            ("git -C x commit -m y", Some(Phase::Commit)),
            ("GIT_EDITOR=true git commit", Some(Phase::Commit)),
            ("gh pr review 12 --approve", Some(Phase::Pr)),
            ("gh pr review 12 --comment", None),
            ("git rebase --continue-foo", None),
            ("git rebase --abort; git rebase --continue", Some(Phase::Commit)),
            ("git commit-tree abc", None),
            ("git committed", None),
            ("git tagger", None),
            ("echo 'git commit'", None),
            ("cat <<EOF\ngit push\nEOF\nls", None),
            ("cat <<'EOF' > f\ngit push\nEOF\ngit commit -m x", Some(Phase::Commit)),
            ("ls # git push", None),
        ] {
            assert_eq!(of_command(command), phase, "{command}");
        }
    }

    #[test]
    fn housekeeping_is_what_the_first_command_does() {
        for (command, housekeeping) in [
            ("git add .", true),
            (" git  push", true),
            ("git\tadd", true),
            ("git -C x add .", true),
            ("LANG=C git status", true),
            ("git add;ls", true),
            ("git diff-tree HEAD", true),
            ("gh pr view 12", true),
            ("gh pr", true),
            ("git", false),
            ("git addx", false),
            ("git-add", false),
            ("gh prs", false),
            ("gh issue list", false),
            ("git checkout main", false),
            ("cd x && git add .", false),
            ("", false),
        ] {
            assert_eq!(is_housekeeping(command), housekeeping, "{command}");
        }
    }

    #[test]
    fn the_output_counts_as_the_client_sends_it() {
        let bash = |stdout: &str, stderr: &str| serde_json::json!({"stdout": stdout, "stderr": stderr}).to_string();
        assert_eq!(call("make", &bash("[main 1a2b3c4] x", "")), Some(Phase::Commit));
        assert_eq!(call("make", &bash("x", "To github.com:a/b\n   1..2  main -> main")), Some(Phase::Push));
        assert_eq!(call("make", &bash("x\nhttps://github.com/a/b/pull/7", "")), Some(Phase::Pr));
        assert_eq!(call("make", &bash("nothing", "")), None);
        for filler in ["line\n", "a\\n\n"] {
            let long = filler.repeat(100_000);
            assert_eq!(call("make", &bash(&format!("{long}[main 1a2b3c4] x\n"), "")), Some(Phase::Commit));
            assert_eq!(call("make", &bash(&format!("To github.com:a/b\n{long}"), "")), Some(Phase::Push));
            assert_eq!(call("make", &bash(&long, "")), None);
        }
        assert_eq!(call("make", r#"{"stdout":"","gitOperation":{"commit":{"sha":"1a2b3c4"}}}"#), Some(Phase::Commit));
    }
}
