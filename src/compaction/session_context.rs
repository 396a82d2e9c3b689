//! session-context.md: the user's and Claude's notes about the task at hand, by section.

use crate::store::{StateFile, Store};

/// The sections of one file, template lines taken out, in order of first appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections(Vec<(String, String)>);

impl Sections {
    /// The body of the section with this heading.
    pub fn get(&self, heading: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == heading).map(|(_, body)| body.as_str())
    }

    /// Headings and bodies.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, body)| (name.as_str(), body.as_str()))
    }
}

/// What si takes out of a session-context.md.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionContext {
    /// All sections.
    pub sections: Sections,
    /// `Current Task`, as a person wrote it; empty where si filled it in or nobody wrote it.
    pub current_task: String,
    /// `Key Files`, as a person wrote it; empty where si filled it in or nobody wrote it.
    pub key_files: String,
    /// Whether `Current Task` was filled in by si.
    pub task_is_autofilled: bool,
    /// When the file was last changed, epoch milliseconds; none when there is no file.
    pub modified_ms: Option<i64>,
}

/// Splits a file into its sections.
pub fn parse(_content: &str) -> Sections {
    Sections::default()
}

/// Reads the file of a project folder (`enc` is the folder's name).
pub fn read(store: Store<'_>, enc: &str) -> SessionContext {
    let _ = store.read_text(StateFile::SessionContext(enc));
    SessionContext::default()
}

/// The task in one line, for the status line: the `type:` line, else the first line a person wrote; none where there is
/// only a template or an autofilled section.
pub fn task(_context: &SessionContext) -> Option<String> {
    None
}

/// An issue number in a branch name or a task: `#123`, or 2 to 6 digits between `/`, `-`, `_` or the ends that are no
/// part of a date, a version or a commit id. With the `#`.
pub fn issue_from_ref(_text: &str) -> Option<String> {
    None
}
