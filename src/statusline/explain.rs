//! `si statusline --explain`: what each configured field shows, where its value came from, and what finding it cost.

use std::fmt::Write;
use std::time::Instant;

use super::context::Context;
use super::fields::{self, NEWLINE};
use super::layout;
use crate::text;

/// The widest value that is shown, in columns.
const MAX_VALUE: usize = 60;

/// A table with one line for each configured field. A source is found once, so its cost stands with the first field
/// that asked for it.
pub fn render(ctx: &Context<'_>) -> String {
    let mut lines = vec![["FIELD", "VALUE", "SOURCE", "MS"].map(String::from)];
    for name in ctx.config.statusline.fields.iter().filter(|name| *name != NEWLINE) {
        let Some(field) = fields::by_name(name) else {
            let name = text::fit(&text::sanitize(name), MAX_VALUE).into_owned();
            lines.push([name, "(not a field)".into(), String::new(), String::new()]);
            continue;
        };
        ctx.take_seen();
        let begun = Instant::now();
        let cell = super::cell(ctx, field);
        let cost = format!("{:.2}", begun.elapsed().as_secs_f64() * 1e3);
        let value = cell.map(|cell| layout::fit(vec![cell], "", None).render("", false)).unwrap_or_default();
        let value = if value.is_empty() { "(empty)".into() } else { text::fit(&value, MAX_VALUE).into_owned() };
        lines.push([field.name.into(), value, ctx.take_seen().join(", "), cost]);
    }
    if let Some(broken) = &ctx.config.broken {
        lines.push([
            "config!".into(),
            text::sanitize(&broken.why).into_owned(),
            broken.path.display().to_string(),
            String::new(),
        ]);
    }
    table(&lines)
}

fn table(lines: &[[String; 4]]) -> String {
    let widths: Vec<usize> =
        (0..3).map(|column| lines.iter().map(|line| text::width(&line[column])).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        let mut row = String::new();
        for (column, width) in widths.iter().enumerate() {
            let pad = width - text::width(&line[column]);
            let _ = write!(row, "{}{}  ", line[column], " ".repeat(pad)); // a String takes everything
        }
        row.push_str(&line[3]);
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}
