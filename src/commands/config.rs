//! `si config`: every setting in one form.

use anyhow::Result;
use serde_json::{Value, json};

use super::Terminal;
use crate::config::{Config, KEYS, Key, SECTIONS, docs, human, tree};
use crate::text;

/// Columns that a value may take in the form.
const VALUE_COLUMNS: usize = 24;

/// Arguments of `si config`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the form as JSON, with what each setting accepts
    #[arg(long)]
    pub json: bool,
    /// Print the JSON schema of session-intelligence.json
    #[arg(long, conflicts_with = "json")]
    pub schema: bool,
    /// Print the reference page in Markdown
    #[arg(long, conflicts_with_all = ["json", "schema"])]
    pub markdown: bool,
}

/// Prints the form.
pub fn run(terminal: &mut Terminal<'_>, args: &Args) -> Result<()> {
    if args.schema {
        write!(terminal.out, "{}", docs::schema_text()?)?;
        return Ok(());
    }
    if args.markdown {
        write!(terminal.out, "{}", docs::page())?;
        return Ok(());
    }
    let config = Config::load_in(terminal.env, &terminal.folder());
    if args.json {
        writeln!(terminal.out, "{}", serde_json::to_string_pretty(&as_json(terminal, &config))?)?;
        return Ok(terminal.remark_broken(&config)?);
    }
    form(terminal, &config)
}

fn in_section(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section() == section)
}

fn as_json(terminal: &Terminal<'_>, config: &Config) -> Value {
    let dir = terminal.folder();
    let sections = SECTIONS.iter().map(|(section, title)| {
        let keys = in_section(section).map(|key| {
            json!({
                "key": key.path,
                "label": key.label,
                "value": (key.value)(config),
                "shown": cell(config, key),
                "default": key.default_value(),
                "changed": changed(config, key),
                "source": tree::source_in(terminal.env, config, &dir, key).to_string(),
                "accepts": key.accepted(),
                "inForm": key.spec.in_form,
                "help": key.help,
            })
        });
        json!({"section": section, "title": title, "keys": keys.collect::<Vec<_>>()})
    });
    sections.collect()
}

fn changed(config: &Config, key: &Key) -> bool {
    (key.value)(config) != key.default_value()
}

/// A value as the form shows it: numbers short, texts as they are.
fn cell(config: &Config, key: &Key) -> String {
    match (key.value)(config) {
        None => key.spec.unset.unwrap_or("not set").into(),
        Some(Value::String(value)) if value.is_empty() || value.trim() != value => format!("\"{value}\""),
        Some(Value::String(value)) => value,
        Some(Value::Number(number)) => number.as_f64().map_or_else(|| number.to_string(), human),
        Some(value) => value.to_string(),
    }
}

fn form(terminal: &mut Terminal<'_>, config: &Config) -> Result<()> {
    let in_form = || KEYS.iter().filter(|key| key.spec.in_form);
    let labels = in_form().map(|key| text::width(key.label)).max().unwrap_or(0);
    let cells = in_form().map(|key| text::width(&cell(config, key))).max().unwrap_or(0).min(VALUE_COLUMNS);
    for (section, title) in SECTIONS {
        writeln!(terminal.out, "{title}")?;
        for key in in_section(section).filter(|key| key.spec.in_form) {
            let value = text::sanitize(&cell(config, key)).into_owned();
            let value = text::fit(&value, VALUE_COLUMNS);
            let gap = labels - text::width(key.label) + cells.saturating_sub(text::width(&value)) + 2;
            let mark = if changed(config, key) { " *" } else { "" };
            writeln!(terminal.out, "  {}{:gap$}{value}{mark}", key.label, "")?;
        }
    }
    let free: Vec<&str> = KEYS.iter().filter(|key| !key.spec.in_form).map(|key| key.path).collect();
    writeln!(terminal.out, "\n* differs from the default. Change with: si set \"LABEL\" VALUE, or si set KEY VALUE.")?;
    writeln!(terminal.out, "Not in the form: {}.", free.join(", "))?;
    Ok(terminal.remark_broken(config)?)
}
