//! Detectors that watch a run side by side, and what they said of each pair of its paths.

use core::time::Duration;

use fairpath_core::{ByteCount, DelaySample, Groups, Lost, PathId, Timestamp};
use fairpath_sbd::{
    Concordance, ConcordanceConfig, Congested, Detector, HoldTime, NAMES, Oracle, Persistence, Summary, SummaryConfig,
    Trendline, TrendlineConfig, Wavelet, WaveletConfig, by_name,
};
use fairpath_sim::{FlowIndex, Recorder, SimError, View};

use super::network::{BEGIN, Case};

/// The oracle's name.
pub(super) const ORACLE: &str = "oracle";

/// The times from when on a pair was together, or was not.
type Verdicts = Vec<(Duration, bool)>;

/// A detector, made anew for each run.
pub(super) struct Entry {
    /// The detector's name.
    pub(super) name: &'static str,
    /// The changed parameter; empty: none. `no memory`: it decides without its earlier answers.
    pub(super) setting: String,
    make: Box<dyn Fn() -> Box<dyn Detector> + Sync>,
}

/// The setting without a hold time, and without a vote over earlier answers.
pub(super) const NO_MEMORY: &str = "no memory";

impl Entry {
    pub(super) fn new(
        name: &'static str,
        setting: &str,
        make: impl Fn() -> Box<dyn Detector> + Sync + 'static,
    ) -> Self {
        Self { name, setting: setting.to_owned(), make: Box::new(make) }
    }

    /// A detector as it is in the catalogue.
    pub(super) fn of(name: &'static str) -> Self {
        Self::new(name, "", move || by_name(name).expect("a name of the catalogue"))
    }

    /// One more of it.
    pub(super) fn make(&self) -> Box<dyn Detector> {
        (self.make)()
    }

    /// All detectors: as they are in the catalogue, without memory where they have one, and with
    /// one parameter swept.
    pub(super) fn all() -> Vec<Self> {
        let mut entries: Vec<Self> = NAMES.iter().copied().map(Self::of).collect();
        entries.extend(without_memory());
        entries.extend(swept());
        entries
    }
}

fn trendline(config: TrendlineConfig) -> Box<dyn Detector> {
    Box::new(Trendline::new(config))
}

fn summary(config: SummaryConfig) -> Box<dyn Detector> {
    Box::new(Summary::new(config))
}

fn without_memory() -> Vec<Entry> {
    let forgetful = |config| TrendlineConfig { hold: Duration::ZERO, ..config };
    let latest = |config| SummaryConfig { persistence: Persistence::Latest, ..config };
    vec![
        Entry::new("trendline", NO_MEMORY, move || trendline(forgetful(TrendlineConfig::default()))),
        Entry::new("trendline_srtt", NO_MEMORY, move || trendline(forgetful(TrendlineConfig::smoothed_input()))),
        Entry::new("trendline_overlapping", NO_MEMORY, move || trendline(forgetful(TrendlineConfig::overlapping()))),
        Entry::new("ssc_mptcp_sbd", NO_MEMORY, move || summary(latest(SummaryConfig::mptcp_sbd()))),
        Entry::new("ssc_author_variant", NO_MEMORY, move || summary(latest(SummaryConfig::author_variant()))),
    ]
}

/// The weight of a new sample in the smoothing of the trend line, which is lost with the paper's figure.
pub(super) const ALPHAS: [f64; 6] = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5];

/// The name of the setting with this weight.
pub(super) fn alpha_setting(alpha: f64) -> String {
    format!("alpha {alpha}")
}

/// The trend line with each of the weights.
pub(super) fn alphas() -> Vec<Entry> {
    let entry = |alpha: f64| {
        Entry::new("trendline", &alpha_setting(alpha), move || {
            trendline(TrendlineConfig { alpha, ..TrendlineConfig::default() })
        })
    };
    ALPHAS.map(entry).into()
}

/// The points of the figure's curves, each from left to right, and some other settings.
fn swept() -> Vec<Entry> {
    let mut entries = alphas();
    // RFC 8382 is not at hand; programs that name it have 0.1 and 0.05.
    entries.push(Entry::new("ssc_rfc8382", "p_l 0.05", || {
        let config = SummaryConfig::rfc8382();
        let congested = config.congested.map(|congested| Congested { loss: 0.05, ..congested });
        summary(SummaryConfig { congested, ..config })
    }));
    for join in [0.9999, 0.999, 0.99, 0.9, 0.8, 0.6] {
        entries.push(Entry::new("concordance", &format!("join {join}"), move || {
            Box::new(Concordance::new(ConcordanceConfig { join, ..ConcordanceConfig::default() }))
        }));
    }
    for seconds in [10, 30] {
        entries.push(Entry::new("concordance", &format!("held {seconds} s"), move || {
            Box::new(HoldTime::new(Box::<Concordance>::default(), Duration::from_secs(seconds)))
        }));
    }
    for error_max in [0.02, 0.05, 0.1, 0.4, 0.8] {
        entries.push(Entry::new("trendline", &format!("error_max {error_max}"), move || {
            trendline(TrendlineConfig { error_max, ..TrendlineConfig::default() })
        }));
    }
    for seconds in [5, 20, 50] {
        let hold = Duration::from_secs(seconds);
        entries.push(Entry::new("trendline", &format!("held {seconds} s"), move || {
            trendline(TrendlineConfig { hold, ..TrendlineConfig::default() })
        }));
    }
    for seconds in [5, 20, 100] {
        let hold = Duration::from_secs(seconds);
        entries.push(Entry::new("ssc_rfc8382", &format!("held {seconds} s"), move || {
            Box::new(HoldTime::new(summary(SummaryConfig::rfc8382()), hold))
        }));
    }
    for correlation_min in [0.9, 0.8, 0.7, 0.6, 0.4, 0.3] {
        entries.push(Entry::new("wavelet", &format!("correlation_min {correlation_min}"), move || {
            Box::new(Wavelet::new(WaveletConfig { correlation_min, ..WaveletConfig::default() }))
        }));
    }
    entries
}

/// Runs a case, watched by these detectors and at last the oracle. What each said of each pair, in
/// order of the lower and then of the higher path.
pub(super) fn run(case: &Case, entries: &[Entry]) -> Result<Vec<Vec<Verdicts>>, SimError> {
    let mut detectors: Vec<Box<dyn Detector>> = entries.iter().map(Entry::make).collect();
    detectors.push(Box::new(Oracle::with_changes(case.truth())));
    let mut watch = Watch::new(detectors, case.common.len());
    fairpath_sim::run(&case.scenario, &mut watch)?;
    Ok(watch.detectors.into_iter().map(|watched| watched.verdicts).collect())
}

/// Runs a case and looks at what the engine of its session decides: the groups by which it couples.
pub(super) fn run_live(case: &Case) -> Result<Vec<Verdicts>, SimError> {
    let paths = case.common.len();
    let mut decided = Decided { paths, verdicts: vec![Verdicts::new(); paths * (paths - 1) / 2] };
    fairpath_sim::run(&case.scenario, &mut decided)?;
    Ok(decided.verdicts)
}

/// The engine's verdicts on each pair.
#[derive(Debug)]
struct Decided {
    paths: usize,
    verdicts: Vec<Verdicts>,
}

impl Recorder for Decided {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        if let Some(groups) = view.groups(FlowIndex(0)) {
            note(&mut self.verdicts, self.paths, groups, now);
        }
    }
}

/// Takes down which pairs of paths are together from now on, where that is new.
fn note(verdicts: &mut [Verdicts], paths: usize, groups: &Groups, now: Timestamp) {
    for ((low, high), verdicts) in pairs(paths).zip(verdicts) {
        let together = groups.together(PathId::new(low as u32), PathId::new(high as u32));
        if verdicts.last().is_some_and(|(_, last)| *last) != together {
            verdicts.push((now.since(Timestamp::ZERO), together));
        }
    }
}

/// A detector at work.
#[derive(Debug)]
pub(super) struct Watched {
    detector: Box<dyn Detector>,
    verdicts: Vec<Verdicts>,
}

/// Tells the detectors what happens to the session, as its engine tells its own.
#[derive(Debug)]
pub(super) struct Watch {
    paths: usize,
    detectors: Vec<Watched>,
}

impl Watch {
    fn new(mut detectors: Vec<Box<dyn Detector>>, paths: usize) -> Self {
        for detector in &mut detectors {
            (0..paths as u32).for_each(|path| detector.on_path_opened(PathId::new(path), Timestamp::ZERO + BEGIN));
        }
        let none = vec![Verdicts::new(); paths * (paths - 1) / 2];
        let detectors = detectors.into_iter().map(|detector| Watched { detector, verdicts: none.clone() }).collect();
        Self { paths, detectors }
    }
}

/// The pairs of so many paths, in order.
pub(super) fn pairs(paths: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..paths).flat_map(move |low| (low + 1..paths).map(move |high| (low, high)))
}

impl Recorder for Watch {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, path: PathId, rtt: Duration) {
        if flow.0 > 0 {
            return;
        }
        for watched in &mut self.detectors {
            watched.detector.on_sample(path, &DelaySample { now, rtt, one_way: None });
            let Some(groups) = watched.detector.poll(now) else { continue };
            note(&mut watched.verdicts, self.paths, &groups, now);
        }
    }

    fn on_lost(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        if flow.0 == 0 {
            let lost = Lost { now, bytes: ByteCount::new(1500) };
            self.detectors.iter_mut().for_each(|watched| watched.detector.on_loss(path, &lost));
        }
    }
}
