//! Verdicts: a claim as inequalities, and whether they hold.

use serde::{Deserialize, Deserializer, Serialize};

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

/// One inequality.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What is compared, with its unit.
    pub what: String,
    /// The number; JSON has `null` for what is none.
    #[serde(deserialize_with = "number_or_nan")]
    pub value: f64,
    /// How it must be.
    pub must_be: Relation,
    /// Whether it is so.
    pub holds: bool,
}

fn number_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

impl Relation {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::Between(low, high) => (low..=high).contains(&value),
        }
    }
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All inequalities hold.
    Holds,
    /// Some do.
    Partly,
    /// None does.
    Misses,
}

impl Outcome {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Partly => "partly",
            Self::Misses => "misses",
        }
    }
}

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// A name, unique in the experiment.
    pub name: String,
    /// The claim in words.
    pub claim: String,
    /// The claim in numbers.
    pub checks: Vec<Check>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it does not hold, where it does not.
    pub reason: Option<String>,
}

impl Verdict {
    /// A claim in words, to be followed by what it says in numbers.
    pub fn new(name: &str, claim: &str) -> Self {
        let (name, claim) = (name.to_owned(), claim.to_owned());
        Self { name, claim, checks: Vec::new(), outcome: Outcome::Misses, reason: None }
    }

    /// It says that this is at least `bound`.
    pub fn at_least(self, what: &str, value: f64, bound: f64) -> Self {
        self.check(what, value, Relation::AtLeast(bound))
    }

    /// It says that this is at most `bound`.
    pub fn at_most(self, what: &str, value: f64, bound: f64) -> Self {
        self.check(what, value, Relation::AtMost(bound))
    }

    /// It says that this is between `low` and `high`.
    pub fn between(self, what: &str, value: f64, low: f64, high: f64) -> Self {
        self.check(what, value, Relation::Between(low, high))
    }

    /// It says that this is `target`, give or take `tolerance` times it.
    pub fn within(self, what: &str, value: f64, target: f64, tolerance: f64) -> Self {
        let slack = target.abs() * tolerance;
        self.between(what, value, target - slack, target + slack)
    }

    fn check(mut self, what: &str, value: f64, must_be: Relation) -> Self {
        self.checks.push(Check { what: what.to_owned(), value, must_be, holds: must_be.holds(value) });
        self.outcome = match self.checks.iter().filter(|check| check.holds).count() {
            all if all == self.checks.len() => Outcome::Holds,
            0 => Outcome::Misses,
            _ => Outcome::Partly,
        };
        self
    }

    /// Why it does not hold; kept only where it does not.
    pub fn because(mut self, reason: &str) -> Self {
        if self.outcome != Outcome::Holds {
            self.reason = Some(reason.to_owned());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_not_a_number_does_not_hold() {
        assert_eq!(Verdict::new("x", "").at_least("c", f64::NAN, 1.0).outcome, Outcome::Misses);
    }
}
