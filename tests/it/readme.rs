//! The README's tables are made from the tables in the code. `SI_UPDATE_README=1 cargo test readme` writes them anew.

#![allow(clippy::disallowed_methods, reason = "a test reads its switch and writes the page it checks")]

use std::fmt::Write;
use std::path::PathBuf;

use si::config::{DEFAULT_PRESET, PRESETS};
use si::statusline::fields::FIELDS;

fn readme() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

/// The text between `<!-- name:begin -->` and `<!-- name:end -->` must be `want`.
fn check(name: &str, want: &str) {
    let text = std::fs::read_to_string(readme()).unwrap();
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let from = text.find(&begin).unwrap_or_else(|| panic!("README.md has no {begin}")) + begin.len();
    let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("README.md has no {end}"));
    if std::env::var_os("SI_UPDATE_README").is_some() {
        std::fs::write(readme(), format!("{}{want}{}", &text[..from], &text[to..])).unwrap();
        return;
    }
    assert!(
        text[from..to] == *want,
        "README.md: the table {name:?} is not that of the code; SI_UPDATE_README=1 writes it"
    );
}

/// One test, since the tables are written into one file.
#[test]
fn tables_are_those_of_the_code() {
    let mut presets = String::from("| preset | rows |\n|---|---|\n");
    for (name, fields) in PRESETS {
        let rows: Vec<String> = fields.split(|field| *field == "newline").map(|row| row.join(", ")).collect();
        let default = if *name == DEFAULT_PRESET { " (default)" } else { "" };
        writeln!(presets, "| `{name}`{default} | {} |", rows.join("<br>")).unwrap();
    }
    check("presets", &presets);

    let mut fields = String::from("| field | what it shows |\n|---|---|\n");
    for field in FIELDS {
        writeln!(fields, "| `{}` | {} |", field.name, field.about).unwrap();
    }
    fields.push_str("| `newline` | begins a row |\n");
    check("fields", &fields);
}

/// A page that names a file of the repository must not lead nowhere.
#[test]
fn links_lead_somewhere() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            assert!(file.contains("://") || root.join(file).exists(), "{page} links to {target}, which is not there");
        }
    }
}
