//! The equations: the weight of a piece of evidence, and the sum of pieces.

/// Two series over the same steps, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// The sum of their products.
    product: f64,
    /// The sum of the means of their squares.
    power: f64,
}

impl Sums {
    /// Adds a step.
    pub(super) fn add(&mut self, a: f64, b: f64) {
        self.product += a * b;
        self.power += 0.5 * (a * a + b * b);
    }

    /// The sum of the means of the squares.
    pub(super) fn power(&self) -> f64 {
        self.power
    }

    /// From -1 to 1: 1 only if both are equal, in size as well, and not just proportional.
    // [Lin1989] of series whose mean is zero
    //     rho_c = 2 sum(a b) / ( sum(a^2) + sum(b^2) )
    pub(super) fn concordance(&self) -> f64 {
        if self.power > 0.0 { self.product / self.power } else { 0.0 }
    }
}

/// The evidence of a concordance for one queue against two, as a logarithm of likelihoods. The
/// series are normal and of equal, unknown power. Their correlation is `one_queue` or zero, with
/// `freedom` degrees of freedom.
//
// The power of the sum over that of the difference, F = (1 + rho)/(1 - rho), follows Fisher's
// distribution. So z = (ln F)/2 = atanh(rho) has the density [Fisher1924]
//     f(z) ~ cosh(z - zeta)^-n,  zeta = atanh(rho_1) for one queue and 0 for two.
// The ratio is then
//     ln LR = n ln( cosh(z)/cosh(z - zeta) ) = n ln( sqrt(1 - rho_1^2) / (1 - rho_1 rho) )
pub(super) fn log_ratio(concordance: f64, one_queue: f64, freedom: f64) -> f64 {
    freedom * libm::log(libm::sqrt(1.0 - one_queue * one_queue) / (1.0 - one_queue * concordance))
}

/// Log-odds after a time in which the answer may have changed with this probability.
// [Shiryaev1963] for changes in both directions
//     p' = p (1 - h) + (1 - p) h
//
// With o the odds against the likelier answer, and all divided by its probability:
//     p' / (1 - p') = (1 - h + o h) / (o (1 - h) + h)
pub(super) fn after_change(log_odds: f64, probability: f64) -> f64 {
    let against = libm::exp(-log_odds.abs());
    let h = probability.min(0.5);
    libm::log((1.0 - h + against * h) / (against * (1.0 - h) + h)).copysign(log_odds)
}

/// The probability that belongs to log-odds.
pub(super) fn confidence(log_odds: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-log_odds))
}

/// The log-odds that belong to a probability.
pub(super) fn log_odds(confidence: f64) -> f64 {
    libm::log(confidence / (1.0 - confidence))
}

/// The log-odds that one of several equally likely hypotheses holds.
pub(super) fn any_of(log_odds: &[f64]) -> f64 {
    let largest = log_odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = log_odds.iter().map(|value| libm::exp(value - largest)).sum();
    largest + libm::log(sum / log_odds.len() as f64)
}

/// The log-odds against either of two hypotheses, from those against each.
//
//     1 / o = 1 / o_1 + 1 / o_2
pub(super) fn against_both(one: f64, other: f64) -> f64 {
    let (less, more) = if one < other { (one, other) } else { (other, one) };
    less - libm::log1p(libm::exp(less - more))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn concordance_asks_for_equal_size() {
        let of = |pairs: &[(f64, f64)]| {
            let mut sums = Sums::default();
            pairs.iter().for_each(|(a, b)| sums.add(*a, *b));
            sums.concordance()
        };
        assert_eq!(of(&[(1.0, 1.0), (-2.0, -2.0)]), 1.0);
        assert_eq!(of(&[(1.0, -1.0)]), -1.0);
        // Proportional by 3: 2 · 3 / (1 + 9).
        assert_eq!(of(&[(1.0, 3.0), (-1.0, -3.0)]), 0.6);
        assert_eq!(of(&[(5.0, 0.0)]), 0.0);
        assert_eq!(of(&[]), 0.0);
    }

    #[test]
    fn evidence_is_worked_out() {
        // rho_1 = 0.8: √(1 - 0.64) = 0.6. At 1: ln(0.6/0.2) = ln 3; at 0: ln 0.6; at 0.5: 0.
        assert!(near(log_ratio(1.0, 0.8, 1.0), 1.0986));
        assert!(near(log_ratio(0.0, 0.8, 2.0), 2.0 * -0.5108));
        assert!(near(log_ratio(0.5, 0.8, 1.0), 0.0));
    }

    #[test]
    fn chance_is_no_evidence_on_average() {
        // Two queues: with one degree of freedom rho = sin(phi), phi uniform. The mean of the
        // likelihood ratio is then 1, whatever rho_1 is.
        let n = 100_000;
        let mean = (0..n)
            .map(|k| {
                libm::exp(log_ratio(libm::sin(core::f64::consts::TAU * (f64::from(k) + 0.5) / f64::from(n)), 0.93, 1.0))
            })
            .sum::<f64>()
            / f64::from(n);
        assert!(near(mean, 1.0), "{mean}");
    }

    #[test]
    fn what_may_have_changed_is_less_sure() {
        // p = 0.9 and h = 0.1: 0.9 · 0.9 + 0.1 · 0.1 = 0.82.
        assert!(near(confidence(after_change(log_odds(0.9), 0.1)), 0.82));
        assert_eq!(after_change(0.0, 0.3), 0.0);
        assert!(after_change(700.0, 1e-3).is_finite() && after_change(-700.0, 1e-3).is_finite());
    }

    #[test]
    fn what_holds_against_both_is_at_most_what_holds_against_one() {
        // Odds of 3 and 6: 1/3 + 1/6 = 1/2.
        assert!(near(against_both(libm::log(3.0), libm::log(6.0)), libm::log(2.0)));
        assert!(near(against_both(-1000.0, 5.0), -1000.0) && near(against_both(5.0, 1000.0), 5.0));
    }

    #[test]
    fn one_of_two_hypotheses_has_half_the_odds() {
        // (3 + 1) / 2 = 2
        assert!(near(any_of(&[libm::log(3.0), 0.0]), libm::log(2.0)));
        assert!(near(any_of(&[-1000.0, 5.0]), 5.0 - libm::log(2.0)));
    }
}
