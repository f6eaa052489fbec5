//! Where window rules settle: closed forms of published scenarios, and a solver for any network.
//!
//! The equilibrium meant is that of the fluid model. There a path's window w grows by the rule's
//! gain for each packet acknowledged, and shrinks by its cut for each packet lost, at loss
//! probability p. Both balance: gain(w) = p · cut(w). Lost packets count as acknowledged ones do,
//! which is an error of the order of p. Timeouts, slow start and the granularity of packets are
//! left out. For one TCP this gives w = √(2/p) packets, the formula on which all published
//! predictions here rest.
//!
//! Simulations differ from it where windows are a few packets.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::{Bitrate, ByteCount};
//! use fairpath_theory::{FluidRule, Link, Network, Price, Route, User};
//!
//! // One user of LIA over two links of 10 Mbit/s, and one of Reno on the second.
//! let link = Link { capacity: Bitrate::from_mbps(10), price: Price::Saturated };
//! let route = |link: usize| Route { links: vec![link], rtt: Duration::from_millis(100) };
//! let network = Network {
//!     links: vec![link, link],
//!     users: vec![
//!         User { count: 1, rule: FluidRule::Lia, routes: vec![route(0), route(1)] },
//!         User { count: 1, rule: FluidRule::Reno, routes: vec![route(1)] },
//!     ],
//!     packet: ByteCount::new(1_500),
//!     window_least: 1.0,
//! };
//! let settled = network.equilibrium()?;
//! let [lia, reno] = [0, 1].map(|user| settled.users[user].rate().as_mbps_f64());
//! assert!(lia > 10.0 && reno > 5.0, "{lia:.1} and {reno:.1} Mbit/s");
//! # Ok::<(), fairpath_theory::EquilibriumError>(())
//! ```

mod cubic;
mod linear;
mod network;
mod root;
mod rule;
mod scenario_a;
mod scenario_c;
mod short_queue;
mod solver;

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};

pub use cubic::cubic_window;
pub use network::{Equilibrium, EquilibriumError, Link, LinkState, Network, Price, Route, RouteState, User, UserState};
pub use rule::FluidRule;
pub use scenario_a::{ScenarioA, ScenarioARates};
pub use scenario_c::{ScenarioC, ScenarioCRates};
pub use short_queue::short_queue_wait;

/// The loss probability at which one TCP has this rate; infinite where it sends nothing.
///
/// ```text
/// [CoNEXT2012OLIA]
///              1          2
///     rate = ----- * √ ( --- )    in packets
///             rtt         p
/// ```
pub fn tcp_loss(rate: Bitrate, rtt: Duration, packet: ByteCount) -> f64 {
    let window = rate.as_bps() as f64 * rtt.as_secs_f64() / (8.0 * packet.as_f64());
    2.0 / (window * window)
}

/// The least rate of a path that is kept open by a window: one packet per round trip. Zero where
/// the round trip takes no time.
pub fn probing_rate(rtt: Duration, packet: ByteCount) -> Bitrate {
    packet.per(rtt).unwrap_or(Bitrate::ZERO)
}
