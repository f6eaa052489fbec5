//! The window rules as the fluid model has them: the equations of the algorithms themselves, in
//! packets and seconds.

use fairpath_cc::equation::{balia, coupled, coupled_cubic, epsilon, ewtcp, lia, olia};
use fairpath_cc::{Epsilon, Ewtcp, Member, Totals};

use crate::cubic;

/// A window rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FluidRule {
    /// Reno on each route by itself; also "uncoupled".
    Reno,
    /// EWTCP.
    Ewtcp(Ewtcp),
    /// The fully coupled algorithm.
    Coupled,
    /// The ε-family.
    Epsilon(Epsilon),
    /// LIA.
    Lia,
    /// OLIA, without the term that moves windows between equally good routes: how much each of these
    /// carries is left to the links, and to the symmetry of the start.
    Olia,
    /// BALIA.
    Balia,
    /// CUBIC on each route by itself.
    Cubic,
    /// Coupled CUBIC.
    CoupledCubic,
}

/// The packets that an acknowledged packet adds to a window and a lost one takes from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) gain: f64,
    pub(crate) cut: f64,
}

impl FluidRule {
    /// The step of each of a user's routes with these (window in packets, 1/s), in their order.
    pub(crate) fn steps(&self, routes: &[(f64, f64)]) -> Vec<Step> {
        let member = |&(cwnd, inverse_rtt): &(f64, f64)| Member { cwnd, inverse_rtt, max_datagram: 1.0, memory: &() };
        let members = || routes.iter().map(member);
        let totals = Totals::of(members());
        let step = |own: Member<'_, ()>| {
            let halved = own.cwnd / 2.0;
            let (gain, cut) = match *self {
                Self::Cubic => (cubic::gain(own.cwnd, 1.0 / own.inverse_rtt), cubic::cut(own.cwnd)),
                Self::CoupledCubic => coupled_cubic(&own, members(), &totals),
                _ if routes.len() == 1 => (1.0 / own.cwnd, halved),
                Self::Reno => (1.0 / own.cwnd, halved),
                Self::Ewtcp(Ewtcp { increase }) => (ewtcp::gain(&own, &totals, increase), halved),
                Self::Coupled => (coupled::gain(&own, &totals), coupled::cut(&totals)),
                Self::Epsilon(Epsilon { epsilon }) => (epsilon::gain(&own, members(), totals.rate, epsilon), halved),
                Self::Lia => (lia::gain(&own, &totals), halved),
                Self::Olia => (olia::optimum(&own, totals.rate), halved),
                Self::Balia => (balia::gain(&own, &totals), balia::cut(&own, &totals)),
            };
            Step { gain, cut }
        };
        members().map(step).collect()
    }
}

/// The gain and cut of a route, if the group grows as one flow does and all routes meet losses
/// equally often. With λ losses per second on each route, the group is cut by ( 1 - left( s_k ) ) W
/// for each loss on route k. It gains G for each packet of the total rate X.
//     X * G( W, RTT ) = lambda * W * sum_k ( 1 - left( s_k ) ),  lambda = p_r * x_r
fn coupled_cubic<'a>(
    own: &Member<'_, ()>,
    members: impl Iterator<Item = Member<'a, ()>> + Clone,
    totals: &Totals,
) -> (f64, f64) {
    let shares = members.map(|path| path.cwnd / totals.cwnd);
    let squares: f64 = shares.clone().map(|share| share * share).sum();
    let cut: f64 = shares.map(|share| 1.0 - coupled_cubic::left(share, squares)).sum();
    (cubic::gain(totals.cwnd, totals.cwnd / totals.rate), totals.cwnd * cut * own.rate() / totals.rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_on_one_route_is_reno() {
        for rule in [
            FluidRule::Reno,
            FluidRule::Ewtcp(Ewtcp { increase: Some(0.5) }),
            FluidRule::Coupled,
            FluidRule::Epsilon(Epsilon { epsilon: 0.5 }),
            FluidRule::Lia,
            FluidRule::Olia,
            FluidRule::Balia,
        ] {
            let step = rule.steps(&[(20.0, 10.0)])[0];
            assert_eq!((step.gain, step.cut), (0.05, 10.0), "{rule:?}");
        }
    }

    #[test]
    fn coupled_cubic_on_one_route_and_on_equal_ones_is_cubic() {
        let one = FluidRule::Cubic.steps(&[(90.0, 10.0)])[0];
        for count in 1..=4u8 {
            let routes = vec![(90.0 / f64::from(count), 10.0); usize::from(count)];
            for step in FluidRule::CoupledCubic.steps(&routes) {
                assert!((step.gain / one.gain - 1.0).abs() < 1e-12 && (step.cut / one.cut - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_equations_are_those_of_the_algorithms() {
        // w = (20, 10), rtt = (0.1, 0.05): as in the tests of each.
        let steps = FluidRule::Olia.steps(&[(20.0, 10.0), (10.0, 20.0)]);
        assert!((steps[0].gain - 0.0125).abs() < 1e-15 && (steps[1].gain - 0.025).abs() < 1e-15);
        let steps = FluidRule::Coupled.steps(&[(20.0, 10.0), (10.0, 20.0)]);
        assert!((steps[0].gain - 1.0 / 30.0).abs() < 1e-15 && (steps[1].cut - 15.0).abs() < 1e-15);
    }
}
