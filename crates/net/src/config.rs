//! The description of a link.

use core::time::Duration;

use fairpath_core::ByteCount;

use crate::error::LinkConfigError;
use crate::impair::Impairments;
use crate::jitter::Jitter;
use crate::loss::LossConfig;
use crate::policer::Policer;
use crate::queue::QueueConfig;
use crate::rate::Rate;

/// The waiting room of a link that is not told otherwise.
const DEFAULT_QUEUE: QueueConfig = QueueConfig::sojourn(Duration::from_millis(100));

/// One link: one direction of one wire.
///
/// ```
/// use core::time::Duration;
/// use fairpath_core::Bitrate;
/// use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
///
/// let lte = LinkConfig::new(Bitrate::from_mbps(20))
///     .delay(Duration::from_millis(30))
///     .queue(QueueConfig::packets(100))
///     .loss(LossConfig::Random { probability: 0.001 });
/// ```
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// How fast it transmits.
    pub rate: Rate,
    /// How long a packet takes from the end of its transmission to the far end.
    pub delay: Duration,
    /// How the delays of packets differ from that.
    pub jitter: Jitter,
    /// The queue: how much may wait for transmission, and in what order it leaves.
    pub queue: QueueConfig,
    /// A policer, which drops packets that come too fast before they reach the queue; `None`: none.
    pub policer: Option<Policer>,
    /// Losses before the queue.
    pub loss: LossConfig,
    /// Other impairments on the wire.
    pub impairments: Impairments,
    /// Bytes that the link adds to every packet for its transmission and in its queue: 4 bytes make a
    /// Mahimahi trace treat IP packets as Mahimahi does, 38 bytes are Ethernet's frame and gap.
    pub overhead: ByteCount,
}

impl LinkConfig {
    /// A link of `rate` with no delay, no jitter, no loss, no impairments, no policer and a drop-tail queue of
    /// 100 ms.
    pub fn new(rate: impl Into<Rate>) -> Self {
        Self {
            rate: rate.into(),
            delay: Duration::ZERO,
            jitter: Jitter::default(),
            queue: DEFAULT_QUEUE,
            policer: None,
            loss: LossConfig::None,
            impairments: Impairments::default(),
            overhead: ByteCount::ZERO,
        }
    }

    /// A link that transmits at once and delivers after `delay`.
    pub fn pure_delay(delay: Duration) -> Self {
        Self::new(Rate::Unlimited).delay(delay)
    }

    /// The same with this propagation delay.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The same with this jitter; a time alone is the most that is added to the delay.
    pub fn jitter(self, jitter: impl Into<Jitter>) -> Self {
        Self { jitter: jitter.into(), ..self }
    }

    /// The same with this queue.
    pub fn queue(self, queue: impl Into<QueueConfig>) -> Self {
        Self { queue: queue.into(), ..self }
    }

    /// The same with this policer.
    pub fn policer(self, policer: Policer) -> Self {
        Self { policer: Some(policer), ..self }
    }

    /// The same with these losses.
    pub fn loss(self, loss: LossConfig) -> Self {
        Self { loss, ..self }
    }

    /// The same with these impairments.
    pub fn impairments(self, impairments: Impairments) -> Self {
        Self { impairments, ..self }
    }

    /// The same with this much framing per packet.
    pub fn overhead(self, overhead: ByteCount) -> Self {
        Self { overhead, ..self }
    }

    /// Finds what cannot be meant.
    ///
    /// # Errors
    ///
    /// A probability outside 0 to 1, a policer that lets nothing pass, or a queue that cannot be managed as
    /// described.
    pub fn check(&self) -> Result<(), LinkConfigError> {
        let probabilities = match self.loss {
            LossConfig::None => vec![],
            LossConfig::Random { probability } => vec![("loss.probability", probability)],
            LossConfig::GilbertElliott(model) => vec![
                ("loss.good_to_bad", model.good_to_bad),
                ("loss.bad_to_good", model.bad_to_good),
                ("loss.loss_in_good", model.loss_in_good),
                ("loss.loss_in_bad", model.loss_in_bad),
            ],
        };
        for (field, value) in probabilities {
            LinkConfigError::check_probability(field, value)?;
        }
        self.impairments.check()?;
        self.policer.map_or(Ok(()), |policer| policer.check())?;
        self.queue.check()
    }
}
