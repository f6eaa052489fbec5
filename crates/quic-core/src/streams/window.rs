//! The window of a receiver, which bounds how far a peer may send ahead of the reader, and its
//! growth.

use fairpath_engine::Timestamp;
use web_time::Duration;

/// Windows are sized for round trips no shorter than this: a host takes what came in turns, and on a path of
/// microseconds it is these that a window has to cover.
const ROUND_MIN: Duration = Duration::from_millis(10);

/// A credit in bytes, counted from the beginning.
///
/// Its size follows what the reader takes: twice what it took in a round trip of the slowest path in use. A window that
/// holds a sender back is emptied once in a round trip, and so doubles in each; one that does not stays. Over a quicker
/// path it is emptied several times meanwhile, and grows then: beside a satellite a link would otherwise wait for the
/// satellite's round trips. Of what is taken no more than a window waited before the round, so the rest came in it.
#[derive(Debug)]
pub(super) struct Window {
    size: u64,
    most: u64,
    taken: u64,
    limit: u64,
    told: u64,
    untold: bool,
    round: Option<Round>,
}

/// A round trip of the slowest path.
#[derive(Clone, Copy, Debug)]
struct Round {
    begun: Timestamp,
    /// The bytes taken before it.
    before: u64,
    /// The window at its beginning.
    size: u64,
}

impl Window {
    /// One of `size` bytes that grows to `most`, of which the peer knows `told`.
    pub(super) fn new(size: u64, most: u64, told: u64) -> Self {
        Self { size, most: most.max(size), taken: 0, limit: size, told, untold: false, round: None }
    }

    /// Up to where the peer may send.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The present size.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// How much was taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Notes that the reader has taken `bytes`. Returns the growth that the window wants.
    pub(super) fn on_taken(&mut self, bytes: u64, now: Timestamp, round_trip: Duration) -> u64 {
        let round_trip = round_trip.max(ROUND_MIN);
        let Round { begun, before, size } =
            *self.round.get_or_insert(Round { begun: now, before: self.taken, size: self.size });
        self.taken += bytes;
        self.raise();
        let (elapsed, taken) = (now.since(begun), self.taken - before);
        let target = if elapsed < round_trip {
            taken.saturating_sub(size).saturating_mul(2)
        } else {
            self.round = None;
            // Where nothing was taken for long this is little, and the next round tells.
            (2.0 * taken as f64 * (round_trip.as_secs_f64() / elapsed.as_secs_f64())) as u64
        };
        target.min(self.most).saturating_sub(self.size)
    }

    /// The clock is another one from now on.
    pub(super) fn end_round(&mut self) {
        self.round = None;
    }

    /// Makes it larger, but not than the most.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.size = self.size.saturating_add(bytes).min(self.most);
        self.raise();
    }

    /// The growth that the window may still have.
    pub(super) fn growth_left(&self) -> u64 {
        self.most - self.size
    }

    fn raise(&mut self) {
        self.limit = self.limit.max(self.taken.saturating_add(self.size));
    }

    /// Whether the peer is to be told: where a quarter of the window is to be told, or what was told is lost.
    pub(super) fn is_due(&self) -> bool {
        self.untold || self.limit - self.told >= (self.size / 4).max(1)
    }

    /// The limit, to be told.
    pub(super) fn tell(&mut self) -> u64 {
        self.untold = false;
        self.told = self.limit;
        self.limit
    }

    /// Notes that `limit`, which was told, may not have arrived.
    pub(super) fn is_lost(&mut self, limit: u64) {
        self.untold |= limit == self.told;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after `rounds` of a sender limited to `rate_per_round`, and a reader that takes
    /// everything.
    fn size_after(rounds: u64, rate_per_round: u64, round_trip: Duration) -> u64 {
        let mut window = Window::new(64_000, 16_000_000, 64_000);
        for round in 0..rounds {
            let bytes = rate_per_round.min(window.limit() - window.taken());
            // It comes evenly over the round trip.
            for part in 0..10 {
                let now = Timestamp::ZERO + round_trip * round as u32 + round_trip / 10 * part;
                let growth = window.on_taken(bytes / 10, now, round_trip);
                window.grow(growth);
            }
        }
        window.size()
    }

    #[test]
    fn a_window_that_holds_a_sender_back_doubles_and_one_that_does_not_stays() {
        let round_trip = Duration::from_millis(50);
        assert_eq!(size_after(100, 20_000, round_trip), 64_000);
        let fitting = size_after(100, 1_000_000, round_trip);
        // A round has the piece that begins it and the one that ends it: of ten in a round trip, eleven.
        assert!((2_000_000..=2_200_000).contains(&fitting), "twice what a round trip carries: {fitting}");
        assert_eq!(size_after(100, u64::MAX, round_trip), 16_000_000, "the most");
    }

    /// The window after a second with a reader that takes data every `every` milliseconds, at round
    /// trips of 640 ms.
    fn size_after_a_second(mut window: Window, every: u64, take: impl Fn(&Window) -> u64) -> u64 {
        for ms in (0..1_000).step_by(every as usize) {
            let bytes = take(&window);
            let growth = window.on_taken(bytes, Timestamp::from_millis(ms), Duration::from_millis(640));
            window.grow(growth);
        }
        window.size()
    }

    #[test]
    fn a_quick_path_beside_a_slow_one_does_not_wait_for_its_round_trips() {
        // A round trip of 70 ms brings a window each time, where the slow path takes 640.
        let window = || Window::new(64_000, 16_000_000, 64_000);
        let quick = size_after_a_second(window(), 70, Window::size);
        assert!(quick >= 8_000_000, "{quick}");
    }

    #[test]
    fn a_reader_that_takes_what_waited_at_once_needs_no_larger_window() {
        let window = Window::new(64_000, 16_000_000, 64_000);
        assert_eq!(size_after_a_second(window, 1_000, Window::size), 64_000);
        // Nor one that takes as much in a round trip in pieces.
        let window = Window::new(64_000, 16_000_000, 64_000);
        assert_eq!(size_after_a_second(window, 10, |_| 400), 64_000);
    }

    #[test]
    fn credit_is_told_by_the_quarter_and_again_when_lost() {
        let mut window = Window::new(64_000, 64_000, 64_000);
        assert!(!window.is_due());
        window.on_taken(15_999, Timestamp::ZERO, Duration::ZERO);
        assert!(!window.is_due());
        window.on_taken(1, Timestamp::ZERO, Duration::ZERO);
        assert!(window.is_due());
        assert_eq!(window.tell(), 80_000);
        window.is_lost(64_000);
        assert!(!window.is_due(), "a newer one is under way");
        window.is_lost(80_000);
        assert!(window.is_due());
    }
}
