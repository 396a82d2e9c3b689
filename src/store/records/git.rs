//! Records about repositories: the last working-tree answer and the most changed files.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::lenient;

/// `claude-git-<hash>.json`: what a scan of a work tree found last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkTreeAnswer {
    /// When the scan ended, epoch milliseconds.
    pub t: i64,
    /// Full id of the commit that HEAD named; empty before the first commit.
    pub head: String,
    /// Modification time of the index, milliseconds since 1970; 0 without an index.
    pub index_mtime: i64,
    /// The name of HEAD: branch, tag or short id.
    pub branch: String,
    /// Changed, staged and untracked entries.
    pub dirty: Option<u64>,
    /// Lines added against HEAD.
    pub added: Option<u64>,
    /// Lines deleted against HEAD.
    pub deleted: Option<u64>,
    /// Commits that the upstream branch lacks; none without an upstream.
    pub ahead: Option<u64>,
    /// Commits of the upstream branch that are missing here.
    pub behind: Option<u64>,
    /// A hook knows that something changed since.
    pub stale: bool,
    /// When it was last marked stale, epoch milliseconds: a scan that began before has not seen the change.
    pub stale_at: i64,
    /// When a refresh that was running was last given up, epoch milliseconds.
    pub asked_anew: i64,
    /// How long the scan took, milliseconds: a slow one is not tried again within a short deadline.
    pub took: u64,
    /// HEAD's commit, so that a redraw need not open the repository for it.
    pub commit: Option<CommitFacts>,
    /// Keys of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What is known of one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitFacts {
    /// Full id.
    pub id: String,
    /// First line of the message.
    pub subject: String,
    /// Committer time, epoch milliseconds.
    pub at: i64,
    /// A tag that names it.
    pub tag: Option<String>,
    /// When the repository's tags had last changed by then; told of a detached HEAD only.
    pub tags_at: Option<String>,
}

/// `claude-git-nexus-<hash>.json`: the files changed most often in recent commits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AnchorFiles {
    /// When they were counted, epoch milliseconds.
    #[serde(deserialize_with = "lenient::whole")]
    pub t: i64,
    /// The window, days.
    #[serde(deserialize_with = "lenient::leaf")]
    pub since_days: u64,
    /// Most changed first. Members that name no path are left out; what is no list makes the record unreadable.
    #[serde(deserialize_with = "named_files")]
    pub files: Vec<AnchorFile>,
}

fn named_files<'de, D: Deserializer<'de>>(de: D) -> Result<Vec<AnchorFile>, D::Error> {
    let items = Vec::<Value>::deserialize(de)?;
    let file = |item| serde_json::from_value::<AnchorFile>(item).ok().filter(|file| !file.path.is_empty());
    Ok(items.into_iter().filter_map(file).collect())
}

/// One often changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorFile {
    /// Path in the repository.
    pub path: String,
    /// Commits that changed it.
    #[serde(default, deserialize_with = "lenient::leaf")]
    pub count: u64,
}
