//! From a path to the directory that stands for it in the shape log: its folder, relative to where the session started,
//! cut to a few segments.

use std::path::{Path, PathBuf};

/// Path segments of a root directory, where nothing else is configured.
pub const DEFAULT_DEPTH: usize = 2;

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

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file: its folder counts.
    File,
    /// A folder: it counts itself.
    Folder,
}

/// The root directory of `path`: relative to `base` inside of it, absolute outside, `.` for `base` itself, at most
/// `depth` segments (1 to 5). Backslashes count as slashes; `..` is left as it stands. Empty for a path of nothing.
pub fn root_of(path: &str, kind: Kind, depth: usize, base: Option<&str>) -> String {
    if path.trim().is_empty() {
        return String::new();
    }
    let path = path.replace('\\', "/");
    let base = base.map(|base| base.replace('\\', "/"));
    let base = base.as_deref().map(|base| base.trim_end_matches('/')).filter(|base| base.starts_with('/'));
    let inside = base.and_then(|base| path.strip_prefix(base)).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    if inside == Some("") {
        return ".".into();
    }
    let absolute = inside.is_none() && path.starts_with('/');
    let mut parts: Vec<&str> = inside.unwrap_or(&path).split('/').filter(|part| !part.is_empty()).collect();
    if kind == Kind::File && parts.pop().is_none() {
        return String::new();
    }
    parts.truncate(depth.clamp(1, 5));
    match (absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".into(),
        (false, false) => parts.join("/"),
    }
}

/// The nearest folder at or above `path` that holds a project marker; the path itself need not exist.
pub fn project_root(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|folder| is_project(folder)).map(Path::to_path_buf)
}

/// Whether a folder holds a project marker.
pub fn is_project(folder: &Path) -> bool {
    MARKERS.iter().any(|marker| folder.join(marker).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_file_is_its_folder_and_of_a_folder_itself() {
        for (path, kind, root) in [
            ("/w/app/src/index.ts", Kind::File, "src"),
            ("/w/app/README.md", Kind::File, "."),
            ("/w/app/src/auth/login.ts", Kind::File, "src/auth"),
            ("/w/app/src/auth/login.ts", Kind::Folder, "src/auth"),
            ("/w/app/src", Kind::Folder, "src"),
            ("/w/app/src/", Kind::Folder, "src"),
            ("/w/app", Kind::Folder, "."),
            ("/w/app/", Kind::Folder, "."),
            ("/etc/hosts", Kind::File, "/etc"),
            ("/hosts", Kind::File, "/"),
            ("/", Kind::Folder, "/"),
            ("/w/apple/src/a.ts", Kind::File, "/w/apple"),
        ] {
            assert_eq!(root_of(path, kind, 2, Some("/w/app")), root, "{path} as {kind:?}");
        }
    }
}
