//! The two links between the encoder and the player, of which the first goes bad in the middle.

use std::net::SocketAddr;
use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_emu::{Emulator, Filter, LinkConfig, LinkId, LossConfig, QueueConfig, QueueLimit};

/// A link: rate in Mbit/s and delay one way in ms.
const LINKS: [(u64, u64); 2] = [(5, 20), (4, 35)];

/// The random loss of both links at all times. By its equation a TCP with round trips of 80 ms then has
/// 4.3 Mbit/s on average [Pluntke2011 §3], and less for seconds at a time.
const LOSS: f64 = 0.002;

/// The longest that packets wait before a link: modems hold that much.
const QUEUE: Duration = Duration::from_millis(250);

/// A bad link's rate, as a divisor of the normal one, and its loss.
const BAD: (u64, f64) = (10, 0.3);

/// The links, with a relay for each: what is sent there comes out at the target.
pub(crate) struct Links {
    emulator: Emulator,
    /// Both directions of each.
    ways: Vec<[LinkId; 2]>,
}

impl Links {
    /// Those with these numbers, towards a program at `target`. Losses come from `seed`.
    pub(crate) fn towards(target: SocketAddr, numbers: &[usize], seed: u64) -> Self {
        let mut builder = Emulator::builder(seed);
        let mut ways = Vec::new();
        for number in numbers {
            let (mbps, delay) = LINKS[*number];
            let config = LinkConfig::new(Bitrate::from_mbps(mbps))
                .delay(Duration::from_millis(delay))
                .loss(LossConfig::Random { probability: LOSS })
                .queue(QueueConfig::DropTail(QueueLimit::Sojourn(QUEUE)));
            let way = ["there", "back"].map(|way| builder.link(&format!("{way} {number}"), &config).unwrap());
            builder.path(&way[..1], &way[1..], target).unwrap();
            ways.push(way);
        }
        Self { emulator: builder.start().unwrap(), ways }
    }

    pub(crate) fn relays(&self) -> Vec<SocketAddr> {
        self.emulator.relays().to_vec()
    }

    /// The first of the links is bad, or as it was: number 0, where it is there.
    pub(crate) fn set_bad(&self, numbers: &[usize], is_bad: bool) {
        for (number, way) in numbers.iter().zip(&self.ways).filter(|(number, _)| **number == 0) {
            let rate = Bitrate::from_mbps(LINKS[*number].0).as_bps();
            for link in way {
                let (rate, filter) = match is_bad {
                    true => (rate / BAD.0, Filter::DropShare(BAD.1)),
                    false => (rate, Filter::Pass),
                };
                self.emulator.set_link_rate(*link, Bitrate::from_bps(rate));
                self.emulator.set_filter(*link, filter);
            }
        }
    }
}
