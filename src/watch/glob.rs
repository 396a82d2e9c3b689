//! Minimal globs for paths: `**` any depth, `*` within one segment, `?` one character, a trailing `/**` also the folder
//! itself. Anchored at both ends, case-sensitive, everything else literal. Lengths count UTF-16 units, as in the
//! JavaScript original; `**` does not cross a line end.
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
        let last = self.0.len();
        let mut now = vec![false; last + 1];
        let mut next = vec![false; last + 1];
        now[0] = true;
        self.spread(&mut now);
        for unit in candidate.encode_utf16() {
            next.fill(false);
            for at in (0..last).filter(|at| now[*at]) {
                match self.0[at] {
                    Step::Unit(want) => next[at + 1] |= want == unit,
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

    /// Whether any matches the path or a folder of it; tried as it stands and relative to `base`.
    pub fn hit_path(&self, path: &str, base: Option<&str>) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let inside = base.and_then(|base| path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/'));
        [Some(path), inside].into_iter().flatten().any(|path| {
            let path = path.trim_end_matches('/');
            let folders = path.match_indices('/').map(|(at, _)| &path[..at]).filter(|folder| !folder.is_empty());
            folders.chain([path]).any(|part| self.any(part))
        })
    }

    /// Whether any matches a word of a shell command, the word taken as a path.
    pub fn hit_command(&self, command: &str, base: Option<&str>) -> bool {
        let between = |c: char| c.is_whitespace() || "'\"`;|&<>(){}=,:$".contains(c);
        !self.0.is_empty()
            && command.split(between).filter(|word| !word.is_empty()).any(|word| self.hit_path(word, base))
    }
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
        ] {
            assert_eq!(secrets().hit_command(command, Some("/w/app")), hit, "{command}");
        }
    }

    #[test]
    fn no_pattern_is_slow() {
        let glob = Glob::new(&"a*".repeat(200)).unwrap();
        assert!(!glob.matches(&("a".repeat(5000) + "b/")));
    }
}
