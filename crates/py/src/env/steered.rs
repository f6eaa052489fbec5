//! A controller and a scheduler that do as they are told from outside.

use core::str::FromStr;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use fairpath_core::{Ack, Bitrate, ByteCount, Congestion, PathId, Timestamp};
use fairpath_engine::{Choice, ConnectionView, ControlState, Controller, PathView, Phase, Scheduler};

/// No window is smaller, in packets [RFC9002 §7.2].
const PACKETS_MIN: u64 = 2;

/// With a rate, so much of what a round trip takes may be in flight: the rate is to be the limit.
const WINDOW_OF_RATE: f64 = 2.0;

/// Before the first round trip it is taken for so long.
const SRTT_FIRST_S: f64 = 0.1;

/// A path with less carries what it must because no other works.
const SHARE_MIN: f64 = 1e-3;

/// The quantity that is set from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steering {
    /// The window of each path.
    Windows,
    /// The rate of each path.
    Rates,
    /// The share of the packets that each path carries.
    Shares,
}

impl FromStr for Steering {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "windows" => Ok(Self::Windows),
            "rates" => Ok(Self::Rates),
            "shares" => Ok(Self::Shares),
            other => Err(format!("steering = {other:?}: there are windows, rates and shares")),
        }
    }
}

/// The values that are set for one flow.
#[derive(Debug)]
pub(super) struct Agent {
    /// Its place among the steered flows.
    pub(super) number: usize,
    windows: Vec<AtomicU64>,
    /// The bits of floating-point numbers.
    rates: Vec<AtomicU64>,
    shares: Vec<AtomicU64>,
    /// How often the shares have changed.
    changes: AtomicU64,
}

impl Agent {
    pub(super) fn new(number: usize, paths: usize, window: u64, rate: f64) -> Self {
        let all = |bits: u64| (0..paths).map(|_| AtomicU64::new(bits)).collect();
        Self {
            number,
            windows: all(window),
            rates: all(rate.to_bits()),
            shares: all(1f64.to_bits()),
            changes: AtomicU64::new(0),
        }
    }

    pub(super) fn set_windows(&self, bytes: &[f64]) {
        self.windows.iter().zip(bytes).for_each(|(window, bytes)| window.store(*bytes as u64, Ordering::Relaxed));
    }

    pub(super) fn set_shares(&self, shares: &[f64]) {
        let swap = |(kept, share): (&AtomicU64, &f64)| kept.swap(share.to_bits(), Ordering::Relaxed) != share.to_bits();
        if self.shares.iter().zip(shares).map(swap).fold(false, |any, changed| any | changed) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn set_rates(&self, bps: &[f64], srtt_s: &[f64]) {
        for (path, (rate, srtt)) in bps.iter().zip(srtt_s).enumerate() {
            let srtt = if *srtt > 0.0 { *srtt } else { SRTT_FIRST_S };
            self.rates[path].store(rate.to_bits(), Ordering::Relaxed);
            self.windows[path].store((WINDOW_OF_RATE * rate * srtt / 8.0) as u64, Ordering::Relaxed);
        }
    }

    fn number(values: &[AtomicU64], path: PathId) -> f64 {
        values.get(path.get() as usize).map_or(0.0, |bits| f64::from_bits(bits.load(Ordering::Relaxed)))
    }
}

/// Does as the agent says.
#[derive(Debug)]
pub(super) struct Steered {
    agent: Arc<Agent>,
    has_rates: bool,
    /// The size of the packets of the open paths.
    packets: BTreeMap<PathId, u64>,
    /// Bytes that each path has carried, over its share; the least is next.
    carried: BTreeMap<PathId, f64>,
    /// The change of shares since which it has.
    change: u64,
}

impl Steered {
    pub(super) fn new(agent: &Arc<Agent>, steering: Option<Steering>) -> Self {
        let has_rates = steering == Some(Steering::Rates);
        Self { agent: Arc::clone(agent), has_rates, packets: BTreeMap::new(), carried: BTreeMap::new(), change: 0 }
    }

    fn share(&self, path: PathId) -> f64 {
        Agent::number(&self.agent.shares, path)
    }
}

impl Controller for Steered {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, _now: Timestamp) {
        self.packets.insert(path, max_datagram.get());
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.packets.remove(&path);
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        self.packets.insert(path, max_datagram.get());
    }

    fn hears_sent(&self) -> bool {
        false
    }

    fn reads_rates(&self) -> bool {
        false
    }

    fn on_ack(&mut self, _path: PathId, _ack: &Ack) {}

    fn on_congestion(&mut self, _path: PathId, _event: &Congestion) {}

    fn window(&self, path: PathId) -> ByteCount {
        let Some(packet) = self.packets.get(&path) else { return ByteCount::ZERO };
        let window = self.agent.windows.get(path.get() as usize).map_or(0, |window| window.load(Ordering::Relaxed));
        ByteCount::new(window.max(PACKETS_MIN * packet))
    }

    fn pacing_rate(&self, path: PathId) -> Option<Bitrate> {
        let rate = Agent::number(&self.agent.rates, path);
        self.has_rates.then(|| Bitrate::from_bps(rate.max(1.0) as u64))
    }

    fn state(&self, path: PathId) -> Option<ControlState> {
        let window = self.packets.get(&path).map(|_| Controller::window(self, path))?;
        Some(ControlState { window, ssthresh: None, phase: Phase::CongestionAvoidance, delay_cuts: 0 })
    }
}

impl Scheduler for Steered {
    /// The path that is furthest behind its share; where it has no room, what is next waits for it.
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let usable = || paths.iter().filter(|path| path.usable);
        let has_share = |path: &&PathView| self.share(path.id) > 0.0;
        let behind = |path: &&PathView| self.carried.get(&path.id).copied().unwrap_or(0.0);
        let least = |a: &&PathView, b: &&PathView| behind(a).total_cmp(&behind(b));
        match usable().filter(has_share).min_by(least).or_else(|| usable().min_by(least)) {
            Some(path) if path.has_room() => Choice::Send(path.id),
            Some(path) if path.in_flight > ByteCount::ZERO => Choice::WaitFor(path.id),
            _ => usable().find(|path| path.has_room()).map_or(Choice::Wait, |path| Choice::Send(path.id)),
        }
    }

    fn on_sent(&mut self, path: PathId, bytes: ByteCount) {
        let change = self.agent.changes.load(Ordering::Relaxed);
        if change != self.change {
            // With other shares what was carried before says nothing.
            self.carried.clear();
            self.change = change;
        }
        let share = self.share(path).max(SHARE_MIN);
        *self.carried.entry(path).or_insert(0.0) += bytes.as_f64() / share;
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.carried.remove(&path);
    }
}
