//! Reports as text: for a terminal, and for tests.

use std::fmt::Write as _;

use crate::Estimate;
use crate::table::{Cell, Source, Table};
use crate::verdict::{Check, Claimant, Relation, Standing, Verdict};

/// A number with so many significant digits, but never with an exponent.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    // The exponent as printed, so that rounding up to the next power of ten counts.
    let printed = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent: i32 = printed.rsplit('e').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

/// A mean and its interval. The interval has two significant digits and the mean as many decimals,
/// but not more than make four significant digits of it.
pub(crate) fn estimate(ours: &Estimate) -> String {
    let decimals_of = |text: String| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let mean = significant(ours.mean, 4);
    let Some(width) = ours.half_width else { return mean };
    let decimals = decimals_of(significant(width, 2)).min(decimals_of(mean));
    let (mean, width) = (format!("{:.decimals$}", ours.mean), format!("{width:.decimals$}"));
    if width.contains(|digit: char| ('1'..='9').contains(&digit)) {
        format!("{mean} ± {width}")
    } else {
        significant(ours.mean, 4)
    }
}

/// One of the numbers of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellPart {
    Paper,
    Elsewhere(Source),
    Theory,
    Ours,
}

impl CellPart {
    /// The title of its column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Elsewhere(source) => source.name(),
            Self::Theory => "theory",
            Self::Ours => "ours",
        }
    }

    /// How it is printed; empty where the cell has none.
    pub(crate) fn print(self, cell: &Cell) -> String {
        // As it is printed there; a sum of printed numbers has no more digits than they.
        let printed = |value: f64| ((value * 1e6).round() / 1e6).to_string();
        let text = match self {
            Self::Paper => cell.paper.map(printed),
            Self::Elsewhere(source) => {
                cell.elsewhere.filter(|(from, _)| *from == source).map(|(_, value)| printed(value))
            }
            Self::Theory => cell.theory.map(|value| significant(value, 4)),
            Self::Ours => cell.ours.as_ref().map(estimate),
        };
        text.unwrap_or_default()
    }
}

/// The kinds of numbers that a column of a table has in any row.
pub(crate) fn parts_of(table: &Table, column: usize) -> Vec<CellPart> {
    let elsewhere = Source::ALL.into_iter().map(CellPart::Elsewhere);
    let all = core::iter::once(CellPart::Paper).chain(elsewhere).chain([CellPart::Theory, CellPart::Ours]);
    all.filter(|part| table.rows.iter().any(|(_, cells)| !part.print(&cells[column]).is_empty())).collect()
}

/// A column of the printed grid: two lines of heading, and a line for each row.
struct GridColumn {
    above: String,
    name: String,
    cells: Vec<String>,
    right: bool,
}

/// A table for a terminal; below each quantity the paper's number and ours, with 95 % intervals.
pub fn table_text(table: &Table) -> String {
    let mut columns: Vec<GridColumn> = Vec::new();
    for (at, head) in table.heads.iter().enumerate() {
        let cells = table.rows.iter().map(|(heads, _)| heads[at].clone()).collect();
        columns.push(GridColumn { above: String::new(), name: head.clone(), cells, right: false });
    }
    for (at, column) in table.columns.iter().enumerate() {
        let unit = if column.unit.is_empty() { String::new() } else { format!(" [{}]", column.unit) };
        let mut above = format!("{}{unit}", column.name);
        for part in parts_of(table, at) {
            let cells = table.rows.iter().map(|(_, cells)| part.print(&cells[at])).collect();
            let above = std::mem::take(&mut above);
            columns.push(GridColumn { above, name: part.name().to_owned(), cells, right: true });
        }
    }
    format!("{}\n\n{}", table.title, grid(&columns))
}

fn grid(columns: &[GridColumn]) -> String {
    let length = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = columns
        .iter()
        .map(|column| column.cells.iter().map(|cell| length(cell)).chain([length(&column.name)]).max().unwrap_or(0))
        .collect();
    // A quantity's name stands above all its parts; the last of them is as wide as it needs.
    let mut at = 0;
    while at < columns.len() {
        let parts = 1 + columns[at + 1..].iter().take_while(|next| next.above.is_empty() && next.right).count();
        let there: usize = widths[at..at + parts].iter().sum::<usize>() + 2 * (parts - 1);
        widths[at + parts - 1] += length(&columns[at].above).saturating_sub(there);
        at += parts;
    }
    let mut text = String::new();
    let mut above = String::new();
    let mut begin = 0;
    for (column, width) in columns.iter().zip(&widths) {
        if !column.above.is_empty() {
            let fill = begin - length(&above);
            let _ = write!(above, "{:fill$}{}", "", column.above);
        }
        begin += width + 2;
    }
    let _ = writeln!(text, "{above}");
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..=rows {
        let mut line = String::new();
        for (column, width) in columns.iter().zip(&widths) {
            let cell = if row == 0 { &column.name } else { &column.cells[row - 1] };
            let _ = if column.right { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:<width$}  ") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// An inequality: `total, DAIMD / LIA: 0.742 ± 0.031 ≤ 1`.
pub(crate) fn check(check: &Check) -> String {
    let value = estimate(&Estimate::with_interval(check.value, check.half_width, check.samples));
    let bound = |bound: f64| significant(bound, 4);
    let relation = match check.must_be {
        Relation::AtLeast(low) => format!("{value} ≥ {}", bound(low)),
        Relation::AtMost(high) => format!("{value} ≤ {}", bound(high)),
        Relation::Between(low, high) => format!("{} ≤ {value} ≤ {}", bound(low), bound(high)),
    };
    let standing = match check.standing {
        Standing::Within => String::new(),
        Standing::Overlaps => " holds for a part of the interval".to_owned(),
        Standing::Unclear => match check.samples_needed() {
            Some(needed) if needed.is_finite() => format!(" is open; about {needed:.0} seeds would tell"),
            _ => " is open".to_owned(),
        },
        Standing::Outside => " does not hold".to_owned(),
    };
    format!("{}: {relation}{standing}", check.what)
}

/// The words before a claim that no paper makes.
pub(crate) fn claimant(verdict: &Verdict) -> &'static str {
    match verdict.claimant {
        Claimant::Paper => "",
        Claimant::Ours => "(ours) ",
    }
}

/// A verdict: its outcome and its claim on one line, the inequalities below, and the reason where
/// it does not hold.
pub fn verdict_text(verdict: &Verdict) -> String {
    let whose = claimant(verdict);
    let mut text = format!("{:<9} {whose}{}\n", verdict.outcome.name().to_uppercase(), verdict.claim);
    for one in &verdict.checks {
        let _ = writeln!(text, "          {}", check(one));
    }
    if let Some(reason) = &verdict.reason {
        let _ = writeln!(text, "          Reason: {reason}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_from_the_first_that_is_not_zero() {
        let cases = [(0.0, "0"), (3.456789, "3.457"), (0.012345, "0.01235"), (12345.6, "12346"), (9.99996, "10.00")];
        for (value, text) in cases {
            assert_eq!(significant(value, 4), text);
        }
    }

    #[test]
    fn a_mean_has_the_decimals_of_its_interval() {
        let estimate_of = |mean, half_width| estimate(&Estimate::with_interval(mean, half_width, 5));
        assert_eq!(estimate_of(3.45678, Some(0.0312)), "3.457 ± 0.031");
        assert_eq!(estimate_of(153.2, Some(12.0)), "153 ± 12");
        assert_eq!(estimate_of(3.45678, None), "3.457");
        assert_eq!(estimate_of(7.0, Some(0.0)), "7.000");
        assert_eq!(estimate_of(9.653327, Some(0.000012)), "9.653");
        assert_eq!(estimate_of(14.5, Some(0.00123)), "14.50");
    }

    #[test]
    fn the_papers_number_stands_beside_ours() {
        let mut table = Table::new("t", "Rates", &["flow"], &[("goodput", "Mbit/s"), ("lost", "")]);
        table.row(["DAIMD"], [Cell::of([4.4, 4.6]).paper(4.4), Cell::of([0.0, 0.0])]);
        table.row(["LIA"], [Cell::of([5.0, 5.2]), Cell::of([11.0, 12.0])]);
        let expected = "\
Rates

       goodput [Mbit/s]  lost
flow   paper       ours        ours
DAIMD    4.4  4.5 ± 1.3           0
LIA           5.1 ± 1.3  11.5 ± 6.4
";
        assert_eq!(table_text(&table), expected);
    }

    #[test]
    fn a_number_that_the_paper_does_not_print_has_a_column_of_its_own() {
        let mut table = Table::new("t", "Rates", &["flow"], &[("goodput", "")]);
        table.row(["DAIMD"], [Cell::of([4.5, 4.5]).paper(4.4).elsewhere(Source::Htsim, 4.3)]);
        table.row(["LIA"], [Cell::of([5.0, 5.0]).elsewhere(Source::Memory, 5.2)]);
        let expected = "\
Rates

       goodput
flow   paper  htsim  memory   ours
DAIMD    4.4    4.3          4.500
LIA                     5.2  5.000
";
        assert_eq!(table_text(&table), expected);
    }

    #[test]
    fn numbers_of_every_source_are_shown() {
        for source in Source::ALL {
            let mut table = Table::new("t", "Rates", &["flow"], &[("goodput", "")]);
            table.row(["DAIMD"], [Cell::of([4.5, 4.5]).elsewhere(source, 4.25)]);
            let text = table_text(&table);
            assert!(text.contains(source.name()) && text.contains("4.25"), "{source:?}: {text}");
        }
    }

    #[test]
    fn a_verdict_shows_its_numbers_and_its_reason() {
        let open = Estimate::with_interval(98.0, Some(98.0), 20);
        let verdict = Verdict::ours("x", "DAIMD takes less.")
            .at_most("ratio", Estimate::with_interval(0.5, Some(0.031), 5), 1.0)
            .at_least("rate", 2.0, 3.0)
            .at_most("wait", open, 100.0);
        let expected = "\
PARTLY    (ours) DAIMD takes less.
          ratio: 0.500 ± 0.031 ≤ 1.000
          rate: 2.000 ≥ 3.000 does not hold
          wait: 98 ± 98 ≤ 100.0 is open; about 6904 seeds would tell
          Reason: so
";
        assert_eq!(verdict_text(&verdict.because("so")), expected);
    }
}
