//! The picture: a panel for each series, with its delays over time, when it was found together with
//! others of its group, and the build-ups that it has in common with them.

use core::time::Duration;

use fairpath_core::Timestamp;
use fairpath_figure::{INK, Labels, mesh};
use fairpath_trace::rtt::RttSample;
use plotters::prelude::*;

use crate::judge::{Pair, Span};
use crate::report::{Report, range_ms};
use crate::{Named, first, last};

const WIDTH: u32 = 1200;
const PANEL: u32 = 210;
const HEAD: u32 = 64;
/// More panels are no picture any more.
const PANELS_MAX: usize = 24;
/// A delay is drawn by the least and the most of so many parts of the time.
const COLUMNS: u32 = 1100;

const DELAY: RGBColor = RGBColor(0x9A, 0xA4, 0xAE);
/// Colours of groups, in turn; from Okabe and Ito's palette, which can be told apart without seeing red or
/// green.
const GROUPS: [RGBColor; 5] = [
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Points = Vec<(f64, f64)>;

impl Report {
    /// The picture as SVG: a panel for each series.
    ///
    /// # Errors
    ///
    /// Where it cannot be drawn.
    pub fn svg(&self) -> anyhow::Result<String> {
        svg(self)
    }
}

fn svg(report: &Report) -> anyhow::Result<String> {
    let shown = &report.series[..report.series.len().min(PANELS_MAX)];
    let steps = Steps::new(report);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, HEAD + PANEL * shown.len() as u32)).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, rest) = root.split_vertically(HEAD);
        let style = |size: i32| ("sans-serif", size).into_font().color(&INK);
        head.draw_text("Round-trip times, and what they have in common", &style(22), (16, 10))?;
        let legend = "shaded: found to share a bottleneck; coloured line: queues that build up on both paths at once";
        let left_out = report.series.len() - shown.len();
        let left_out = if left_out > 0 { format!("; {left_out} more series are not drawn") } else { String::new() };
        head.draw_text(&format!("{legend}{left_out}"), &style(16), (16, 40))?;
        for (at, area) in rest.split_evenly((shown.len(), 1)).iter().enumerate() {
            panel(area, report, &steps, at)?;
        }
        root.present()?;
    }
    Ok(svg)
}

fn panel(area: &Area<'_>, report: &Report, steps: &Steps, at: usize) -> anyhow::Result<()> {
    let one = &report.series[at];
    let [least, most] = range_ms(one);
    let room = ((most - least) * 0.05).max(0.1);
    let (left, right) = (report.seconds(steps.begin), report.seconds(steps.end));
    let (bottom, top) = ((least - room).max(0.0), most + room);
    let mut chart = ChartBuilder::on(area)
        .caption(&one.name, ("sans-serif", 18).into_font().color(&INK))
        .margin_left(12)
        .margin_right(20)
        .x_label_area_size(40)
        .y_label_area_size(58)
        .build_cartesian_2d(left..right, bottom..top)?;
    let group = report.judgement.groups.iter().filter(|group| group.len() > 1).position(|group| group.contains(&at));
    let colour = group.map_or(DELAY, |group| GROUPS[group % GROUPS.len()]);
    let pairs = || report.judgement.pairs.iter().filter(|pair| pair.shared && has(pair, at));
    for span in pairs().flat_map(|pair| &pair.evidence) {
        let corners = [(report.seconds(span.from), bottom), (report.seconds(span.until), top)];
        chart.draw_series([Rectangle::new(corners, colour.mix(0.12).filled())])?;
    }
    let (x, y) = (Labels { text: "time [s]", count: 10 }, Labels { text: "RTT [ms]", count: 5 });
    mesh(&mut chart, Some(x), y, 14)?;
    let points = envelope(one, steps).into_iter().map(|(at, ms)| (report.seconds(at), ms));
    chart.draw_series(LineSeries::new(points, DELAY.stroke_width(1)))?;
    for points in steps.common_build_ups(at, pairs(), report) {
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    Ok(())
}

fn has(pair: &Pair, series: usize) -> bool {
    pair.series.0 == series || pair.series.1 == series
}

/// The least and the most of each column, in order of time.
fn envelope(one: &Named, steps: &Steps) -> Vec<(Timestamp, f64)> {
    let column = steps.end.since(steps.begin).max(Duration::from_nanos(1)) / COLUMNS;
    let of = |sample: &RttSample| sample.at.since(steps.begin).as_nanos() / column.as_nanos().max(1);
    let mut points = Vec::new();
    for samples in one.samples.chunk_by(|a, b| of(a) == of(b)) {
        let least = samples.iter().min_by_key(|sample| sample.rtt);
        let most = samples.iter().max_by_key(|sample| sample.rtt);
        let mut both: Vec<&RttSample> = least.into_iter().chain(most).collect();
        both.sort_by_key(|sample| sample.at);
        points.extend(both.iter().map(|sample| (sample.at, sample.rtt.as_secs_f64() * 1e3)));
    }
    points
}

/// All series as their least delay in each step: what is least of many has little noise.
struct Steps {
    begin: Timestamp,
    end: Timestamp,
    step: Duration,
    /// In ms, by series and step; `None`: nothing was measured.
    least: Vec<Vec<Option<f64>>>,
}

/// A queue builds up where the delay grows over so many steps …
const BUILD_UP: usize = 5;
/// … by more than this, in ms; less may be noise.
const GROWTH_MS: f64 = 1.0;

impl Steps {
    fn new(report: &Report) -> Self {
        let begin = report.series.iter().map(first).min().unwrap_or(Timestamp::ZERO);
        let end = report.series.iter().map(last).max().unwrap_or(begin);
        // A long trace has longer steps: more points than this cannot be seen.
        let step = (end.since(begin) / 8000).max(Duration::from_millis(100));
        let place = |at: Timestamp| (at.since(begin).as_nanos() / step.as_nanos()) as usize;
        let least = |one: &Named| {
            let mut least: Vec<Option<f64>> = vec![None; place(end) + 1];
            for sample in &one.samples {
                let (ms, seen) = (sample.rtt.as_secs_f64() * 1e3, &mut least[place(sample.at)]);
                *seen = Some(seen.map_or(ms, |seen| seen.min(ms)));
            }
            keep_over_gaps(&mut least);
            least
        };
        Self { begin, end, step, least: report.series.iter().map(least).collect() }
    }

    fn time(&self, step: usize) -> Timestamp {
        self.begin + self.step * step as u32
    }

    /// The stretches of a series in which its queue and that of another of a pair build up, while
    /// the pair is found together.
    fn common_build_ups<'a>(
        &self,
        series: usize,
        pairs: impl Iterator<Item = &'a Pair>,
        report: &Report,
    ) -> Vec<Points> {
        let mut marked = vec![false; self.least[series].len()];
        for pair in pairs {
            let (low, high) = pair.series;
            for from in 0..marked.len().saturating_sub(BUILD_UP) {
                let until = from + BUILD_UP;
                let found = |span: &Span| span.from <= self.time(from) && self.time(until) <= span.until;
                if self.grows(low, from) && self.grows(high, from) && pair.evidence.iter().any(found) {
                    marked[from..=until].fill(true);
                }
            }
        }
        let point = |step: usize| {
            let ms = self.least[series][step].filter(|_| marked[step])?;
            Some((report.seconds(self.time(step)), ms))
        };
        let points: Vec<Option<(f64, f64)>> = (0..marked.len()).map(point).collect();
        points
            .split(Option::is_none)
            .filter(|run| run.len() > 1)
            .map(|run| run.iter().flatten().copied().collect())
            .collect()
    }

    /// Whether the delay grows from a step on.
    fn grows(&self, series: usize, from: usize) -> bool {
        let least = &self.least[series];
        least[from].zip(least[from + BUILD_UP]).is_some_and(|(before, after)| after - before > GROWTH_MS)
    }
}

/// Where nothing was measured for up to a build-up's length, the delay is what it was.
fn keep_over_gaps(least: &mut [Option<f64>]) {
    let mut kept = None;
    let mut gap = 0;
    for step in least {
        if step.is_some() {
            (kept, gap) = (*step, 0);
        } else if gap < BUILD_UP {
            *step = kept;
            gap += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gaps_are_bridged_and_long_ones_are_not() {
        let mut least = vec![None, Some(1.0), None, Some(2.0)];
        least.extend([None; 7]);
        keep_over_gaps(&mut least);
        let kept = [None, Some(1.0), Some(1.0)].into_iter().chain([Some(2.0); 1 + BUILD_UP]).chain([None; 2]);
        assert_eq!(least, kept.collect::<Vec<_>>());
    }

    #[test]
    fn the_least_and_the_most_of_a_column_are_drawn() {
        let sample = |ms, rtt| RttSample { at: Timestamp::from_millis(ms), rtt: Duration::from_millis(rtt) };
        // Columns of 1 s: 1100 s in 1100 of them.
        let samples = vec![sample(0, 20), sample(100, 50), sample(200, 10), sample(300, 30), sample(1000, 40)];
        let one = Named { name: String::new(), kind: "csv", samples };
        let steps = Steps {
            begin: Timestamp::ZERO,
            end: Timestamp::from_secs(1100),
            step: Duration::from_secs(1),
            least: Vec::new(),
        };
        let drawn: Vec<f64> = envelope(&one, &steps).into_iter().map(|(_, ms)| ms).collect();
        assert_eq!(drawn, [50.0, 10.0, 40.0, 40.0]);
    }
}
