//! Finding the key that a person means, and changing it in the text of the file.

use super::table::{Key, Kind};
use super::{KEYS, SECTIONS, values};
use crate::client::json_edit::{Document, Mismatch};

/// What a person named.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it stands in the file.
    pub steps: Vec<String>,
    /// The key of the table that says how its values look; none for a whole section or a key that is not known.
    pub key: Option<&'static Key>,
}

impl Target {
    /// Finds what `typed` names: a key by its path or by its label, in any case; a section or a group of keys; a key in a
    /// project's block (`shape.perProject./path/of/project.scoring`); else a path that is not known.
    pub fn find(typed: &str) -> Target {
        let typed = typed.trim();
        let by_path = || KEYS.iter().find(|key| key.path == typed);
        let by_path_in_any_case = || KEYS.iter().find(|key| key.path.eq_ignore_ascii_case(typed));
        let by_label = || KEYS.iter().find(|key| key.label.to_lowercase() == typed.to_lowercase());
        if let Some(key) = by_path().or_else(by_path_in_any_case).or_else(by_label) {
            return Target { steps: split(key.path), key: Some(key) };
        }
        if let Some(target) = in_project(typed) {
            return target;
        }
        let section =
            SECTIONS.iter().find(|(name, title)| name.eq_ignore_ascii_case(typed) || title.eq_ignore_ascii_case(typed));
        let path = section.map_or(typed, |(name, _)| name);
        Target { steps: split(path), key: None }
    }

    /// Its path, for people.
    pub fn path(&self) -> String {
        self.steps.join(".")
    }

    /// The keys below it, when it is a section or a group of keys; itself, when it is a key.
    pub fn keys(&self) -> Vec<&'static Key> {
        match self.key {
            Some(key) => vec![key],
            None => {
                let above = self.path() + ".";
                KEYS.iter().filter(|key| key.path.starts_with(&above)).collect()
            }
        }
    }

    /// Whether it is neither a key nor a group of keys.
    pub fn is_unknown(&self) -> bool {
        self.keys().is_empty()
    }

    /// Whether it stands in a project's block.
    pub fn in_project(&self) -> bool {
        self.steps.get(1).is_some_and(|step| step == "perProject") && self.steps.len() > 2
    }

    /// Reads what was typed as its value, to JSON text; the error is the accepted form.
    pub fn parse_value(&self, typed: &str) -> Result<String, String> {
        match self.key {
            Some(key) => key.parse_value(typed),
            None => Ok(values::parse_free(typed)),
        }
    }

    /// Sets it in the text of the file.
    pub fn set(&self, document: &mut Document, json: &str) -> Result<(), Mismatch> {
        let steps: Vec<&str> = self.steps.iter().map(String::as_str).collect();
        match serde_json::from_str(json) {
            Ok(value) => document.set(&steps, &value),
            Err(_) => document.set_raw(&steps, json),
        }
    }

    /// Takes it out of the text of the file, and the objects that this leaves empty. Says whether it was there.
    pub fn remove(&self, document: &mut Document) -> bool {
        let mut steps: Vec<&str> = self.steps.iter().map(String::as_str).collect();
        let removed = document.remove(&steps);
        while removed && steps.pop().is_some() && !steps.is_empty() && document.is_empty(&steps) {
            document.remove(&steps);
        }
        removed
    }
}

fn split(path: &str) -> Vec<String> {
    path.split('.').map(ToString::to_string).collect()
}

/// `section.perProject.<folder>.<key>`, or `section.perProject.<folder>`: a folder's name may hold dots.
fn in_project(typed: &str) -> Option<Target> {
    let blocks = KEYS.iter().find(|key| {
        key.spec.kind == Kind::Projects
            && typed.strip_prefix(key.path).is_some_and(|rest| rest.starts_with(".") && rest.len() > 1)
    })?;
    let rest = &typed[blocks.path.len() + 1..];
    let section = format!("{}.", blocks.section());
    let inner = KEYS.iter().filter(|key| key.spec.kind != Kind::Projects).filter_map(|key| {
        let name = key.path.strip_prefix(&section)?;
        let folder = rest.strip_suffix(name)?.strip_suffix('.').filter(|folder| !folder.is_empty())?;
        Some((folder, name, key))
    });
    let mut steps = split(blocks.path);
    match inner.min_by_key(|(folder, ..)| folder.len()) {
        Some((folder, name, key)) => {
            steps.push(folder.to_string());
            steps.extend(split(name));
            Some(Target { steps, key: Some(key) })
        }
        None => {
            steps.push(rest.to_string());
            Some(Target { steps, key: None })
        }
    }
}

/// One sentence about a key that is not known.
pub fn not_known(typed: &str) -> String {
    match typed.trim() {
        "" => "an empty text is no key".into(),
        typed => format!("{typed} is not a known key{}", did_you_mean(typed)),
    }
}

/// `; did you mean compact.threshold?`, or nothing: ends a sentence about a key that is not known.
pub fn did_you_mean(typed: &str) -> String {
    let near = near(typed, KEYS.iter().map(|key| key.path));
    if !near.is_empty() {
        return near;
    }
    // Only the last part was typed, or it was put into another section.
    let last = typed.rsplit('.').next().unwrap_or(typed);
    let named =
        KEYS.iter().filter(|key| key.path.rsplit('.').next().is_some_and(|name| name.eq_ignore_ascii_case(last)));
    let paths: Vec<&str> = named.map(|key| key.path).collect();
    if paths.is_empty() { String::new() } else { format!("; did you mean {}?", paths.join(" or ")) }
}

/// `; did you mean tokens?` for the known name that is nearest to what was typed, or nothing.
pub fn near<'n>(typed: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.collect();
    let near = similar::get_close_matches(typed, &known, 1, 0.75);
    near.first().map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_path_label_and_section() {
        for (typed, path) in [
            ("compact.threshold", "compact.threshold"),
            ("COMPACT.Threshold", "compact.threshold"),
            ("task length", "statusline.maxTaskLength"),
            ("Task change detection", "taskChange"),
            ("shape.gitNexus", "shape.gitNexus"),
            ("mine.own", "mine.own"),
        ] {
            assert_eq!(Target::find(typed).path(), path, "{typed}");
        }
        assert_eq!(Target::find("statusline.zones").keys().len(), 3);
        assert!(Target::find("mine.own").is_unknown());
    }

    #[test]
    fn a_folder_with_dots_is_one_step() {
        let target = Target::find("statusline.perProject./srv/my.app.zones.red");
        assert_eq!(target.steps, ["statusline", "perProject", "/srv/my.app", "zones", "red"]);
        assert_eq!(target.key.unwrap().path, "statusline.zones.red");
        let block = Target::find("shape.perProject./srv/my.app");
        assert_eq!((block.steps.len(), block.key.is_none()), (3, true));
    }

    #[test]
    fn labels_and_paths_are_unique() {
        let mut names: Vec<String> =
            KEYS.iter().flat_map(|key| [key.path.to_lowercase(), key.label.to_lowercase()]).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(KEYS.iter().all(|key| SECTIONS.iter().any(|(section, _)| *section == key.section())));
    }

    #[test]
    fn what_was_mistyped_is_suggested() {
        assert_eq!(did_you_mean("compact.treshold"), "; did you mean compact.threshold?");
        assert_eq!(did_you_mean("autoblock"), "; did you mean compact.autoblock?");
        assert_eq!(did_you_mean("zzz"), "");
    }

    #[test]
    fn an_emptied_object_goes_with_its_last_key() {
        let mut document =
            Document::parse(b"{\n  \"a\": 1,\n  \"statusline\": {\n    \"zones\": { \"red\": 5 }\n  }\n}\n").unwrap();
        assert!(Target::find("statusline.zones.red").remove(&mut document));
        assert_eq!(String::from_utf8(document.to_bytes()).unwrap(), "{\n  \"a\": 1\n}\n");
        assert!(!Target::find("statusline.zones.red").remove(&mut document));
    }
}
