//! Figures as SVG. The same figure gives the same bytes.

mod bars;
mod lines;
mod palette;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figure::{Figure, Panel};
use crate::store::StoreError;

/// The colours that the page replaces, so that a figure also suits a dark background.
pub(crate) const INK: RGBColor = RGBColor(0x24, 0x29, 0x2F);
pub(crate) const GRID: RGBColor = RGBColor(0xD8, 0xDE, 0xE4);
pub(crate) const PAPER: RGBColor = WHITE;

/// Sizes of letters, which come out at four fifths of this.
const HEADING: i32 = 22;
const SUBHEADING: i32 = 18;
pub(crate) const LABEL: i32 = 16;

const PANEL: (u32, u32) = (620, 380);
const TITLE: u32 = 40;
/// The title of a panel and its legend.
const PANEL_HEAD: u32 = 48;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A picture of the figure.
pub(crate) fn svg(figure: &Figure) -> Result<String, StoreError> {
    draw(figure).map_err(|fault| StoreError::Draw { figure: figure.name.clone(), why: fault.to_string() })
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

/// Text whose upper left corner is at the point.
fn write_text(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, colour: RGBColor) -> Result<(), Fault> {
    let style = ("sans-serif", size).into_font().color(&colour).pos(Pos::new(HPos::Left, VPos::Top));
    area.draw_text(text, &style, at)?;
    Ok(())
}

/// What a legend shows for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Line,
    Dashes,
    Circle,
    Bar,
    Diamond,
}

/// An entry of a legend.
type Entry = (String, RGBColor, Sign);

/// Writes the title and the legend, and gives what is left for the chart.
fn head<'a>(area: &Area<'a>, title: &str, legend: &[Entry]) -> Result<Area<'a>, Fault> {
    let (top, rest) = area.split_vertically(PANEL_HEAD);
    write_text(&top, title, (16, 2), SUBHEADING, INK)?;
    let mut x = 16;
    for (name, colour, sign) in legend {
        draw_sign(&top, *sign, *colour, (x, 34))?;
        write_text(&top, name, (x + 28, 28), LABEL, INK)?;
        // A letter of this size is about so wide on average.
        x += 28 + 7 * name.chars().count() as i32 + 14;
    }
    Ok(rest)
}

fn draw_sign(area: &Area<'_>, sign: Sign, colour: RGBColor, (x, y): (i32, i32)) -> Result<(), Fault> {
    match sign {
        Sign::Line => area.draw(&PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2)))?,
        Sign::Dashes => {
            for begin in [x, x + 8, x + 16] {
                area.draw(&PathElement::new([(begin, y), (begin + 5, y)], colour.stroke_width(2)))?;
            }
        }
        Sign::Circle => area.draw(&Circle::new((x + 11, y), 4, colour.stroke_width(1)))?,
        Sign::Bar => area.draw(&Rectangle::new([(x + 4, y - 6), (x + 18, y + 6)], colour.filled()))?,
        Sign::Diamond => area.draw(&diamond((x + 11, y), colour))?,
    }
    Ok(())
}

/// An empty diamond around a point in pixels.
fn diamond((x, y): (i32, i32), colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y), (x, y - 5)], colour.stroke_width(2))
}

/// The upper end of an axis that begins at zero and shows these values.
fn top(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if most > 0.0 { most * 1.08 } else { 1.0 }
}

/// A label of an axis: a number with no more digits than it needs.
fn tick(value: &f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, BarSeries, Series};
    use crate::table::Cell;

    fn figure() -> Figure {
        let (x, y) = (Axis::new("time", "s"), Axis::new("window", "packets"));
        let wave = (0..50).map(|at| (f64::from(at), f64::from(at % 10))).collect::<Vec<_>>();
        let line = Series::new("DAIMD, path A", "daimd", wave.clone()).marked("delay cut", vec![(9.0, 9.0)]);
        let other = Series::new("LIA, path A", "lia", wave).dashed();
        let bars = BarSeries::new("LIA", "lia", vec![Cell::of([3.0, 4.0]).paper(3.4), Cell::EMPTY]);
        Figure::new("f", "A figure & more").lines("windows", x, y.clone(), vec![line, other]).bars(
            "bars",
            y,
            &["a", "b"],
            vec![bars],
        )
    }

    #[test]
    fn axes_have_units_and_the_legend_has_names() {
        let svg = svg(&figure()).unwrap();
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
            svg(&figure).unwrap()
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
        assert!(svg(&empty).unwrap().contains("<svg"));
    }
}
