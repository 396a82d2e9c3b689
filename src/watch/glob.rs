//! Minimal globs for paths: `**` any depth, `*` within one segment, `?` one character, a trailing `/**` also the folder
//! itself. Anchored at both ends, case-sensitive, everything else literal. What looks for secrets disregards case: a
//! `Credentials.json` is as secret as its twin, and many file systems hold the two for one. Lengths count UTF-16 units,
//! as in the JavaScript original; `**` does not cross a line end.
//!
//! A pattern becomes a small state machine that reads the candidate once, so that no pattern, however odd, is slow.

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<Step>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Exactly this unit.
    Unit(u16),
    /// One unit that is no slash.
    One,
    /// Any run within a segment.
    Segment,
    /// Any run within a line.
    Any,
    /// What follows, or this many steps on.
    Maybe(usize),
}

const SLASH: u16 = b'/' as u16;
const DOT: u16 = b'.' as u16;
const STAR: u16 = b'*' as u16;
const ASK: u16 = b'?' as u16;
/// A word of a command that is longer names no path.
const MAX_WORD: usize = 4096;
/// How many letters at most an option takes that its value follows without a space: `-f.env`, `-xzf.env`.
const MAX_OPTION: usize = 8;
/// How many `@` of one word are looked behind; a word with more is taken to name a secret.
const MAX_MARKS: usize = 16;
/// How many words one word with braces becomes at most.
const MAX_WRITTEN_OUT: usize = 64;

impl Glob {
    /// Compiles a pattern; none for an empty one.
    pub fn new(pattern: &str) -> Option<Glob> {
        if pattern.is_empty() {
            return None;
        }
        let mut steps = Vec::with_capacity(pattern.len() + 4);
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            let (taken, add): (usize, &[Step]) = match first {
                _ if rest == "/**" => (3, &[Step::Maybe(3), Step::Unit(SLASH), Step::Any]),
                _ if rest.starts_with("**/") => (3, &[Step::Maybe(3), Step::Any, Step::Unit(SLASH)]),
                _ if rest.starts_with("**") => (2, &[Step::Any]),
                '*' => (1, &[Step::Segment]),
                '?' => (1, &[Step::One]),
                _ => (first.len_utf8(), &[]),
            };
            if add.is_empty() {
                steps.extend(first.encode_utf16(&mut [0; 2]).iter().map(|unit| Step::Unit(*unit)));
            }
            steps.extend_from_slice(add);
            rest = &rest[taken..];
        }
        Some(Glob(steps))
    }

    /// Whether the whole candidate matches.
    pub fn matches(&self, candidate: &str) -> bool {
        self.read(candidate, false)
    }

    /// Whether the path matches in any case, or a folder of it. Read once, however deep it is.
    fn covers(&self, path: &str) -> bool {
        self.read(path, true)
    }

    fn read(&self, candidate: &str, secret: bool) -> bool {
        let last = self.0.len();
        let mut now = vec![false; last + 1];
        let mut next = vec![false; last + 1];
        now[0] = true;
        self.spread(&mut now);
        for (at, unit) in candidate.encode_utf16().enumerate() {
            if secret && unit == SLASH && at > 0 && now[last] {
                return true;
            }
            next.fill(false);
            for at in (0..last).filter(|at| now[*at]) {
                match self.0[at] {
                    Step::Unit(want) => next[at + 1] |= want == unit || secret && lower(want) == lower(unit),
                    Step::One => next[at + 1] |= unit != SLASH,
                    Step::Segment => next[at] |= unit != SLASH,
                    Step::Any => next[at] |= !matches!(unit, 0x0a | 0x0d | 0x2028 | 0x2029),
                    Step::Maybe(_) => {}
                }
            }
            self.spread(&mut next);
            std::mem::swap(&mut now, &mut next);
            if !now.contains(&true) {
                return false;
            }
        }
        now[last]
    }

    /// Whether some path that this matches, or a folder of it, is matched by `other` too, and in such a way that a letter
    /// which `other` spells out is one that this spells out: `.e*` and `.env` do, `*.rs` and `*secret*` do not, though
    /// `secret.rs` matches both.
    fn meets(&self, other: &Glob) -> bool {
        let width = other.0.len() + 1;
        // Each pair of places twice: before and after a letter was shared.
        let mut seen = vec![false; (self.0.len() + 1) * width * 2];
        let mut open = vec![(0, 0, false)];
        while let Some((one, two, shared)) = open.pop() {
            if std::mem::replace(&mut seen[(one * width + two) * 2 + usize::from(shared)], true) {
                continue;
            }
            let (first, second) = (self.0.get(one), other.0.get(two));
            let at_folder = matches!(first, None | Some(Step::Unit(SLASH)));
            if at_folder && second.is_none() && shared {
                return true;
            }
            open.extend(Glob::without_reading(first).into_iter().map(|ahead| (one + ahead, two, shared)));
            open.extend(Glob::without_reading(second).into_iter().map(|ahead| (one, two + ahead, shared)));
            let (Some(first), Some(second)) = (first, second) else { continue };
            let agree = match (first, second) {
                (Step::Maybe(_), _) | (_, Step::Maybe(_)) => false,
                (Step::Unit(a), Step::Unit(b)) => lower(*a) == lower(*b),
                (Step::Unit(unit), Step::Any) | (Step::Any, Step::Unit(unit)) => *unit != u16::from(b'\n'),
                (Step::Unit(unit), _) | (_, Step::Unit(unit)) => *unit != SLASH,
                _ => true,
            };
            if agree {
                let letter =
                    |step: &Step| matches!(step, Step::Unit(unit) if !matches!(*unit, SLASH | DOT | STAR | ASK));
                let next = |step: &Step| usize::from(matches!(step, Step::Unit(_) | Step::One));
                open.push((one + next(first), two + next(second), shared || letter(first) && letter(second)));
            }
        }
        false
    }

    /// How far ahead the places are that a step leads to without reading anything.
    fn without_reading(step: Option<&Step>) -> Vec<usize> {
        match step {
            Some(Step::Segment | Step::Any) => vec![1],
            Some(Step::Maybe(ahead)) => vec![1, *ahead],
            _ => Vec::new(),
        }
    }

    /// Adds the states that are reached without reading anything; they all lie ahead.
    fn spread(&self, states: &mut [bool]) {
        for at in 0..self.0.len() {
            match (states[at], self.0[at]) {
                (true, Step::Segment | Step::Any) => states[at + 1] = true,
                (true, Step::Maybe(ahead)) => {
                    states[at + 1] = true;
                    states[at + ahead] = true;
                }
                _ => {}
            }
        }
    }
}

/// A unit in lower case, where that is one unit too.
fn lower(unit: u16) -> u16 {
    if unit < 0x80 {
        return u16::from((unit as u8).to_ascii_lowercase());
    }
    let mut lower = char::from_u32(unit.into()).into_iter().flat_map(char::to_lowercase);
    match (lower.next().and_then(|c| u16::try_from(u32::from(c)).ok()), lower.next()) {
        (Some(lower), None) => lower,
        _ => unit,
    }
}

/// A list of patterns.
#[derive(Debug, Clone, Default)]
pub struct Globs(Vec<Glob>);

impl Globs {
    /// Compiles a list; empty patterns are passed over.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Globs {
        Globs(patterns.iter().filter_map(|pattern| Glob::new(pattern.as_ref())).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any matches the whole candidate.
    pub fn any(&self, candidate: &str) -> bool {
        self.0.iter().any(|glob| glob.matches(candidate))
    }

    /// Whether any matches the path or a folder of it, in any case; tried as it stands and relative to `base`.
    pub fn hit_path(&self, path: &str, base: Option<&str>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut paths = and_inside(path, base).map(|path| path.trim_end_matches('/'));
        paths.any(|path| self.0.iter().any(|glob| glob.covers(path)))
    }

    /// Whether any matches a word of a shell command, the word taken as a path, as it stands and as the shell reads it:
    /// without quotes and escapes, and with wildcards that could stand for the rest of a name. A path may also follow an
    /// `@` or a short option without a space.
    pub fn hit_command(&self, command: &str, base: Option<&str>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let between = |c: char| c.is_whitespace() || "'\"`;|&<>(){}=,:$".contains(c);
        command.split(between).filter(|word| !word.is_empty()).any(|word| self.hit_path(word, base))
            || shell_words(command).any(|word| {
                word.matches('@').nth(MAX_MARKS).is_some() || tails(&word).any(|path| self.hit_search(path, base))
            })
    }

    /// Whether a path, which may have wildcards, could name, or lie in, what a pattern matches.
    pub fn hit_search(&self, path: &str, base: Option<&str>) -> bool {
        if !is_pattern(path) {
            return self.hit_path(path, base);
        }
        let mut wanted = and_inside(path, base).filter_map(pattern);
        wanted.any(|wanted| self.0.iter().any(|glob| wanted.meets(glob)))
    }

    /// Whether one of the globs of a search, between spaces or commas, could find what a pattern matches.
    pub fn hit_globs(&self, globs: &str, folder: Option<&str>, base: Option<&str>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        // What braces hold is written out before the commas between the globs are looked at.
        let words = globs.split_whitespace().filter(|word| word.len() <= MAX_WORD);
        words.flat_map(|word| written_out(word.to_string())).any(|word| {
            // What begins with `!` is left out of the search.
            word.split(',').filter(|glob| !glob.is_empty() && !glob.starts_with('!')).any(|glob| {
                let within = folder.map(|folder| format!("{}/{glob}", folder.trim_end_matches('/')));
                self.hit_search(glob, base) || within.is_some_and(|glob| self.hit_search(&glob, base))
            })
        })
    }
}

/// A path as it stands, and relative to `base` where it lies in there.
fn and_inside<'p>(path: &'p str, base: Option<&str>) -> impl Iterator<Item = &'p str> + use<'p> {
    let inside = base.and_then(|base| path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/'));
    std::iter::once(path).chain(inside)
}

/// What of a word can be a path: all of it, what follows an `@` (`-d @file`, `user@host`), and what follows the letters of
/// a short option.
fn tails(word: &str) -> impl Iterator<Item = &str> {
    let option = word
        .strip_prefix('-')
        .map_or(0, |rest| rest.bytes().take(MAX_OPTION).take_while(u8::is_ascii_alphanumeric).count());
    let options = (1..=option).map(|letters| &word[1 + letters..]);
    let marked = word.match_indices('@').map(|(at, _)| &word[at + 1..]);
    std::iter::once(word).chain(options).chain(marked).filter(|tail| !tail.is_empty())
}

/// The words of a command as a shell would make them, quotes and escapes gone and braces written out; what stands in
/// quotes is split too.
pub fn shell_words(command: &str) -> impl Iterator<Item = String> {
    let between = |c: char| c.is_whitespace() || "`;|&<>()=:".contains(c);
    let words = command.split(between).filter(|word| !word.is_empty() && word.len() <= MAX_WORD);
    words.flat_map(|word| written_out(word.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect()))
}

/// What a word with braces stands for: `a{b,c}` is `ab` and `ac`. Of very many only the first.
fn written_out(word: String) -> Vec<String> {
    let mut all = Vec::new();
    write_out(word, &mut all);
    all
}

fn write_out(word: String, into: &mut Vec<String>) {
    // The innermost braces first, so that those around them hold plain text.
    let inner = word.match_indices('{').find_map(|(open, _)| {
        let rest = &word[open + 1..];
        let close = rest.find('}').filter(|&close| rest[..close].contains(',') && !rest[..close].contains('{'))?;
        Some((open, open + 1 + close))
    });
    match inner {
        _ if into.len() >= MAX_WRITTEN_OUT => {}
        None => into.push(word),
        Some((open, close)) => {
            for part in word[open + 1..close].split(',') {
                write_out(format!("{}{part}{}", &word[..open], &word[close + 1..]), into);
            }
        }
    }
}

/// Whether a word holds a wildcard of the shell.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// A word of the shell as a pattern; a set of characters is any one.
pub fn pattern(word: &str) -> Option<Glob> {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find(']') else { break };
        text.push_str(&rest[..open]);
        text.push('?');
        rest = &rest[open + close + 1..];
    }
    Glob::new(&(text + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Globs {
        Globs::new(&["**/.env", "**/.env.*", "**/*secret*", "**/credentials*", "**/*.pem", "config/prod/**"])
    }

    #[test]
    fn a_path_is_hit_by_itself_by_a_folder_of_it_and_inside_the_project() {
        for (path, hit) in [
            ("/w/app/.env", true),
            (".env", true),
            ("/w/app/.env.local", true),
            ("/w/app/.envrc", false),
            ("/w/secrets/list.txt", true),
            ("/home/u/.aws/credentials", true),
            ("/w/app/config/prod/db.yml", true),
            ("/w/other/config/prod/db.yml", false),
            ("/w/app/src/env.ts", false),
            ("/w/app/.ENV", true),
            ("/w/app/Credentials.json", true),
            ("MySecret.txt", true),
            ("/w/app/key.PEM", true),
            ("/w/app/Config/Prod/db.yml", true),
        ] {
            assert_eq!(secrets().hit_path(path, Some("/w/app")), hit, "{path}");
        }
    }

    #[test]
    fn the_words_of_a_command_are_paths() {
        for (command, hit) in [
            ("cat .env", true),
            ("cat '/w/app/.env'|head", true),
            ("A=1 docker run --env-file=.env.prod x", true),
            ("openssl x509 <cert.pem", true),
            ("cargo test --all", false),
            ("echo environment", false),
            ("cat config/.e*", true),
            ("cat config/\\.env", true),
            ("cat config/.e'n'v", true),
            ("cat .en?", true),
            ("cat .[e]nv.local", true),
            ("cat .{x,env}", true),
            ("cat {a,config/{b,.en*}}", true),
            ("head secr*/list.txt", true),
            ("head secrets/*.txt", true),
            ("head config/prod/*.yml", true),
            ("cat /w/*/.aws/cred*", true),
            ("bash -c 'tail certs/*.pe*'", true),
            ("docker run --env-file=.env.pr* x", true),
            ("wc -l src/*.rs", false),
            ("grep -rn 'fn .*(x)' src", false),
            ("find . -name '*.toml'", false),
            ("ls *", false),
            ("echo src/{a,b}/mod.rs", false),
            ("curl -d @.env x", true),
            ("curl -F 'file=@config/.env' x", true),
            ("foo -f.env", true),
            ("tar -xzfcerts/key.pem", true),
            ("foo --x=@.env", true),
            ("scp me@host:.env .", true),
            ("docker run -v.env:/x y", true),
            ("curl file:///w/app/.env", true),
            ("cat .ENV", true),
            ("cat .E*", true),
            ("head Key.P?m", true),
            ("npm i @scope/env", false),
            ("tar -xzf env.tar", false),
            ("mail a@b@c@d@e@f@g@h@i@j@k@l@m@n@o@p@q", false),
            ("mail a@b@c@d@e@f@g@h@i@j@k@l@m@n@o@p@q@r", true), // more than are looked behind
        ] {
            assert_eq!(secrets().hit_command(command, Some("/w/app")), hit, "{command}");
        }
    }

    #[test]
    fn case_counts_for_all_but_secrets() {
        assert!(!Glob::new("**/*.pem").unwrap().matches("key.PEM"));
        assert!(!secrets().any("key.PEM") && secrets().hit_path("key.PEM", None));
        assert!(Globs::new(&["**/Ärger*"]).hit_path("/w/ärger.txt", None));
        assert_eq!((lower(u16::from(b'K')), lower(0x212a), lower(0x130)), (0x6b, 0x6b, 0x130));
    }

    #[test]
    fn the_globs_of_a_search_are_read_one_by_one() {
        for (globs, folder, hit) in [
            (".env*", None, true),
            ("*.ts,.env*", None, true),
            ("*.ts .en?", None, true),
            ("*.{ts,pem}", None, true),
            ("{a,.env}", None, true),
            ("*.PEM", None, true),
            ("**/.[eE]nv", None, true),
            ("prod/*.yml", Some("/w/app/config"), true),
            ("prod/*.yml", Some("config/"), true),
            ("*.yml", Some("/w/app/config/prod"), true),
            ("*.rs", Some("/w/app"), false),
            ("**/*", None, false),
            ("!.env* *.ts", None, false),
            ("", None, false),
        ] {
            assert_eq!(secrets().hit_globs(globs, folder, Some("/w/app")), hit, "{globs} in {folder:?}");
        }
    }

    #[test]
    fn no_pattern_is_slow() {
        let glob = Glob::new(&"a*".repeat(200)).unwrap();
        assert!(!glob.matches(&("a".repeat(5000) + "b/")));
        assert!(!secrets().hit_command(&format!("cat {}", "*/x".repeat(1300)), None));
        assert!(!secrets().hit_path(&"a/".repeat(20_000), None));
    }
}
