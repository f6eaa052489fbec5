//! The statistics of one path: what an interval is summed up to, and what many of them say.

use super::config::{Oscillation, SummaryConfig, Variability};

/// As many intervals as a ring can hold.
pub(super) const INTERVALS_MAX: usize = 64;

/// An interval that has ended and had samples.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// num_T, the number of samples.
    samples: f64,
    /// E_T, the mean delay, in ms.
    mean: f64,
    /// skew_base_T: samples below the mean delay minus samples above it.
    skewness: f64,
    /// var_base_T, the sum of the deviations, in ms; `None`: not to be counted.
    deviation: Option<f64>,
    /// PDV_T, the largest delay above the mean, in ms.
    range: f64,
    /// Packets lost, and lost or received.
    lost: f64,
    packets: f64,
    /// Whether the mean left the band on the other side than before.
    crossed: bool,
}

/// The interval under way.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    samples: f64,
    sum: f64,
    largest: f64,
    skewness: f64,
    deviation: f64,
    lost: f64,
}

/// The statistics of a path after an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimates {
    /// skew_est, from -1 to 1; low where a queue is mostly full.
    pub(super) skewness: f64,
    /// var_est, in ms.
    pub(super) variability: f64,
    /// freq_est, oscillations per interval.
    pub(super) oscillation: f64,
    /// pkt_loss, the part of the packets that is lost.
    pub(super) loss: f64,
    /// PB, whether the path passes a bottleneck.
    pub(super) congested: bool,
}

/// The statistics of one path.
#[derive(Clone, Debug)]
pub(super) struct Statistics {
    ring: [Interval; INTERVALS_MAX],
    /// How many intervals with samples have ended.
    ended: usize,
    running: Running,
    /// The mean over the last M intervals, without the one under way; `None`: there was none.
    mean_delay: Option<f64>,
    /// On which side of the band the mean was when it was last outside.
    side: i8,
    estimates: Estimates,
}

impl Statistics {
    pub(super) fn new() -> Self {
        Self {
            ring: [Interval::default(); INTERVALS_MAX],
            ended: 0,
            running: Running::default(),
            mean_delay: None,
            side: 0,
            estimates: Estimates::default(),
        }
    }

    /// A delay, in ms.
    // [RFC8382 §3.1.1; RFC8382 §3.1.2]
    //     skew_base_T = sum_T( [OWD < mean_delay] ) - sum_T( [OWD > mean_delay] )
    //     var_base_T  = sum_T( |OWD - E_{T-1}| )
    pub(super) fn on_delay(&mut self, delay: f64) {
        let running = &mut self.running;
        running.samples += 1.0;
        running.sum += delay;
        running.largest = running.largest.max(delay);
        if let Some(mean_delay) = self.mean_delay {
            running.skewness += f64::from(i8::from(delay < mean_delay) - i8::from(delay > mean_delay));
        }
        if let Some(before) = self.ended.checked_sub(1) {
            running.deviation += (delay - self.ring[before % INTERVALS_MAX].mean).abs();
        }
    }

    /// A packet was lost.
    pub(super) fn on_loss(&mut self) {
        self.running.lost += 1.0;
    }

    /// Ends the interval. One without samples says nothing and leaves everything as it was.
    pub(super) fn end_interval(&mut self, config: &SummaryConfig) -> Estimates {
        let running = core::mem::take(&mut self.running);
        if running.samples > 0.0 {
            let mean = running.sum / running.samples;
            let first = self.ended == 0;
            self.ring[self.ended % INTERVALS_MAX] = Interval {
                samples: running.samples,
                mean,
                skewness: running.skewness,
                deviation: (!first).then_some(running.deviation),
                range: running.largest - mean,
                lost: running.lost,
                packets: running.lost + running.samples * config.packets_per_sample,
                crossed: false,
            };
            self.ended += 1;
            self.estimate(config);
            let intervals = config.mean_intervals.min(self.ended) as f64;
            self.mean_delay = Some(self.newest(config.mean_intervals).map(|i| i.mean).sum::<f64>() / intervals);
        } else {
            self.running.lost = running.lost;
        }
        self.estimates
    }

    /// The newest intervals, the newest first.
    fn newest(&self, count: usize) -> impl Iterator<Item = &Interval> {
        let count = count.min(self.ended).min(INTERVALS_MAX);
        (0..count).map(|back| &self.ring[(self.ended - 1 - back) % INTERVALS_MAX])
    }

    fn newest_mut(&mut self) -> &mut Interval {
        &mut self.ring[(self.ended - 1) % INTERVALS_MAX]
    }

    fn estimate(&mut self, config: &SummaryConfig) {
        let skewness = self.weighted(config, |interval| Some(interval.skewness));
        let loss = ratio(self.newest(config.oscillation_intervals).map(|i| (i.lost, i.packets)));
        let congested = config.congested.is_none_or(|limits| {
            skewness < limits.skewness
                || (skewness < limits.skewness_hysteresis && self.estimates.congested)
                || loss > limits.loss
        });
        // [RFC8382 §4.2] While a flow passes no bottleneck its oscillation is noise.
        let counted = congested || !config.only_congested;
        if !counted {
            self.newest_mut().deviation = None;
        }
        let (variability, band) = match config.variability {
            Variability::Deviation { band } => (self.weighted(config, |interval| interval.deviation), band),
            Variability::Range { band } => {
                (ratio(self.newest(config.oscillation_intervals).map(|i| (i.range, 1.0))), band)
            }
        };
        let crossings = self.crossings(config, band * variability, band, counted);
        let oscillation = crossings / config.oscillation_intervals as f64;
        self.estimates = Estimates { skewness, variability, oscillation, loss, congested };
    }

    /// How often the mean delay has gone from one side of the band to the other.
    // [RFC8382 §3.1.3]
    //     freq_est = number_of_crossings / N
    fn crossings(&mut self, config: &SummaryConfig, half_width: f64, band: f64, counted: bool) -> f64 {
        let newest = self.newest_mut().mean;
        // Before the second interval the mean is the interval's own.
        let centre = self.mean_delay.unwrap_or(newest);
        let side_of = |mean: f64| i8::from(mean > centre + half_width) - i8::from(mean < centre - half_width);
        match config.oscillation {
            Oscillation::Recounted => {
                let count = config.oscillation_intervals.min(self.ended).min(INTERVALS_MAX);
                let mut side = None;
                let mut crossings = 0.0;
                for back in (0..count).rev() {
                    let new = side_of(self.ring[(self.ended - 1 - back) % INTERVALS_MAX].mean);
                    let old = *side.get_or_insert(new);
                    if new != 0 && new != old {
                        crossings += 1.0;
                        side = Some(new);
                    }
                }
                return crossings;
            }
            Oscillation::Incremental => {
                let side = side_of(newest);
                self.newest_mut().crossed = counted && self.side != 0 && side != 0 && side != self.side;
                if side != 0 {
                    self.side = side;
                }
            }
            Oscillation::AboveBand => self.newest_mut().crossed = newest > band * centre,
        }
        self.newest(config.oscillation_intervals).map(|interval| f64::from(u8::from(interval.crossed))).sum()
    }

    /// The mean of a quantity per sample over the last M intervals, of which the newest F count
    /// alike and the older ones less and less.
    // [RFC8382 §4.1] with i = 1 for the newest interval.
    //     w_i = M - F + 1  for i <= F,   w_i = M - i + 1  for i > F
    //     X_est = sum_i( w_i * X_base_i ) / sum_i( w_i * num_i )
    fn weighted(&self, config: &SummaryConfig, quantity: impl Fn(&Interval) -> Option<f64>) -> f64 {
        let m = config.mean_intervals;
        let weight = |back: usize| match config.flat_intervals {
            Some(flat) => m.saturating_sub(flat.saturating_sub(1).max(back)) as f64,
            None => 1.0,
        };
        let terms = self.newest(m).enumerate().filter_map(|(back, interval)| {
            let value = quantity(interval)?;
            Some((weight(back) * value, weight(back) * interval.samples))
        });
        ratio(terms)
    }
}

/// The sum of the first numbers over that of the second; zero where there are none.
fn ratio(terms: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (above, below) = terms.fold((0.0, 0.0), |sums, term| (sums.0 + term.0, sums.1 + term.1));
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn config() -> SummaryConfig {
        SummaryConfig {
            mean_intervals: 3,
            oscillation_intervals: 4,
            flat_intervals: None,
            only_congested: false,
            ..SummaryConfig::rfc8382()
        }
    }

    fn run(statistics: &mut Statistics, config: &SummaryConfig, intervals: &[&[f64]]) -> Estimates {
        let mut last = Estimates::default();
        for delays in intervals {
            delays.iter().for_each(|delay| statistics.on_delay(*delay));
            last = statistics.end_interval(config);
        }
        last
    }

    #[test]
    fn skewness_counts_the_samples_on_both_sides_of_the_mean_before() {
        // Means 10 and 20: mean_delay 15 in the third. There 3 below, 1 above: 3 - 1 = 2.
        // In the second 2 above 10: -2. In the first there is no mean: 0. 2 + 2 + 4 samples: 0 / 8.
        let mut statistics = Statistics::new();
        let estimates = run(&mut statistics, &config(), &[&[10.0, 10.0], &[20.0, 20.0], &[12.0, 13.0, 14.0, 40.0]]);
        assert_eq!(estimates.skewness, 0.0);
        // mean_delay is now (10 + 20 + 19.75) / 3 = 16.58; one sample below: (1 - 2 + 2) / (1 + 2 + 4).
        let estimates = run(&mut statistics, &config(), &[&[16.0]]);
        assert!((estimates.skewness - 1.0 / 7.0).abs() < 1e-12, "{estimates:?}");
    }

    #[test]
    fn variability_is_the_deviation_from_the_mean_of_the_interval_before() {
        // |12 - 10| + |8 - 10| + |20 - 10| + |20 - 10| = 24 over 4 samples; the first interval has
        // no mean before it.
        let estimates = run(&mut Statistics::new(), &config(), &[&[10.0, 10.0], &[12.0, 8.0, 20.0, 20.0]]);
        assert_eq!(estimates.variability, 6.0);
    }

    #[test]
    fn the_newest_intervals_weigh_most() {
        // M = 3, F = 1: weights 3, 2, 1 from the newest. Deviations 10, 0, and none in the first:
        // (3 · 0 + 2 · 10) / (3 · 1 + 2 · 1) = 4.
        let config = SummaryConfig { flat_intervals: Some(1), ..config() };
        let estimates = run(&mut Statistics::new(), &config, &[&[10.0], &[20.0], &[20.0]]);
        assert_eq!(estimates.variability, 4.0);
    }

    #[test]
    fn the_weights_of_the_rfc_are_eleven_for_the_newest_twenty_and_then_fall() {
        // M = 30, F = 20. One deviation of 1 in the newest interval weighs 11 of 20 · 11 + 55 - 0,
        // but the first of 30 intervals has none: its weight 1 is missing: 11 / 274.
        let config = SummaryConfig { only_congested: false, ..SummaryConfig::rfc8382() };
        let mut statistics = Statistics::new();
        let steady: Vec<&[f64]> = vec![&[10.0]; 29];
        run(&mut statistics, &config, &steady);
        let estimates = run(&mut statistics, &config, &[&[11.0]]);
        assert!((estimates.variability - 11.0 / 274.0).abs() < 1e-12, "{estimates:?}");
    }

    /// The mean stays for three intervals at 10 and for three at 90.
    const SLOW: [&[f64]; 12] = {
        let (low, high): (&[f64], &[f64]) = (&[10.0], &[90.0]);
        [low, low, low, high, high, high, low, low, low, high, high, high]
    };

    #[test]
    fn oscillations_are_counted_where_the_mean_crosses_the_whole_band() {
        // The deviations are 80 at three of eleven intervals: 21.8, a band of 15.3 around 46.4, the
        // mean of the first eleven. The side changes three times in twelve intervals.
        let config = SummaryConfig { oscillation_intervals: 12, mean_intervals: 12, ..config() };
        let recounted = SummaryConfig { oscillation: Oscillation::Recounted, ..config };
        assert_eq!(run(&mut Statistics::new(), &recounted, &SLOW).oscillation, 3.0 / 12.0);
        // Looked at once, the first three are the mean themselves, on no side.
        assert_eq!(run(&mut Statistics::new(), &config, &SLOW).oscillation, 2.0 / 12.0);
    }

    #[test]
    fn a_mean_inside_the_band_is_on_no_side() {
        // Up and down by 80 each time: a band of 56 on each side of 50.
        let config = SummaryConfig { oscillation_intervals: 12, mean_intervals: 12, ..config() };
        let fast: [&[f64]; 12] = core::array::from_fn(|n| if n % 2 == 0 { &[10.0] as &[f64] } else { &[90.0] });
        let recounted = SummaryConfig { oscillation: Oscillation::Recounted, ..config };
        assert_eq!(run(&mut Statistics::new(), &recounted, &fast).oscillation, 0.0);
    }

    #[test]
    fn in_the_variant_nearly_every_interval_counts() {
        let config = SummaryConfig { oscillation: Oscillation::AboveBand, oscillation_intervals: 12, ..config() };
        let steady: [&[f64]; 12] = [&[50.0]; 12];
        assert_eq!(run(&mut Statistics::new(), &config, &steady).oscillation, 1.0);
    }

    #[test]
    fn the_loss_rate_counts_two_packets_for_a_sample() {
        // 1 lost of 1 + 2 · 2 packets.
        let mut statistics = Statistics::new();
        statistics.on_loss();
        assert_eq!(run(&mut statistics, &config(), &[&[10.0, 10.0]]).loss, 0.2);
    }

    #[test]
    fn a_flow_without_a_bottleneck_has_no_variability_in_the_rfc() {
        // Mostly low delays with a spike: skewness 0.5 and above, no bottleneck.
        let intervals: Vec<&[f64]> = vec![&[10.0, 10.0, 10.0, 50.0]; 20];
        let estimates = run(&mut Statistics::new(), &SummaryConfig::rfc8382(), &intervals);
        assert!(!estimates.congested && estimates.variability < 40.0, "{estimates:?}");
        assert_eq!(estimates.oscillation, 0.0);
    }

    #[test]
    fn an_interval_without_samples_changes_nothing() {
        let mut statistics = Statistics::new();
        let before = run(&mut statistics, &config(), &[&[10.0], &[20.0, 30.0]]);
        assert_eq!(statistics.end_interval(&config()), before);
        assert_eq!(SummaryConfig::rfc8382().interval, Duration::from_millis(350));
    }
}
