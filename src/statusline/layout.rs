//! Cells to rows: what is cut, shortened or left out so that a row fits the terminal.

use super::style::{Role, paint};
use crate::text;

/// A piece of text in one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What it is for.
    pub role: Role,
    /// What it says; safe for a terminal.
    pub text: String,
}

/// How a cell may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flex {
    /// Not at all: it is shown or left out.
    #[default]
    Rigid,
    /// At its end.
    End,
    /// In the middle, so that the last name of a path stays.
    Path,
}

/// What one field shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    /// The bar before the text.
    pub bar: Option<Bar>,
    /// The text.
    pub spans: Vec<Span>,
    /// How it may be shortened; cells with more than one span are rigid.
    pub flex: Flex,
    /// How long it stays when the row is too narrow: the least goes first, [`STAYS`] never.
    pub rank: u8,
    /// Whether a space, not a separator, follows.
    pub glued: bool,
}

/// The rank of cells that are never left out.
pub const STAYS: u8 = u8::MAX;

impl Cell {
    /// A cell of one piece of text.
    pub fn new(role: Role, text: impl Into<String>) -> Cell {
        Cell { spans: vec![Span { role, text: text.into() }], ..Cell::default() }
    }

    /// The same with another piece of text behind.
    pub fn and(mut self, role: Role, text: impl Into<String>) -> Cell {
        self.spans.push(Span { role, text: text.into() });
        self
    }

    /// The same, made to be shortened.
    pub fn flexible(mut self, flex: Flex) -> Cell {
        self.flex = flex;
        self
    }

    /// Whether it shows nothing.
    pub fn is_empty(&self) -> bool {
        self.bar.is_none() && self.spans.iter().all(|span| span.text.trim().is_empty())
    }

    /// Columns it takes with a bar of `bar` cells.
    fn width(&self, bar: usize) -> usize {
        let bar = if self.bar.is_some() && bar > 0 { bar + 1 } else { 0 };
        bar + self.spans.iter().map(|span| text::width(&span.text)).sum::<usize>()
    }

    /// Columns it can be shortened to, text cells to `least`.
    fn least_width(&self, bar: usize, least: usize) -> usize {
        let width = self.width(bar);
        if self.flex == Flex::Rigid || self.spans.len() != 1 { width } else { width.min(least) }
    }

    /// Shortens a text cell to at most `max` columns.
    fn shorten(&mut self, max: usize) {
        let [span] = self.spans.as_mut_slice() else { return };
        span.text = match self.flex {
            Flex::Rigid => return,
            Flex::End => text::fit(&span.text, max).into_owned(),
            Flex::Path => fit_path(&span.text, max),
        };
    }
}

/// The bar of the context: how much of the window is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// Tokens in use.
    pub used: u64,
    /// Tokens that the window holds.
    pub cap: u64,
    /// How the filled part looks.
    pub role: Role,
}

impl Bar {
    /// Filled cells of `width`: rounded down, but one at least when anything is used.
    pub fn filled(&self, width: usize) -> usize {
        let share = (width as u128 * u128::from(self.used) / u128::from(self.cap.max(1))) as usize;
        share.max(usize::from(self.used > 0)).min(width)
    }

    /// Filled and empty part.
    pub fn spans(&self, width: usize) -> [Span; 2] {
        let filled = self.filled(width);
        [Span { role: self.role, text: "▰".repeat(filled) }, Span { role: Role::Dim, text: "▱".repeat(width - filled) }]
    }
}

/// The widths that the bar may have, the preferred one first. Without one it is left out.
pub const BAR: [usize; 3] = [20, 10, 4];

/// How narrow a row may make its bar and its text cells before a cell goes, from comfortable to tight.
const LEVELS: [(usize, usize); 4] = [(BAR[0], 16), (BAR[1], 16), (BAR[1], 8), (BAR[2], 8)];

/// A fitted row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    cells: Vec<Cell>,
    bar: usize,
}

/// Fits the cells of one row into `max` columns (no limit without): text cells are shortened first and the bar with them,
/// then whole cells go, the least important and right-most first.
pub fn fit(mut cells: Vec<Cell>, separator: &str, max: Option<usize>) -> Row {
    cells.retain(|cell| !cell.is_empty());
    let Some(max) = max else { return Row { cells, bar: BAR[0] } };
    loop {
        for (bar, least) in LEVELS {
            let gaps = gaps(&cells, separator);
            let narrowest = gaps + cells.iter().map(|cell| cell.least_width(bar, least)).sum::<usize>();
            if narrowest <= max {
                shorten(&mut cells, bar, least, max - gaps);
                return Row { cells, bar };
            }
        }
        let goes =
            cells.iter().enumerate().rev().filter(|(_, cell)| cell.rank < STAYS).min_by_key(|(_, cell)| cell.rank);
        match goes.map(|(at, _)| at) {
            Some(at) if cells.len() > 1 || cells[at].flex == Flex::Rigid => drop(cells.remove(at)),
            Some(at) => {
                cells[at].shorten(max);
                return Row { cells, bar: 0 };
            }
            None => return Row { cells, bar: 0 },
        }
    }
}

/// Takes columns from the widest text cells until all cells take at most `max`.
fn shorten(cells: &mut [Cell], bar: usize, least: usize, max: usize) {
    let width_at = |level: usize, cells: &[Cell]| {
        cells.iter().map(|cell| cell.width(bar).min(cell.least_width(bar, least).max(level))).sum::<usize>()
    };
    let widest = cells.iter().map(|cell| cell.width(bar)).max().unwrap_or(0);
    let Some(level) = (0..=widest).rev().find(|&level| width_at(level, cells) <= max) else { return };
    for cell in cells {
        let room = cell.least_width(bar, least).max(level);
        if cell.flex != Flex::Rigid && cell.width(bar) > room {
            cell.shorten(room);
        }
    }
}

fn gaps(cells: &[Cell], separator: &str) -> usize {
    let between = &cells[..cells.len().saturating_sub(1)];
    between.iter().map(|cell| if cell.glued { 1 } else { text::width(separator) }).sum()
}

/// A path in at most `max` columns: the middle goes, the last name stays as long as it fits.
fn fit_path(path: &str, max: usize) -> String {
    if text::width(path) <= max {
        return path.into();
    }
    let leaf = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let room = max.saturating_sub(text::width(leaf) + 2);
    if room == 0 {
        return text::fit(leaf, max).into_owned();
    }
    // One more than the room, since the cut brings its own ellipsis.
    format!("{}/{leaf}", text::fit(path, room + 1))
}

impl Row {
    /// Whether it shows nothing.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The row as it goes to the terminal.
    pub fn render(&self, separator: &str, colors: bool) -> String {
        let mut out = String::new();
        for (at, cell) in self.cells.iter().enumerate() {
            match at.checked_sub(1).map(|before| self.cells[before].glued) {
                Some(true) => out.push(' '),
                Some(false) => paint(&mut out, Role::Separator, separator, colors),
                None => {}
            }
            if let Some(bar) = cell.bar.filter(|_| self.bar > 0) {
                for span in bar.spans(self.bar) {
                    paint(&mut out, span.role, &span.text, colors);
                }
                out.push(' ');
            }
            for span in &cell.spans {
                paint(&mut out, span.role, &span.text, colors);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens() -> Cell {
        let bar = Some(Bar { used: 425_000, cap: 1_000_000, role: Role::Red });
        Cell { bar, rank: STAYS, ..Cell::new(Role::Red, "425k").and(Role::Dim, "/1M (43%)") }
    }

    fn cell(text: &str, flex: Flex, rank: u8) -> Cell {
        Cell { rank, ..Cell::new(Role::Dim, text).flexible(flex) }
    }

    fn fitted(cells: &[Cell], max: usize) -> String {
        fit(cells.to_vec(), " · ", Some(max)).render(" · ", false)
    }

    #[test]
    fn text_is_shortened_before_a_cell_goes_and_the_least_important_goes_first() {
        let cells = [
            tokens(),
            cell("compact:1hr 22m ago", Flex::Rigid, 60),
            cell("a task that is long enough", Flex::End, 50),
            cell("612 tools", Flex::Rigid, 25),
        ];
        for (max, row) in [
            (98, "▰▰▰▰▰▰▰▰▱▱▱▱▱▱▱▱▱▱▱▱ 425k/1M (43%) · compact:1hr 22m ago · a task that is long enough · 612 tools"),
            (90, "▰▰▰▰▰▰▰▰▱▱▱▱▱▱▱▱▱▱▱▱ 425k/1M (43%) · compact:1hr 22m ago · a task that is lon… · 612 tools"),
            (80, "▰▰▰▰▱▱▱▱▱▱ 425k/1M (43%) · compact:1hr 22m ago · a task that is lon… · 612 tools"),
            (64, "▰▱▱▱ 425k/1M (43%) · compact:1hr 22m ago · a task t… · 612 tools"),
            (55, "▰▱▱▱ 425k/1M (43%) · compact:1hr 22m ago · a task that…"),
            (50, "▰▰▰▰▱▱▱▱▱▱ 425k/1M (43%) · compact:1hr 22m ago"),
            (30, "▰▰▰▰▱▱▱▱▱▱ 425k/1M (43%)"),
            (15, "425k/1M (43%)"),
            (5, "425k/1M (43%)"),
        ] {
            assert_eq!(fitted(&cells, max), row, "{max}");
        }
    }

    #[test]
    fn of_equals_the_right_most_goes_first() {
        let cells = [cell("left", Flex::Rigid, 5), cell("right", Flex::Rigid, 5)];
        assert_eq!(fitted(&cells, 9), "left");
    }

    #[test]
    fn a_path_keeps_its_last_name_as_long_as_it_fits() {
        for (max, path) in
            [(30, "~/work/projects/orchid"), (20, "~/work/proje…/orchid"), (9, "~…/orchid"), (8, "orchid"), (4, "orc…")]
        {
            assert_eq!(fit_path("~/work/projects/orchid", max), path, "{max}");
        }
    }

    #[test]
    fn a_bar_is_never_fuller_than_the_window_and_never_empty_in_use() {
        for (used, filled) in
            [(0, 0), (1, 1), (49_999, 1), (100_000, 2), (999_999, 19), (1_000_000, 20), (u64::MAX, 20)]
        {
            assert_eq!(Bar { used, cap: 1_000_000, role: Role::Green }.filled(20), filled, "{used}");
        }
        assert_eq!(Bar { used: 5, cap: 0, role: Role::Green }.filled(20), 20);
    }

    proptest! {
        #[test]
        fn a_row_fits_whatever_is_in_it(
            texts in prop::collection::vec(("[a-z日本🔥é/ ]{0,40}", 0u8..3, 0u8..100, any::<bool>()), 0..8),
            max in 1usize..160,
        ) {
            let flex = [Flex::Rigid, Flex::End, Flex::Path];
            let cells = texts.iter().map(|(text, kind, rank, glued)| {
                Cell { glued: *glued, ..cell(text, flex[usize::from(*kind)], *rank) }
            });
            let cells: Vec<Cell> = std::iter::once(tokens()).chain(cells).collect();
            let row = fitted(&cells, max);
            prop_assert!(row.contains("425k/1M (43%)"));
            prop_assert!(text::width(&row) <= max.max(text::width("425k/1M (43%)")), "{} > {max}: {row}", text::width(&row));
        }
    }
}
