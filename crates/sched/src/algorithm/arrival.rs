//! Expected arrival: the path on which the packet arrives first, and no path that would only make what follows wait.
//!
//! # Source
//! Ours. A slower path is left alone if the faster ones are done before it [ECF §3], and a window
//! of the connection bounds what they can do meanwhile [BLEST §II]. Here both are one comparison. A
//! slower path carries data from further on, so that it arrives when its turn comes [STMS].
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | r | `rate`, the delivery rate; before the first sample, and in slow start where it is larger, window / smoothed round-trip time | bytes in a second |
//! | b | the least round-trip time | time |
//! | q | in flight / r, how long the path takes for what is on it; at most `shown`, four times the longer of the smoothed and the newest round-trip time | time |
//! | u | `burst`, for how long what left in a burst would have kept the path busy, sent at its pacing rate | time |
//! | w | the way there: b less half of the least round trip ever, so that a queue that never empties stands there; where the host measures one-way delays, what the least of the path has above the least of all paths, whose own w is half of its b; from zero to b | time |
//! | A | `arrival` = max(b, q, min(b + u, max(smoothed, newest round-trip time))) − b + w; without room, later by the time until there is room | time |
//! | k | `left`, what may be sent before anything must arrive: what is unsent, within windows and buffers | bytes |
//!
//! Data in flight gives q if it is spread over a round trip. On a slow path a burst of ten packets,
//! which fills no window, is a queue for a tenth of a second and more, and delays its last packets
//! by as much. It delays them no longer, though, than round trips have shown. The deviation of the
//! smoothed round trip would not do. With the first sample it is half of that by definition
//! [RFC9002 §5.3], and it fades over many samples. A path of a long round trip would be left alone
//! while it matters.
//!
//! The deliveries of a path are the packets sent a round trip ago, and a controller may have sent
//! next to nothing then. BBR keeps four packets in flight for a moment in ten seconds, to measure
//! the round trip without a queue, and then returns to its old window. By the delivery rate of that
//! moment q would be minutes. But windows at most double in a round trip, and queues with them, and
//! twice more if the rate halves meanwhile. So round trips bound q.
//!
//! Half of the round trip is a poor guess if the way back is not as long as the way there. That is
//! the rule if acknowledgements of all paths come back on one of them, as they may in multipath
//! QUIC. Round trips then differ by as much as the ways there do, and not by twice that.
//!
//! A path f with the least A is waited for, although s has room, if A(s) > A(f) + k / R. R is the
//! sum of r over all paths that deliver earlier than s. All of k has then arrived before the packet
//! on s would.
//!
//! If s is used although others are sooner, its packet lies (A(s) − A(f)) (R + r(s)) further on,
//! but at most k. All paths together deliver that much in order until it arrives. The next packet
//! in order, sent on s, would withhold all that from the application, and keep the receiver's
//! window closed. STMS counts the data of f alone, and learns the rest from data that arrives too
//! early; rates are known here.
//!
//! In slow start the delivery rate is that of half the window, a round trip ago. A path that
//! doubles would seem half as fast as it is, and the tail of a short transfer would go elsewhere.
//! The window says more while it limits the path and there is no queue. Beyond that a window grows
//! and the rate does not.
//!
//! A path without measurements has half of QUIC's initial round trip as its A [RFC9002 §6.2.2,
//! kInitialRtt]. If it counted as the soonest, it would get the next data in order, which might
//! arrive long after the data of the others.
//!
//! A path is not waited for once its answer is overdue: longer than 2 (A + b − w) + 50 ms, with A as
//! if there were room. The path's own suspicion comes later, on a host that stood still and so has
//! measured round trips of seconds.
//!
//! A path is passed over if one with room costs less, and not waited for if it costs more. Costs
//! are configured, and only data for which the cheaper paths have no room is worth a higher one.
//!
//! # Deviations
//! None. A queue counts here only while its packets are in flight. An idle path has its least
//! round-trip time, whatever its queue was when it was last used, so no stale sample keeps data off
//! it [Luebben2019, slide 7].

use core::time::Duration;

use fairpath_core::{ByteCount, Rtt, Timestamp};

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, Train, active, candidates};

/// Time for which packets may be sent on a path in one train. No arrival is expected more exactly
/// than that, and a host sends packets of one path faster together.
const QUANTUM: Duration = Duration::from_millis(1);

/// Time that an answer may take beside the round trip: two delayed acknowledgements [RFC9000 §18.2,
/// max_ack_delay].
const ANSWER_MAX: Duration = Duration::from_millis(50);

/// A smoothed round trip longer than this many of the least is one with a queue.
const QUEUED: f64 = 1.25;

/// Sends on the path on which the packet is expected first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival;

/// The expectation of a path.
#[derive(Clone, Copy, Debug)]
struct Expected<'a> {
    path: &'a PathView,
    /// When the packet arrives, in seconds from now; zero if nothing is known of the path, so that
    /// it is tried.
    after: f64,
    /// In bytes in a second.
    rate: f64,
    /// The round trip of a packet behind the data in flight, in seconds.
    round: f64,
}

impl Expected<'_> {
    /// Whether an answer should have come by now.
    fn is_overdue(&self, now: Timestamp) -> bool {
        let silent_for = self.path.silent_for(now);
        silent_for > ANSWER_MAX && seconds(silent_for - ANSWER_MAX) > 2.0 * self.round
    }
}

/// The rate of the path, in bytes per second.
fn rate(path: &PathView, rtt: &Rtt) -> f64 {
    rate_of(path, seconds(rtt.smoothed), seconds(rtt.windowed_min))
}

/// The same, with round trips in seconds.
#[inline]
fn rate_of(path: &PathView, smoothed: f64, base: f64) -> f64 {
    // A window may be far larger than what was ever in flight: it says what may be sent, not what is carried.
    let by_window = || path.window.as_f64() / smoothed.max(1e-9);
    let doubles = path.in_slow_start && path.window_limited && smoothed <= base * QUEUED;
    match path.delivery_rate.map(|rate| rate.as_bps() as f64 * 0.125) {
        Some(rate) if doubles => rate.max(by_window()),
        Some(rate) => rate,
        None => by_window(),
    }
}

/// The offset of one-way delays against the way there, in seconds; `None` if there are none.
fn clocks(paths: &[PathView]) -> Option<f64> {
    let known = |path: &PathView| Some([path.one_way?.windowed_min, path.rtt.as_ref()?.windowed_min].map(seconds));
    let quickest = paths.iter().filter_map(known).min_by(|[a, _], [b, _]| a.total_cmp(b));
    quickest.map(|[delay, base]| delay - base * 0.5)
}

/// The expectation of a path; one-way delays exceed the way there by `clocks`.
fn expected(path: &PathView, clocks: Option<f64>, now: Timestamp) -> Expected<'_> {
    let unknown = Expected { path, after: 0.0, rate: 0.0, round: 0.0 };
    let Some(rtt) = &path.rtt else { return unmeasured(path) };
    let [base, smoothed, newest] = [rtt.windowed_min, rtt.smoothed, rtt.latest].map(seconds);
    let rate = rate_of(path, smoothed, base);
    if rate <= 0.0 {
        return unknown;
    }
    let [window, in_flight, datagram] = [path.window, path.in_flight, path.max_datagram].map(ByteCount::as_f64);
    // A division takes longer than all the rest, and this runs for every path and every packet.
    let per_byte = 1.0 / rate;
    let burst = path.burst_until.nanos_since(now) as f64 * 1e-9;
    let with_burst = (base + burst).min(smoothed.max(newest));
    let too_much = (in_flight + datagram - window).max(0.0);
    let shown = 4.0 * smoothed.max(newest);
    let takes = |bytes: f64| (bytes * per_byte).min(shown);
    let round = takes(in_flight.min(window)).max(with_burst).max(base);
    let there = match (&path.one_way, clocks) {
        (Some(delay), Some(clocks)) => (seconds(delay.windowed_min) - clocks).min(base).max(0.0),
        // The least of the last seconds rises where a queue never empties; that queue stands on the way there.
        _ => base - seconds(rtt.min) * 0.5,
    };
    Expected { path, after: takes(too_much) + round - base + there, rate, round }
}

/// The expectation of a path without measurements.
fn unmeasured(path: &PathView) -> Expected<'_> {
    let round = seconds(Rtt::INITIAL);
    Expected { path, after: 0.5 * round, rate: path.window.as_f64() / round, round }
}

/// A time in seconds.
fn seconds(time: Duration) -> f64 {
    time.as_secs() as f64 + f64::from(time.subsec_nanos()) * 1e-9
}

/// The bytes that may be sent before an acknowledgement must arrive; infinite without a known
/// bound.
fn left(connection: &ConnectionView) -> f64 {
    let free = |bound: Option<ByteCount>, used: ByteCount| bound.map(|bound| bound.saturating_sub(used));
    let bounds = [
        connection.unsent,
        free(connection.window, connection.window_used),
        free(connection.send_buffer, connection.buffered),
    ];
    bounds.into_iter().flatten().min().map_or(f64::INFINITY, |bytes| bytes.get() as f64)
}

impl Scheduler for Arrival {
    fn pick(&self, connection: &ConnectionView, paths: &[PathView], now: Timestamp) -> Choice {
        let cost = |one: &Expected<'_>| one.path.terms.cost;
        let by_cost = |a: &Expected<'_>, b: &Expected<'_>| cost(a).cmp(&cost(b)).then(a.after.total_cmp(&b.after));
        let clocks = clocks(paths);
        let expected = |path| expected(path, clocks, now);
        let Some(best) = candidates(paths).map(expected).min_by(by_cost) else { return Choice::Wait };
        // Paths with room need no look: one that is sooner and costs no more would be the best.
        // Neither do paths with nothing in flight: no acknowledgement would make the host ask
        // again.
        let may_be_sooner = |path: &&PathView| {
            !path.has_room() && path.in_flight > ByteCount::ZERO && path.terms.cost <= best.path.terms.cost
        };
        let (mut first, mut rate) = (best, 0.0);
        let is_sooner = |one: &Expected<'_>| one.after < best.after && !one.is_overdue(now);
        for one in active(paths).filter(may_be_sooner).map(expected).filter(is_sooner) {
            rate += one.rate;
            if one.after < first.after {
                first = one;
            }
        }
        if rate == 0.0 {
            return Choice::Send(best.path.id);
        }
        let (later, left) = (best.after - first.after, left(connection));
        if later * rate > left {
            return Choice::WaitFor(first.path.id);
        }
        let datagram = best.path.max_datagram.get() as f64;
        match (later * (rate + best.rate)).min(left - datagram) {
            gap if gap > datagram => Choice::Ahead(best.path.id, ByteCount::from_f64(gap)),
            _ => Choice::Send(best.path.id),
        }
    }

    fn train(&self, chosen: &PathView) -> Train {
        let rate = chosen.rtt.map_or(0.0, |rtt| rate(chosen, &rtt));
        let packets = rate * QUANTUM.as_secs_f64() / chosen.max_datagram.get().max(1) as f64;
        Train::UpTo((packets as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{one_way, path, picked, view};

    /// A path with a window of ten datagrams, of which `datagrams` are in flight.
    fn filled(id: u32, rtt_ms: u64, datagrams: u64) -> PathView {
        PathView { in_flight: ByteCount::new(1_200 * datagrams), ..view(id, rtt_ms) }
    }

    fn choice(unsent: Option<u64>, window: Option<u64>, paths: &[PathView]) -> Choice {
        let (unsent, window) = (unsent.map(ByteCount::new), window.map(ByteCount::new));
        let connection = ConnectionView { unsent, window, ..ConnectionView::default() };
        Arrival.pick(&connection, paths, Timestamp::ZERO)
    }

    #[test]
    fn an_idle_path_is_taken_by_its_least_round_trip_and_not_by_a_stale_one() {
        // Its queue was full when it was last heard of. The other path has had a queue of 30 ms all the time.
        let mut paths = [filled(0, 50, 0), filled(1, 50, 9)];
        let [idle, busy] = &mut paths;
        idle.rtt.as_mut().unwrap().smoothed = Duration::from_millis(500);
        busy.rtt.as_mut().unwrap().smoothed = Duration::from_millis(80);
        busy.delivery_rate = Some(fairpath_core::Bitrate::from_bps(12_000 * 8 * 1_000 / 80));
        assert_eq!(picked(&Arrival, &paths), Choice::Send(path(0)));
        assert_eq!(picked(&crate::MinRtt, &paths), Choice::Send(path(1)), "which has been misled");
    }

    /// f has room after 2 ms. s may take 166 ms: what is sent there is for later.
    #[test]
    fn a_path_that_nobody_has_measured_is_not_taken_for_the_soonest() {
        let unmeasured = PathView { rtt: None, delivery_rate: None, ..view(1, 0) };
        assert_eq!(choice(None, None, &[filled(0, 20, 0), unmeasured]), Choice::Send(path(0)));
        assert_eq!(choice(Some(50_000), None, &[filled(0, 20, 10), unmeasured]), Choice::WaitFor(path(0)));
        let Choice::Ahead(id, bytes) = choice(None, None, &[filled(0, 20, 10), unmeasured]) else { panic!() };
        assert!(id == path(1) && bytes > ByteCount::new(90_000), "{bytes}");
        // A path that is slower than most is worth less than one of which nobody knows.
        assert_eq!(choice(None, None, &[filled(0, 500, 0), unmeasured]), Choice::Send(path(1)));
    }

    #[test]
    fn the_tail_waits_for_the_fast_path_and_what_is_long_uses_both() {
        // f: 12,000 bytes in 20 ms; room for another packet after 2 ms, so that it arrives after 12 ms. s: after 50.
        let paths = [filled(0, 20, 10), filled(1, 100, 0)];
        // In the 38 ms between f carries 22,800 bytes.
        assert_eq!(choice(Some(22_700), None, &paths), Choice::WaitFor(path(0)));
        assert_eq!(choice(Some(22_900), None, &paths).path(), Some(path(1)));
        assert_eq!(choice(None, None, &paths).path(), Some(path(1)), "no end in sight");
    }

    #[test]
    fn the_slow_path_carries_what_both_will_have_come_to() {
        // As above; s carries 12,000 bytes in 100 ms, so 4,560 in these 38.
        let paths = [filled(0, 20, 10), filled(1, 100, 0)];
        let bytes = |choice: Choice| match choice {
            Choice::Ahead(id, bytes) if id == path(1) => bytes.get(),
            other => panic!("{other:?}"),
        };
        assert!(bytes(choice(None, None, &paths)).abs_diff(22_800 + 4_560) <= 1);
        // The last of what there is.
        assert_eq!(bytes(choice(Some(24_000), None, &paths)), 24_000 - 1_200);
        assert_eq!(
            choice(None, None, &[filled(0, 20, 0), filled(1, 100, 0)]),
            Choice::Send(path(0)),
            "the first of all"
        );
    }

    #[test]
    fn a_queue_that_never_empties_counts_as_time_on_the_way_there() {
        // f: 100 ms, and 90 more of a queue for longer than the least is remembered; s: 200 ms. On f a packet arrives
        // after 50 + 90 ms, and after 100 on s.
        let mut paths = [filled(0, 190, 5), filled(1, 200, 0)];
        paths[0].rtt.as_mut().unwrap().min = Duration::from_millis(100);
        assert_eq!(choice(None, None, &paths).path(), Some(path(1)));
        // With 40 ms of queue it is sooner on f.
        paths[0].rtt = Some(Rtt { min: Duration::from_millis(100), ..Rtt::steady(Duration::from_millis(140)) });
        assert_eq!(choice(None, None, &paths).path(), Some(path(0)));
    }

    #[test]
    fn one_way_delays_say_which_part_of_a_round_trip_is_the_way_there() {
        // The acknowledgements of both come back on f, in 10 ms: s takes 90 ms, and not 50.
        let mut paths = [filled(0, 20, 10), filled(1, 100, 0)];
        // The clock there is ahead by a second.
        (paths[0].one_way, paths[1].one_way) = (Some(one_way(1_010)), Some(one_way(1_090)));
        // f: after 12 ms. In the 78 between it carries 46,800 bytes.
        assert_eq!(choice(Some(46_700), None, &paths), Choice::WaitFor(path(0)));
        assert_eq!(choice(Some(46_900), None, &paths).path(), Some(path(1)));
        // A peer may say what it likes: no way takes longer than there and back.
        paths[1].one_way = Some(one_way(600_000));
        assert_eq!(choice(Some(52_900), None, &paths).path(), Some(path(1)), "after 100 ms");
        // A path without one-way delays is given half of its round trip.
        paths[1].one_way = None;
        assert_eq!(choice(Some(22_900), None, &paths).path(), Some(path(1)));
    }

    #[test]
    fn a_path_that_owes_an_answer_for_too_long_is_not_waited_for() {
        let mut paths = [filled(0, 20, 10), filled(1, 100, 0)];
        paths[0].heard_at = Timestamp::from_millis(1_000);
        paths[0].oldest_sent = Some(Timestamp::from_millis(1_010));
        let connection = ConnectionView { unsent: Some(ByteCount::new(12_000)), ..ConnectionView::default() };
        let at = |millis| Arrival.pick(&connection, &paths, Timestamp::from_millis(millis));
        // The data on it takes 20 ms: twice that, and 50 ms.
        assert_eq!(at(1_100), Choice::WaitFor(path(0)));
        assert_eq!(at(1_101), Choice::Send(path(1)));
    }

    #[test]
    fn a_window_that_would_be_held_up_is_left_to_the_fast_path() {
        let paths = [filled(0, 20, 10), filled(1, 100, 0)];
        assert_eq!(choice(None, Some(22_700), &paths), Choice::WaitFor(path(0)));
        assert_eq!(choice(None, Some(22_900), &paths).path(), Some(path(1)));
        let connection = ConnectionView {
            send_buffer: Some(ByteCount::new(30_000)),
            buffered: ByteCount::new(8_000),
            ..ConnectionView::default()
        };
        assert_eq!(Arrival.pick(&connection, &paths, Timestamp::ZERO), Choice::WaitFor(path(0)));
    }

    #[test]
    fn a_fast_path_takes_what_it_carries_in_a_millisecond_at_once() {
        // 12,000 bytes in 1 and in 20 ms.
        assert_eq!(Arrival.train(&filled(0, 1, 0)), Train::UpTo(10));
        assert_eq!(Arrival.train(&filled(0, 20, 0)), Train::UpTo(1));
    }

    #[test]
    fn a_path_in_slow_start_is_as_fast_as_its_window_where_that_is_what_limits_it() {
        // f doubled its window to 12,000 bytes, and delivers 6,000 in each 20 ms. s: after 50 ms.
        let mut paths = [filled(0, 20, 10), filled(1, 100, 0)];
        paths[0].delivery_rate = Some(fairpath_core::Bitrate::from_bps(6_000 * 8 * 50));
        // At 6,000 bytes in 20 ms a packet arrives after 40 + 4 - 10 ms; in the 16 until 50 that is 4,800 bytes.
        let by_rate = |paths: &[PathView]| choice(Some(22_700), None, paths).path() == Some(path(1));
        assert!(by_rate(&paths), "its window is not known to be its limit");
        paths[0].window_limited = true;
        assert!(!by_rate(&paths), "it is twice as fast");
        paths[0].rtt.as_mut().unwrap().smoothed = Duration::from_millis(26);
        assert!(by_rate(&paths), "there is a queue: the window says nothing of the rate");
        paths[0].rtt.as_mut().unwrap().smoothed = Duration::from_millis(20);
        paths[0].in_slow_start = false;
        assert!(by_rate(&paths), "it has been measured at this window");
    }

    #[test]
    fn what_left_in_a_burst_is_a_queue_as_far_as_round_trips_have_shown_one() {
        // Both have room. 6,000 bytes left s at once, which takes 50 ms at its pacing rate.
        let mut paths = [filled(0, 120, 0), filled(1, 100, 5)];
        paths[1].burst_until = Timestamp::from_millis(50);
        let at = |millis, paths: &[PathView]| {
            Arrival.pick(&ConnectionView::default(), paths, Timestamp::from_millis(millis)).path()
        };
        paths[1].rtt.as_mut().unwrap().variance = Duration::from_millis(50);
        assert_eq!(at(0, &paths), Some(path(1)), "no round trip was ever longer, whatever is made of the first sample");
        paths[1].rtt.as_mut().unwrap().latest = Duration::from_millis(140);
        // After 60 ms by the one; by the other 50 and what is left of the burst, up to 40.
        assert_eq!([0, 39, 41].map(|millis| at(millis, &paths)), [Some(path(0)), Some(path(0)), Some(path(1))]);
    }

    #[test]
    fn a_path_that_was_given_little_for_a_moment_is_not_taken_for_one_that_carries_little() {
        // Two alike, of 1.2 MB in 100 ms, one of which had four packets in flight until a round trip ago.
        let mut paths = [filled(0, 100, 1_000), filled(1, 100, 900)];
        for path in &mut paths {
            path.window = ByteCount::new(1_200_000);
            path.in_slow_start = false;
            path.delivery_rate = Some(fairpath_core::Bitrate::from_mbps(96));
        }
        paths[1].delivery_rate = Some(fairpath_core::Bitrate::from_bps(4 * 1_200 * 8 * 10));
        // By 48 kB/s what is on it takes 22 s; by round trips, 0.4. Until then the other carries 3.6 MB.
        assert_eq!(choice(Some(3_590_000), None, &paths), Choice::WaitFor(path(0)));
        let Choice::Ahead(_, gap) = choice(None, None, &paths) else { panic!("it has room") };
        assert!(gap < ByteCount::new(3_700_000), "{gap} further on");
        assert_eq!(choice(Some(3_700_000), None, &paths).path(), Some(path(1)));
    }

    #[test]
    fn a_path_that_costs_more_has_what_the_cheaper_ones_have_no_room_for() {
        let mut paths = [filled(0, 20, 0), filled(1, 100, 0)];
        paths[0].terms.cost = 1;
        assert_eq!(choice(None, None, &paths), Choice::Send(path(1)), "the slow one costs less");
        paths[1].in_flight = paths[1].window;
        assert_eq!(choice(None, None, &paths), Choice::Send(path(0)), "which is full");
        // Nobody waits for the dear one, though all that is left would be over it sooner.
        let mut paths = [filled(0, 20, 10), filled(1, 100, 0)];
        paths[0].terms.cost = 1;
        assert_eq!(choice(Some(1_200), None, &paths), Choice::Send(path(1)));
    }
}
