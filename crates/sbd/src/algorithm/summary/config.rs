//! The parameters, and the sets of them that were published or are in programs.

use core::time::Duration;

/// The definition of variability, and the width of the band around the mean delay that a mean must
/// leave to count as oscillating.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variability {
    /// The mean absolute deviation; the band is this many of it on each side.
    Deviation {
        /// Half the width of the band.
        band: f64,
    },
    /// How far the largest delay of an interval lies above its mean, on average.
    Range {
        /// Half the width of the band.
        band: f64,
    },
}

/// How oscillations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oscillation {
    /// All intervals are looked at anew with each interval.
    Recounted,
    /// Each interval is looked at once, with the mean and the band of its time.
    Incremental,
    /// An interval counts if its mean is more than `band` of the long-term mean. That is nearly
    /// always, so that it tells no flow from another: a slip of a program, kept as it is there.
    AboveBand,
}

/// When neighbours in a sorted list belong to different groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// They differ by at least this much.
    Absolute(f64),
    /// They differ by at least this part of the larger.
    Relative(f64),
}

/// The effect on the grouping of a loss above the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossSplit {
    /// It is not looked at.
    Never,
    /// Where a flow of a group loses that much, the group is split by loss and not by skewness.
    InsteadOfSkewness(Split),
    /// Where a flow of a group loses that much, the group is split by loss after skewness.
    AfterSkewness(Split),
}

/// How the partition follows from what was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It is the newest observation.
    Latest,
    /// Two paths are in one group if they were in this many of the last ten observations.
    OfLastTen(u32),
    /// Two paths stay in one group for this long after they were last observed in one.
    Hold(Duration),
}

/// The thresholds for a flow that passes a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Congested {
    /// Skewness below it is a bottleneck.
    pub skewness: f64,
    /// Skewness below it is one for a flow that was at one before.
    pub skewness_hysteresis: f64,
    /// A loss rate above it is a bottleneck.
    pub loss: f64,
}

/// The parameters of [`Summary`](crate::Summary).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummaryConfig {
    /// T, the duration of an interval.
    pub interval: Duration,
    /// N, over how many intervals oscillations and losses are counted; at most 64.
    pub oscillation_intervals: usize,
    /// M, over how many intervals means are formed; at most 64.
    pub mean_intervals: usize,
    /// F, how many of the newest intervals count alike in a mean, before the weights fall; `None`:
    /// all do.
    pub flat_intervals: Option<usize>,
    /// How many intervals pass before flows are grouped.
    pub warm_up_intervals: u32,
    /// Whether variability and oscillation are measured only while a flow is at a bottleneck.
    pub only_congested: bool,
    /// The definition of a bottleneck; `None`: every flow is at one.
    pub congested: Option<Congested>,
    /// The definition of variability.
    pub variability: Variability,
    /// How oscillations are counted.
    pub oscillation: Oscillation,
    /// p_f, in oscillations per interval.
    pub split_oscillation: Split,
    /// p_mad, in ms where absolute.
    pub split_variability: Split,
    /// p_s.
    pub split_skewness: Split,
    /// p_d.
    pub split_loss: LossSplit,
    /// How many packets a sample stands for, for the loss rate: one acknowledgement is sent for
    /// two packets.
    // [RFC9000 §13.2.2]
    pub packets_per_sample: f64,
    /// How the partition follows from the observations.
    pub persistence: Persistence,
}

impl SummaryConfig {
    /// The first version, of 2014, as its authors' program has it.
    // [Hayes2014]
    pub fn lcn14() -> Self {
        Self {
            interval: Duration::from_millis(350),
            oscillation_intervals: 50,
            mean_intervals: 50,
            flat_intervals: None,
            warm_up_intervals: 50,
            only_congested: false,
            congested: Some(Congested { skewness: 0.0, skewness_hysteresis: 0.3, loss: 0.1 }),
            variability: Variability::Range { band: 0.2 },
            oscillation: Oscillation::Recounted,
            split_oscillation: Split::Absolute(0.1),
            split_variability: Split::Relative(0.3),
            split_skewness: Split::Absolute(0.1),
            split_loss: LossSplit::InsteadOfSkewness(Split::Absolute(0.1)),
            packets_per_sample: 2.0,
            persistence: Persistence::Latest,
        }
    }

    /// The detector in the kernel of MPTCP-SBD. There, a flow without a bottleneck is counted in
    /// every group; a partition cannot say that, so it is alone.
    // [Ferlin2016]
    pub fn mptcp_sbd() -> Self {
        Self {
            congested: Some(Congested { skewness: -0.01, skewness_hysteresis: 0.3, loss: 0.1 }),
            variability: Variability::Deviation { band: 0.7 },
            split_variability: Split::Relative(0.1),
            split_loss: LossSplit::InsteadOfSkewness(Split::Relative(0.1)),
            persistence: Persistence::OfLastTen(5),
            ..Self::lcn14()
        }
    }

    /// The one that became RFC 8382.
    // [RFC8382]
    pub fn rfc8382() -> Self {
        Self {
            mean_intervals: 30,
            flat_intervals: Some(20),
            warm_up_intervals: 60,
            only_congested: true,
            congested: Some(Congested { skewness: 0.1, skewness_hysteresis: 0.3, loss: 0.1 }),
            variability: Variability::Deviation { band: 0.7 },
            oscillation: Oscillation::Incremental,
            split_variability: Split::Relative(0.1),
            split_skewness: Split::Absolute(0.15),
            split_loss: LossSplit::AfterSkewness(Split::Relative(0.1)),
            persistence: Persistence::Latest,
            ..Self::lcn14()
        }
    }

    /// The variant called SSC in a later program of the authors of the trend line. It is **weaker
    /// than the published ones**: it does not ask for a bottleneck, compares variabilities by 0.1
    /// ms and counts oscillations nearly always. Whether their paper compares itself with this one
    /// is unknown. The partition is held for as long as the paper says.
    // [DrainQueue; TR2018 §5.2]
    pub fn author_variant() -> Self {
        Self {
            congested: None,
            variability: Variability::Deviation { band: 0.7 },
            oscillation: Oscillation::AboveBand,
            split_variability: Split::Absolute(0.1),
            split_skewness: Split::Absolute(0.15),
            split_loss: LossSplit::Never,
            persistence: Persistence::Hold(Duration::from_secs(100)),
            ..Self::lcn14()
        }
    }
}

impl Default for SummaryConfig {
    fn default() -> Self {
        Self::rfc8382()
    }
}
