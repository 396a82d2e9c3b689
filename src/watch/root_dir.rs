//! From a path to the directory that stands for it in the shape log.

use std::path::{Path, PathBuf};

/// What marks the root of a project.
const MARKERS: [&str; 9] = [
    ".git",
    "package.json",
    "pyproject.toml",
    "Cargo.toml",
    "go.mod",
    "deno.json",
    "pom.xml",
    "build.gradle",
    "Gemfile",
];

/// The nearest folder at or above `path` that holds a project marker; the path itself need not exist.
pub fn project_root(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|folder| MARKERS.iter().any(|marker| folder.join(marker).exists())).map(Path::to_path_buf)
}
