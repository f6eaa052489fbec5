//! Scenario A: users who gain nothing by a second path, and harm others with it.
//!
//! ```text
//!   type 1, N1 users ──┬─────────────────────────────► server link, N1 · C1 ──► server
//!                      └──► access point, N2 · C2 ──►┘
//!   type 2, N2 users ─────► access point, N2 · C2 ──► another server
//! ```
//!
//! # Source
//!
//! [CoNEXT2012OLIA]; [Khalili2013], which has its figures on slides 8 to 17.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | N1, N2 | `type1_users`, `type2_users` | 1 |
//! | C1, C2 | `type1_capacity`, `type2_capacity`, for each user | bit/s |
//! | x1 + x2 | `ScenarioARates::type1` | bit/s |
//! | x2 | `ScenarioARates::type1_shared` | bit/s |
//! | y | `ScenarioARates::type2` | bit/s |
//! | s | √(p1/p2), of the losses at the server link and at the access point | 1 |
//!
//! # Deviations
//!
//! - The figures with probing depend on the packet and the round-trip time, which the source does not
//!   give; the rate of probing is an argument.

use fairpath_core::Bitrate;

use crate::root;

/// Scenario A, with equal round-trip times. Users and capacities are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioA {
    /// How many users have two paths.
    pub type1_users: u32,
    /// How many have one.
    pub type2_users: u32,
    /// The capacity of the server link for each user of type 1.
    pub type1_capacity: Bitrate,
    /// The capacity of the access point for each user of type 2.
    pub type2_capacity: Bitrate,
}

/// The rates of each user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioARates {
    /// A user of type 1, on both paths.
    pub type1: Bitrate,
    /// The part of it that goes through the access point.
    pub type1_shared: Bitrate,
    /// A user of type 2.
    pub type2: Bitrate,
}

impl ScenarioA {
    /// LIA.
    pub fn lia(&self) -> ScenarioARates {
        let (users, capacity) = (self.users(), self.capacity());
        let s = root::of_increasing(|s| load(users, s) - capacity, 0.0, capacity);
        ScenarioARates {
            type1: self.type1_capacity,
            type1_shared: self.type1_capacity.scaled(shared(s)),
            type2: self.type1_capacity.scaled(s),
        }
    }

    /// The optimum, in which users of type 1 send `probing` through the access point and no more;
    /// [`Bitrate::ZERO`] for the optimum without the cost of probing.
    pub fn optimum(&self, probing: Bitrate) -> ScenarioARates {
        let type2_bps = self.type2_capacity.as_bps() as f64 - self.users() * probing.as_bps() as f64;
        let type2 = Bitrate::from_bps(type2_bps as u64);
        ScenarioARates { type1: self.type1_capacity, type1_shared: probing, type2 }
    }

    fn users(&self) -> f64 {
        f64::from(self.type1_users) / f64::from(self.type2_users)
    }

    fn capacity(&self) -> f64 {
        self.type2_capacity.as_bps() as f64 / self.type1_capacity.as_bps() as f64
    }
}

// The rate of a user of type 1 through the access point, in units of C1: LIA's windows are as 1/p,
// and p1/(p1 + p2) = s^2/(1 + s^2).
//         s^2
//     -----------
//      1 + 2 s^2
fn shared(s: f64) -> f64 {
    s * s / (1.0 + 2.0 * s * s)
}

// [CoNEXT2012OLIA], the load of the access point for each user of type 2, in units of C1
//      N1       s^2
//     ---- * ----------- + s
//      N2     1 + 2 s^2
fn load(users: f64, s: f64) -> f64 {
    users * shared(s) + s
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::ByteCount;

    use super::*;
    use crate::{probing_rate, tcp_loss};

    /// With 10 users of type 2 and 1 Mbit/s for each user.
    fn scenario(type1_users: u32) -> ScenarioA {
        let capacity = Bitrate::from_mbps(1);
        ScenarioA { type1_users, type2_users: 10, type1_capacity: capacity, type2_capacity: capacity }
    }

    #[test]
    fn lia_takes_from_users_of_type_2_and_gains_nothing() {
        // s = 0.739: 0.5461/2.0922 + 0.739 = 0.261 + 0.739 = 1
        let rates = scenario(10).lia();
        assert!((rates.type2.as_mbps_f64() - 0.739).abs() < 0.0005, "{rates:?}");
        assert_eq!(rates.type1, Bitrate::from_mbps(1));
        // s = 1/2: 3 · 0.25/1.5 + 0.5 = 1
        assert!((scenario(30).lia().type2.as_mbps_f64() - 0.5).abs() < 1e-5);
        // Users of type 1 send there as much as is missing: 3 · 1/6 = 1/2
        assert!((scenario(30).lia().type1_shared.as_mbps_f64() - 1.0 / 6.0).abs() < 1e-5);
    }

    #[test]
    fn the_losses_are_those_of_the_source_to_within_the_round_trip_time_assumed() {
        // 150 ms and 1500 B: 1 Mbit/s is a window of 12.5. p1 = 2/12.5² = 0.0128;
        // p2 = p1/s² = 0.0128/0.546 = 0.0234 and 0.0128/0.25 = 0.0512
        let loss = |rate| tcp_loss(rate, Duration::from_millis(150), ByteCount::new(1_500));
        assert!((loss(scenario(10).lia().type1) - 0.0128).abs() < 1e-6);
        assert!((loss(scenario(10).lia().type2) - 0.0234).abs() < 1e-4);
        assert!((loss(scenario(30).lia().type2) - 0.0512).abs() < 1e-4);
    }

    #[test]
    fn the_optimum_leaves_the_access_point_to_users_of_type_2() {
        assert_eq!(scenario(30).optimum(Bitrate::ZERO).type2, Bitrate::from_mbps(1));
        // 1500 B per 150 ms is 80 kbit/s: 1 − 0.08 and 1 − 3 · 0.08. The source has 0.94 and 0.8, for
        // a round trip and a packet that it does not name; 60 kbit/s give 0.94 and 0.82.
        let probing = probing_rate(Duration::from_millis(150), ByteCount::new(1_500));
        assert_eq!(scenario(10).optimum(probing).type2, Bitrate::from_kbps(920));
        assert_eq!(scenario(30).optimum(probing).type2, Bitrate::from_kbps(760));
        assert_eq!(scenario(10).optimum(Bitrate::from_kbps(60)).type2, Bitrate::from_kbps(940));
        assert_eq!(scenario(30).optimum(Bitrate::from_kbps(60)).type2, Bitrate::from_kbps(820));
    }
}
