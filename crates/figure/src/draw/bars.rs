//! Bars side by side in groups, with their 95 % intervals, and a diamond at the paper's number.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::colour;
use super::sheet::{Area, Entry, Fault, LABEL, Sign, diamond, head, top};
use crate::figure::{Bar, Bars};
use crate::mesh::{Chart, INK, Labels, mesh};

pub(super) fn draw(area: &Area<'_>, bars: &Bars) -> Result<(), Fault> {
    let area = head(area, &bars.title, &legend(bars))?;
    let groups = bars.groups.len().max(1);
    let all = bars.series.iter().flat_map(|series| &series.values);
    let reach = |bar: &Bar| {
        let ours = bar.ours.as_ref().map_or(0.0, |ours| ours.mean + ours.half_width.unwrap_or(0.0));
        ours.max(bar.paper.unwrap_or(0.0))
    };
    let mut chart = ChartBuilder::on(&area)
        .margin_left(14)
        .margin_right(20)
        .margin_bottom(6)
        .x_label_area_size(34)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..groups as f64, 0.0..top(all.map(reach)))?;
    mesh(&mut chart, None, Labels { text: &bars.y.text(), count: 7 }, LABEL)?;
    let width = 0.8 / bars.series.len().max(1) as f64;
    for (at, series) in bars.series.iter().enumerate() {
        let style = colour(&series.algorithm);
        for (group, value) in series.values.iter().enumerate() {
            let left = group as f64 + 0.1 + at as f64 * width;
            let middle = left + width * 0.46;
            if let Some(ours) = &value.ours {
                let bar = Rectangle::new([(left, 0.0), (left + width * 0.92, ours.mean)], style.filled());
                chart.draw_series([bar])?;
                if let Some(half) = ours.half_width {
                    let ends = [(middle, (ours.mean - half).max(0.0)), (middle, ours.mean + half)];
                    chart.draw_series([PathElement::new(ends, INK.stroke_width(1))])?;
                }
            }
            if let Some(paper) = value.paper {
                let place = chart.backend_coord(&(middle, paper));
                chart.plotting_area().strip_coord_spec().draw(&diamond(inside(&chart, place), INK))?;
            }
        }
    }
    let style = ("sans-serif", LABEL).into_font().color(&INK).pos(Pos::new(HPos::Center, VPos::Top));
    for (at, group) in bars.groups.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(at as f64 + 0.5, 0.0));
        let base = area.get_base_pixel();
        area.draw_text(group, &style, (x - base.0, y - base.1 + 8))?;
    }
    Ok(())
}

/// A pixel of the picture as one of the plotting area.
fn inside(chart: &Chart<'_, '_>, (x, y): (i32, i32)) -> (i32, i32) {
    let base = chart.plotting_area().strip_coord_spec().get_base_pixel();
    (x - base.0, y - base.1)
}

fn legend(bars: &Bars) -> Vec<Entry> {
    let bar = |name: &String, algorithm: &String| (name.clone(), colour(algorithm), Sign::Bar);
    let mut entries: Vec<Entry> = bars.series.iter().map(|series| bar(&series.name, &series.algorithm)).collect();
    if bars.series.iter().flat_map(|series| &series.values).any(|bar| bar.paper.is_some()) {
        entries.push(("paper".to_owned(), INK, Sign::Diamond));
    }
    entries
}
