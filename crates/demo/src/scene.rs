//! The two networks of the demo, who sends over them, and a run in virtual time: the real stack, on one thread, so
//! that a busy machine changes nothing.

use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_emu::{LinkConfig, QueueConfig};
use fairpath_quic::{Coupling, EngineConfig};
use fairpath_quic_sim::{Crowd, Cryptography};
use fairpath_report::recording::sample;
use fairpath_trace::Record;
use serde::Serialize;

/// The rate of every link.
pub(crate) const LINK: Bitrate = Bitrate::from_mbps(20);

/// The round-trip time without queues.
pub(crate) const RTT: Duration = Duration::from_millis(20);

/// The queue of a link, as time: common for access links.
pub(crate) const QUEUE: Duration = Duration::from_millis(50);

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How many looks a point of the picture spans.
const LOOKS_A_POINT: usize = 5;

/// The competitor of the first seed is alone for this long.
const ALONE: Duration = Duration::from_millis(1_000);

/// Each further seed lets it be alone longer by this: the runs meet at other points of its cycle.
const ALONE_STEP: Duration = Duration::from_millis(173);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Network {
    /// Two links, one for each path, and nobody else.
    Separate,
    /// One link for both paths and for somebody else's connection.
    Shared,
}

impl Network {
    pub(crate) const ALL: [Self; 2] = [Self::Separate, Self::Shared];

    /// The time until slow start and the first losses are over, and the time that is measured. Where two share a
    /// link they win from each other by turns, so that takes longer.
    pub(crate) fn times(self) -> [Duration; 2] {
        match self {
            Self::Separate => [Duration::from_secs(4), Duration::from_secs(8)],
            Self::Shared => [Duration::from_secs(6), Duration::from_secs(20)],
        }
    }
}

/// How the connection under test sends. All use CUBIC, as the competitor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    OnePath,
    /// Two paths that know nothing of each other.
    Uncoupled,
    /// Two paths as the program runs them by default: coupled while they are found to share a link.
    Fairpath,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::OnePath, Self::Uncoupled, Self::Fairpath];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OnePath => "one path",
            Self::Uncoupled => "two paths, uncoupled",
            Self::Fairpath => "Fairpath",
        }
    }

    pub(crate) fn paths(self) -> usize {
        if self == Self::OnePath { 1 } else { 2 }
    }

    pub(crate) fn engine(self) -> EngineConfig {
        match self {
            Self::Fairpath => EngineConfig::live(),
            Self::OnePath | Self::Uncoupled => {
                EngineConfig { congestion: "cubic".into(), coupling: Coupling::Never, ..EngineConfig::live() }
            }
        }
    }
}

/// A point of the picture: the rates since the point before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Since the competitor began, or the connection under test where there is none.
    pub(crate) at: Duration,
    pub(crate) paths: [Bitrate; 2],
    pub(crate) competitor: Bitrate,
}

#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) network: Network,
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    /// Application data of the connection under test, while it was measured.
    pub(crate) goodput: Bitrate,
    /// The same of the competitor.
    pub(crate) competitor: Option<Bitrate>,
    /// The time from the connection's beginning until its paths were found to share a link.
    pub(crate) found_after: Option<Duration>,
    /// The part of the measured time in which they were taken for paths that share one.
    pub(crate) together: f64,
    /// The time from the competitor's beginning until the connection under test began.
    pub(crate) begun: Duration,
    pub(crate) points: Vec<Point>,
    pub(crate) records: Vec<Record>,
}

/// Runs one mode over one network with this seed.
pub(crate) fn run(network: Network, mode: Mode, seed: u64) -> anyhow::Result<Run> {
    let mut crowd = Crowd::protected_by(Cryptography::Tls, seed);
    let config = LinkConfig::new(LINK).queue(QueueConfig::sojourn(QUEUE));
    let first = crowd.link("link 1", &config);
    let second = if network == Network::Shared { first } else { crowd.link("link 2", &config) };
    let competitor = (network == Network::Shared).then(|| crowd.join(&Mode::OnePath.engine(), &[(first, RTT)]));
    let mut log = Log::new(network, mode);
    if competitor.is_some() {
        log.watch(&mut crowd, None, competitor, ALONE + ALONE_STEP * seed.saturating_sub(1) as u32);
    }
    let begun = crowd.elapsed();
    log.begun = begun;
    let ours = crowd.join(&mode.engine(), &[(first, RTT), (second, RTT)][..mode.paths()]);
    let [start_up, measured] = network.times();
    let received = |crowd: &Crowd| (crowd.received(ours), competitor.map_or(0, |one| crowd.received(one)));
    log.watch(&mut crowd, Some(ours), competitor, start_up);
    let from = received(&crowd);
    log.looks = 0;
    log.together = 0;
    log.watch(&mut crowd, Some(ours), competitor, measured);
    let to = received(&crowd);
    anyhow::ensure!(crowd.violation().is_none(), "an end broke its own rules: {:?}", crowd.violation());
    let rate = |from: u64, to: u64| ByteCount::new(to - from).per(measured).unwrap_or(Bitrate::ZERO);
    Ok(Run {
        network,
        mode,
        seed,
        goodput: rate(from.0, to.0),
        competitor: competitor.map(|_| rate(from.1, to.1)),
        found_after: log.found_after,
        together: log.together as f64 / log.looks.max(1) as f64,
        begun,
        points: log.points,
        records: log.records,
    })
}

/// A run as it is seen from outside.
struct Log {
    run: String,
    begun: Duration,
    looks: usize,
    /// The looks at which the paths were taken for paths that share a link.
    together: usize,
    found_after: Option<Duration>,
    before: ([ByteCount; 2], ByteCount),
    points: Vec<Point>,
    records: Vec<Record>,
    since_point: usize,
}

impl Log {
    fn new(network: Network, mode: Mode) -> Self {
        let network = if network == Network::Separate { "separate" } else { "shared" };
        Self {
            run: format!("{network}/{}", mode.name()),
            begun: Duration::ZERO,
            looks: 0,
            together: 0,
            found_after: None,
            before: ([ByteCount::ZERO; 2], ByteCount::ZERO),
            points: Vec::new(),
            records: Vec::new(),
            since_point: 0,
        }
    }

    fn watch(&mut self, crowd: &mut Crowd, ours: Option<usize>, competitor: Option<usize>, time: Duration) {
        let end = crowd.elapsed() + time;
        while crowd.elapsed() < end {
            crowd.run_for(LOOK.min(end - crowd.elapsed()));
            self.looks += 1;
            self.since_point += 1;
            if ours.is_some_and(|ours| crowd.is_together(ours)) {
                self.together += 1;
                self.found_after.get_or_insert(crowd.elapsed() - self.begun);
            }
            for (member, flow) in [(ours, "main"), (competitor, "competitor")] {
                self.record(crowd, member, flow);
            }
            if self.since_point == LOOKS_A_POINT {
                self.point(crowd, ours, competitor);
            }
        }
    }

    fn record(&mut self, crowd: &mut Crowd, member: Option<usize>, flow: &str) {
        let Some((now, paths)) = member.map(|member| crowd.snapshots(member)) else { return };
        self.records.extend(paths.iter().map(|path| Record {
            run: Some(self.run.clone()),
            flow: Some(flow.to_owned()),
            ..Record::from(sample(now, path))
        }));
    }

    /// The senders know sooner what was delivered than the receivers, which hand records on when they are whole.
    fn point(&mut self, crowd: &mut Crowd, ours: Option<usize>, competitor: Option<usize>) {
        let mut delivered = [ByteCount::ZERO; 2];
        for path in ours.map(|ours| crowd.snapshots(ours).1).unwrap_or_default() {
            if let Some(of_path) = delivered.get_mut(path.path.get() as usize) {
                *of_path = path.delivered;
            }
        }
        let theirs = competitor.map(|one| crowd.snapshots(one).1.iter().map(|path| path.delivered).sum());
        let theirs: ByteCount = theirs.unwrap_or(ByteCount::ZERO);
        let time = crowd.elapsed().saturating_sub(self.points.last().map_or(Duration::ZERO, |point| point.at));
        let rate = |from: ByteCount, to: ByteCount| to.saturating_sub(from).per(time).unwrap_or(Bitrate::ZERO);
        let (ours_before, theirs_before) = self.before;
        let paths = [0, 1].map(|path| rate(ours_before[path], delivered[path]));
        self.points.push(Point { at: crowd.elapsed(), paths, competitor: rate(theirs_before, theirs) });
        self.before = (delivered, theirs);
        self.since_point = 0;
    }
}
