//! Losses that have nothing to do with the queue: noise on the wire.

use rand_chacha::ChaCha8Rng;

use crate::stream::{Chance, Coin, Streams};

/// How a link loses packets before they reach its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// No losses.
    #[default]
    None,
    /// Each packet is lost with the same probability, whatever happened to the others.
    Random {
        /// From 0 to 1.
        probability: f64,
    },
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
}

/// The two-state burst model: a good and a bad state, each with its own loss probability, and a
/// chance per packet to change the state \[Gilbert1960\] \[Elliott1963\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability, per packet, to go from good to bad (the papers' P, often called p).
    pub good_to_bad: f64,
    /// The probability, per packet, to go from bad to good (the papers' p, often called r). A bad
    /// spell lasts `1 / bad_to_good` packets on average.
    pub bad_to_good: f64,
    /// The probability that a packet is lost in the good state; 0 in Gilbert's model.
    pub loss_in_good: f64,
    /// The probability that a packet is lost in the bad state.
    pub loss_in_bad: f64,
}

impl GilbertElliott {
    /// The share of packets lost in the long run.
    //
    // The chain is in the bad state for the share [Gilbert1960]
    //     p / (p + r)
    pub fn mean_loss(&self) -> f64 {
        let bad = self.good_to_bad / (self.good_to_bad + self.bad_to_good);
        if bad.is_nan() {
            return self.loss_in_good;
        }
        (1.0 - bad) * self.loss_in_good + bad * self.loss_in_bad
    }
}

/// A loss model at work.
#[derive(Debug)]
pub(crate) enum Loss {
    None,
    Random(Box<Coin>),
    GilbertElliott(Box<Bursts>),
}

#[derive(Debug)]
pub(crate) struct Bursts {
    bad: bool,
    good_to_bad: Chance,
    bad_to_good: Chance,
    loss_in_good: Chance,
    loss_in_bad: Chance,
    generator: ChaCha8Rng,
}

impl Loss {
    /// The model `config` of the link `name`. It begins in the good state.
    pub(crate) fn new(config: &LossConfig, name: &str, streams: &Streams) -> Self {
        match *config {
            LossConfig::None => Self::None,
            LossConfig::Random { probability } => {
                Self::Random(Box::new(Coin::new(probability, streams.generator(name, "loss"))))
            }
            LossConfig::GilbertElliott(model) => Self::GilbertElliott(Box::new(Bursts {
                bad: false,
                good_to_bad: Chance::new(model.good_to_bad),
                bad_to_good: Chance::new(model.bad_to_good),
                loss_in_good: Chance::new(model.loss_in_good),
                loss_in_bad: Chance::new(model.loss_in_bad),
                generator: streams.generator(name, "loss"),
            })),
        }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::Random(coin) => coin.falls(),
            Self::GilbertElliott(bursts) => bursts.loses(),
        }
    }
}

impl Bursts {
    fn loses(&mut self) -> bool {
        let change = if self.bad { self.bad_to_good } else { self.good_to_bad };
        self.bad ^= change.happens(&mut self.generator);
        let loss = if self.bad { self.loss_in_bad } else { self.loss_in_good };
        loss.happens(&mut self.generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u32 = 200_000;

    fn losses(config: &LossConfig) -> Vec<bool> {
        let mut loss = Loss::new(config, "link", &Streams::new(1));
        (0..PACKETS).map(|_| loss.loses()).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn random_losses_come_at_their_probability() {
        // 200,000 draws at 1 %: the standard deviation is sqrt(0.01 · 0.99 / 200,000) = 0.00022.
        let share = share(&losses(&LossConfig::Random { probability: 0.01 }));
        assert!((share - 0.01).abs() < 0.001, "{share}");
    }

    #[test]
    fn bursts_lose_the_stationary_share_in_runs_of_the_stationary_length() {
        // p = 0.01, r = 0.25, all lost in bad: 0.01 / 0.26 = 3.85 % lost, in runs of 1 / r = 4.
        let model = GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };
        assert!((model.mean_loss() - 0.038_46).abs() < 1e-4);
        let losses = losses(&LossConfig::GilbertElliott(model));
        let share = share(&losses);
        assert!((share - model.mean_loss()).abs() < 0.003, "{share}");
        let runs = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let mean_run = losses.iter().filter(|lost| **lost).count() as f64 / runs;
        assert!((mean_run - 4.0).abs() < 0.3, "{mean_run}");
    }

    #[test]
    fn both_states_may_lose() {
        // π_bad = 0.1 / 0.4 = 0.25: 0.75 · 0.02 + 0.25 · 0.5 = 0.14
        let model = GilbertElliott { good_to_bad: 0.1, bad_to_good: 0.3, loss_in_good: 0.02, loss_in_bad: 0.5 };
        assert!((model.mean_loss() - 0.14).abs() < 1e-12);
        let share = share(&losses(&LossConfig::GilbertElliott(model)));
        assert!((share - 0.14).abs() < 0.005, "{share}");
    }

    #[test]
    fn a_chain_that_never_moves_stays_good() {
        let model = GilbertElliott { good_to_bad: 0.0, bad_to_good: 0.0, loss_in_good: 0.0, loss_in_bad: 1.0 };
        assert_eq!(model.mean_loss(), 0.0);
        assert_eq!(share(&losses(&LossConfig::GilbertElliott(model))), 0.0);
    }
}
