//! The rates by which paths share a stream: the best ones, and others for comparison.

use core::time::Duration;

use fairpath_rate::{PROBING, PacketRate, Region, capped, floors, greedy_within};

/// The rates by which paths share a stream. All but the first are for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The friendly rates that bring the most data in time. Worse paths carry the rest.
    #[default]
    Best,
    /// The rates of coupled TCP, whatever each path brings in time. All paths are one group.
    Coupled,
    /// The same rate on each path, as far as windows allow; together the rates of TCPs.
    Equal,
}

impl Sharing {
    /// The rate of each path. `region` has the rates of a TCP, `values` the shares that arrive in
    /// time, `allowed` the limits by the windows, `rtts` the round trips.
    pub(crate) fn rates(
        self,
        region: &Region,
        values: &[f64],
        allowed: &[PacketRate],
        rtts: &[Duration],
    ) -> Vec<PacketRate> {
        match self {
            Self::Best => greedy_within(region, values, &floors(region, PROBING), allowed),
            Self::Coupled => coupled(region.tcp(), rtts),
            Self::Equal => {
                let all: f64 = region.tcp().iter().map(|tcp| tcp.per_second()).sum();
                vec![PacketRate::new(all / region.paths().max(1) as f64); region.paths()]
            }
        }
    }

    /// Whether paths that share no bottleneck are looked at apart.
    pub(crate) fn tells_groups_apart(self) -> bool {
        self == Self::Best
    }

    /// Whether a path that brings less in time carries less than its rate.
    pub(crate) fn prefers_better_paths(self) -> bool {
        self == Self::Best
    }
}

/// Coupled TCP rates need losses. The rate of a path without losses is bounded by its window, and
/// its loss rate is derived from that. A TCP sends T = √2 / (RTT √p), so p = 2 / (T RTT)²
/// [Pluntke2011 §2].
fn coupled(tcp: &[PacketRate], rtts: &[Duration]) -> Vec<PacketRate> {
    let loss = |(tcp, rtt): (&PacketRate, &Duration)| {
        let in_flight = (tcp.per_second() * rtt.as_secs_f64()).max(f64::MIN_POSITIVE.sqrt());
        (2.0 / (in_flight * in_flight), *rtt)
    };
    let paths: Vec<(f64, Duration)> = tcp.iter().zip(rtts).map(loss).collect();
    capped(&paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(sharing: Sharing) -> [f64; 3] {
        // The example of [Pluntke2011 §2]: 223.6, 100 and 47.1 packets/s.
        let rtts = [20, 100, 300].map(Duration::from_millis);
        let losses = [0.10, 0.02, 0.01];
        let tcp: Vec<PacketRate> =
            rtts.iter().zip(losses).map(|(rtt, loss)| fairpath_rate::simple(*rtt, loss)).collect();
        let region = Region::new(&tcp).expect("finite");
        let rates = sharing.rates(&region, &[0.9, 0.78, 0.0], &[PacketRate::new(f64::INFINITY); 3], &rtts);
        [0, 1, 2].map(|path| rates[path].per_second())
    }

    fn close(ours: [f64; 3], expected: [f64; 3]) {
        for (ours, expected) in ours.into_iter().zip(expected) {
            assert!((ours - expected).abs() < 0.05, "{ours} for {expected}");
        }
    }

    #[test]
    fn the_paths_of_the_example_share_as_each_rule_says() {
        close(shares(Sharing::Coupled), [88.2, 88.2, 47.1]);
        // (223.6 + 100 + 47.1) / 3
        close(shares(Sharing::Equal), [123.6; 3]);
        // 6.75 % of 223.6 are 15.1 for probing on the second and the third.
        close(shares(Sharing::Best), [193.4, 15.1, 15.1]);
    }
}
