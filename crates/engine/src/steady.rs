//! Whether a path is sent on at a steady rate by an application that does not fill it.

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

/// The span in which bytes are counted: as long as a burst of pictures or a host's timer, shorter
/// than the spans that detectors compare.
const SPAN: Duration = Duration::from_millis(100);

/// The usual size of a span, relative to the mean. A detector would see half of it missing or added
/// in a queue.
const USUAL: core::ops::RangeInclusive<f64> = 0.5..=1.5;

/// The weight of the past in the usual span, in spans.
const MEMORY: f64 = 8.0;

/// The largest usual span while the path is full. Above it, the waiting data is the application's
/// own picture or burst, which fills and empties the queues of all paths at once. A sender at its
/// usual rate that finds the window full has a window that a loss reduced, or a queue that others
/// filled.
const USUAL_WHERE_FULL: f64 = 1.1;

/// Usual spans in a row that make a rate steady. Pauses and key pictures are less far apart (2 s).
const STEADY_SPANS: u32 = 30;

/// Further spans after the application filled the path: a second, in which its queue empties.
const AFTER_FULL_SPANS: u32 = 10;

/// Counts the bytes sent on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steadiness {
    begun: Timestamp,
    bytes: ByteCount,
    /// The usual bytes of a span.
    usual: f64,
    /// How many spans in a row were usual.
    spans: u32,
    /// Whether the path was full, in this span and the one before.
    full: [bool; 2],
}

impl Steadiness {
    pub(crate) fn on_sent(&mut self, bytes: ByteCount, now: Timestamp) {
        if now.nanos_since(self.begun) >= SPAN.as_nanos() as u64 {
            self.end_span(now.since(self.begun), now);
        }
        self.bytes += bytes;
    }

    #[inline(never)]
    fn end_span(&mut self, since: Duration, now: Timestamp) {
        let sent = core::mem::take(&mut self.bytes).as_f64();
        let paused = since >= 2 * SPAN;
        let usual = !paused && USUAL.contains(&(sent / self.usual));
        self.spans = if usual { self.spans.saturating_add(1) } else { 0 };
        let [full, was_full] = self.full;
        if (full || was_full) && sent > USUAL_WHERE_FULL * self.usual {
            self.spans = self.spans.min(STEADY_SPANS - AFTER_FULL_SPANS);
        }
        self.full = [false, full];
        if self.usual == 0.0 {
            self.usual = sent;
        } else {
            self.usual += (sent - self.usual) / MEMORY;
        }
        self.begun = if paused { now } else { self.begun + SPAN };
    }

    /// The path was full. The rate may look steady then, and yet fill the queue and let it fall as
    /// the application does.
    pub(crate) fn on_full(&mut self) {
        self.full[0] = true;
    }

    /// Whether it has been sent on at a steady rate, and still is.
    pub(crate) fn is_steady(&self, now: Timestamp) -> bool {
        self.spans >= STEADY_SPANS && now.since(self.begun) < 2 * SPAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of time in which an application is steady that sends packets of 1 kB at these
    /// times in ms.
    fn steady(times: impl Iterator<Item = u64>) -> f64 {
        let mut steadiness = Steadiness::default();
        let seen: Vec<bool> = times
            .map(|at| {
                let now = Timestamp::from_millis(at);
                steadiness.on_sent(ByteCount::new(1000), now);
                steadiness.is_steady(now)
            })
            .collect();
        seen.iter().filter(|steady| **steady).count() as f64 / seen.len() as f64
    }

    #[test]
    fn a_constant_rate_is_steady_after_three_seconds() {
        // Three of 30 s, and the first span.
        let part = steady((0..30_000).step_by(5));
        assert!((0.89..0.9).contains(&part), "{part}");
    }

    #[test]
    fn pauses_bursts_and_key_pictures_are_not() {
        let on_off = |on: u64, off: u64| move |at: &u64| at % (on + off) < on;
        for (on, off) in [(1_000, 300), (2_900, 200), (200, 200)] {
            assert_eq!(steady((0..30_000).step_by(5).filter(on_off(on, off))), 0.0, "{on} ms on, {off} ms off");
        }
        // 30 pictures in a second, 8 packets each, every sixtieth five times as large.
        let pictures = (0..900u64).flat_map(|picture| {
            let packets = if picture % 60 == 0 { 40 } else { 8 };
            (0..packets).map(move |_| picture * 100 / 3)
        });
        assert_eq!(steady(pictures), 0.0);
    }

    /// Whether an application is steady half a second after a full path, and one and a half seconds
    /// later. It sends a packet of 1 kB every 5 ms, and one every `every_ms` while the path is
    /// full.
    fn around_full(every_ms: usize) -> [bool; 2] {
        let mut steadiness = Steadiness::default();
        let mut send = |from: u64, to: u64, every: usize, full: bool| {
            for now in (from..to).step_by(every).map(Timestamp::from_millis) {
                steadiness.on_sent(ByteCount::new(1000), now);
                if full {
                    steadiness.on_full();
                }
            }
            steadiness.is_steady(Timestamp::from_millis(to))
        };
        assert!(send(0, 5_000, 5, false));
        send(5_000, 5_300, every_ms, true);
        [send(5_300, 5_800, 5, false), send(5_800, 7_300, 5, false)]
    }

    #[test]
    fn after_the_application_filled_the_path_a_second_passes() {
        assert_eq!(around_full(4), [false, true]);
    }

    #[test]
    fn a_path_that_is_full_of_no_more_than_always_interrupts_nothing() {
        assert_eq!(around_full(5), [true, true]);
    }

    #[test]
    fn who_has_stopped_is_not_steady_any_more() {
        let mut steadiness = Steadiness::default();
        (0..5_000).step_by(5).for_each(|at| steadiness.on_sent(ByteCount::new(1000), Timestamp::from_millis(at)));
        assert!(steadiness.is_steady(Timestamp::from_millis(5_050)));
        assert!(!steadiness.is_steady(Timestamp::from_millis(5_250)));
    }
}
