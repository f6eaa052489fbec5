//! The part of the remedies that sends: probes, and data that is sent again where the receive window is full.

use fairpath_core::{PathId, Timestamp};

use super::{Connection, Outside};
use crate::egress::Egress;
use crate::packet::Chunk;
use crate::timers::{Timer, Timers};

impl Connection {
    fn next_probe(&self, now: Timestamp) -> Option<(Timestamp, PathId)> {
        self.remedies.as_ref()?.next_probe(&self.engine, now)
    }

    /// Makes sure that the next path that is to be probed is.
    #[inline]
    pub(super) fn arm_probing(&mut self, now: Timestamp, timers: &mut Timers) {
        if let Some((at, _)) = self.next_probe(now) {
            let timer = Timer::Probe { connection: self.slot, generation: self.generation };
            self.probing.arm(at.max(now), timer, timers);
        }
    }

    /// A path may be due to be probed.
    pub(crate) fn on_probe_timer<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) {
        let deadline = self.next_probe(now).map_or(Timestamp::MAX, |(at, _)| at);
        let timer = Timer::Probe { connection: self.slot, generation: self.generation };
        if !self.probing.is_due(now, deadline, timer, out.timers) {
            return;
        }
        while let Some((_, path)) = self.next_probe(now).filter(|(at, _)| *at <= now) {
            if let Some(remedies) = &mut self.remedies {
                remedies.on_probed(path, now);
            }
            // A piece that has arrived, without its bytes: a header that is acknowledged.
            if let Some(number) = self.stream.oldest_unacked().checked_sub(1) {
                self.transmit(path, Chunk::probe(number), now, out);
            }
        }
        self.arm_probing(now, out.timers);
    }

    /// Reacts if `path` has room but the receive window is full. It penalises the path that holds
    /// the oldest data, and sends that data again on this path if this one is much faster. Returns
    /// whether it sent.
    pub(super) fn send_again_after_penalty<N: Egress>(
        &mut self,
        path: PathId,
        now: Timestamp,
        out: &mut Outside<'_, N>,
    ) -> bool {
        if self.remedies.is_none() || !self.stream.is_receive_limited() {
            return false;
        }
        let oldest = self.stream.oldest_unacked();
        let Some((holder, packet)) = self.holder(path, oldest) else { return false };
        let Self { remedies: Some(remedies), engine, .. } = self else { return false };
        if !remedies.penalise(engine, path, holder, now) || self.reinjected.is_some_and(|at| at >= oldest) {
            return false;
        }
        self.reinjected = Some(oldest);
        self.transmit(path, packet.data, now, out);
        true
    }
}
