//! Whether a tool call touched what `shape.dropGlobs` keeps secret: by a path of its input, wherever in it that stands, by
//! a word of its command, by what it searches, or by a file that its answer names: that of a search, or a diff.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::call::Call;
use crate::client::json::{Object, Raw};
use crate::watch::glob::{self, Globs};
use crate::watch::shape;

/// How many words with wildcards of one command are looked into, and how many names of a folder.
const MAX_WILD: usize = 32;
const MAX_LISTED: usize = 5000;
/// How many files of one answer are looked at; one that names more is taken to name a secret.
const MAX_NAMED: usize = 2000;
/// How many bytes of one input are compared with the globs; one that holds more is taken to name a secret.
const MAX_COMPARED: usize = 256 << 10;
/// How deep an input is looked into.
const MAX_DEPTH: usize = 32;
/// A text that is longer names no path.
const MAX_PATH: usize = 4096;
/// Parts of keys whose values are paths, whatever they look like.
const PATH_KEYS: [&str; 10] = ["path", "file", "folder", "dir", "uri", "url", "notebook", "source", "target", "dest"];
/// Parts of keys whose values are run.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];
/// Programs that search files, beside all whose name ends in `grep`.
const SEARCHES: [&str; 3] = ["rg", "ag", "ack"];
/// What the client's own tools write or look for: text, no path.
const TEXT_KEYS: [&str; 5] = ["content", "old_string", "new_string", "new_source", "prompt"];

/// Whether the call touched a secret.
pub fn touched(call: &Call<'_>) -> bool {
    let anchor = shape::anchor(call.store, &call.sid).map(|anchor| PathBuf::from(anchor.cwd));
    let cwd = call.payload.cwd();
    let base = anchor.or_else(|| cwd.clone()).unwrap_or_default();
    let config = call.config.for_project(&base);
    let tool = call.payload.tool_name().unwrap_or_default();
    let input = call.payload.tool_input();
    let look = Look {
        globs: Globs::new(&config.shape.drop_globs),
        base: base.to_str(),
        cwd: cwd.as_deref(),
        foreign: tool.starts_with("mcp__"),
        grep: tool == "Grep",
        searches: input
            .and_then(Raw::object)
            .and_then(|input| input.str("command"))
            .is_some_and(|text| searches(&text)),
        compared: Cell::new(0),
    };
    if look.globs.is_empty() {
        return false;
    }
    let answer = call.payload.tool_response().and_then(|answer| answer.object());
    input.is_some_and(|input| look.value("", input, None, MAX_DEPTH)) || answer.is_some_and(|answer| look.found(answer))
}

/// Whether a command starts one of the programs that begin each line of their answer with the file it is from.
fn searches(command: &str) -> bool {
    glob::shell_words(command).any(|word| {
        let program = word.rsplit('/').next().unwrap_or_default();
        program.ends_with("grep") || SEARCHES.contains(&program)
    })
}

/// What is looked for, and for whom.
struct Look<'a> {
    globs: Globs,
    base: Option<&'a str>,
    cwd: Option<&'a Path>,
    /// Whether the tool is none of the client's own, so that any key may hold a path.
    foreign: bool,
    /// Whether `pattern` is no path but a regular expression.
    grep: bool,
    /// Whether it is a command that searches.
    searches: bool,
    /// How many bytes were compared.
    compared: Cell<usize>,
}

impl Look<'_> {
    /// Whether a value of the input names a secret. `folder` is what a search beside it is limited to.
    fn value(&self, key: &str, value: Raw<'_>, folder: Option<&str>, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        if let Some(text) = value.str() {
            return self.text(key, &text, folder);
        }
        if let Some(items) = value.items() {
            return items.into_iter().any(|item| self.value(key, item, folder, depth));
        }
        let Some(object) = value.object() else { return false };
        let folder = object.str("path");
        object.iter().any(|(key, value)| self.text("", key, None) || self.value(key, value, folder.as_deref(), depth))
    }

    fn text(&self, key: &str, text: &str, folder: Option<&str>) -> bool {
        let key = key.to_ascii_lowercase();
        let is = |parts: &[&str]| parts.iter().any(|part| key.contains(part));
        if is(&COMMAND_KEYS) {
            return self.too_much(text) || self.globs.hit_command(text, self.base) || self.stands_for_secret(text);
        }
        let no_path = !self.foreign && TEXT_KEYS.contains(&key.as_str()) || self.grep && key == "pattern";
        if no_path || text.len() > MAX_PATH {
            return false;
        }
        if key.contains("glob") || key == "pattern" && !self.foreign {
            return self.too_much(text) || self.globs.hit_globs(text, folder, self.base);
        }
        let Some(path) = local(text.trim()) else { return false };
        let word = !path.contains(char::is_whitespace);
        let looks_so = word && path.contains(['/', '.', '\\']);
        // A path may have spaces; with a wildcard, an `@` or commas in it, it is still one word.
        (is(&PATH_KEYS) || looks_so)
            && (self.too_much(&path)
                || self.globs.hit_path(&path.replace('\\', "/"), self.base)
                || word && self.globs.hit_command(&path, self.base))
    }

    /// Whether there is more to compare than time for it.
    fn too_much(&self, text: &str) -> bool {
        self.compared.set(self.compared.get() + text.len());
        self.compared.get() > MAX_COMPARED
    }

    /// Whether the answer shows a secret: that of a search names the files, or begins each line with one; a diff names them
    /// above its parts.
    fn found(&self, answer: &Object<'_>) -> bool {
        let mut looked = 0;
        let mut hit = |path: &str| {
            looked += 1;
            looked > MAX_NAMED || self.globs.hit_path(path, self.base)
        };
        let names = answer.get("filenames").and_then(Raw::items).unwrap_or_default();
        if names.into_iter().filter_map(Raw::str).any(|path| hit(&path)) {
            return true;
        }
        let Some(text) = answer.get(if self.grep { "content" } else { "stdout" }) else { return false };
        // Most answers are neither, and megabytes are not unescaped to find that out.
        if !self.grep && !self.searches && memmem::find(text.text().as_bytes(), b"+++ ").is_none() {
            return false;
        }
        let Some(text) = text.str() else { return false };
        let mut last = "";
        text.lines().any(|line| {
            if let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
                return hit(path.split('\t').next().unwrap_or_default());
            }
            let Some((path, _)) = line.split_once(':').filter(|_| self.grep || self.searches) else { return false };
            let again = std::mem::replace(&mut last, path) == path;
            let is_path = path.contains(['/', '.']) && !path.contains(char::is_whitespace);
            !again && is_path && hit(path)
        })
    }

    /// Whether a wildcard in a command's word stands for a secret that lies in the folder it names.
    fn stands_for_secret(&self, command: &str) -> bool {
        let Some(cwd) = self.cwd else { return false };
        glob::shell_words(command).filter(|word| glob::is_pattern(word)).take(MAX_WILD).any(|word| {
            let (folder, name) = word.rsplit_once('/').map_or(("", word.as_str()), |(folder, name)| (folder, name));
            let Some(wanted) = glob::pattern(name).filter(|_| !glob::is_pattern(folder)) else { return false };
            let folder = if word.starts_with('/') { PathBuf::from(format!("{folder}/")) } else { cwd.join(folder) };
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_LISTED);
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).any(|entry| {
                // The shell shows what begins with a dot only to a word that does too.
                let shown = !entry.starts_with('.') || name.starts_with(['.', '[']);
                shown && wanted.matches(&entry) && self.globs.hit_path(&entry, None)
            })
        })
    }
}

/// The path that a text names, without the scheme of a URI; none for a page of the web.
fn local(text: &str) -> Option<Cow<'_, str>> {
    match text.split_once("://") {
        Some((scheme, _)) if matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") => None,
        Some((_, path)) => Some(Cow::Owned(unescaped(path))),
        None => Some(Cow::Borrowed(text)),
    }
}

/// A part of a URI with what `%2E` and the like stand for.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
