//! The rates of a user on paths with given losses, in the fluid model.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_theory::{FluidRule, Link, Network, Price, Route, User};

/// The rates of a user on separate paths of these loss probabilities and round-trip times, with packets of
/// 1500 B and without a least window, in Mbit/s; `None` where nothing settles.
pub(crate) fn rates(rule: FluidRule, paths: &[(f64, Duration)]) -> Option<Vec<f64>> {
    // The losses are given whatever is sent, so that the capacity does not matter.
    let capacity = Bitrate::from_mbps(1000);
    let link = |(loss, _): &(f64, Duration)| Link { capacity, price: Price::Fixed { loss: *loss } };
    let route = |(at, (_, rtt)): (usize, &(f64, Duration))| Route { links: vec![at], rtt: *rtt };
    let network = Network {
        links: paths.iter().map(link).collect(),
        users: vec![User { count: 1, rule, routes: paths.iter().enumerate().map(route).collect() }],
        packet: ByteCount::new(1500),
        window_least: 0.0,
    };
    let settled = network.equilibrium().ok()?;
    Some(settled.users[0].routes.iter().map(|route| route.rate.as_mbps_f64()).collect())
}

/// The rate of one TCP on such a path.
pub(crate) fn tcp(path: (f64, Duration)) -> Option<f64> {
    rates(FluidRule::Reno, &[path])?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_gets_what_its_formula_says() {
        // √(2/0.01) = 14.14 packets of 12 kbit in 0.1 s: 1.697 Mbit/s.
        assert!((tcp((0.01, Duration::from_millis(100))).unwrap() - 1.697).abs() < 1e-3);
    }
}
