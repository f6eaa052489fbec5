//! The sheet that lines and bars are drawn on: letters and legends.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::mesh::INK;

/// Behind everything.
pub(super) const PAPER: RGBColor = WHITE;

/// Sizes of letters, which come out at four fifths of this.
pub(super) const HEADING: i32 = 22;
const SUBHEADING: i32 = 18;
pub(super) const LABEL: i32 = 16;

/// The title of a panel and its legend.
const PANEL_HEAD: u32 = 48;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Text whose upper left corner is at the point.
pub(super) fn write_text(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: i32,
    colour: RGBColor,
) -> Result<(), Fault> {
    let style = ("sans-serif", size).into_font().color(&colour).pos(Pos::new(HPos::Left, VPos::Top));
    area.draw_text(text, &style, at)?;
    Ok(())
}

/// The sign of an entry of a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Line,
    Dashes,
    Circle,
    Bar,
    Diamond,
}

/// An entry of a legend.
pub(super) type Entry = (String, RGBColor, Sign);

/// Writes the title and the legend, and gives what is left for the chart.
pub(super) fn head<'a>(area: &Area<'a>, title: &str, legend: &[Entry]) -> Result<Area<'a>, Fault> {
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
pub(super) fn diamond((x, y): (i32, i32), colour: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y), (x, y - 5)], colour.stroke_width(2))
}

/// The upper end of an axis that begins at zero and shows these values.
pub(super) fn top(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if most > 0.0 { most * 1.08 } else { 1.0 }
}
