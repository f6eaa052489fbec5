//! How often packets are lost at the bottleneck of a path, for the equation.
//!
//! # Source
//!
//! [RFC5348 §5] for loss events and their intervals.
//!
//! # Deviations
//!
//! Intervals are counted in packets, and a queue that overflows does so after a time, not after so many packets of ours:
//! who sends few hears of more events for each [Rhee2005]. Paths of one group are one flow at their bottleneck, however
//! the optimum moves what leaves from one to the other. So each has a second history, of all that leaves on any of them.
//! Where one of them loses packets elsewhere, or the detector is wrong about them, this has more events than its own. The
//! rarer ones count.

use fairpath_rate::LossIntervals;

/// The loss events of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossEvents {
    own: LossIntervals,
    of_group: LossIntervals,
}

impl LossEvents {
    /// Something was heard of the path itself, or of another one of its group.
    pub(crate) fn tell(&mut self, is_own: bool, tell: impl Fn(&mut LossIntervals)) {
        tell(&mut self.of_group);
        if is_own {
            tell(&mut self.own);
        }
    }

    /// The share of packets that begin a loss event, as a TCP on this path at its bottleneck has them.
    pub(crate) fn rate(&self) -> f64 {
        self.own.rate().min(self.of_group.rate())
    }

    /// The same of what leaves on the path itself, however little that is.
    pub(crate) fn own(&self) -> f64 {
        self.own.rate()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::Timestamp;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A minute of so many packets in a second on a path and on all others of its group. In each second some are lost at
    /// these times, in ms, on the path itself or not.
    fn after(own: u64, others: u64, losses: &[(u64, bool)]) -> LossEvents {
        let mut path = LossEvents::default();
        for at in 0..60_000 {
            if let Some((_, is_own)) = losses.iter().find(|(of, _)| *of == at % 1_000) {
                path.tell(*is_own, |intervals| intervals.on_lost(Timestamp::from_millis(at), RTT));
            }
            for (each, is_own) in [(own, true), (others, false)] {
                if at % (1_000 / each) == 0 {
                    path.tell(is_own, LossIntervals::on_received);
                }
            }
        }
        path
    }

    #[test]
    fn a_path_that_carries_little_of_its_group_has_the_events_of_the_group() {
        // The queue that they share overflows, and both lose a packet.
        let path = after(20, 200, &[(500, true), (550, false)]);
        assert!((path.rate() - 1.0 / 222.0).abs() < 1e-4, "{}", path.rate());
        assert!((path.own() - 1.0 / 21.0).abs() < 1e-3, "{}", path.own());
    }

    #[test]
    fn what_others_of_the_group_lose_elsewhere_is_no_event_of_the_path() {
        let path = after(200, 20, &[(100, true), (300, false), (500, false), (700, false)]);
        assert!((path.rate() - 1.0 / 201.0).abs() < 1e-4, "{}", path.rate());
    }
}
