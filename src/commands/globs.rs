//! What a person should know about the globs they set: which secrets are no longer covered, and what matches nothing.

use serde_json::Value;

use crate::config::KEYS;
use crate::watch::glob::Globs;

/// The key that says what is secret.
pub const SECRETS: &str = "shape.dropGlobs";
/// All keys that hold globs.
pub const KEYS_OF_GLOBS: [&str; 2] = [SECRETS, "shape.preserveGlobs"];

/// A warning about secrets that are covered by default and not by these globs, and what to do; none where all are.
pub fn uncovered(globs: &[String]) -> Option<(String, String)> {
    let default = KEYS.iter().find(|key| key.path == SECRETS).and_then(|key| key.default_value());
    let built_in: Vec<String> = serde_json::from_value(default?).ok()?;
    let own = Globs::new(globs);
    // A name that the built-in glob stands for, at the top and in a folder.
    let covered = |glob: &str| {
        let name = glob.trim_start_matches("**/").replace('*', "x");
        [name.clone(), format!("/x/{name}")].iter().all(|path| own.hit_path(path, None))
    };
    let missing: Vec<&str> = built_in.iter().map(String::as_str).filter(|glob| !covered(glob)).collect();
    if missing.is_empty() {
        return None;
    }
    let own = globs.iter().map(String::as_str).filter(|glob| !built_in.iter().any(|known| known == glob));
    let all: Vec<&str> = built_in.iter().map(String::as_str).chain(own).collect();
    let value = Value::from(all).to_string();
    let value = shlex::try_quote(&value).map(|value| value.into_owned()).unwrap_or(value);
    let text = format!(
        "{SECRETS} replaces the built-in list, and {} of it {} not covered any more: such files may be archived and named \
         to the model",
        missing.join(", "),
        if missing.len() == 1 { "is" } else { "are" },
    );
    Some((text, format!("si set {SECRETS} {value}")))
}

/// A sentence for each glob of `key` that can match nothing, or reads as if it meant more than it does.
pub fn odd<'g>(key: &'g str, globs: &'g [String]) -> impl Iterator<Item = String> + 'g {
    globs.iter().filter_map(move |glob| Some(format!("{key}: {glob:?} {}", fault(glob)?)))
}

fn fault(glob: &str) -> Option<&'static str> {
    let path = glob.trim_start_matches("**/");
    let mut segments = glob.split('/').skip(usize::from(glob.starts_with('/')));
    if glob.trim().is_empty() {
        Some("is empty, and matches nothing")
    } else if glob.trim() != glob {
        Some("begins or ends with a space, which few names do")
    } else if glob.contains(['[', ']', '{', '}', '\\']) {
        Some("holds brackets, braces or a backslash, which stand for themselves; only *, ** and ? are wildcards")
    } else if glob.starts_with('!') {
        Some("begins with !, which stands for itself: no glob takes anything out of the list")
    } else if path.starts_with(['~', '$']) {
        Some("matches no path: ~ and variables are not replaced; begin with **/ or with the whole path")
    } else if glob.ends_with('/') {
        Some("matches nothing: paths do not end with /; end it with /** for all in a folder")
    } else if segments.any(|segment| matches!(segment, "" | "." | "..")) {
        Some("matches no path: a part of it is empty, . or ..")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(globs: &[&str]) -> Vec<String> {
        globs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_covered_otherwise_is_not_missed() {
        assert_eq!(uncovered(&list(&["**/.env*", "**/*secret*", "**/cred*", "**/*.pem", "**/*.KEY"])), None);
        assert_eq!(uncovered(&list(&["**/*"])), None);
        let (text, fix) = uncovered(&list(&["**/.env", "it's/**"])).unwrap();
        assert!(text.contains(" **/.env.*, **/*secret*, **/credentials*, **/*.pem, **/*.key of it are not"), "{text}");
        let words = shlex::split(&fix).unwrap();
        let kept: Vec<String> = serde_json::from_str(&words[3]).unwrap();
        assert_eq!((words.len(), kept.len(), uncovered(&kept)), (4, 7, None));
        // At the top alone is not everywhere.
        assert!(uncovered(&list(&[".env", "**/.env.*", "**/*secret*", "**/cred*", "**/*.pem", "**/*.key"])).is_some());
    }

    #[test]
    fn globs_that_match_nothing_are_named() {
        for glob in ["", " ", " a", "[bad", "a{b,c}", "!a", "~/x", "**/$HOME/x", "a/", "./a", "a/../b", "a//b", "a\\b"]
        {
            assert!(fault(glob).is_some(), "{glob:?}");
        }
        for glob in ["**/.env", "/etc/x", "config/prod/**", "*", "**", "a?c", ".env", "...", "x~"] {
            assert_eq!(fault(glob), None, "{glob:?}");
        }
    }
}
