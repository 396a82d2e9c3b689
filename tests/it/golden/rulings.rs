//! For each tag that frees a row: what holds instead, and the test that shows it.

use std::path::Path;

/// One ruling.
pub struct Ruling {
    /// The number of the conflict or bug, or `js-artifact`.
    pub tag: &'static str,
    /// What holds.
    pub rule: &'static str,
    /// The test that shows it, by its function's name.
    pub test: &'static str,
}

const fn ruling(tag: &'static str, rule: &'static str, test: &'static str) -> Ruling {
    Ruling { tag, rule, test }
}

/// All rulings, by number.
pub const RULINGS: &[Ruling] =
    &[ruling("js-artifact", "Wrong types are absent, never NaN or joined text", "wrong_types_read_as_absent")];

/// Whether some test function of the project has this name.
pub fn source_has_test(name: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wanted = format!("fn {name}(");
    [root.join("src"), root.join("tests/it")].iter().any(|folder| folder_has(folder, &wanted))
}

fn folder_has(folder: &Path, wanted: &str) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return folder_has(&path, wanted);
        }
        path.extension().is_some_and(|ext| ext == "rs")
            && std::fs::read_to_string(&path).is_ok_and(|text| text.contains(wanted))
    })
}
