//! The applications: when they have how much to send.

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::Streams;
use fairpath_scenario::{Distribution, Traffic, Transport};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// The act of an application when its time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Has more than the network takes.
    Flood,
    /// Has no more for now; what was not sent is dropped.
    Pause,
    /// Has this many bytes more.
    Supply(u64),
    /// Has this many bytes, and no more after them.
    SupplyAll(u64),
    /// Has a picture of this many bytes.
    Frame(u64),
    /// Begins a transfer of this many bytes on a connection of its own.
    Begin(u64),
    /// Sends one packet that is neither acknowledged nor sent again.
    Datagram,
    /// Has a packet with a deadline; its stream says when the next one comes.
    Live,
}

/// An application.
#[derive(Debug)]
pub(crate) struct Source {
    traffic: Traffic,
    transport: Transport,
    random: ChaCha8Rng,
    on: bool,
    frames: u64,
    /// When the next deed of a steady rate is due, in fractions of a nanosecond.
    steady_ns: f64,
}

impl Source {
    /// The application of the flow `name`.
    pub(crate) fn new(name: &str, traffic: Traffic, transport: Transport, streams: &Streams) -> Self {
        let random = streams.generator(name, "traffic");
        Self { traffic, transport, random, on: false, frames: 0, steady_ns: 0.0 }
    }

    /// When it does its first deed, if it starts at `start`.
    pub(crate) fn first(&mut self, start: Timestamp) -> Timestamp {
        self.steady_ns = start.as_nanos() as f64;
        match self.traffic {
            Traffic::ShortFlows { mean_interval, .. } => start + self.exponential(mean_interval),
            _ => start,
        }
    }

    /// The act of this moment, and the time of the next one.
    pub(crate) fn act(&mut self, now: Timestamp) -> (Deed, Option<Timestamp>) {
        match self.traffic {
            Traffic::Bulk => (Deed::Flood, None),
            Traffic::Finite { size } => (Deed::SupplyAll(size.get()), None),
            Traffic::ShortFlows { size, mean_interval } => {
                (Deed::Begin(size.get()), Some(now + self.exponential(mean_interval)))
            }
            Traffic::OnOff { on, off, distribution } => {
                self.on = !self.on;
                let mean = if self.on { on } else { off };
                let time = match distribution {
                    Distribution::Fixed => mean,
                    Distribution::Exponential => self.exponential(mean),
                };
                (if self.on { Deed::Flood } else { Deed::Pause }, Some(now + time))
            }
            Traffic::Constant { rate } => {
                let payload = self.transport.packet.saturating_sub(self.transport.header);
                (Deed::Supply(payload.get()), Some(self.steadily(payload, rate.as_bps() as f64)))
            }
            Traffic::Media { rate, frames_per_second, key_frame_every, key_frame_ratio } => {
                let mean = rate.as_bps() as f64 / 8.0 / f64::from(frames_per_second);
                let every = f64::from(key_frame_every.max(1));
                // One frame of `every` is `key_frame_ratio` times as large as each of the others.
                let small = mean * every / (every - 1.0 + key_frame_ratio);
                let is_key = self.frames.is_multiple_of(u64::from(key_frame_every.max(1)));
                self.frames += 1;
                let bytes = if is_key { small * key_frame_ratio } else { small };
                self.steady_ns += 1e9 / f64::from(frames_per_second);
                (Deed::Frame((bytes as u64).max(1)), Some(Timestamp::from_nanos(self.steady_ns as u64)))
            }
            Traffic::Live(_) => (Deed::Live, None),
            Traffic::Unresponsive { rate } => {
                (Deed::Datagram, Some(self.steadily(self.transport.packet, rate.as_bps() as f64)))
            }
        }
    }

    /// When the next packet of a steady rate is due. Fractions of a nanosecond are carried over.
    fn steadily(&mut self, packet: ByteCount, bits_per_second: f64) -> Timestamp {
        self.steady_ns += packet.as_f64() * 8e9 / bits_per_second;
        Timestamp::from_nanos(self.steady_ns as u64)
    }

    /// A time that is exponentially distributed around `mean`.
    fn exponential(&mut self, mean: Duration) -> Duration {
        // In (0, 1]: its logarithm is finite.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        mean.mul_f64(-libm::log(uniform))
    }
}

/// The delay of a flow's start, drawn uniformly from 0 to `most`.
pub(crate) fn start_jitter(name: &str, most: Duration, streams: &Streams) -> Duration {
    let uniform = (streams.generator(name, "start").next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    most.mul_f64(uniform)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpath_core::Bitrate;

    fn source(traffic: Traffic) -> Source {
        Source::new("flow", traffic, Transport::default(), &Streams::new(1))
    }

    /// All deeds of ten seconds.
    fn deeds(traffic: Traffic) -> Vec<(Timestamp, Deed)> {
        let mut source = source(traffic);
        let mut at = source.first(Timestamp::ZERO);
        let mut deeds = Vec::new();
        while at < Timestamp::from_secs(10) {
            let (deed, next) = source.act(at);
            deeds.push((at, deed));
            let Some(next) = next else { break };
            at = next;
        }
        deeds
    }

    #[test]
    fn a_constant_rate_supplies_that_rate() {
        let rate = Bitrate::from_mbps(3);
        let bytes: u64 = deeds(Traffic::Constant { rate })
            .iter()
            .map(|(_, deed)| match deed {
                Deed::Supply(bytes) => *bytes,
                _ => 0,
            })
            .sum();
        // 3 Mbit/s · 10 s = 3.75 MB, to one packet.
        assert!(bytes.abs_diff(3_750_000) <= 1448, "{bytes}");
    }

    #[test]
    fn a_picture_has_its_mean_rate_and_larger_key_frames() {
        let rate = Bitrate::from_mbps(4);
        let media = Traffic::Media { rate, frames_per_second: 25, key_frame_every: 50, key_frame_ratio: 6.0 };
        let frames: Vec<u64> = deeds(media)
            .iter()
            .map(|(_, deed)| match deed {
                Deed::Frame(bytes) => *bytes,
                _ => 0,
            })
            .collect();
        assert_eq!(frames.len(), 250);
        // 4 Mbit/s / 8 / 25 = 20,000 B; · 50 / (49 + 6) = 18,181 B and 109,090 B.
        assert_eq!((frames[0], frames[1], frames[50]), (109_090, 18_181, 109_090));
        let bytes: u64 = frames.iter().sum();
        assert!(bytes.abs_diff(5_000_000) < 500, "{bytes}");
    }

    #[test]
    fn short_transfers_begin_at_their_mean_interval() {
        let traffic = Traffic::ShortFlows { size: ByteCount::new(70_000), mean_interval: Duration::from_millis(10) };
        // 1000 expected, standard deviation 32.
        let count = deeds(traffic).len();
        assert!((900..1100).contains(&count), "{count}");
    }

    #[test]
    fn on_and_off_alternate() {
        let (on, off) = (Duration::from_secs(2), Duration::from_secs(1));
        let deeds = deeds(Traffic::OnOff { on, off, distribution: Distribution::Fixed });
        let times: Vec<_> = deeds.iter().map(|(at, deed)| (at.as_secs_f64(), *deed)).collect();
        assert_eq!(times[..3], [(0.0, Deed::Flood), (2.0, Deed::Pause), (3.0, Deed::Flood)]);
    }
}
