//! The picture: bars for the goodput of every run, and the rates over time on the shared bottleneck.

use plotters::prelude::*;

use super::scene::{BOTTLENECK, Mode, Network, Outcome};
use super::verdict::Row;

const SIZE: (u32, u32) = (1200, 900);
const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xb4);
const RIVAL: RGBColor = RGBColor(0xd9, 0x7b, 0x1c);

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The picture as SVG text.
pub(super) fn draw(rows: &[Row], shared: &[&Outcome]) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let (top, bottom) = root.split_vertically(SIZE.1 / 2);
        let halves = top.split_evenly((1, 2));
        bars(&halves[0], "Two separate bottlenecks: goodput", rows, Network::Separate)?;
        bars(&halves[1], "One shared bottleneck: goodput (orange: one path of Reno or CUBIC)", rows, Network::Shared)?;
        let told = [Mode::Uncoupled, Mode::Auto].map(|mode| shared.iter().find(|one| one.mode == mode));
        let told: Vec<&&Outcome> = told.into_iter().flatten().collect();
        for (area, outcome) in bottom.split_evenly((1, told.len().max(1))).iter().zip(told) {
            over_time(area, outcome)?;
        }
        root.present()?;
    }
    Ok(svg)
}

fn bars(area: &Area<'_>, title: &str, rows: &[Row], network: Network) -> anyhow::Result<()> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.network == network).collect();
    let paths = if network == Network::Separate { 2.0 } else { 1.0 };
    let top = BOTTLENECK.as_mbps_f64() * paths * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(48)
        .build_cartesian_2d(0f64..rows.len() as f64, 0f64..top)?;
    let name = |at: f64| rows.get(at.floor() as usize).map_or(String::new(), |row| row.mode.name().to_owned());
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(0)
        .y_desc("Mbit/s")
        .label_style(("sans-serif", 14))
        .draw()?;
    for (at, row) in rows.iter().enumerate() {
        let at = at as f64;
        let ours = row.goodput_bps as f64 / 1e6;
        let both = row.competitor_bps.is_some();
        let right = if both { at + 0.48 } else { at + 0.75 };
        chart.draw_series([Rectangle::new([(at + 0.2, 0.0), (right, ours)], OURS.filled())])?;
        label(&mut chart, ((at + 0.2 + right) / 2.0 - 0.1, ours), format!("{ours:.1}"))?;
        if let Some(rival) = row.competitor_bps {
            let rival = rival as f64 / 1e6;
            chart.draw_series([Rectangle::new([(at + 0.5, 0.0), (at + 0.78, rival)], RIVAL.filled())])?;
            label(&mut chart, (at + 0.54, rival), format!("{rival:.1}"))?;
        }
        label(&mut chart, (at + 0.2, -top * 0.01), name(at))?;
    }
    Ok(())
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// A text whose lower left corner is about at the point.
fn label(chart: &mut Chart<'_, '_>, at: (f64, f64), text: String) -> anyhow::Result<()> {
    let below = at.1 < 0.0;
    let lift = if below { 4 } else { -18 };
    chart.draw_series([EmptyElement::at(at) + Text::new(text, (0, lift), ("sans-serif", 14))])?;
    Ok(())
}

fn over_time(area: &Area<'_>, outcome: &Outcome) -> anyhow::Result<()> {
    let end = outcome.over_time.last().map_or(1.0, |(seconds, ..)| *seconds);
    let mut chart = ChartBuilder::on(area)
        .caption(
            format!(
                "Shared bottleneck over time: {} (orange: {})",
                outcome.mode.name(),
                outcome.mode.rival().engine().congestion
            ),
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(0f64..end, 0f64..BOTTLENECK.as_mbps_f64() * 1.1)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("seconds")
        .y_desc("Mbit/s")
        .label_style(("sans-serif", 14))
        .draw()?;
    let ours = outcome.over_time.iter().map(|(seconds, rate, _)| (*seconds, rate.as_mbps_f64()));
    chart.draw_series(LineSeries::new(ours, OURS.stroke_width(2)))?;
    let rival = outcome.over_time.iter().filter_map(|(seconds, _, rate)| Some((*seconds, (*rate)?.as_mbps_f64())));
    chart.draw_series(LineSeries::new(rival, RIVAL.stroke_width(2)))?;
    Ok(())
}
