//! Losses as evidence: queues that overflow drop from all who fill them.

use super::evidence::{after_change, any_of};

/// How many steps apart losses of two paths may be to count as one.
const NEAR: u64 = 4;

/// Losses within this many steps of the last one belong to the same episode.
const EPISODE: u64 = 6;

/// How many steps of history are kept.
const KEPT: u64 = 64;

/// The memory of the rate of episodes, in steps.
const RATE_STEPS: f64 = 1200.0;

/// The share of episodes that a shared queue brings to both paths. It is unknown, so several values
/// are tried. It is next to none if drops are random or hit few flows.
const COMMON: [f64; 3] = [0.0, 0.3, 0.6];

/// The episodes of loss of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// The steps in which an episode began: the lowest bit is the step `at`.
    episodes: u64,
    at: u64,
    /// The step of the last loss.
    last: Option<u64>,
    /// The number of episodes, and the steps in which they were counted; both are forgotten slowly.
    count: f64,
    steps: f64,
}

impl Losses {
    /// Packets were lost in this step.
    pub(super) fn on_loss(&mut self, step: u64) {
        self.advance(step);
        if self.last.is_none_or(|last| step > last + EPISODE) {
            self.episodes |= 1;
            self.count += 1.0;
        }
        self.last = Some(step);
    }

    /// Time has come to this step.
    pub(super) fn advance(&mut self, step: u64) {
        let passed = step.saturating_sub(self.at);
        if passed > 0 {
            self.episodes = if passed < KEPT { self.episodes << passed } else { 0 };
            self.at = step;
            let keep = libm::exp(-(passed.min(1 << 20) as f64) / RATE_STEPS);
            self.count *= keep;
            self.steps = self.steps * keep + (1.0 - keep) * RATE_STEPS;
        }
    }

    /// Whether an episode began in the step, or at most `around` steps from it.
    fn has(&self, step: u64, around: u64) -> bool {
        let newest = self.at.saturating_sub(step + around);
        let oldest = (self.at + around).saturating_sub(step);
        newest < KEPT && (self.episodes >> newest) & mask(oldest.min(KEPT - 1) + 1 - newest) != 0
    }

    /// The probability that an episode is near a step by chance.
    fn by_chance(&self) -> f64 {
        let rate = ((self.count + 0.5) / (self.steps + 10.0)).min(0.5);
        1.0 - libm::pow(1.0 - rate, (2 * NEAR + 1) as f64)
    }
}

fn mask(bits: u64) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The evidence in the losses of two paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossEvidence {
    log_odds: [f64; COMMON.len()],
}

impl LossEvidence {
    /// Looks at a step that lies far enough back for all losses near it to be known.
    pub(super) fn look(&mut self, a: &Losses, b: &Losses, step: u64) {
        let step = step.saturating_sub(NEAR);
        for (one, other) in [(a, b), (b, a)] {
            if one.has(step, 0) {
                let (met, chance) = (other.has(step, NEAR), other.by_chance());
                for (log_odds, common) in self.log_odds.iter_mut().zip(COMMON) {
                    // An encounter is seen from both sides, and counts once.
                    *log_odds += 0.5 * log_ratio(met, chance, common);
                }
            }
        }
    }

    /// Reduces the evidence after a time in which the answer may have changed with this
    /// probability.
    pub(super) fn age(&mut self, probability: f64) {
        self.log_odds.iter_mut().for_each(|log_odds| *log_odds = after_change(*log_odds, probability));
    }

    /// The evidence of all losses.
    pub(super) fn log_odds(&self) -> f64 {
        any_of(&self.log_odds)
    }
}

/// The evidence for one queue from an episode of one path that met one of the other, or none.
//
//     met:  ln( (p + (1 - p) c) / p ),   not met:  ln(1 - c)
//
// with p the probability by chance, and c that of a common cause.
fn log_ratio(met: bool, chance: f64, common: f64) -> f64 {
    libm::log(if met { (chance + (1.0 - chance) * common) / chance } else { 1.0 - common })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(steps: &[u64]) -> Losses {
        let mut losses = Losses::default();
        steps.iter().for_each(|step| losses.on_loss(*step));
        losses
    }

    #[test]
    fn losses_close_together_are_one_episode() {
        let losses = losses(&[10, 12, 15, 40]);
        assert!(losses.has(10, 0) && !losses.has(12, 0) && !losses.has(15, 0) && losses.has(40, 0));
        assert!(losses.has(37, 3) && losses.has(43, 3) && !losses.has(36, 3) && losses.has(13, 3));
    }

    #[test]
    fn a_meeting_is_worth_more_the_rarer_losses_are() {
        // p = 0.1, c = 0.5: ln(0.55 / 0.1) = 1.7047; not met: ln 0.5.
        assert!((log_ratio(true, 0.1, 0.5) - 1.7047).abs() < 1e-3);
        assert!((log_ratio(false, 0.1, 0.5) + core::f64::consts::LN_2).abs() < 1e-9);
        assert!(log_ratio(true, 0.5, 0.5) < log_ratio(true, 0.1, 0.5));
    }

    /// The evidence after losses in these steps.
    fn said(a: &[u64], b: &[u64], until: u64) -> f64 {
        let (mut one, mut other, mut evidence) = (Losses::default(), Losses::default(), LossEvidence::default());
        for step in 0..until {
            for (losses, steps) in [(&mut one, a), (&mut other, b)] {
                losses.advance(step);
                if steps.contains(&step) {
                    losses.on_loss(step);
                }
            }
            evidence.look(&one, &other, step);
        }
        evidence.log_odds()
    }

    #[test]
    fn losses_that_always_meet_say_one_queue_and_others_say_little_against_it() {
        let a: Vec<u64> = (1..10).map(|n| n * 100).collect();
        let b: Vec<u64> = (1..10).map(|n| n * 100 + n % 3).collect();
        let c: Vec<u64> = (1..10).map(|n| n * 100 + 37).collect();
        assert!(said(&a, &b, 1000) > 3.0, "{}", said(&a, &b, 1000));
        // One of three hypotheses is that they never meet: ln(1/3) at the least.
        assert!((-1.0987..0.0).contains(&said(&a, &c, 1000)), "{}", said(&a, &c, 1000));
    }
}
