//! Figures: what is in them. How they are drawn is in `draw`.

use fairpath_core::Estimate;
use serde::{Deserialize, Serialize};

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// In which unit; empty for a ratio or a count.
    pub unit: String,
}

impl Axis {
    /// An axis.
    pub fn new(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned() }
    }

    pub(crate) fn text(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} [{}]", self.label, self.unit) }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The algorithm, which gives it its colour.
    pub algorithm: String,
    /// Whether it is dashed, to tell it from another of the same algorithm.
    pub dashed: bool,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Points that are marked with a circle.
    pub marks: Vec<(f64, f64)>,
    /// The meaning of the circles; empty where there are none.
    pub marks_name: String,
    /// At some of its points, from where to where the interval reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<(f64, (f64, f64))>,
}

impl Series {
    /// A line through these points.
    pub fn new(name: &str, algorithm: &str, points: Vec<(f64, f64)>) -> Self {
        let (name, algorithm) = (name.to_owned(), algorithm.to_owned());
        Self {
            name,
            algorithm,
            dashed: false,
            points,
            marks: Vec::new(),
            marks_name: String::new(),
            intervals: Vec::new(),
        }
    }

    /// The same, dashed.
    pub fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }

    /// The same with intervals: at which point, and from where to where.
    pub fn intervals(self, intervals: Vec<(f64, (f64, f64))>) -> Self {
        Self { intervals, ..self }
    }

    /// The same with these points in circles.
    pub fn marked(self, name: &str, marks: Vec<(f64, f64)>) -> Self {
        Self { marks, marks_name: name.to_owned(), ..self }
    }
}

/// Values from the highest to the lowest, over their rank from 1 on.
pub fn ranked(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(|a, b| b.total_cmp(a));
    values.into_iter().enumerate().map(|(at, value)| ((at + 1) as f64, value)).collect()
}

/// Lines over one axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// Its heading.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards, from zero.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// A bar. Without both numbers there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// How high it is, with its interval.
    pub ours: Option<Estimate>,
    /// The paper's number, drawn as a diamond.
    pub paper: Option<f64>,
}

impl From<Estimate> for Bar {
    fn from(ours: Estimate) -> Self {
        Self { ours: Some(ours), paper: None }
    }
}

/// The bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// The algorithm, which gives it its colour.
    pub algorithm: String,
    /// One for each group.
    pub values: Vec<Bar>,
}

impl BarSeries {
    /// Bars, one for each group.
    pub fn new(name: &str, algorithm: &str, values: impl IntoIterator<Item: Into<Bar>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        Self { name: name.to_owned(), algorithm: algorithm.to_owned(), values }
    }
}

/// Bars side by side in groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Its heading.
    pub title: String,
    /// Upwards, from zero.
    pub y: Axis,
    /// The text below each group.
    pub groups: Vec<String>,
    /// The bars.
    pub series: Vec<BarSeries>,
}

/// A part of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Panel {
    /// Lines over one axis.
    Lines(Lines),
    /// Bars side by side.
    Bars(Bars),
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name of its file.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Its parts, two in a row where there are several.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// A figure without parts.
    pub fn new(name: &str, title: &str) -> Self {
        Self { name: name.to_owned(), title: title.to_owned(), panels: Vec::new() }
    }

    /// The same with lines added.
    pub fn lines(mut self, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        self.panels.push(Panel::Lines(Lines { title: title.to_owned(), x, y, series }));
        self
    }

    /// The same with bars added.
    pub fn bars(mut self, title: &str, y: Axis, groups: &[&str], series: Vec<BarSeries>) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.panels.push(Panel::Bars(Bars { title: title.to_owned(), y, groups, series }));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_begin_at_one_with_the_highest() {
        assert_eq!(ranked([1.0, 3.0, 2.0]), [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]);
    }
}
