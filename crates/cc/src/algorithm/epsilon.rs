//! The ε-family: one parameter leads from fully coupled (0) by way of LIA without its cap (1) to
//! uncoupled paths (2). The smaller ε is, the more strictly traffic keeps to the least congested
//! paths: in equilibrium the windows are proportional to p^(−1/ε).
//!
//! # Source
//!
//! \[Raiciu2009\], in the form in which \[htsim\] has it.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | w_r | `Member::cwnd` | bytes |
//! | rtt_r | one over `Member::inverse_rtt` | s |
//! | w_total | `Totals::cwnd` | bytes |
//! | ε | `Epsilon::epsilon` | 1 |
//!
//! # Deviations
//!
//! - α makes the group take as much as one TCP on its best path. Here it is part of the growth:
//!   w_total cancels, and so does the exponent 1/(1 − ε/2), which has no value at ε = 2.
//! - At ε = 2 α cancels from the source's formula, and the paths are uncoupled. Just below, the
//!   factor (max x / Σ x)² that α stands for is still there.
//! - ε outside 0 to 2 is taken for the nearer end.

use fairpath_core::ByteCount;

use super::{coupled_increase, reno};
use crate::aimd::{GroupView, Member, Rule};

/// The ε-family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epsilon {
    /// From 0, fully coupled, to 2, uncoupled.
    pub epsilon: f64,
}

impl Default for Epsilon {
    fn default() -> Self {
        Self { epsilon: 1.0 }
    }
}

impl Rule for Epsilon {
    type Memory = ();
    type News = ();

    fn increase(&self, group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        coupled_increase(group, acked, |own, totals| gain(own, group.members(), totals.rate, self.epsilon))
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        reno::halved(group.own())
    }
}

/// The packets that an acknowledged packet adds to the window, in packets where the group is.
// [htsim]
//              ( alpha * w_r )^(1 - ε)
//     alpha * -------------------------
//               w_total^(2 - ε)
//
//                         ( max_k w_k^(ε/2) / rtt_k )^( 1 / (1 - ε/2) )
//     alpha = w_total * ------------------------------------------------
//                         (  sum_k w_k / rtt_k     )^( 1 / (1 - ε/2) )
//
// Since alpha appears to the power of 2 - ε, this is
//
//      w_r^(1 - ε) * max_k ( w_k^ε / rtt_k^2 )
//     -----------------------------------------
//             ( sum_k w_k / rtt_k )^2
pub fn gain<'a, M: 'a>(
    own: &Member<'_, M>,
    members: impl Iterator<Item = Member<'a, M>>,
    rate_sum: f64,
    epsilon: f64,
) -> f64 {
    let epsilon = epsilon.clamp(0.0, 2.0);
    if epsilon == 2.0 {
        return 1.0 / own.cwnd;
    }
    let best = members.map(|path| power(path.cwnd, epsilon) * path.inverse_rtt * path.inverse_rtt).fold(0.0, f64::max);
    own.cwnd / power(own.cwnd, epsilon) * best / (rate_sum * rate_sum)
}

/// `base` to the power of `exponent`, without the logarithm where LIA's exponent needs none.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent == 1.0 { base } else { libm::pow(base, exponent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    const PATHS: [(u64, u64); 2] = [(20, 100), (10, 50)];

    fn grown(epsilon: f64, paths: &[(u64, u64)], id: u32) -> f64 {
        let rtt_ms = paths[id as usize].1;
        growth(&mut in_avoidance(Epsilon { epsilon }, paths), id, rtt_ms)
    }

    #[test]
    fn epsilon_1_is_lia_without_its_cap() {
        // As in `lia`: 0.75/30 on both
        assert_near(grown(1.0, &PATHS, 0), 0.025);
        assert_near(grown(1.0, &PATHS, 1), 0.025);
        // w = (100, 1), rtt = (1, 0.01): 10⁴/200² = 0.25, which LIA caps at 1/100 on the first
        assert_near(grown(1.0, &[(100, 1000), (1, 10)], 0), 0.25);
    }

    #[test]
    fn epsilon_0_grows_each_window_in_proportion() {
        // w · max(1/rtt²)/(Σ w/rtt)² = (20, 10) · 400/400² = (0.05, 0.025)
        assert_near(grown(0.0, &PATHS, 0), 0.05);
        assert_near(grown(0.0, &PATHS, 1), 0.025);
    }

    #[test]
    fn epsilon_2_is_uncoupled() {
        assert_near(grown(2.0, &PATHS, 0), 1.0 / 20.0);
        assert_near(grown(7.0, &PATHS, 1), 1.0 / 10.0);
    }

    #[test]
    fn between_the_named_ones_it_is_the_formula_of_the_source() {
        // ε = 0.5, w = (16, 81), rtt = (0.1, 0.1): w^¼ = (2, 3), α = 97 · (30/970)^(4/3) = 0.942 807.
        //
        // growth of the first = α · (α · 16)^½ / 97^1.5 = α^1.5 · 4 / 955.34
        // = 0.915 437 · 0.004 187 0 = 0.003 832 9.
        // The second grows √(81/16) = 2.25 times as much.
        let paths = [(16, 100), (81, 100)];
        let alpha = 97.0 * libm::pow(30.0 / 970.0, 4.0 / 3.0);
        let expected = alpha * libm::sqrt(alpha * 16.0) / libm::pow(97.0, 1.5);
        assert_near(grown(0.5, &paths, 0), expected);
        assert_near(grown(0.5, &paths, 1), 2.25 * expected);
    }

    #[test]
    fn congestion_halves_only_the_path_it_met_and_one_path_is_reno() {
        let mut family = in_avoidance(Epsilon { epsilon: 0.0 }, &PATHS);
        family.on_congestion(path(0), &loss(11_000));
        assert_eq!((family.window(path(0)), family.window(path(1))), (PACKET * 10, PACKET * 10));
        assert_near(grown(0.0, &[(20, 100)], 0), 1.0 / 20.0);
    }
}
