//! Verdicts: a claim as inequalities, and what the intervals of the numbers say of them.

use serde::{Deserialize, Deserializer, Serialize};

use fairpath_core::{Estimate, t_95};

/// A one-sided inequality has no tolerance to measure an interval against: one that is measured to this
/// part of its bound, and still contains it, is taken to be at the bound. It is the tolerance that most
/// two-sided claims have.
const RESOLUTION: f64 = 0.05;

/// With fewer samples an interval is many times as wide as their scatter: Student's t is 12.7 for two, 3.2
/// for four.
const SAMPLES_LEAST: f64 = 4.0;

/// Degrees of freedom from which on Student's t hardly falls any more.
const MANY: usize = 100;

/// How a number must stand to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Between these, both included.
    Between(f64, f64),
}

impl Relation {
    fn bounds(self) -> (f64, f64) {
        match self {
            Self::AtLeast(low) => (low, f64::INFINITY),
            Self::AtMost(high) => (f64::NEG_INFINITY, high),
            Self::Between(low, high) => (low, high),
        }
    }

    /// An interval that is no wider than this on each side tells a number inside from one outside as well as
    /// the claim asks for.
    fn resolution(self) -> f64 {
        match self {
            Self::AtLeast(bound) | Self::AtMost(bound) => RESOLUTION * bound.abs(),
            Self::Between(low, high) => (high - low) / 2.0,
        }
    }
}

/// Where the 95 % interval of a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// All of it satisfies the inequality.
    Within,
    /// A part of it does, and it is narrow: the number is at the edge.
    Overlaps,
    /// A part of it does, and it is too wide to say more.
    Unclear,
    /// None of it does.
    Outside,
}

/// One inequality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The quantity, with its unit.
    pub what: String,
    /// The number; JSON has `null` for what is none.
    #[serde(deserialize_with = "number_or_nan")]
    pub value: f64,
    /// Half of its 95 % interval; `None` where it is not known, as after a single seed.
    pub half_width: Option<f64>,
    /// How many samples it is the mean of; none of what is known exactly.
    pub samples: usize,
    /// How it must be.
    pub must_be: Relation,
    /// Where the interval is.
    pub standing: Standing,
}

fn number_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

impl Check {
    fn new(what: &str, estimate: &Estimate, must_be: Relation) -> Self {
        let Estimate { mean: value, half_width, samples, .. } = *estimate;
        let standing = standing(value, half_width, must_be);
        Self { what: what.to_owned(), value, half_width, samples, must_be, standing }
    }

    /// About how many samples would tell; `None` where it is told, or no number of them would.
    pub fn samples_needed(&self) -> Option<f64> {
        let (low, high) = self.must_be.bounds();
        let from_edge = f64::min((self.value - low).abs(), (high - self.value).abs());
        let enough = from_edge.max(self.must_be.resolution());
        match (self.standing, self.half_width) {
            (Standing::Unclear, None) if self.value.is_finite() => Some(SAMPLES_LEAST),
            (Standing::Unclear, Some(half)) if enough > 0.0 => {
                // Intervals shrink with the root of the number, and Student's t with it.
                let times = half / enough * t_95(MANY) / t_95(self.samples.saturating_sub(1));
                Some((self.samples as f64 * times * times).max(SAMPLES_LEAST).max(self.samples as f64 + 1.0))
            }
            _ => None,
        }
    }
}

fn standing(value: f64, half_width: Option<f64>, must_be: Relation) -> Standing {
    // Nothing was measured, or once only.
    let Some(half) = half_width else { return Standing::Unclear };
    if !value.is_finite() {
        return Standing::Outside;
    }
    let (low, high) = must_be.bounds();
    match (value - half, value + half) {
        (from, to) if low <= from && to <= high => Standing::Within,
        (from, to) if to < low || high < from => Standing::Outside,
        _ if half <= must_be.resolution() => Standing::Overlaps,
        _ => Standing::Unclear,
    }
}

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All inequalities hold.
    Holds,
    /// Some do and some do not, or a number is at its bound.
    Partly,
    /// Intervals are too wide to say.
    Undecided,
    /// None does.
    Misses,
}

impl Outcome {
    /// All there are, from the best on.
    pub const ALL: [Self; 4] = [Self::Holds, Self::Partly, Self::Undecided, Self::Misses];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Partly => "partly",
            Self::Undecided => "undecided",
            Self::Misses => "misses",
        }
    }

    /// The outcome of these inequalities; undecided if unclear ones could change it.
    fn of(checks: &[Check]) -> Self {
        let any = |standing| checks.iter().any(|check| check.standing == standing);
        let (holding, failing) = (any(Standing::Within), any(Standing::Outside));
        if any(Standing::Overlaps) || holding && failing {
            Self::Partly
        } else if any(Standing::Unclear) {
            Self::Undecided
        } else if holding {
            Self::Holds
        } else {
            Self::Misses
        }
    }
}

/// The origin of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claimant {
    /// The paper that the experiment is about.
    Paper,
    /// We do: no paper says so.
    Ours,
}

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// A name, unique in the experiment.
    pub name: String,
    /// The origin of the claim.
    pub claimant: Claimant,
    /// The claim in words.
    pub claim: String,
    /// The claim in numbers.
    pub checks: Vec<Check>,
    /// The outcome of the claim.
    pub outcome: Outcome,
    /// Why it does not hold, where it does not.
    pub reason: Option<String>,
}

impl Verdict {
    /// A claim of the paper in words, to be followed by what it says in numbers.
    pub fn new(name: &str, claim: &str) -> Self {
        let (name, claim) = (name.to_owned(), claim.to_owned());
        Self { name, claimant: Claimant::Paper, claim, checks: Vec::new(), outcome: Outcome::Misses, reason: None }
    }

    /// A claim that no paper makes.
    pub fn ours(name: &str, claim: &str) -> Self {
        Self { claimant: Claimant::Ours, ..Self::new(name, claim) }
    }

    /// It says that this is at least `bound`.
    pub fn at_least(self, what: &str, value: impl Into<Estimate>, bound: f64) -> Self {
        self.check(what, &value.into(), Relation::AtLeast(bound))
    }

    /// It says that this is at most `bound`.
    pub fn at_most(self, what: &str, value: impl Into<Estimate>, bound: f64) -> Self {
        self.check(what, &value.into(), Relation::AtMost(bound))
    }

    /// It says that this is between `low` and `high`.
    pub fn between(self, what: &str, value: impl Into<Estimate>, low: f64, high: f64) -> Self {
        self.check(what, &value.into(), Relation::Between(low, high))
    }

    /// It says that this is `target`, give or take `tolerance` times it.
    pub fn within(self, what: &str, value: impl Into<Estimate>, target: f64, tolerance: f64) -> Self {
        let slack = target.abs() * tolerance;
        self.between(what, value, target - slack, target + slack)
    }

    fn check(mut self, what: &str, estimate: &Estimate, must_be: Relation) -> Self {
        self.checks.push(Check::new(what, estimate, must_be));
        self.outcome = Outcome::of(&self.checks);
        self
    }

    /// Why it does not hold; kept only where it is known not to.
    pub fn because(mut self, reason: &str) -> Self {
        if matches!(self.outcome, Outcome::Partly | Outcome::Misses) {
            self.reason = Some(reason.to_owned());
        }
        self
    }

    /// The same with a reason where none was given and none is needed but that a number is at its bound.
    pub(crate) fn with_bound_as_reason(mut self) -> Self {
        let beyond = self.checks.iter().any(|check| check.standing == Standing::Outside);
        if self.outcome == Outcome::Partly && self.reason.is_none() && !beyond {
            let at_bound = self.checks.iter().filter(|check| check.standing == Standing::Overlaps);
            let names = at_bound.map(|check| check.what.as_str()).collect::<Vec<_>>().join("; ");
            self.reason =
                Some(format!("No number is beyond its bound; these lie at it, to within their intervals: {names}."));
        }
        self
    }

    /// About how many times as many samples would decide it; `None` where it is decided, or no number of
    /// them would.
    pub fn seeds_needed(&self) -> Option<f64> {
        let undecided = self.checks.iter().filter(|_| self.outcome == Outcome::Undecided);
        let times = |check: &Check| Some(check.samples_needed()? / check.samples.max(1) as f64);
        undecided.filter_map(times).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(mean: f64, half: f64) -> Estimate {
        Estimate::with_interval(mean, Some(half), 10)
    }

    fn at_most(mean: f64, half: f64, bound: f64) -> Verdict {
        Verdict::new("x", "").at_most("a", of(mean, half), bound)
    }

    #[test]
    fn the_whole_interval_counts_and_not_the_mean() {
        assert_eq!(at_most(98.0, 1.0, 100.0).outcome, Outcome::Holds);
        assert_eq!(at_most(98.0, 98.0, 100.0).outcome, Outcome::Undecided);
        assert_eq!(at_most(102.0, 98.0, 100.0).outcome, Outcome::Undecided);
        assert_eq!(at_most(99.0, 2.0, 100.0).outcome, Outcome::Partly);
        assert_eq!(at_most(103.0, 2.0, 100.0).outcome, Outcome::Misses);
    }

    #[test]
    fn a_tolerance_that_is_crossed_holds_partly_if_the_interval_is_no_wider_than_it() {
        let within = |mean, half| Verdict::new("x", "").within("a", of(mean, half), 4.0, 0.2).outcome;
        assert_eq!(within(4.5, 0.2), Outcome::Holds);
        assert_eq!(within(4.7, 0.2), Outcome::Partly);
        assert_eq!(within(4.7, 0.9), Outcome::Undecided);
        assert_eq!(within(5.1, 0.2), Outcome::Misses);
    }

    #[test]
    fn one_seed_decides_nothing_and_a_closed_form_everything() {
        let one = Estimate::of([5.0]).unwrap();
        let verdict = Verdict::new("x", "").at_least("a", one, 1.0);
        assert_eq!((verdict.outcome, verdict.seeds_needed()), (Outcome::Undecided, Some(4.0)));
        assert_eq!(Verdict::new("x", "").at_least("a", 5.0, 1.0).outcome, Outcome::Holds);
    }

    #[test]
    fn some_of_the_inequalities_make_a_claim_hold_partly() {
        let verdict = |second: f64| {
            Verdict::new("less", "Less than LIA.")
                .at_most("a", 0.9, 1.0)
                .within("b", second, 4.4, 0.2)
                .because("a reason")
        };
        assert_eq!((verdict(5.28).outcome, verdict(5.28).reason), (Outcome::Holds, None));
        assert_eq!((verdict(5.3).outcome, verdict(5.3).reason), (Outcome::Partly, Some("a reason".into())));
        assert_eq!(Verdict::new("x", "").at_least("c", 0.9, 1.0).outcome, Outcome::Misses);
    }

    #[test]
    fn a_reason_for_missing_is_none_for_being_undecided() {
        assert_eq!(at_most(98.0, 98.0, 100.0).because("a reason").reason, None);
    }

    #[test]
    fn without_data_nothing_is_decided_and_no_number_of_seeds_is_asked_for() {
        for nothing in [Estimate::unknown(), f64::NAN.into()] {
            let verdict = Verdict::new("x", "").at_least("c", nothing, 1.0);
            assert_eq!((verdict.outcome, verdict.seeds_needed()), (Outcome::Undecided, None));
        }
    }

    #[test]
    fn an_interval_of_zero_that_has_no_bound_beside_zero_asks_for_no_number_of_seeds() {
        // 0 ± 1 ≥ 0: the more seeds, the narrower, and the mean may stay where it is.
        let verdict = Verdict::new("x", "").at_least("c", of(0.0, 1.0), 0.0);
        assert_eq!((verdict.outcome, verdict.seeds_needed()), (Outcome::Undecided, None));
    }

    #[test]
    fn a_false_claim_seldom_holds_and_a_true_one_seldom_misses() {
        // Sums of 12 uniform numbers less 6 have the mean 0 and the variance 1. The mean is above the bound,
        // however little: by the 95 % interval the claim may hold in 2.5 % of all experiments.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut experiment = |bound: f64| {
            let samples: Vec<f64> = (0..5).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect();
            Verdict::new("x", "").at_most("a", Estimate::of(samples).unwrap(), bound).outcome
        };
        let count = |outcomes: &[Outcome], outcome| outcomes.iter().filter(|one| **one == outcome).count();
        let just_false: Vec<Outcome> = (0..4000).map(|_| experiment(-1e-9)).collect();
        let just_true: Vec<Outcome> = (0..4000).map(|_| experiment(1e-9)).collect();
        // 100 of 4000, give or take three times sqrt(4000 · 0.025 · 0.975) = 10.
        assert!(count(&just_false, Outcome::Holds).abs_diff(100) < 30, "{}", count(&just_false, Outcome::Holds));
        assert!(count(&just_true, Outcome::Misses).abs_diff(100) < 30, "{}", count(&just_true, Outcome::Misses));
    }

    /// Inequalities of all kinds about numbers of all kinds.
    fn checks() -> impl Strategy<Value = Vec<(f64, Option<f64>, Relation)>> {
        let relation = prop_oneof![
            (-3.0..3.0f64).prop_map(Relation::AtLeast),
            (-3.0..3.0f64).prop_map(Relation::AtMost),
            (-3.0..3.0f64, 0.0..2.0f64).prop_map(|(low, more)| Relation::Between(low, low + more)),
        ];
        let half = prop_oneof![Just(Some(0.0)), (0.0..3.0f64).prop_map(Some), Just(None)];
        prop::collection::vec((-4.0..4.0f64, half, relation), 1..5)
    }

    fn verdict(checks: &[(f64, Option<f64>, Relation)]) -> Verdict {
        checks.iter().fold(Verdict::new("x", ""), |verdict, (mean, half, relation)| {
            verdict.check("a", &Estimate::with_interval(*mean, *half, 10), *relation)
        })
    }

    proptest! {
        #[test]
        fn a_claim_holds_only_if_every_value_of_every_interval_satisfies_it(
            checks in checks(),
            at in prop::collection::vec(-1.0..1.0f64, 4),
        ) {
            let truth: Vec<bool> = checks.iter().zip(&at).map(|((mean, half, relation), at)| {
                let (low, high) = relation.bounds();
                (low..=high).contains(&(mean + at * half.unwrap_or(f64::INFINITY)))
            }).collect();
            match verdict(&checks).outcome {
                Outcome::Holds => prop_assert!(truth.iter().all(|holds| *holds)),
                Outcome::Misses => prop_assert!(truth.iter().all(|holds| !*holds)),
                Outcome::Partly | Outcome::Undecided => {}
            }
        }

        #[test]
        fn the_order_of_the_inequalities_does_not_matter(checks in checks()) {
            let backwards: Vec<_> = checks.iter().rev().copied().collect();
            prop_assert_eq!(verdict(&checks).outcome, verdict(&backwards).outcome);
        }

        #[test]
        fn knowing_less_never_turns_a_claim_round(checks in checks(), wider in 0.0..3.0f64) {
            let blurred: Vec<_> = checks
                .iter()
                .map(|(mean, half, relation)| (*mean, half.map(|half| half + wider), *relation))
                .collect();
            match (verdict(&checks).outcome, verdict(&blurred).outcome) {
                (Outcome::Holds, after) => prop_assert_ne!(after, Outcome::Misses),
                (Outcome::Misses, after) => prop_assert_ne!(after, Outcome::Holds),
                (Outcome::Partly | Outcome::Undecided, after) => {
                    prop_assert!(matches!(after, Outcome::Partly | Outcome::Undecided));
                }
            }
        }

        #[test]
        fn as_many_seeds_as_are_asked_for_decide(mean in -4.0..4.0f64, half in 0.01..3.0f64, bound in 0.1..3.0f64) {
            let of = |half| Verdict::new("x", "").at_most("a", of(mean, half), bound);
            if let Some(times) = of(half).seeds_needed() {
                prop_assert!(times > 1.0, "{times}");
                // Student's t is 2.262 for 10 samples and 1.984 for many.
                prop_assert_ne!(of(0.999 * half / times.sqrt() * 1.984 / 2.262).outcome, Outcome::Undecided);
            }
        }
    }
}
