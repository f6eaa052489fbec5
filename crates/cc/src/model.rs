//! The parts shared by controllers that model each path: the BBR family.
//! A model has the path's bandwidth and round-trip time, and sets the rate.
//!
//! The host reports an acknowledgement packet by packet; a model is updated once for the whole of
//! it, as the sources have it: [`PerPath`] gathers the packets into a [`Delivery`]. A published
//! algorithm is a [`PathModel`], the control of one path.

mod delivery;
mod full_pipe;
mod pacing;
mod random;
mod rounds;
#[cfg(test)]
pub(crate) mod testing;

use core::fmt::Debug;
use core::time::Duration;

use fairpath_core::{Ack, Bitrate, ByteCount, Congestion, LostPacket, PathId, PathMap, Sent, Timestamp};

pub(crate) use self::delivery::{Delivery, Gathered, OwnLimit, Rate};
pub(crate) use self::full_pipe::FullPipe;
pub(crate) use self::pacing::Pacing;
pub(crate) use self::random::Random;
pub(crate) use self::rounds::Rounds;

use crate::aimd::AimdConfig;
use crate::controller::{ControlState, Controller};
use crate::slow_start;

/// The least window for which an acknowledgement of every second packet keeps data flowing, in
/// datagrams [BBRv3 §2.8, BBR.MinPipeCwnd].
const MIN_PIPE_DATAGRAMS: u64 = 4;

/// The window that is left when loss takes everything, in datagrams [RFC9002 §7.2].
const MIN_WINDOW_DATAGRAMS: u64 = 2;

/// The largest window. No network needs a terabyte in flight; a measurement that says so is wrong.
pub(crate) const WINDOW_MAX: ByteCount = ByteCount::new(1 << 39);

/// The parameters that all controllers share that model the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// The window of a new path, in datagrams: 10 [RFC6928 §2; RFC9002 §7.2].
    pub initial_window_datagrams: u32,
    /// The window of a new path is at most this, or two datagrams where they are larger: 14,720 B
    /// [RFC9002 §7.2].
    pub initial_window_cap: ByteCount,
    /// The random choices of each path follow from this and the path's id. Flows that share a
    /// bottleneck mix better with different seeds.
    pub seed: u64,
}

impl Default for BbrConfig {
    fn default() -> Self {
        AimdConfig::default().into()
    }
}

/// New paths start as those of the window rules do.
impl From<AimdConfig> for BbrConfig {
    fn from(config: AimdConfig) -> Self {
        Self {
            initial_window_datagrams: config.initial_window_datagrams,
            initial_window_cap: config.initial_window_cap,
            seed: 0,
        }
    }
}

/// The sizes of one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) datagram: ByteCount,
    pub(crate) initial_window: ByteCount,
    /// How many paths carry the flow: each needs its least window.
    pub(crate) paths: u64,
}

impl Sizes {
    pub(crate) fn new(config: &BbrConfig, max_datagram: ByteCount) -> Self {
        let datagram = max_datagram.max(ByteCount::new(1));
        let (datagrams, cap) = (config.initial_window_datagrams, config.initial_window_cap);
        let initial = ByteCount::from_f64(slow_start::initial_window(datagrams, cap, datagram));
        Self { datagram, initial_window: initial.max(datagram * MIN_WINDOW_DATAGRAMS), paths: 1 }
    }

    /// The least window for which data keeps flowing.
    pub(crate) fn min_pipe(&self) -> ByteCount {
        self.datagram * (MIN_PIPE_DATAGRAMS * self.paths)
    }

    /// The window that is left when loss takes everything.
    pub(crate) fn min_window(&self) -> ByteCount {
        self.datagram * MIN_WINDOW_DATAGRAMS
    }
}

/// How a new path begins.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) now: Timestamp,
    pub(crate) sizes: Sizes,
    pub(crate) random: Random,
}

/// A published algorithm: the control of one path.
pub(crate) trait PathModel: Debug + Send {
    /// The control of a new path.
    fn new(opening: Opening) -> Self;
    /// The size of the path's datagrams changed.
    fn set_datagram(&mut self, datagram: ByteCount);
    /// A packet leaves. `idle`: nothing else is in flight.
    fn on_sent(&mut self, now: Timestamp, idle: bool);
    /// An acknowledgement came.
    fn on_delivery(&mut self, delivery: &Delivery);
    /// A packet was lost.
    fn on_lost(&mut self, _lost: &LostPacket) {}
    /// Losses or marks were found.
    fn on_congestion(&mut self, event: &Congestion);
    /// The window.
    fn window(&self) -> ByteCount;
    /// The pacing rate; `None` before the first round-trip time.
    fn pacing_rate(&self) -> Option<Bitrate>;
    /// The state for a recorder.
    fn state(&self) -> ControlState;
}

/// A controller that runs the algorithm `M` on each path by itself. Opening a path that is open
/// changes nothing.
#[derive(Clone, Debug)]
pub struct PerPath<M> {
    config: BbrConfig,
    paths: PathMap<Entry<M>>,
}

#[derive(Clone, Debug)]
struct Entry<M> {
    gathered: Gathered,
    model: M,
}

impl<M> PerPath<M> {
    /// A controller without paths.
    pub fn new(config: BbrConfig) -> Self {
        Self { config, paths: PathMap::new() }
    }

    /// The control of `path`.
    pub(crate) fn get_mut(&mut self, path: PathId) -> Option<&mut M> {
        self.paths.get_mut(path).map(|entry| &mut entry.model)
    }

    /// The control of each path, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PathId, &M)> {
        self.paths.iter().map(|(path, entry)| (path, &entry.model))
    }
}

impl<M: PathModel> Controller for PerPath<M> {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, now: Timestamp) {
        if !self.paths.contains(path) {
            let sizes = Sizes::new(&self.config, max_datagram);
            let model = M::new(Opening { now, sizes, random: Random::new(self.config.seed, path) });
            self.paths.insert(path, Entry { gathered: Gathered::default(), model });
        }
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.model.set_datagram(max_datagram.max(ByteCount::new(1)));
        }
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.model.on_sent(sent.now, sent.in_flight <= sent.bytes);
        }
    }

    fn on_ack(&mut self, path: PathId, ack: &Ack) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.gathered.add(ack);
        }
    }

    fn on_ack_end(&mut self, path: PathId, now: Timestamp) {
        let Some(entry) = self.paths.get_mut(path) else { return };
        if let Some(delivery) = entry.gathered.take(now) {
            entry.model.on_delivery(&delivery);
        }
    }

    fn on_lost(&mut self, path: PathId, lost: &LostPacket) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.model.on_lost(lost);
        }
    }

    fn on_congestion(&mut self, path: PathId, event: &Congestion) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.model.on_congestion(event);
        }
    }

    fn window(&self, path: PathId) -> ByteCount {
        self.paths.get(path).map_or(ByteCount::ZERO, |entry| entry.model.window().min(WINDOW_MAX))
    }

    fn pacing_rate(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(path)?.model.pacing_rate()
    }

    fn state(&self, path: PathId) -> Option<ControlState> {
        let state = self.paths.get(path)?.model.state();
        Some(ControlState { window: self.window(path), ..state })
    }
}

// [BBRv3 §5.6.4.2]
//     gain * BBR.bw * BBR.min_rtt
pub(crate) fn bdp_multiple(gain: f64, bandwidth: Bitrate, min_rtt: Duration) -> ByteCount {
    ByteCount::from_f64(gain * (bandwidth.as_bps() as f64 / 8.0) * min_rtt.as_secs_f64())
}

// [BBRv3 §5.6.3], with the least that the algorithm asks for
//     min( C.pacing_rate * 1ms, 64 KBytes )
pub(crate) fn send_quantum(pacing_rate: Option<Bitrate>, least: ByteCount) -> ByteCount {
    let in_a_millisecond =
        pacing_rate.map_or(ByteCount::ZERO, |rate| ByteCount::new(rate.as_bytes_per_second() / 1000));
    in_a_millisecond.min(ByteCount::new(64 * 1024)).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_delay_product_is_what_fills_the_pipe() {
        // 10 Mbit/s · 40 ms = 50,000 B; twice that with a gain of 2
        let (bandwidth, min_rtt) = (Bitrate::from_mbps(10), Duration::from_millis(40));
        assert_eq!(bdp_multiple(1.0, bandwidth, min_rtt), ByteCount::new(50_000));
        assert_eq!(bdp_multiple(2.0, bandwidth, min_rtt), ByteCount::new(100_000));
    }

    #[test]
    fn a_quantum_is_a_millisecond_within_its_bounds() {
        let least = ByteCount::new(2_400);
        // 10 Mbit/s · 1 ms = 1,250 B; 100 Mbit/s: 12,500 B; 1 Gbit/s: 125,000 B
        assert_eq!(send_quantum(Some(Bitrate::from_mbps(10)), least), least);
        assert_eq!(send_quantum(Some(Bitrate::from_mbps(100)), least), ByteCount::new(12_500));
        assert_eq!(send_quantum(Some(Bitrate::from_mbps(1000)), least), ByteCount::new(65_536));
        assert_eq!(send_quantum(None, least), least);
    }
}
