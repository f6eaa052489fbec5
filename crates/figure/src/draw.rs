//! Figures as SVG. The same figure gives the same bytes.

mod bars;
mod lines;
mod palette;
mod sheet;

use plotters::prelude::*;

use crate::figure::{Figure, Panel};
use crate::mesh::INK;
use sheet::{Fault, HEADING, PAPER, write_text};

const PANEL: (u32, u32) = (620, 380);
const TITLE: u32 = 40;

/// A figure could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {figure}: {why}")]
pub struct DrawError {
    /// Which.
    pub figure: String,
    /// Why.
    pub why: String,
}

impl Figure {
    /// The figure as an SVG document.
    ///
    /// # Errors
    ///
    /// Where it cannot be drawn.
    pub fn svg(&self) -> Result<String, DrawError> {
        draw(self).map_err(|fault| DrawError { figure: self.name.clone(), why: fault.to_string() })
    }
}

fn draw(figure: &Figure) -> Result<String, Fault> {
    let columns = figure.panels.len().clamp(1, 2);
    let rows = figure.panels.len().div_ceil(columns);
    let size = (PANEL.0 * columns as u32, TITLE + PANEL.1 * rows as u32);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&PAPER)?;
        let (title, rest) = root.split_vertically(TITLE);
        write_text(&title, &figure.title, (16, 10), HEADING, INK)?;
        for (area, panel) in rest.split_evenly((rows, columns)).iter().zip(&figure.panels) {
            match panel {
                Panel::Lines(lines) => lines::draw(area, lines)?,
                Panel::Bars(bars) => bars::draw(area, bars)?,
            }
        }
        root.present()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use fairpath_core::Estimate;

    use super::*;
    use crate::figure::{Axis, Bar, BarSeries, Series};

    fn figure() -> Figure {
        let (x, y) = (Axis::new("time", "s"), Axis::new("window", "packets"));
        let wave = (0..50).map(|at| (f64::from(at), f64::from(at % 10))).collect::<Vec<_>>();
        let line = Series::new("DAIMD, path A", "daimd", wave.clone()).marked("delay cut", vec![(9.0, 9.0)]);
        let other = Series::new("LIA, path A", "lia", wave).dashed();
        let bars = BarSeries::new(
            "LIA",
            "lia",
            vec![Bar { ours: Estimate::of([3.0, 4.0]), paper: Some(3.4) }, Bar::default()],
        );
        Figure::new("f", "A figure & more").lines("windows", x, y.clone(), vec![line, other]).bars(
            "bars",
            y,
            &["a", "b"],
            vec![bars],
        )
    }

    #[test]
    fn axes_have_units_and_the_legend_has_names() {
        let svg = figure().svg().unwrap();
        for text in [
            "time [s]",
            "window [packets]",
            "DAIMD, path A",
            "LIA, path A",
            "delay cut",
            "A figure &amp; more",
            "paper",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(svg.contains(&palette::hex("daimd")) && svg.contains(&palette::hex("lia")));
    }

    #[test]
    fn an_interval_is_a_line_and_finds_room() {
        let drawn = |intervals| {
            let line = Series::new("a", "lia", vec![(0.0, 1.0), (1.0, 1.0)]).intervals(intervals);
            let figure = Figure::new("f", "").lines("", Axis::new("x", ""), Axis::new("y", ""), vec![line]);
            figure.svg().unwrap()
        };
        let (without, with) = (drawn(vec![]), drawn(vec![(1.0, (-1.0, 9.0))]));
        // The grid has other lines where the axis is another.
        let lines = |svg: &str| svg.matches(&palette::hex("lia")).count();
        assert_eq!(lines(&with), lines(&without) + 1);
        let reaches = |svg: &str| (4..=9).any(|label| svg.contains(&format!(">\n{label}\n<")));
        assert!(reaches(&with) && !reaches(&without), "{with}");
    }

    #[test]
    fn a_figure_without_points_can_be_drawn() {
        let (x, y) = (Axis::new("time", "s"), Axis::new("window", ""));
        let empty = Figure::new("f", "").lines("none", x, y.clone(), vec![]).bars("none", y, &[], vec![]);
        assert!(empty.svg().unwrap().contains("<svg"));
    }
}
