//! The picture: each scene as a row, on the left the rates over time of one run, on the right the means of all seeds.

use fairpath_core::{Bitrate, Estimate};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::scene::{LINK, Mode, Network, Run};
use super::verdict::Row;

const SIZE: (u32, u32) = (1200, 800);
const LEFT: u32 = 800;
const PATHS: [RGBColor; 2] = [RGBColor(0x1f, 0x6f, 0xb4), RGBColor(0x7f, 0xb8, 0xe6)];
const OTHER: RGBColor = RGBColor(0xe3, 0x9a, 0x4a);
const FOUND: RGBColor = RGBColor(0xb0, 0x1e, 0x1e);
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The picture as SVG text.
pub(crate) fn draw(rows: &[Row], runs: &[Run]) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (top, bottom) = root.split_vertically(SIZE.1 / 2);
        for (area, network) in [(top, Network::Separate), (bottom, Network::Shared)] {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.network == network).collect();
            let shown = runs.iter().find(|run| (run.network, run.mode) == (network, Mode::Fairpath));
            let Some(shown) = shown else { continue };
            area.titled(&title(network, &rows, shown), (FONT, 21))?;
            let (left, right) = area.margin(34, 0, 0, 0).split_horizontally(LEFT);
            over_time(&left, shown)?;
            bars(&right, network, &rows)?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// The scene in a sentence.
fn title(network: Network, rows: &[&Row], shown: &Run) -> String {
    let Some(ours) = rows.iter().find(|row| row.mode == Mode::Fairpath) else { return String::new() };
    match network {
        Network::Separate => format!(
            "Two links, and nobody else on them: Fairpath fills both and carries {:.1} Mbit/s",
            ours.goodput.mean
        ),
        Network::Shared => {
            let found = shown.found_after.map_or("does not notice".to_owned(), |after| {
                format!("notices after {:.1} s and takes the share of one", after.as_secs_f64())
            });
            format!("One link for both paths and for somebody else: Fairpath {found}")
        }
    }
}

/// The rates of one run as areas upon each other.
fn over_time(area: &Area<'_>, run: &Run) -> anyhow::Result<()> {
    let end = run.points.last().map_or(1.0, |point| point.at.as_secs_f64());
    let links = if run.network == Network::Separate { 2.0 } else { 1.0 };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(0f64..end, 0f64..LINK.as_mbps_f64() * links * 1.15)?;
    let style = (FONT, 14);
    chart.configure_mesh().light_line_style(WHITE).x_desc("seconds").y_desc("Mbit/s").label_style(style).draw()?;
    let stack = |at: usize| -> Vec<(f64, f64)> {
        let height = |point: &super::scene::Point| -> Bitrate {
            [point.competitor, point.paths[0], point.paths[1]].into_iter().take(at + 1).sum()
        };
        run.points.iter().map(|point| (point.at.as_secs_f64(), height(point).as_mbps_f64())).collect()
    };
    // The highest first: each next one covers what is below it.
    for (at, color) in [(2, PATHS[1]), (1, PATHS[0]), (0, OTHER)] {
        let mut outline = stack(at);
        let first = outline.first().map_or(0.0, |point| point.0);
        outline.extend([(end, 0.0), (first, 0.0)]);
        chart.draw_series([Polygon::new(outline, color)])?;
    }
    let middle = run.points.len() * 3 / 4;
    let words = ["somebody else", "Fairpath, path 1", "Fairpath, path 2"];
    for (at, word) in words.into_iter().enumerate().skip(usize::from(run.network == Network::Separate)) {
        let below = if at == 0 { 0.0 } else { stack(at - 1).get(middle).map_or(0.0, |point| point.1) };
        let Some((x, top)) = stack(at).get(middle).copied() else { continue };
        let style = (FONT, 15).into_font().color(&WHITE);
        chart.draw_series([EmptyElement::at((x, (below + top) / 2.0)) + Text::new(word, (-50, -8), style)])?;
    }
    if let Some(after) = run.found_after {
        mark(&mut chart, (run.begun + after).as_secs_f64(), links)?;
    }
    Ok(())
}

/// Where the paths were found to share a link.
fn mark(chart: &mut Chart<'_, '_>, at: f64, links: f64) -> anyhow::Result<()> {
    let top = LINK.as_mbps_f64() * links * 1.14;
    chart.draw_series([PathElement::new([(at, 0.0), (at, top)], FOUND.stroke_width(2))])?;
    let style = (FONT, 14).into_font().color(&FOUND);
    chart.draw_series([EmptyElement::at((at, top)) + Text::new("found: both paths share one link", (6, 0), style)])?;
    Ok(())
}

/// The means of all seeds with their intervals.
fn bars(area: &Area<'_>, network: Network, rows: &[&Row]) -> anyhow::Result<()> {
    let (value, unit): (fn(&Row) -> Option<&Estimate>, _) = match network {
        Network::Separate => (|row| Some(&row.goodput), "Mbit/s, mean of all seeds"),
        Network::Shared => (|row| row.share.as_ref(), "times what somebody else gets"),
    };
    let most = rows.iter().filter_map(|row| value(row)).map(|one| one.mean + one.half_width.unwrap_or(0.0));
    let top = most.fold(0.0, f64::max).max(1.0) * 1.2;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d(0f64..rows.len() as f64, 0f64..top)?;
    let mesh = &mut chart.configure_mesh();
    mesh.disable_x_mesh().light_line_style(WHITE).x_labels(0).y_desc(unit).label_style((FONT, 14)).draw()?;
    if network == Network::Shared {
        let equal = PathElement::new([(0.0, 1.0), (rows.len() as f64, 1.0)], BLACK.stroke_width(1));
        chart.draw_series([equal])?;
    }
    for (at, row) in rows.iter().enumerate() {
        let Some(one) = value(row) else { continue };
        bar(&mut chart, at as f64, row.mode, one)?;
    }
    Ok(())
}

fn bar(chart: &mut Chart<'_, '_>, at: f64, mode: Mode, one: &Estimate) -> anyhow::Result<()> {
    let color = if mode == Mode::Fairpath { PATHS[0] } else { RGBColor(0xb8, 0xb8, 0xb8) };
    chart.draw_series([Rectangle::new([(at + 0.2, 0.0), (at + 0.8, one.mean)], color.filled())])?;
    let half = one.half_width.unwrap_or(0.0);
    let whisker = PathElement::new([(at + 0.5, one.mean - half), (at + 0.5, one.mean + half)], BLACK.stroke_width(2));
    chart.draw_series([whisker])?;
    let text = |text: String, to: (i32, i32)| Text::new(text, to, (FONT, 14));
    let digits = if one.mean < 5.0 { 2 } else { 1 };
    chart.draw_series([
        EmptyElement::at((at + 0.5, one.mean + half)) + text(format!("{:.digits$}", one.mean), (-14, -18))
    ])?;
    for (line, word) in mode.name().split(", ").enumerate() {
        chart.draw_series([EmptyElement::at((at + 0.2, 0.0)) + text(word.to_owned(), (-6, 6 + 15 * line as i32))])?;
    }
    Ok(())
}
