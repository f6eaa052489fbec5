//! Finds the equilibrium of a network by letting it run in a time of its own.
//!
//! The unknowns are the logarithms of the windows, and of the loss probabilities of those links
//! whose load does not determine them. A window drifts by the difference of gain and loss over
//! their sum; a loss probability drifts by the excess of the load over 1. Signs and resting points
//! are those of the fluid model, its speeds are not. An unknown at its least value that drifts
//! further down is at rest.
//!
//! The steps are implicit ones, which damp what is stiff and what would oscillate. They are as long
//! as the drift is nearly linear along them, so that close to the equilibrium they become Newton's
//! (*pseudo-transient continuation*).
//!
//! Where there are several equilibria, it is one that is reached from equal windows. Where routes are
//! equally good to a rule that does not care how it divides among them, as to OLIA and the fully
//! coupled algorithm, only what they carry together is determined.
//!
//! A step costs the cube of the number of unknowns: some hundred routes take seconds.

use fairpath_core::Bitrate;

use crate::linear;
use crate::network::{Equilibrium, EquilibriumError, LinkState, Network, Price, RouteState, User, UserState};

/// A window that is given up, in packets.
const WINDOW_LEAST: f64 = 1e-6;
/// The loss probability of a link that is not congested.
const LOSS_LEAST: f64 = 1e-12;
/// The windows to begin with, in packets, and the loss probabilities.
const WINDOW_FIRST: f64 = 10.0;
const LOSS_FIRST: f64 = 0.01;
/// The imbalance at which the search ends.
const RESIDUAL_GOAL: f64 = 1e-8;
/// Limit on the steps, and on the imbalance that may be left after them. If routes are nearly
/// equally good to a rule, it drifts ever more slowly from one to the other.
const STEPS_MAX: usize = 1_000;
const RESIDUAL_MAX: f64 = 1e-3;
/// The length of the first step, and the greatest, in the time of the drift, in which a window that
/// only grows does so e-fold in 1. Shorter steps than the least are not tried.
const STEP_FIRST: f64 = 0.5;
const STEP_MAX: f64 = 1e6;
const STEP_MIN: f64 = 1e-3;
/// No unknown changes by more than this in a step, in powers of e.
const CHANGE_MAX: f64 = 1.0;
/// How far the drift after a step may be from what a linear one would be, relative to that before.
const CURVATURE_MAX: f64 = 0.5;
/// Step of an unknown for the numeric derivative, in powers of e.
const PROBE: f64 = 1e-7;

impl Network {
    /// The equilibrium, or what is wrong with the description, or that none was found.
    pub fn equilibrium(&self) -> Result<Equilibrium, EquilibriumError> {
        self.check()?;
        let flow = Flow::new(self);
        if let Some(link) = flow.overloaded() {
            return Err(EquilibriumError::Overloaded { link });
        }
        let mut unknowns = flow.first();
        let mut drift = flow.drift(&unknowns);
        let mut length = STEP_FIRST;
        let mut residual = flow.residual(&unknowns, &drift);
        for _ in 0..STEPS_MAX {
            if residual < RESIDUAL_GOAL || residual.is_infinite() {
                break;
            }
            (unknowns, drift, length) = flow.step(&unknowns, &drift, length);
            residual = flow.residual(&unknowns, &drift);
        }
        if residual < RESIDUAL_MAX {
            Ok(flow.describe(&unknowns, residual))
        } else {
            Err(EquilibriumError::NoConvergence { residual })
        }
    }
}

/// The network as a flow of its unknowns: first the windows of all routes, then the loss
/// probabilities of the links whose load does not determine them, as logarithms.
struct Flow<'a> {
    network: &'a Network,
    /// The capacity of each link, in packets per second.
    capacity: Vec<f64>,
    /// The links whose load does not determine their loss probability.
    free: Vec<usize>,
    routes: usize,
}

impl<'a> Flow<'a> {
    fn new(network: &'a Network) -> Self {
        let packet_bits = 8.0 * network.packet.as_f64();
        let is_free = |link: &usize| network.links[*link].price.loss(1.0).is_none();
        Self {
            network,
            capacity: network.links.iter().map(|link| link.capacity.as_bps() as f64 / packet_bits).collect(),
            free: (0..network.links.len()).filter(is_free).collect(),
            routes: network.users.iter().map(|user| user.routes.len()).sum(),
        }
    }

    fn first(&self) -> Vec<f64> {
        let window = WINDOW_FIRST.max(self.network.window_least);
        let mut unknowns = vec![libm::log(window); self.routes];
        unknowns.extend(self.free.iter().map(|_| libm::log(LOSS_FIRST)));
        unknowns
    }

    /// The least value of an unknown.
    fn least(&self, unknown: usize) -> f64 {
        let least = if unknown < self.routes { WINDOW_LEAST.max(self.network.window_least) } else { LOSS_LEAST };
        libm::log(least)
    }

    /// A saturated link that is too small for the least windows that cross it.
    fn overloaded(&self) -> Option<usize> {
        let least: Vec<f64> = (0..self.routes).map(|route| self.least(route)).collect();
        let loads = self.loads(&least);
        let is_overloaded = |link: &usize| self.network.links[*link].price == Price::Saturated && loads[*link] >= 1.0;
        (0..loads.len()).find(is_overloaded)
    }

    /// The users, each with the place of its first route among all.
    fn users(&self) -> impl Iterator<Item = (usize, &'a User)> + use<'a> {
        self.network.users.iter().scan(0, |first, user| {
            let at = *first;
            *first += user.routes.len();
            Some((at, user))
        })
    }

    /// The load of each link.
    fn loads(&self, unknowns: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacity.len()];
        for (first, user) in self.users() {
            for (route, window) in user.routes.iter().zip(&unknowns[first..]) {
                let rate = f64::from(user.count) * libm::exp(*window) / route.rtt.as_secs_f64();
                for link in &route.links {
                    loads[*link] += rate / self.capacity[*link];
                }
            }
        }
        loads
    }

    /// The loss probability of each link.
    fn losses(&self, unknowns: &[f64], loads: &[f64]) -> Vec<f64> {
        let mut free = unknowns[self.routes..].iter();
        let loss = |(link, load): (&super::Link, &f64)| match link.price.loss(*load) {
            Some(loss) => loss,
            None => free.next().map_or(0.0, |loss| libm::exp(*loss)),
        };
        self.network.links.iter().zip(loads).map(loss).collect()
    }

    fn drift(&self, unknowns: &[f64]) -> Vec<f64> {
        let loads = self.loads(unknowns);
        let losses = self.losses(unknowns, &loads);
        let mut drift = Vec::with_capacity(unknowns.len());
        for (first, user) in self.users() {
            let windows = unknowns[first..].iter().map(|window| libm::exp(*window));
            let routes: Vec<(f64, f64)> =
                windows.zip(&user.routes).map(|(window, route)| (window, 1.0 / route.rtt.as_secs_f64())).collect();
            for (step, route) in user.rule.steps(&routes).into_iter().zip(&user.routes) {
                let lost = step.cut * route.links.iter().map(|link| losses[*link]).sum::<f64>();
                drift.push((step.gain - lost) / (step.gain + lost));
            }
        }
        drift.extend(self.free.iter().map(|link| match self.network.links[*link].price {
            Price::Overflow => loads[*link] * (1.0 - losses[*link]) - 1.0,
            _ => loads[*link] - 1.0,
        }));
        drift
    }

    /// Whether the unknown rests at its least value.
    fn rests(&self, unknown: usize, value: f64, drift: f64) -> bool {
        value <= self.least(unknown) && drift < 0.0
    }

    /// The largest drift of what does not rest.
    fn residual(&self, unknowns: &[f64], drift: &[f64]) -> f64 {
        let moving = (0..unknowns.len()).filter(|at| !self.rests(*at, unknowns[*at], drift[*at]));
        moving.map(|at| if drift[at].is_nan() { f64::INFINITY } else { drift[at].abs() }).fold(0.0, f64::max)
    }

    /// The unknowns after an implicit step of about this length, the drift there, and the length of
    /// the next. They change by
    ///
    /// ```text
    ///       1
    ///     ( - - J )^-1  drift,      J the derivatives of the drift by the unknowns
    ///       h
    /// ```
    ///
    /// and what rests stays.
    fn step(&self, unknowns: &[f64], drift: &[f64], mut length: f64) -> (Vec<f64>, Vec<f64>, f64) {
        let rests: Vec<bool> = (0..unknowns.len()).map(|at| self.rests(at, unknowns[at], drift[at])).collect();
        let derivatives = self.derivatives(unknowns, drift);
        let wanted: Vec<f64> =
            drift.iter().zip(&rests).map(|(drift, rests)| if *rests { 0.0 } else { *drift }).collect();
        loop {
            let mut matrix = derivatives.clone();
            for (at, row) in matrix.iter_mut().enumerate() {
                row.iter_mut().for_each(|entry| *entry = if rests[at] { 0.0 } else { -*entry });
                row[at] += 1.0 / length;
            }
            let change = linear::solve(matrix, wanted.clone())
                .unwrap_or_else(|| wanted.iter().map(|drift| drift * length).collect());
            let moved: Vec<f64> =
                (0..unknowns.len()).map(|at| (unknowns[at] + change[at]).max(self.least(at))).collect();
            let after = self.drift(&moved);
            let expected = |at: usize| (moved[at] - unknowns[at]) / length;
            let moving = |at: &usize| !self.rests(*at, moved[*at], after[*at]);
            let error = (0..moved.len()).filter(moving).map(|at| (after[at] - expected(at)).abs()).fold(0.0, f64::max);
            let curvature = error / self.residual(unknowns, drift);
            let largest = change.iter().fold(0.0f64, |largest, change| largest.max(change.abs()));
            if length <= STEP_MIN || (curvature <= CURVATURE_MAX && largest <= CHANGE_MAX) {
                let factor = (CURVATURE_MAX / 2.0 / curvature).clamp(0.5, 4.0);
                return (moved, after, (length * factor).clamp(STEP_MIN, STEP_MAX));
            }
            length /= 4.0;
        }
    }

    /// The derivatives of the drift by the unknowns, a row for each drift.
    fn derivatives(&self, unknowns: &[f64], drift: &[f64]) -> Vec<Vec<f64>> {
        let mut derivatives = vec![vec![0.0; unknowns.len()]; unknowns.len()];
        for column in 0..unknowns.len() {
            let mut moved = unknowns.to_vec();
            moved[column] += PROBE;
            for (row, moved) in self.drift(&moved).into_iter().enumerate() {
                derivatives[row][column] = (moved - drift[row]) / PROBE;
            }
        }
        derivatives
    }

    fn describe(&self, unknowns: &[f64], residual: f64) -> Equilibrium {
        let loads = self.loads(unknowns);
        let losses = self.losses(unknowns, &loads);
        let packet_bits = 8.0 * self.network.packet.as_f64();
        let bitrate = |packets_per_second: f64| Bitrate::from_bps((packets_per_second * packet_bits).round() as u64);
        let route = |(route, window): (&super::Route, &f64)| RouteState {
            window_packets: libm::exp(*window),
            rate: bitrate(libm::exp(*window) / route.rtt.as_secs_f64()),
            loss: route.links.iter().map(|link| losses[*link]).sum(),
        };
        let user = |(first, user): (usize, &User)| UserState {
            routes: user.routes.iter().zip(&unknowns[first..]).map(route).collect(),
        };
        let link = |at: usize| LinkState { rate: bitrate(loads[at] * self.capacity[at]), loss: losses[at] };
        Equilibrium { users: self.users().map(user).collect(), links: (0..loads.len()).map(link).collect(), residual }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::ByteCount;
    use proptest::prelude::*;

    use super::*;
    use crate::{FluidRule, Link, Route, ScenarioA, ScenarioC};
    use fairpath_cc::{Epsilon, Ewtcp};

    const RTT: Duration = Duration::from_millis(150);

    fn link(kbps: u64, price: Price) -> Link {
        Link { capacity: Bitrate::from_kbps(kbps), price }
    }

    fn saturated(kbps: u64) -> Link {
        link(kbps, Price::Saturated)
    }

    /// Users with a route over each of these lists of links, all with the same round-trip time.
    fn user(count: u32, rule: FluidRule, routes: &[&[usize]]) -> User {
        let routes = routes.iter().map(|links| Route { links: links.to_vec(), rtt: RTT }).collect();
        User { count, rule, routes }
    }

    fn network(links: &[Link], users: &[User]) -> Network {
        Network { links: links.to_vec(), users: users.to_vec(), packet: ByteCount::new(1_500), window_least: 0.0 }
    }

    fn mbps(rate: Bitrate) -> f64 {
        rate.as_mbps_f64()
    }

    fn assert_within(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() <= tolerance * expected.abs(), "{actual} is not {expected}");
    }

    /// Scenario A with 10 users of type 2 and 1 Mbit/s for each user: link 0 is the server's, link 1
    /// the access point.
    fn scenario_a(rule: FluidRule, type1: u32, price: Price) -> Network {
        let links = [link(u64::from(type1) * 1_000, price), link(10_000, price)];
        network(&links, &[user(type1, rule, &[&[0], &[1, 0]]), user(10, FluidRule::Reno, &[&[1]])])
    }

    /// Scenario C likewise.
    fn scenario_c(rule: FluidRule, multipath: u32) -> Network {
        let links = [saturated(u64::from(multipath) * 1_000), saturated(10_000)];
        network(&links, &[user(multipath, rule, &[&[0], &[1]]), user(10, FluidRule::Reno, &[&[1]])])
    }

    #[test]
    fn tcps_share_a_link_and_lose_what_the_formula_says() {
        let found = network(&[saturated(10_000)], &[user(4, FluidRule::Reno, &[&[0]])]).equilibrium().unwrap();
        // 2.5 Mbit/s are 31.25 packets in 150 ms: p = 2/31.25² = 0.002048
        assert_within(mbps(found.users[0].rate()), 2.5, 1e-6);
        assert_within(found.users[0].routes[0].window_packets, 31.25, 1e-6);
        assert_within(found.links[0].loss, 0.002_048, 1e-6);
        assert_within(mbps(found.links[0].rate), 10.0, 1e-6);
    }

    #[test]
    fn given_losses_give_the_published_windows() {
        // p = 0.01 and 0.04 on two routes
        let links = [link(1, Price::Fixed { loss: 0.01 }), link(1, Price::Fixed { loss: 0.04 })];
        let windows = |rule| {
            let found = network(&links, &[user(1, rule, &[&[0], &[1]])]).equilibrium().unwrap();
            [0, 1].map(|route| found.users[0].routes[route].window_packets)
        };
        let assert_windows = |rule: FluidRule, expected: [f64; 2]| {
            windows(rule).iter().zip(expected).for_each(|(window, expected)| assert_within(*window, expected, 1e-6));
        };
        let (first, second) = (libm::sqrt(200.0), libm::sqrt(50.0));
        assert_windows(FluidRule::Reno, [first, second]);
        // √(2a/p) with a = 1/4
        assert_windows(FluidRule::Ewtcp(Ewtcp::default()), [first / 2.0, second / 2.0]);
        // LIA: w_r = (1/p_r) · max √(2/p) / Σ (1/p) = (100, 25) · 14.142/125
        assert_windows(FluidRule::Lia, [100.0 * first / 125.0, 25.0 * first / 125.0]);
        // The family: windows as p^(−1/ε), 4^2 = 16 for ε = 1/2, and one TCP's on the best in all.
        assert_windows(FluidRule::Epsilon(Epsilon { epsilon: 0.5 }), [first * 16.0 / 17.0, first / 17.0]);
        // Only the best.
        let [best, worst] = windows(FluidRule::Olia);
        assert_within(best, first, 1e-4);
        assert!(worst < 1e-4, "{worst}");
        let [best, worst] = windows(FluidRule::Coupled);
        assert_within(best, first, 1e-4);
        assert!(worst < 1e-4, "{worst}");
    }

    #[test]
    fn coupled_cubic_is_one_cubic_flow_beside_others_and_shares_by_congestion() {
        // On one link of 10 Mbit/s beside one CUBIC flow: half, on two routes as on one.
        for routes in [vec![&[0usize][..]], vec![&[0], &[0]], vec![&[0]; 4]] {
            let users = [user(1, FluidRule::CoupledCubic, &routes), user(1, FluidRule::Cubic, &[&[0]])];
            let found = network(&[saturated(10_000)], &users).equilibrium().unwrap();
            assert_within(mbps(found.users[0].rate()), 5.0, 1e-3);
        }
        // Where p = 0.01 and 0.04 rates are as 4 to 1.
        let links = [link(1, Price::Fixed { loss: 0.01 }), link(1, Price::Fixed { loss: 0.04 })];
        let found = network(&links, &[user(1, FluidRule::CoupledCubic, &[&[0], &[1]])]).equilibrium().unwrap();
        let [first, second] = [0, 1].map(|route| found.users[0].routes[route].window_packets);
        assert_within(first / second, 4.0, 1e-3);
    }

    #[test]
    fn routes_with_different_round_trip_times_share_as_lia_says() {
        // p = 0.01 on both, rtt = 0.1 and 0.3 s: w = 100 · max(√200/0.1, √200/0.3)/(1000 + 333.3)
        // = 100 · 141.42/1333.3 = 10.607 on both.
        let links = [link(1, Price::Fixed { loss: 0.01 })];
        let mut described = network(&links, &[user(1, FluidRule::Lia, &[&[0], &[0]])]);
        for (route, millis) in described.users[0].routes.iter_mut().zip([100, 300]) {
            route.rtt = Duration::from_millis(millis);
        }
        let found = described.equilibrium().unwrap();
        assert_within(found.users[0].routes[0].window_packets, 10.607, 1e-4);
        assert_within(found.users[0].routes[1].window_packets, 10.607, 1e-4);
    }

    #[test]
    fn lia_in_scenario_a_is_the_closed_form() {
        for type1 in [10, 30] {
            let found = scenario_a(FluidRule::Lia, type1, Price::Saturated).equilibrium().unwrap();
            let (type1_capacity, type2_capacity) = (Bitrate::from_mbps(1), Bitrate::from_mbps(1));
            let closed = ScenarioA { type1_users: type1, type2_users: 10, type1_capacity, type2_capacity }.lia();
            assert_within(mbps(found.users[0].rate()), mbps(closed.type1), 1e-4);
            assert_within(mbps(found.users[0].routes[1].rate), mbps(closed.type1_shared), 1e-4);
            assert_within(mbps(found.users[1].rate()), mbps(closed.type2), 1e-4);
        }
    }

    #[test]
    fn lia_in_scenario_c_is_the_closed_form() {
        for multipath in [10, 30] {
            let found = scenario_c(FluidRule::Lia, multipath).equilibrium().unwrap();
            let (multipath_capacity, single_capacity) = (Bitrate::from_mbps(1), Bitrate::from_mbps(1));
            let scenario =
                ScenarioC { multipath_users: multipath, single_users: 10, multipath_capacity, single_capacity };
            assert_within(mbps(found.users[0].rate()), mbps(scenario.lia().multipath), 1e-4);
            assert_within(mbps(found.users[1].rate()), mbps(scenario.lia().single), 1e-4);
        }
    }

    #[test]
    fn links_without_queues_give_the_closed_form_but_for_what_they_drop() {
        // 2 % are lost at the access point, and so what arrives differs from the closed form by about
        // as much.
        let found = scenario_a(FluidRule::Lia, 10, Price::Overflow).equilibrium().unwrap();
        let arrives = mbps(found.users[1].rate()) * (1.0 - found.links[1].loss);
        assert_within(arrives, 0.739, 0.02);
    }

    #[test]
    fn olia_is_optimal_but_for_what_probing_costs() {
        let mut described = scenario_a(FluidRule::Olia, 30, Price::Saturated);
        let found = described.equilibrium().unwrap();
        assert_within(mbps(found.users[1].rate()), 1.0, 1e-3);
        // One packet per round trip: 80 kbit/s from each of 30: 1 − 0.24
        described.window_least = 1.0;
        let found = described.equilibrium().unwrap();
        assert_within(mbps(found.users[1].rate()), 0.76, 1e-3);
        assert_within(mbps(found.users[0].rate()), 1.0, 1e-3);
        let mut described = scenario_c(FluidRule::Olia, 10);
        described.window_least = 1.0;
        let found = described.equilibrium().unwrap();
        assert_within(mbps(found.users[0].rate()), 1.08, 1e-3);
        assert_within(mbps(found.users[1].rate()), 0.92, 1e-3);
    }

    #[test]
    fn balia_lies_between_lia_and_olia_and_balances_its_own_equations() {
        for type1 in [10, 30] {
            let type2 = |rule| {
                let mut described = scenario_a(rule, type1, Price::Saturated);
                described.window_least = 1.0;
                mbps(described.equilibrium().unwrap().users[1].rate())
            };
            let [lia, balia, olia] = [FluidRule::Lia, FluidRule::Balia, FluidRule::Olia].map(type2);
            assert!(lia < balia && balia < olia, "{lia} {balia} {olia}");
        }
        // With α = x1/x2: 2/(rtt · x)² · (1 + α)/2 · (4 + α)/5 = p · min(α, 1.5)
        let found = scenario_a(FluidRule::Balia, 10, Price::Saturated).equilibrium().unwrap();
        let [first, second] = [found.users[0].routes[0], found.users[0].routes[1]];
        let alpha = first.window_packets / second.window_packets;
        let total = first.window_packets + second.window_packets;
        assert_within(2.0 / (total * total), first.loss, 1e-6);
        let side = (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0 / alpha.min(1.5);
        assert_within(2.0 / (total * total) * side, second.loss, 1e-6);
    }

    /// One multipath user on two links of 10 Mbit/s, with 5 TCPs on the first and `tcps` on the
    /// second.
    fn two_bottlenecks(rule: FluidRule, tcps: u32) -> [f64; 2] {
        let tcp = |count, link| user(count, FluidRule::Reno, &[&[link]]);
        let users = [user(1, rule, &[&[0], &[1]]), tcp(5, 0), tcp(tcps, 1)];
        let found = network(&[saturated(10_000), saturated(10_000)], &users).equilibrium().unwrap();
        [0, 1].map(|route| mbps(found.users[0].routes[route].rate))
    }

    #[test]
    fn two_equal_bottlenecks_are_used_equally_and_take_one_tcp_in_all() {
        // Half a TCP on each: 10/5.5/2 = 0.909. Uncoupled: 10/6 on each.
        for rule in [FluidRule::Lia, FluidRule::Olia, FluidRule::Balia, FluidRule::Coupled] {
            for rate in two_bottlenecks(rule, 5) {
                assert_within(rate, 10.0 / 11.0, 1e-3);
            }
        }
        assert_within(two_bottlenecks(FluidRule::Reno, 5)[0], 10.0 / 6.0, 1e-6);
    }

    #[test]
    fn a_congested_second_bottleneck_is_used_less_and_by_olia_not_at_all() {
        // With s² = p1/p2 and T a TCP on the first link: T · (5 + 1/(1 + s²)) = 10.
        //
        // T · (10 s + s²/(1 + s²)) = 10: s = 0.5531, T = 1.7344; T/(1 + s²) and T s²/(1 + s²)
        let [first, second] = two_bottlenecks(FluidRule::Lia, 10);
        assert_within(first, 1.3280, 1e-4);
        assert_within(second, 0.4063, 1e-3);
        let [first, second] = two_bottlenecks(FluidRule::Olia, 10);
        assert_within(first, 10.0 / 6.0, 1e-3);
        assert!(second < 1e-3, "{second}");
    }

    #[test]
    fn what_is_wrong_with_a_description_is_told() {
        let good = network(&[saturated(10_000)], &[user(1, FluidRule::Lia, &[&[0], &[0]])]);
        let wrong = |change: fn(&mut Network)| {
            let mut described = good.clone();
            change(&mut described);
            described.equilibrium().unwrap_err()
        };
        assert_eq!(wrong(|it| it.users[0].routes.clear()), EquilibriumError::NoRoute { user: 0 });
        assert_eq!(wrong(|it| it.users[0].routes[1].links.clear()), EquilibriumError::NoLink { user: 0, route: 1 });
        let unknown = wrong(|it| it.users[0].routes[1].links.push(3));
        assert_eq!(unknown, EquilibriumError::UnknownLink { user: 0, route: 1, link: 3 });
        assert_eq!(unknown.to_string(), "route 1 of user 0 crosses link 3, which does not exist");
        let instant = wrong(|it| it.users[0].routes[0].rtt = Duration::ZERO);
        assert_eq!(instant, EquilibriumError::NoRoundTripTime { user: 0, route: 0 });
        assert_eq!(wrong(|it| it.links[0].capacity = Bitrate::ZERO), EquilibriumError::NoCapacity { link: 0 });
        assert_eq!(wrong(|it| it.packet = ByteCount::ZERO), EquilibriumError::NoPacket);
        // Two windows of 100 packets in 150 ms are 16 Mbit/s.
        assert_eq!(wrong(|it| it.window_least = 100.0), EquilibriumError::Overloaded { link: 0 });
        // Windows that nothing limits.
        let endless = wrong(|it| it.links[0].price = Price::Fixed { loss: 0.0 });
        assert!(matches!(endless, EquilibriumError::NoConvergence { .. }), "{endless}");
    }

    /// Users of one rule and a TCP in a network of six links.
    fn any_network() -> impl Strategy<Value = Network> {
        let rule = prop_oneof![
            Just(FluidRule::Reno),
            Just(FluidRule::Ewtcp(Ewtcp::default())),
            Just(FluidRule::Epsilon(Epsilon { epsilon: 0.5 })),
            Just(FluidRule::Lia),
            Just(FluidRule::Balia),
        ];
        let links = prop::collection::vec((1_000u64..50_000).prop_map(saturated), 6);
        let route = (prop::collection::btree_set(0usize..6, 1..3), 10u64..200).prop_map(|(links, millis)| Route {
            links: links.into_iter().collect(),
            rtt: Duration::from_millis(millis),
        });
        let routes = prop::collection::vec((1u32..6, prop::collection::vec(route, 1..5)), 1..6);
        (rule, links, routes).prop_map(|(rule, links, routes)| {
            let mut users = vec![user(3, FluidRule::Reno, &[&[0]])];
            users.extend(routes.into_iter().map(|(count, routes)| User { count, rule, routes }));
            network(&links, &users)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn in_equilibrium_links_are_full_or_lose_nothing(described in any_network()) {
            let found = described.equilibrium().unwrap();
            for (link, state) in described.links.iter().zip(&found.links) {
                let load = mbps(state.rate) / mbps(link.capacity);
                prop_assert!(load < 1.001, "{load}");
                prop_assert!(load > 0.999 || state.loss < 1e-9, "{load} {}", state.loss);
            }
        }
    }
}
