//! Tables: the paper's number beside ours.

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// A quantity of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a ratio or a count.
    pub unit: String,
}

/// Where a number beside the paper's comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A draft of the same authors that the paper cites.
    Draft,
    /// htsim, run with the same network.
    Htsim,
    /// Somebody's memory of a publication that is not at hand: nobody has checked it.
    Memory,
    /// A model of the same network by others, in a language of their own.
    Model,
    /// The report of mqvpn's authors on their own runs.
    Mqvpn,
}

impl Source {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Draft, Self::Htsim, Self::Memory, Self::Model, Self::Mqvpn];

    /// The title of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Htsim => "htsim",
            Self::Memory => "memory",
            Self::Model => "model",
            Self::Mqvpn => "mqvpn",
        }
    }
}

/// A quantity of one row: the paper's number, what theory says, and ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The number printed in the paper, and nothing else.
    pub paper: Option<f64>,
    /// A number from another source.
    pub elsewhere: Option<(Source, f64)>,
    /// The number from a closed form or a fixed point.
    pub theory: Option<f64>,
    /// Our result.
    pub ours: Option<Estimate>,
}

impl Cell {
    /// Nothing is to be said.
    pub const EMPTY: Self = Self { paper: None, elsewhere: None, theory: None, ours: None };

    /// Ours, estimated from one sample for each seed.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Self {
        Self { ours: Estimate::of(samples), ..Self::EMPTY }
    }

    /// The same with the paper's number.
    pub fn paper(self, value: f64) -> Self {
        Self { paper: Some(value), ..self }
    }

    /// The same with a number from elsewhere.
    pub fn elsewhere(self, source: Source, value: f64) -> Self {
        Self { elsewhere: Some((source, value)), ..self }
    }

    /// The same with what theory says.
    pub fn theory(self, value: f64) -> Self {
        Self { theory: Some(value), ..self }
    }

    /// Our mean; 0 where there is none.
    pub fn mean(&self) -> f64 {
        self.ours.as_ref().map_or(0.0, |ours| ours.mean)
    }

    /// Ours with its interval; unknown where there is none.
    pub fn estimate(&self) -> Estimate {
        self.ours.clone().unwrap_or_else(Estimate::unknown)
    }
}

/// Ours alone; an unknown estimate is none.
impl From<Estimate> for Cell {
    fn from(ours: Estimate) -> Self {
        Self { ours: Some(ours).filter(|ours| ours.mean.is_finite()), ..Self::EMPTY }
    }
}

/// A bar as high as ours, with the paper's number.
impl From<Cell> for fairpath_figure::Bar {
    fn from(cell: Cell) -> Self {
        Self { ours: cell.ours, paper: cell.paper }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The name of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The titles of the first columns, which name the subject of a row.
    pub heads: Vec<String>,
    /// The quantities.
    pub columns: Vec<Column>,
    /// For each row what it is about, and the quantities.
    pub rows: Vec<(Vec<String>, Vec<Cell>)>,
}

impl Table {
    /// A table without rows. `columns` are pairs of a name and a unit.
    pub fn new(name: &str, title: &str, heads: &[&str], columns: &[(&str, &str)]) -> Self {
        let column = |(name, unit): &(&str, &str)| Column { name: (*name).to_owned(), unit: (*unit).to_owned() };
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            heads: heads.iter().map(|head| (*head).to_owned()).collect(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: what it is about, and the quantities.
    ///
    /// # Panics
    ///
    /// Where it has not as many as the table has.
    pub fn row<const HEADS: usize, const CELLS: usize>(&mut self, heads: [&str; HEADS], cells: [Cell; CELLS]) {
        self.push(&heads, &cells);
    }

    /// Adds a row of as many cells as there happen to be.
    ///
    /// # Panics
    ///
    /// Where it has not as many as the table has.
    pub fn push(&mut self, heads: &[&str], cells: &[Cell]) {
        assert_eq!((heads.len(), cells.len()), (self.heads.len(), self.columns.len()), "a row of {}", self.name);
        self.rows.push((heads.iter().map(|head| (*head).to_owned()).collect(), cells.to_vec()));
    }

    /// The cell in a row, found by what it is about, and a column, found by its name.
    pub fn cell(&self, heads: &[&str], column: &str) -> Option<&Cell> {
        let at = self.columns.iter().position(|one| one.name == column)?;
        let row = self.rows.iter().find(|(row, _)| row.iter().map(String::as_str).eq(heads.iter().copied()))?;
        row.1.get(at)
    }

    /// Ours in a cell, with its interval; unknown where there is no such cell, or nothing in it.
    pub fn estimate(&self, heads: &[&str], column: &str) -> Estimate {
        self.cell(heads, column).map_or_else(Estimate::unknown, Cell::estimate)
    }

    /// Comma-separated values, one line for each quantity of each row. What is not known is empty.
    pub(crate) fn csv(&self) -> String {
        let mut text = self.heads.iter().map(|head| quoted(head) + ",").collect::<String>();
        text += "quantity,unit,paper,elsewhere,source,theory,mean,half_width_95,samples\n";
        for (heads, cells) in &self.rows {
            for (column, cell) in self.columns.iter().zip(cells).filter(|(_, cell)| **cell != Cell::EMPTY) {
                let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                let ours = cell.ours.as_ref();
                text.extend(heads.iter().map(|head| quoted(head) + ","));
                let line = [
                    quoted(&column.name),
                    quoted(&column.unit),
                    number(cell.paper),
                    number(cell.elsewhere.map(|(_, value)| value)),
                    cell.elsewhere.map(|(source, _)| source.name().to_owned()).unwrap_or_default(),
                    number(cell.theory),
                    number(ours.map(|ours| ours.mean)),
                    number(ours.and_then(|ours| ours.half_width)),
                    ours.map(|ours| ours.samples.to_string()).unwrap_or_default(),
                ];
                text += &line.join(",");
                text.push('\n');
            }
        }
        text
    }
}

/// A text as a field of comma-separated values, as RFC 4180 has them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("t", "T", &["paths", "flow"], &[("goodput", "Mbit/s"), ("lost", "")]);
        table.row(["10, 5", "DAIMD"], [Cell::of([4.0, 5.0]).paper(4.4), Cell::EMPTY]);
        table
    }

    #[test]
    fn the_lines_say_the_unit_and_both_numbers() {
        let expected = "paths,flow,quantity,unit,paper,elsewhere,source,theory,mean,half_width_95,samples\n\
            \"10, 5\",DAIMD,goodput,Mbit/s,4.4,,,,4.5,6.353,2\n";
        assert_eq!(table().csv(), expected);
    }

    #[test]
    fn a_cell_is_found_by_its_heads_and_its_column() {
        assert_eq!(table().cell(&["10, 5", "DAIMD"], "goodput").unwrap().mean(), 4.5);
        assert_eq!(table().cell(&["10, 5", "LIA"], "goodput"), None);
        assert_eq!(table().cell(&["10, 5", "DAIMD"], "delay"), None);
    }
}
