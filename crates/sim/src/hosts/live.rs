//! The application of a live stream.

use fairpath_core::Timestamp;

use super::Hosts;
use crate::egress::Egress;
use crate::recorder::Recorder;
use crate::timers::Timer;

impl Hosts {
    /// The application of a flow has a packet, and says when it has the next one.
    pub(super) fn on_live_source<N: Egress>(
        &mut self,
        index: u32,
        now: Timestamp,
        network: &mut N,
        recorder: &mut dyn Recorder,
    ) {
        let state = self.flow(index);
        let stop = state.stop;
        let slot = match state.connection {
            Some(slot) => slot,
            None => {
                state.count.begun += 1;
                self.connect(index, now)
            }
        };
        let mut next = stop;
        self.with(slot, self.generations[slot as usize], network, recorder, |connection, out| {
            next = connection.on_live_packet(now, out).min(stop);
        });
        if next < Timestamp::MAX {
            self.timers.set(next, Timer::Source { flow: index });
        }
    }
}
