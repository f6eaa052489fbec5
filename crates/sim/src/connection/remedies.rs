//! What remedies have a connection do: probes, and data that is sent again where the receive window is full.

use fairpath_core::{PathId, Timestamp};

use super::{Connection, Outside};
use crate::egress::Egress;
use crate::packet::Chunk;
use crate::timers::{Timer, Timers};

impl Connection {
    /// Makes sure that the next path that is to be probed is.
    #[inline]
    pub(super) fn arm_probing(&mut self, now: Timestamp, timers: &mut Timers) {
        if let Some(at) = self.engine.probe_at() {
            let timer = Timer::Probe { connection: self.slot, generation: self.generation };
            self.probing.arm(at.max(now), timer, timers);
        }
    }

    /// A path may be due to be probed.
    pub(crate) fn on_probe_timer<N: Egress>(&mut self, now: Timestamp, out: &mut Outside<'_, N>) {
        let deadline = self.engine.probe_at().unwrap_or(Timestamp::MAX);
        let timer = Timer::Probe { connection: self.slot, generation: self.generation };
        if !self.probing.is_due(now, deadline, timer, out.timers) {
            return;
        }
        while let Some(path) = self.engine.probe_due(now) {
            self.engine.on_probed(path, now);
            // A piece that has arrived, without its bytes: a header that is acknowledged.
            if let Some(number) = self.stream.oldest_unacked().checked_sub(1) {
                self.transmit(path, Chunk::probe(number), now, out);
            }
        }
        self.arm_probing(now, out.timers);
    }

    /// `path` has room and nothing new may be sent. Where that is for a full receive window: penalises who holds the
    /// oldest data, and sends that again on this path where it is much faster. Whether it did send.
    pub(super) fn send_again_after_penalty<N: Egress>(
        &mut self,
        path: PathId,
        now: Timestamp,
        out: &mut Outside<'_, N>,
    ) -> bool {
        if !self.stream.is_receive_limited() {
            return false;
        }
        let oldest = self.stream.oldest_unacked();
        let Some((holder, packet)) = self.holder(path, oldest) else { return false };
        if !self.engine.penalise(path, holder, now) || self.reinjected.is_some_and(|at| at >= oldest) {
            return false;
        }
        self.reinjected = Some(oldest);
        self.transmit(path, packet.chunk, now, out);
        true
    }
}
