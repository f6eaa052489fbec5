//! How hosts keep time.

use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// How often an end does what is due although nothing comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// Whenever something is due.
    #[default]
    Prompt,
    /// Up to 20 ms late, as a process on a busy machine. It transmits whenever time passes.
    Late,
    /// Each of its duties by itself up to 20 ms late: one event is handled long before another, packets leave before
    /// what they should have waited for, or wait for a socket.
    Uneven,
    /// Off the processor for up to 12 ms now and then, as a process among others that have as much to do. What comes
    /// meanwhile waits, and so do packets that it has made and not yet handed over. The kernel notes when packets come, and
    /// the process when they leave.
    Busy,
    /// As [`Host::Busy`] among four times as many processes as the processor has time for: off it for 10 to 50 ms after
    /// one turn in seven, so that queues of 20 ms run empty meanwhile.
    Starved,
}

/// Limit on the lateness of a host.
pub(crate) const LATE: Duration = Duration::from_millis(20);

/// How often a [`Host::Busy`] is taken off the processor after it has made packets, and for how long at most.
const TAKEN_OFF: f64 = 0.03;
const OFF_MAX: Duration = Duration::from_millis(12);

/// The same of a [`Host::Starved`], for how long at least and at most, and how often what it has made waits meanwhile.
const STARVED: f64 = 0.15;
const STARVED_MIN: Duration = Duration::from_millis(10);
const STARVED_MAX: Duration = Duration::from_millis(50);
const WITH_PACKETS: f64 = 0.5;

/// How often an [`Host::Uneven`] puts a duty off.
const PUT_OFF: f64 = 0.3;

/// A duty of a host to its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Handles timeouts.
    Timers,
    /// Handles events and their consequences.
    Events,
    /// Gives it something to send.
    Write,
    /// Sends its packets.
    Transmit,
}

impl Duty {
    pub(crate) const ALL: [Self; 4] = [Self::Timers, Self::Events, Self::Write, Self::Transmit];
}

/// The duties that are put off, and until when.
pub(crate) struct Lateness {
    luck: ChaCha8Rng,
    until: [Option<Instant>; Duty::ALL.len()],
}

impl Host {
    /// Whether it is a process that is taken off its processor.
    pub(crate) fn shares_its_processor(self) -> bool {
        matches!(self, Self::Busy | Self::Starved)
    }
}

impl Lateness {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { luck: ChaCha8Rng::from_seed(seed), until: [None; Duty::ALL.len()] }
    }

    /// Whether a duty that is due waits.
    pub(crate) fn puts_off(&mut self, duty: Duty, now: Instant) -> bool {
        let until = &mut self.until[duty as usize];
        match *until {
            Some(at) if now < at => return true,
            // It has waited long enough.
            Some(_) => *until = None,
            None if self.luck.random_bool(PUT_OFF) => *until = Some(now + LATE.mul_f64(self.luck.random())),
            None => {}
        }
        until.is_some_and(|at| now < at)
    }

    /// For how long such a host is off the processor now, and whether packets that it makes wait for it.
    pub(crate) fn off(&mut self, host: Host) -> Option<(Duration, bool)> {
        if host == Host::Starved {
            let off = STARVED_MIN + (STARVED_MAX - STARVED_MIN).mul_f64(self.luck.random());
            return self.luck.random_bool(STARVED).then(|| (off, self.luck.random_bool(WITH_PACKETS)));
        }
        self.luck.random_bool(TAKEN_OFF).then(|| (OFF_MAX.mul_f64(self.luck.random()), true))
    }

    /// Until when a duty waits.
    pub(crate) fn until(&self, duty: Duty) -> Option<Instant> {
        self.until[duty as usize]
    }
}
