//! One-way delays: when a datagram left here, and when it came there.
//!
//! noq sends the acknowledgements of all paths on one of them. So the round-trip time of every path
//! contains the way back of that one, and a queue there looks like one that all paths share. The way
//! there alone tells the truth.
//!
//! Both ends see the same datagrams: the last bytes of one, of its authentication tag, name it
//! ([`marks`]). Some of them are noted where they leave, and where they come, and the receiver reports
//! what came and when ([`report`]). The difference is the delay and the difference of the two clocks,
//! which nobody knows ([`clock`]); those who look for changes do not mind.
//!
//! An end asks for reports while it looks for shared bottlenecks and sends in bulk, so that a
//! connection at rest is silent.

mod clock;
mod marks;
pub(crate) mod report;

use web_time::{Duration, Instant};

use bytes::Bytes;
use fairpath_engine::{Engine, PathId, Timestamp};

use clock::{FIRST_DELAY, PeerClock, Times};
pub(crate) use marks::Mark;
use marks::{Arrivals, Departures};
use report::{Message, Report};

/// How often reports are sent.
const REPORT_EVERY: Duration = Duration::from_millis(50);

/// How often reports are asked for, and how long they are sent after that.
const ASK_EVERY: Duration = Duration::from_secs(1);
const ASKED_FOR: Duration = Duration::from_secs(3);

/// An end that sends this much between two requests sends in bulk. Reports and requests are far less.
const BULK_BYTES: u64 = 50_000;

/// The delays of one connection.
#[derive(Debug)]
pub(crate) struct OneWay {
    /// Whether this end looks for shared bottlenecks.
    observes: bool,
    /// The zero of the times in this end's reports.
    begun: Instant,
    departures: Departures,
    arrivals: Arrivals,
    /// How many bytes have left.
    sent: u64,
    /// When reports were last asked for, and what had been sent by then.
    asked: (Instant, u64),
    reporting_until: Option<Instant>,
    /// When the next report is due.
    report_at: Instant,
    /// How many reports were sent.
    reports: u32,
    /// The newest report that came.
    newest: Option<u32>,
    clock: Option<PeerClock>,
}

impl OneWay {
    /// For a new connection; `observes` says whether this end has a use for delays.
    pub(crate) fn new(observes: bool, now: Instant) -> Self {
        Self {
            observes,
            begun: now,
            departures: Departures::new(now),
            arrivals: Arrivals::default(),
            sent: 0,
            asked: (now, 0),
            reporting_until: None,
            report_at: now,
            reports: 0,
            newest: None,
            clock: None,
        }
    }

    /// A datagram leaves on the path.
    pub(crate) fn on_departure(&mut self, datagram: &[u8], path: PathId, now: Instant) {
        self.sent += datagram.len() as u64;
        if self.observes {
            self.departures.note(datagram, path, now);
        }
    }

    /// These datagrams, which were noted, left at this time and not when they were made; `None` where nobody knows: then
    /// they tell nothing.
    pub(crate) fn on_left<'a>(&mut self, datagrams: impl Iterator<Item = &'a [u8]>, left: Option<Instant>) {
        if self.observes {
            datagrams.filter_map(Mark::of).for_each(|mark| self.departures.correct(mark, left));
        }
    }

    /// A datagram of that name came at `at`.
    pub(crate) fn on_arrival(&mut self, mark: Option<Mark>, at: Instant) {
        if let Some(mark) = mark.filter(|_| self.is_reporting(at)) {
            self.arrivals.note(mark, at);
        }
    }

    pub(crate) fn is_reporting(&self, now: Instant) -> bool {
        self.reporting_until.is_some_and(|until| now < until)
    }

    /// When something is to be said.
    pub(crate) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let ask = self.observes.then_some(self.asked.0 + ASK_EVERY);
        let report = self.is_reporting(now).then_some(self.report_at);
        ask.into_iter().chain(report).min()
    }

    /// The messages due now, in datagrams of at most `room` bytes.
    pub(crate) fn say(&mut self, room: usize, now: Instant) -> Vec<Bytes> {
        let mut said = Vec::new();
        let (at, before) = self.asked;
        if self.observes && now.saturating_duration_since(at) >= ASK_EVERY {
            self.asked = (now, self.sent);
            if self.sent.saturating_sub(before) >= BULK_BYTES {
                said.push(Message::Ask.write());
            }
        }
        if self.is_reporting(now) && now >= self.report_at {
            self.report_at = now + REPORT_EVERY;
            let begun = self.begun;
            let since = |at: Instant| micros(at.saturating_duration_since(begun)).unsigned_abs();
            let came = self.arrivals.take().map(|arrival| (arrival.mark, since(arrival.at))).collect();
            if let Some(report) = Report::new(self.reports, came, room) {
                self.reports = self.reports.saturating_add(1);
                said.push(Message::Report(report).write());
            }
        }
        said
    }

    /// The peer asks for reports.
    pub(crate) fn on_ask(&mut self, now: Instant) {
        self.reporting_until = Some(now + ASKED_FOR);
        self.report_at = self.report_at.max(now);
    }

    /// The peer reports. The engine's time is `at`.
    pub(crate) fn on_report(&mut self, report: &Report, engine: &mut Engine, at: Timestamp, now: Instant) {
        if self.newest.is_some_and(|newest| report.number <= newest) {
            return;
        }
        self.newest = Some(report.number);
        let here = |time: Instant, begun: Instant| micros(time.saturating_duration_since(begun));
        for &(mark, micros_there) in &report.came {
            let Some(departure) = self.departures.take(mark) else { continue };
            let (left, heard) = (here(departure.at, self.begun), here(now, self.begun));
            let times = Times { left, came: came_micros(micros_there), heard };
            let path = departure.path;
            if !self.clock.as_mut().is_some_and(|clock| clock.goes_with(times)) {
                // Where a clock has jumped, delays go on from the one that was known last.
                let known = engine.snapshots(at).find(|known| known.path == path).and_then(|known| known.one_way);
                self.clock = Some(PeerClock::new(times, known.unwrap_or(FIRST_DELAY), at));
            }
            let Some(clock) = &mut self.clock else { continue };
            engine.on_one_way_delay(path, clock.delay(times), clock.time(times, at), at);
        }
    }
}

/// In whole µs; the longest there is where there are more.
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// A time of a report. The peer says what it likes: what is more than any clock shows is the latest there
/// is.
fn came_micros(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_a_peer_reports_the_delay_is_finite_and_nothing_comes_from_the_future(
            header in any::<[u8; 12]>(),
            entries in proptest::collection::vec(any::<[u8; 12]>(), 0..10),
            left in proptest::collection::vec(extreme(), 10),
            now in any::<u64>(),
        ) {
            let now = Timestamp::from_nanos(now);
            let datagram = [&[2][..], &header, &entries.concat()].concat();
            let Some(Message::Report(report)) = Message::read(&datagram) else { panic!("a report of any numbers") };
            let mut clock: Option<PeerClock> = None;
            for ((_, came), left) in report.came.iter().zip(&left) {
                let times = Times { left: *left, came: came_micros(*came), heard: left.saturating_add(90_000) };
                let clock = clock.get_or_insert_with(|| PeerClock::new(times, FIRST_DELAY, now));
                clock.goes_with(times);
                prop_assert!(clock.delay(times) <= clock::DELAY_MAX);
                prop_assert!(clock.time(times, now) <= now);
            }
        }

        #[test]
        fn any_datagram_can_be_read(datagram in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Message::read(&datagram);
        }
    }

    #[test]
    fn a_datagram_left_when_its_host_says_or_tells_nothing() {
        let begun = Instant::now();
        let ms = |ms: u64| begun + Duration::from_millis(ms);
        let engine = fairpath_engine::EngineConfig::live();
        let delays = |left: Option<Instant>| {
            let mut engine = engine.build().unwrap();
            engine.on_path_opened(PathId::new(0), fairpath_engine::ByteCount::new(1_200), Timestamp::ZERO);
            let mut one_way = OneWay::new(true, begun);
            let datagrams = [8_u64, 16].map(u64::to_be_bytes);
            for (datagram, made) in datagrams.iter().zip([0, 100]) {
                one_way.on_departure(datagram, PathId::new(0), ms(made));
            }
            one_way.on_left([&datagrams[1][..]].into_iter(), left);
            // Each took 20 ms, but for what it waited at its host.
            let report = Report { number: 0, came: vec![(Mark(8), 20_000), (Mark(16), 128_000)] };
            let at = Timestamp::from_millis(150);
            one_way.on_report(&report, &mut engine, at, ms(150));
            engine.snapshots(at).next().and_then(|path| path.one_way)
        };
        let (first, late) = (Some(FIRST_DELAY), Some(FIRST_DELAY + Duration::from_millis(8)));
        assert_eq!(delays(Some(ms(100))), late, "as it was made");
        assert_eq!(delays(Some(ms(108))), first, "it was handed over 8 ms later");
        assert_eq!(delays(None), first, "only the first tells");
    }

    /// Numbers near the ends of the range are as likely as all others together.
    fn extreme() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), 0..10_i64, i64::MAX - 10..=i64::MAX, i64::MIN..i64::MIN + 10]
    }
}
