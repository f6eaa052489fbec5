//! Lines over one axis.

use plotters::prelude::*;

use super::palette::colour;
use super::sheet::{Area, Entry, Fault, LABEL, Sign, head, top};
use crate::figure::{Axis, Lines, Series};
use crate::mesh::{Labels, mesh};

pub(super) fn draw(area: &Area<'_>, lines: &Lines) -> Result<(), Fault> {
    let area = head(area, &lines.title, &legend(&lines.series))?;
    let points = || lines.series.iter().flat_map(|series| &series.points);
    let right = points().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
    let left = points().map(|(x, _)| *x).fold(right, f64::min).min(right - 1e-9);
    // An axis that nearly begins at zero does begin there.
    let left = if left > 0.0 && left < 0.1 * right { 0.0 } else { left };
    let reach = lines.series.iter().flat_map(|series| &series.intervals).map(|(_, (_, to))| *to);
    let (left, right) = if right.is_finite() { (left, right) } else { (0.0, 1.0) };
    let mut chart = ChartBuilder::on(&area)
        .margin_left(14)
        .margin_right(20)
        .margin_bottom(6)
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d(left..right, 0.0..top(points().map(|(_, y)| *y).chain(reach)))?;
    let [x, y] = [&lines.x, &lines.y].map(Axis::text);
    mesh(&mut chart, Some(Labels { text: &x, count: 9 }), Labels { text: &y, count: 7 }, LABEL)?;
    for series in &lines.series {
        let style = colour(&series.algorithm).stroke_width(if series.points.len() > 400 { 1 } else { 2 });
        let points = series.points.iter().copied();
        if series.dashed {
            chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
        } else {
            chart.draw_series(LineSeries::new(points, style))?;
        }
        let interval = |(x, (from, to)): &(f64, (f64, f64))| PathElement::new([(*x, from.max(0.0)), (*x, *to)], style);
        chart.draw_series(series.intervals.iter().map(interval))?;
        let ring = colour(&series.algorithm).stroke_width(1);
        chart.draw_series(series.marks.iter().map(|mark| Circle::new(*mark, 4, ring)))?;
    }
    Ok(())
}

fn legend(series: &[Series]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for one in series {
        let sign = if one.dashed { Sign::Dashes } else { Sign::Line };
        entries.push((one.name.clone(), colour(&one.algorithm), sign));
    }
    for one in series.iter().filter(|one| !one.marks_name.is_empty()) {
        let entry = (one.marks_name.clone(), colour(&one.algorithm), Sign::Circle);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}
