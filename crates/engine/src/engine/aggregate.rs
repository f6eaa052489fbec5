//! Intake from hosts that have no packets to tell of, but bytes: a kernel, for one, keeps account of its packets by
//! itself, and tells a congestion control what an acknowledgement brought.
//!
//! Windows follow as they do where packets are told one by one: an acknowledgement is taken in parts of a
//! datagram, by which the rules grow. Two things are not the same, for nobody knows them. All that one
//! acknowledgement covers counts as sent with its newest packet, so that packets from before a reduction grow the
//! window where a newer one is acknowledged with them. And a host gives one rate for an acknowledgement, of which
//! what keeps a model of the path otherwise gets one for each packet.

use core::time::Duration;

use fairpath_core::{Ack, Bytes, LossSample, Lost, LostPacket, PathId, RateSample, Timestamp};

use super::{Engine, less_dip};

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub struct AckedBytes {
    /// How much it acknowledges that was in flight.
    pub bytes: Bytes,
    /// What is in flight now, by the host's account.
    pub in_flight: Bytes,
    /// When the newest packet that it acknowledges had been sent.
    pub sent_at: Timestamp,
    /// How long that packet took; `None` where it was sent twice, or an older acknowledgement has told of it.
    pub rtt: Option<Duration>,
    /// How long the peer says it waited with the acknowledgement; zero where the host does not know.
    pub ack_delay: Duration,
    /// The rate at which data arrives, as the host has measured it; its amounts count from the opening of the path.
    pub rate: Option<RateSample>,
}

/// What was found lost at one moment.
#[derive(Clone, Copy, Debug)]
pub struct LostBytes {
    /// How much.
    pub bytes: Bytes,
    /// What is in flight now, by the host's account.
    pub in_flight: Bytes,
    /// When the newest of it had been sent.
    pub sent_at: Timestamp,
}

impl Engine {
    /// `bytes` left on the path, for the first time or again. By the host's account `in_flight` is in flight
    /// now, they included.
    pub fn on_bytes_sent(&mut self, path: PathId, bytes: Bytes, in_flight: Bytes, now: Timestamp) {
        if let Some(state) = self.paths.get_mut(path) {
            state.account(in_flight, now);
            self.note_sent(path, bytes, now);
        }
    }

    /// An acknowledgement came on the path.
    pub fn on_bytes_acked(&mut self, path: PathId, acked: &AckedBytes, now: Timestamp) {
        let is_bygone = self.paths.is_bygone(path, acked.sent_at, now);
        let Some(state) = self.paths.get_mut(path) else { return };
        let before = state.in_flight();
        let window = less_dip(&self.dips, path, self.controller.window(path), state.max_datagram, now);
        state.judge_use(now, window);
        state.account(acked.in_flight, now);
        state.heard_at = if is_bygone { state.heard_at } else { now };
        state.proven_at = state.proven_at.max(Some(acked.sent_at));
        state.rate.on_measured(acked.bytes, acked.rate);
        let window_limited = state.window_was_full(acked.sent_at);
        let datagram = state.max_datagram;
        if let Some(rtt) = acked.rtt.filter(|_| !is_bygone) {
            self.on_round_trip(path, rtt, acked.ack_delay, now);
        }
        let rtt = self.rtt(path);
        let mut taken = Bytes::ZERO;
        while taken < acked.bytes {
            let bytes = datagram.min(acked.bytes - taken).max(Bytes::new(1));
            let in_flight = before.saturating_sub(taken);
            let (sent_at, rate) = (acked.sent_at, acked.rate);
            self.controller.on_ack(path, &Ack { now, sent_at, bytes, in_flight, window_limited, rtt, rate });
            taken += bytes;
        }
        self.controller.on_ack_end(path, now);
        self.clamp(path, now);
        self.poll(now);
    }

    /// Something was found lost on the path. The host calls [`Engine::on_congestion`] afterwards.
    pub fn on_bytes_lost(&mut self, path: PathId, lost: &LostBytes, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let before = state.in_flight();
        state.account(lost.in_flight, now);
        let (_, losing) = state.losing.get_or_insert((before, Bytes::ZERO));
        *losing += lost.bytes;
        state.lost += lost.bytes;
        let datagram = state.max_datagram;
        let mut taken = Bytes::ZERO;
        while taken < lost.bytes {
            let bytes = datagram.min(lost.bytes - taken).max(Bytes::new(1));
            taken += bytes;
            state.lost_parts += 1;
            let sample = LossSample { app_limited: false, tx_in_flight: before, lost: taken };
            let (sent_at, number) = (lost.sent_at, state.lost_parts);
            self.controller.on_lost(path, &LostPacket { now, sent_at, number, bytes, sample });
        }
        // What is found lost at another moment did not leave right after.
        state.lost_parts += 1;
        self.detector.on_loss(path, &Lost { now, bytes: lost.bytes });
    }
}
