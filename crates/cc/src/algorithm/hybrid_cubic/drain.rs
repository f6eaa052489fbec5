//! The drain test: the path gives way, and sees whether its queue empties.

use fairpath_core::{Ack, Timestamp};

/// The part of what the pipe holds that is left in flight: alone, a little less than full.
pub(super) const LEFT: f64 = 0.85;
/// Share of its length before the test below which a queue counts as empty.
const EMPTY_PART: f64 = 0.15;
/// A queue still falls if a round trip leaves less than this part of it, for `ROUNDS` of them at
/// most.
const FALLS: f64 = 0.93;
const ROUNDS: u32 = 8;
/// Packets that it takes to judge a queue.
const PACKETS: u32 = 3;

/// One path during a drain test of its group.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    /// The window before.
    pub(super) before: f64,
    /// The rate that the window follows, in bytes per second.
    pub(super) rate: f64,
    pub(super) window: f64,
    /// When what is in flight had followed the window.
    pub(super) done_at: Option<Timestamp>,
    /// Whether the rate was measured once more.
    again: bool,
    /// The first acknowledgement of a packet that left when all paths were drained.
    since: Option<Timestamp>,
    bytes: f64,
    packets: u32,
    /// The shortest wait of such packets within a round trip, that of the last one, and of the last whole one.
    least: f64,
    previous: Option<f64>,
    pub(super) shortest: f64,
    rounds: u32,
}

/// The wait as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// How long the mean packet takes where none waits.
    pub(super) pipe: f64,
    /// A wait shorter than this is none.
    pub(super) low: f64,
    pub(super) latest: f64,
    /// That at the beginning.
    pub(super) before: f64,
}

impl Drain {
    pub(super) fn new(before: f64, rate: f64, pipe: f64, least: f64, part: f64) -> Self {
        Self {
            before,
            rate,
            window: (part * rate * pipe).min(before).max(least),
            done_at: None,
            again: false,
            since: None,
            bytes: 0.0,
            packets: 0,
            least: f64::MAX,
            previous: None,
            shortest: 0.0,
            rounds: 0,
        }
    }

    /// Whether what is in flight has followed, with `left` bytes after an acknowledgement.
    pub(super) fn follow(&mut self, now: Timestamp, left: f64, datagram: f64) {
        if self.done_at.is_none() && left <= self.window + datagram {
            self.done_at = Some(now);
        }
    }

    /// Takes an acknowledgement; `all_at`: when the last path of the group was drained. Says whether the queue is empty,
    /// where that is known.
    pub(super) fn judge(
        &mut self,
        ack: &Ack,
        all_at: Timestamp,
        wait: Wait,
        looks_again: bool,
        least: f64,
    ) -> Option<bool> {
        if ack.sent_at < all_at {
            return None;
        }
        self.least = self.least.min(wait.latest);
        let part = if self.again { 0.0 } else { EMPTY_PART };
        if self.least < wait.low.max(part * wait.before) {
            return Some(true);
        }
        let since = *self.since.get_or_insert(ack.now);
        self.bytes += ack.bytes.as_f64();
        self.packets += 1;
        if self.packets < PACKETS || ack.sent_at < since {
            return None;
        }
        let took = ack.now.since(since).as_secs_f64().max(1e-6);
        let rate = self.rate.min(self.bytes / took);
        let still_falls = self.previous.is_none_or(|previous| self.least < FALLS * previous) && self.rounds < ROUNDS;
        self.previous = Some(self.least);
        (self.rounds, self.since, self.bytes, self.packets) = (self.rounds + 1, None, 0.0, 0);
        if looks_again && !self.again {
            // The rate may have been an old one, or others send at one that does not change.
            let part = (1.0 - 0.5 * wait.before / wait.pipe).clamp(0.5, 0.75);
            self.rate = rate;
            self.window = (part * rate * wait.pipe).min(self.window).max(least);
            (self.again, self.done_at, self.previous) = (true, None, None);
            return None;
        }
        self.shortest = self.least;
        self.least = f64::MAX;
        (!still_falls).then_some(false)
    }
}
