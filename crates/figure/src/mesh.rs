//! The axes and the grid of a chart, the same in all pictures.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// Letters and axes. The page over all reports replaces it where the background is dark.
pub const INK: RGBColor = RGBColor(0x24, 0x29, 0x2F);
/// The lines of the grid.
pub const GRID: RGBColor = RGBColor(0xD8, 0xDE, 0xE4);

/// A chart of numbers over numbers.
pub type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Why it could not be drawn.
type Fault = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

/// The text and the numbers of an axis.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The quantity, with its unit.
    pub text: &'a str,
    /// About how many numbers it has.
    pub count: usize,
}

/// Draws axes and grid, in letters of this size. Without `x` nothing stands at the lower axis.
///
/// # Errors
///
/// Where it cannot be drawn.
pub fn mesh(chart: &mut Chart<'_, '_>, x: Option<Labels<'_>>, y: Labels<'_>, size: i32) -> Result<(), Fault> {
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .y_labels(y.count)
        .y_label_formatter(&tick)
        .y_desc(y.text)
        .label_style(("sans-serif", size).into_font().color(&INK));
    match x {
        Some(x) => mesh.x_labels(x.count).x_label_formatter(&tick).x_desc(x.text),
        None => mesh.disable_x_axis(),
    };
    mesh.draw()
}

/// A label of an axis: a number with no more digits than it needs.
fn tick(value: &f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}
