//! Scenario C: users with a second path through an access point that others need.
//!
//! ```text
//!   multipath, N1 users ──┬──► access point 1, N1 · C1 ──►
//!                         └──► access point 2, N2 · C2 ──►
//!   single path, N2 users ───► access point 2, N2 · C2 ──►
//! ```
//!
//! # Source
//!
//! [CoNEXT2012OLIA].
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | N1, N2 | `multipath_users`, `single_users` | 1 |
//! | C1, C2 | `multipath_capacity`, `single_capacity`, for each user | bit/s |
//! | x1 + x2 | `ScenarioCRates::multipath` | bit/s |
//! | x2 | `ScenarioCRates::multipath_shared` | bit/s |
//! | y | `ScenarioCRates::single` | bit/s |
//! | s | √(p1/p2), of the losses at the two access points | 1 |
//!
//! # Deviations
//!
//! - As in scenario A, the rate of probing is an argument.

use fairpath_core::Bitrate;

use crate::root;

/// Scenario C, with equal round-trip times. Users and capacities are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioC {
    /// How many users have two paths.
    pub multipath_users: u32,
    /// How many have one.
    pub single_users: u32,
    /// The capacity of access point 1 for each user with two paths.
    pub multipath_capacity: Bitrate,
    /// The capacity of access point 2 for each user with one.
    pub single_capacity: Bitrate,
}

/// The rates of each user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioCRates {
    /// A user with two paths, on both.
    pub multipath: Bitrate,
    /// The part of it that goes through access point 2.
    pub multipath_shared: Bitrate,
    /// A user with one path.
    pub single: Bitrate,
}

impl ScenarioC {
    /// LIA.
    pub fn lia(&self) -> ScenarioCRates {
        let (users, capacity) = (self.users(), self.capacity());
        if capacity > load(users, 1.0) {
            // Access point 2 is so large that both are equally congested.
            return self.shares(self.pooled_bps() - self.multipath_bps());
        }
        let s = root::of_increasing(|s| load(users, s) - capacity, 0.0, 1.0);
        self.shares(s * s * self.multipath_bps())
    }

    /// The optimum, in which users with two paths send at least `probing` through access point 2;
    /// [`Bitrate::ZERO`] for the optimum without the cost of probing.
    pub fn optimum(&self, probing: Bitrate) -> ScenarioCRates {
        self.shares((self.pooled_bps() - self.multipath_bps()).max(probing.as_bps() as f64))
    }

    /// The rates of each user where those with two paths send `shared_bps` through access point 2 and
    /// both access points are full.
    fn shares(&self, shared_bps: f64) -> ScenarioCRates {
        let bitrate = |bps: f64| Bitrate::from_bps(bps as u64);
        ScenarioCRates {
            multipath: bitrate(self.multipath_bps() + shared_bps),
            multipath_shared: bitrate(shared_bps),
            single: bitrate(self.single_capacity.as_bps() as f64 - self.users() * shared_bps),
        }
    }

    /// All capacity divided among all users.
    fn pooled_bps(&self) -> f64 {
        let (multipath, single) = (f64::from(self.multipath_users), f64::from(self.single_users));
        let capacity = multipath * self.multipath_bps() + single * self.single_capacity.as_bps() as f64;
        capacity / (multipath + single)
    }

    fn multipath_bps(&self) -> f64 {
        self.multipath_capacity.as_bps() as f64
    }

    fn users(&self) -> f64 {
        f64::from(self.multipath_users) / f64::from(self.single_users)
    }

    fn capacity(&self) -> f64 {
        self.single_capacity.as_bps() as f64 / self.multipath_bps()
    }
}

// [CoNEXT2012OLIA], the load of access point 2 for each user with one path, in units of C1
//      N1
//     ---- * s^2 + s * ( 1 + s^2 )
//      N2
fn load(users: f64, s: f64) -> f64 {
    users * s * s + s * (1.0 + s * s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 10 users with one path and 1 Mbit/s for each user with two.
    fn scenario(multipath_users: u32, single_mbps: u64) -> ScenarioC {
        ScenarioC {
            multipath_users,
            single_users: 10,
            multipath_capacity: Bitrate::from_mbps(1),
            single_capacity: Bitrate::from_mbps(single_mbps),
        }
    }

    fn assert_mbps(actual: Bitrate, expected: f64) {
        assert!((actual.as_mbps_f64() - expected).abs() < 0.0005, "{actual} is not {expected}");
    }

    #[test]
    fn lia_takes_from_users_with_one_path() {
        // s = 0.5437: 0.2956 + 0.5437 · 1.2956 = 1
        let rates = scenario(10, 1).lia();
        assert_mbps(rates.multipath, 1.296);
        assert_mbps(rates.single, 0.704);
        // s = 0.4142: 3 · 0.1716 + 0.4142 · 1.1716 = 1
        let rates = scenario(30, 1).lia();
        assert_mbps(rates.multipath, 1.172);
        assert_mbps(rates.single, 0.485);
    }

    #[test]
    fn a_large_second_access_point_makes_all_equal() {
        // C2/C1 = 4 > 10/10 + 2: (10 · 1 + 10 · 4)/20
        let rates = scenario(10, 4).lia();
        assert_eq!((rates.multipath, rates.single), (Bitrate::from_kbps(2_500), Bitrate::from_kbps(2_500)));
        // At the limit both forms agree: s = 1, 2 Mbit/s for each.
        assert_mbps(scenario(10, 3).lia().multipath, 2.0);
        assert_mbps(scenario(10, 3).lia().single, 2.0);
    }

    #[test]
    fn the_optimum_leaves_the_second_access_point_alone_but_for_probing() {
        let rates = scenario(10, 1).optimum(Bitrate::ZERO);
        assert_eq!((rates.multipath, rates.single), (Bitrate::from_mbps(1), Bitrate::from_mbps(1)));
        // 80 kbit/s, which is 1500 B per 150 ms: 1.08, and 1 − 0.08 or 1 − 3 · 0.08. The source has
        // 1.04, and 0.94 or 0.8, which no single rate of probing gives.
        let probing = Bitrate::from_kbps(80);
        assert_mbps(scenario(10, 1).optimum(probing).multipath, 1.08);
        assert_mbps(scenario(10, 1).optimum(probing).single, 0.92);
        assert_mbps(scenario(30, 1).optimum(probing).single, 0.76);
        // Where access point 2 has room, the optimum is equal shares.
        assert_mbps(scenario(10, 2).optimum(probing).multipath, 1.5);
    }
}
