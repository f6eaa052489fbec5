//! A network and its users as the solver takes them, and what it gives back.

use core::fmt;
use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};

use crate::rule::FluidRule;

/// Links, and users whose routes cross them.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The links; routes name them by their place here.
    pub links: Vec<Link>,
    /// The users.
    pub users: Vec<User>,
    /// The size of every packet.
    pub packet: ByteCount,
    /// The least window, in packets: 0, or 1 if a route that is not worth using is still probed.
    pub window_least: f64,
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Its capacity.
    pub capacity: Bitrate,
    /// How it tells that it is congested.
    pub price: Price,
}

/// The loss probability of a link, given its load: what is sent over its capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Price {
    /// Whatever keeps the load at 1, and none where the load is below. What published closed forms
    /// assume; a queue that drops early comes close, whatever its profile.
    Saturated,
    /// The part that does not fit: whatever keeps what passes at 1, 1 − 1/load. A link that sends as
    /// much as it can.
    Overflow,
    /// `at_capacity` times the load to the power of `exponent`.
    Power {
        /// The loss probability at a load of 1.
        at_capacity: f64,
        /// How sharply it rises.
        exponent: f64,
    },
    /// The same at any load.
    Fixed {
        /// The loss probability.
        loss: f64,
    },
}

impl Price {
    /// The loss probability at this load, at most 1. `None`: the load does not determine it.
    pub(crate) fn loss(&self, load: f64) -> Option<f64> {
        let loss = match *self {
            Self::Saturated | Self::Overflow => return None,
            Self::Power { at_capacity, exponent } => at_capacity * libm::pow(load, exponent),
            Self::Fixed { loss } => loss,
        };
        Some(loss.min(1.0))
    }
}

/// Users that are all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// How many there are.
    pub count: u32,
    /// The rule that each of them follows.
    pub rule: FluidRule,
    /// The routes of each.
    pub routes: Vec<Route>,
}

/// A route.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The links that it crosses, by their place in [`Network::links`]. Its loss probability is the
    /// sum of theirs.
    pub links: Vec<usize>,
    /// The round-trip time, with the queues as they are in equilibrium.
    pub rtt: Duration,
}

/// Where a network settles.
#[derive(Clone, Debug, PartialEq)]
pub struct Equilibrium {
    /// In the order of [`Network::users`]: one of those that are alike.
    pub users: Vec<UserState>,
    /// In the order of [`Network::links`].
    pub links: Vec<LinkState>,
    /// The rest of the largest imbalance: the difference of gain and loss over their sum, for a
    /// window, and of load and 1 for a link.
    pub residual: f64,
}

/// A user in equilibrium.
#[derive(Clone, Debug, PartialEq)]
pub struct UserState {
    /// In the order of [`User::routes`].
    pub routes: Vec<RouteState>,
}

impl UserState {
    /// The rate of the user on all routes.
    pub fn rate(&self) -> Bitrate {
        self.routes.iter().map(|route| route.rate).sum()
    }
}

/// A route in equilibrium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RouteState {
    /// The window, in packets. A route that is given up keeps a millionth of a packet, or
    /// [`Network::window_least`].
    pub window_packets: f64,
    /// Window over round-trip time.
    pub rate: Bitrate,
    /// The loss probability.
    pub loss: f64,
}

/// A link in equilibrium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// The rate over it.
    pub rate: Bitrate,
    /// Its loss probability.
    pub loss: f64,
}

/// Why there is no equilibrium of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EquilibriumError {
    /// The user has no route.
    NoRoute {
        /// Its place in [`Network::users`].
        user: usize,
    },
    /// The route crosses no link, so that nothing limits it.
    NoLink {
        /// The place of the user.
        user: usize,
        /// The place of the route among the user's.
        route: usize,
    },
    /// The route crosses a link that does not exist.
    UnknownLink {
        /// The place of the user.
        user: usize,
        /// The place of the route among the user's.
        route: usize,
        /// The number that is taken for a link.
        link: usize,
    },
    /// The round-trip time of the route is zero.
    NoRoundTripTime {
        /// The place of the user.
        user: usize,
        /// The place of the route among the user's.
        route: usize,
    },
    /// The link has no capacity.
    NoCapacity {
        /// Its place in [`Network::links`].
        link: usize,
    },
    /// Packets are of no size.
    NoPacket,
    /// The saturated link is too small for the least windows that cross it.
    Overloaded {
        /// Its place in [`Network::links`].
        link: usize,
    },
    /// The search did not settle.
    NoConvergence {
        /// The largest imbalance that was left, as in [`Equilibrium::residual`].
        residual: f64,
    },
}

impl fmt::Display for EquilibriumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoute { user } => write!(f, "user {user} has no route"),
            Self::NoLink { user, route } => write!(f, "route {route} of user {user} crosses no link"),
            Self::UnknownLink { user, route, link } => {
                write!(f, "route {route} of user {user} crosses link {link}, which does not exist")
            }
            Self::NoRoundTripTime { user, route } => {
                write!(f, "the round-trip time of route {route} of user {user} is zero")
            }
            Self::NoCapacity { link } => write!(f, "link {link} has no capacity"),
            Self::NoPacket => write!(f, "packets are of no size"),
            Self::Overloaded { link } => write!(f, "link {link} is too small for the least windows that cross it"),
            Self::NoConvergence { residual } => {
                write!(f, "no equilibrium was found: an imbalance of {residual:.1e} was left")
            }
        }
    }
}

impl core::error::Error for EquilibriumError {}

impl Network {
    /// The fault of the description, if there is one.
    pub(crate) fn check(&self) -> Result<(), EquilibriumError> {
        if self.packet == ByteCount::ZERO {
            return Err(EquilibriumError::NoPacket);
        }
        if let Some(link) = self.links.iter().position(|link| link.capacity == Bitrate::ZERO) {
            return Err(EquilibriumError::NoCapacity { link });
        }
        for (user, described) in self.users.iter().enumerate() {
            if described.routes.is_empty() {
                return Err(EquilibriumError::NoRoute { user });
            }
            for (route, described) in described.routes.iter().enumerate() {
                if described.links.is_empty() {
                    return Err(EquilibriumError::NoLink { user, route });
                }
                if let Some(link) = described.links.iter().find(|link| **link >= self.links.len()) {
                    return Err(EquilibriumError::UnknownLink { user, route, link: *link });
                }
                if described.rtt.is_zero() {
                    return Err(EquilibriumError::NoRoundTripTime { user, route });
                }
            }
        }
        Ok(())
    }
}
