//! Turns, for paths that noq would not come to.
//!
//! noq looks at its paths from the lowest id on, and starts again at the lowest after each batch. Where
//! the processor is the limit and not a window, the first path always has something to send, and what
//! another has to say for itself, its validation and its signs of life, would never leave. So after
//! [`TURN_DATAGRAMS`] during which noq did not look at a path, that one gets a turn: it may send a
//! packet, and the path that sent is refused until the next event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many datagrams leave on other paths before noq has to look at a path: 10 to 30 ms where the processor
/// is the limit. At the rates of links noq looks at all paths far more often by itself, whenever a window
/// is full.
pub(super) const TURN_DATAGRAMS: u32 = 8_192;

/// Where it is noted, without a lock, that noq looked at a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked(Arc<AtomicBool>);

impl Looked {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether that has happened since this was last asked.
    fn take(&self) -> bool {
        let looked = self.0.load(Ordering::Relaxed);
        self.0.store(false, Ordering::Relaxed);
        looked
    }
}

/// The turn of one path.
#[derive(Debug, Default)]
pub(super) struct Turn {
    looked: Looked,
    /// How many datagrams have left on other paths since noq looked at this one.
    waiting: u32,
    given: bool,
}

impl Turn {
    /// The place for the path to note that noq looked at it.
    pub(super) fn looked(&self) -> Looked {
        self.looked.clone()
    }

    /// So many datagrams have left on another path. Whether that one has to yield to this.
    pub(super) fn has_waited(&mut self, datagrams: u32) -> bool {
        if self.looked.take() {
            self.waiting = 0;
        }
        self.waiting += datagrams;
        let too_long = self.waiting >= TURN_DATAGRAMS;
        if too_long {
            self.waiting = 0;
            self.given = true;
        }
        too_long
    }

    /// The path may send one packet that the scheduler would not give it.
    pub(super) fn give(&mut self) {
        self.given = true;
    }

    pub(super) fn is_given(&self) -> bool {
        self.given
    }

    /// The path has sent a packet.
    pub(super) fn is_used(&mut self) {
        self.given = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_that_is_not_looked_at_gets_a_turn() {
        let mut turn = Turn::default();
        assert!((1..TURN_DATAGRAMS).all(|_| !turn.has_waited(1)) && !turn.is_given());
        assert!(turn.has_waited(1) && turn.is_given());
        turn.is_used();
        let looked = turn.looked();
        for _ in 0..10 {
            looked.note();
            assert!((0..TURN_DATAGRAMS - 1).all(|_| !turn.has_waited(1)) && !turn.is_given());
        }
    }
}
