//! The picture of a run: rates, windows, round-trip times and queues over time.

use std::collections::BTreeMap;

use fairpath_core::Timestamp;
use fairpath_figure::{Axis, Figure, Series};
use fairpath_scenario::Scenario;
use fairpath_sim::View;

use crate::means::COLOURS;

/// A line has at most so many points; of more samples, every second, third, … is drawn.
const POINTS_MAX: u128 = 1000;
/// At most so many lines go into one panel; more could not be told apart.
const LINES_MAX: usize = 10;

/// A path of the flows of one class.
type Key = (usize, u32);

/// Collects points.
#[derive(Clone)]
pub struct Picture {
    title: String,
    classes: Vec<String>,
    /// The name in the palette, for each class.
    colours: Vec<String>,
    class_of_flow: Vec<usize>,
    /// Every so many samples a point.
    stride: u128,
    samples: u128,
    /// Seconds and: the rate in Mbit/s, the window in kB, the round-trip time in ms. Means over
    /// the flows of a class.
    lines: BTreeMap<Key, [Vec<(f64, f64)>; 3]>,
    /// The bytes that each path had delivered at the last point, and when that was.
    delivered: BTreeMap<Key, f64>,
    last_s: f64,
    queues: Vec<(String, Vec<(f64, f64)>)>,
}

impl Picture {
    /// Begins with nothing, for a run of this scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let mut classes: Vec<String> = Vec::new();
        let mut algorithms = Vec::new();
        let mut class_of_flow = Vec::new();
        for flow in &scenario.flows {
            let class = classes.iter().position(|class| *class == flow.class).unwrap_or_else(|| {
                classes.push(flow.class.clone());
                algorithms.push(flow.engine.congestion.clone());
                classes.len() - 1
            });
            class_of_flow.push(class);
        }
        let samples = scenario.duration.as_nanos().checked_div(scenario.sample_every.as_nanos()).unwrap_or(0);
        Self {
            title: scenario.title.clone(),
            classes,
            colours: colours(&algorithms),
            class_of_flow,
            stride: samples.div_ceil(POINTS_MAX).max(1),
            samples: 0,
            lines: BTreeMap::new(),
            delivered: BTreeMap::new(),
            last_s: 0.0,
            queues: Vec::new(),
        }
    }

    /// Adds how things stand at a sample.
    pub fn add(&mut self, now: Timestamp, view: &View<'_>) {
        self.samples += 1;
        if !self.samples.is_multiple_of(self.stride) {
            return;
        }
        let time_s = now.as_secs_f64();
        // For each path of a class: how many, delivered bytes, window, round-trip time.
        let mut sums: BTreeMap<Key, [f64; 4]> = BTreeMap::new();
        for (flow, path) in view.paths() {
            let sum = sums.entry((self.class_of_flow[flow.0 as usize], path.path.get())).or_default();
            let rtt_ms = path.rtt.map_or(0.0, |rtt| rtt.smoothed.as_secs_f64() * 1e3);
            for (sum, value) in sum.iter_mut().zip([1.0, path.delivered.as_f64(), path.window.as_f64() / 1e3, rtt_ms]) {
                *sum += value;
            }
        }
        for (key, [count, delivered, window, rtt]) in sums {
            let before = self.delivered.insert(key, delivered).unwrap_or(0.0);
            // Connections of short transfers come and go: what one took with it is not counted back.
            let rate = (delivered - before).max(0.0) * 8e-6 / (time_s - self.last_s) / count;
            let lines = self.lines.entry(key).or_default();
            for (line, value) in lines.iter_mut().zip([rate, window / count, rtt / count]) {
                line.push((time_s, value));
            }
        }
        for (at, (link, stats)) in view.links().enumerate() {
            if self.queues.len() <= at {
                self.queues.push((link.name.clone(), Vec::new()));
            }
            self.queues[at].1.push((time_s, stats.queued.bytes.as_f64() / 1e3));
        }
        self.last_s = time_s;
    }

    /// The picture.
    ///
    /// # Errors
    ///
    /// Where it cannot be drawn.
    pub fn svg(&self) -> anyhow::Result<String> {
        let time = || Axis::new("time", "s");
        let several = self.lines.keys().any(|(_, path)| *path > 0);
        let lines = |value: usize| -> Vec<Series> {
            let series = |((class, path), lines): (&Key, &[Vec<(f64, f64)>; 3])| {
                let name = &self.classes[*class];
                let name = if several { format!("{name}, path {path}") } else { name.clone() };
                let series = Series::new(&name, &self.colours[*class], lines[value].clone());
                if path.is_multiple_of(2) { series } else { series.dashed() }
            };
            self.lines.iter().take(LINES_MAX).map(series).collect()
        };
        // The longest queues; links without one say nothing.
        let mut queues: Vec<_> = self.queues.iter().map(|(name, line)| (peak(line), name, line)).collect();
        queues.retain(|(peak, ..)| *peak > 0.0);
        queues.sort_by(|a, b| b.0.total_cmp(&a.0));
        let queues = queues.into_iter().take(LINES_MAX).zip(COLOURS);
        let queues = queues.map(|((_, name, line), colour)| Series::new(name, colour, line.clone()));
        let figure = Figure::new("picture", &self.title)
            .lines("Rate, mean of a class", time(), Axis::new("delivered", "Mbit/s"), lines(0))
            .lines("Congestion window", time(), Axis::new("window", "kB"), lines(1))
            .lines("Round-trip time", time(), Axis::new("smoothed", "ms"), lines(2))
            .lines("Queues", time(), Axis::new("waiting", "kB"), queues.collect());
        Ok(figure.svg()?)
    }
}

/// The first class of an algorithm has its colour, and a further one a colour that no class has.
fn colours(algorithms: &[String]) -> Vec<String> {
    let is_free = |colour: &&str| !algorithms.iter().any(|one| one == colour);
    let mut free = COLOURS.into_iter().filter(is_free).chain(COLOURS).cycle();
    let colour = |(at, algorithm): (usize, &String)| {
        let is_first = !algorithms[..at].contains(algorithm);
        if is_first { algorithm.clone() } else { free.next().expect("a cycle").to_owned() }
    };
    algorithms.iter().enumerate().map(colour).collect()
}

fn peak(line: &[(f64, f64)]) -> f64 {
    line.iter().map(|(_, value)| *value).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_classes_of_one_algorithm_can_be_told_apart() {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            colours(&names(&["reno", "cubic", "cubic", "lia", "cubic"])),
            ["reno", "cubic", "olia", "lia", "balia"]
        );
        // More classes of all the palette's algorithms than the palette has colours.
        let many: Vec<&str> = COLOURS.iter().copied().cycle().take(30).collect();
        assert_eq!(colours(&names(&many)).len(), 30);
    }
}
