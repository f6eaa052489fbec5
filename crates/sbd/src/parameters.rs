//! The parameters of the detectors that have names.

use core::time::Duration;

use crate::algorithm::{ConcordanceConfig, LossSplit, Split, SummaryConfig, TrendlineConfig, WaveletConfig};

/// The parameters of the detectors; a detector takes from them those it has. The defaults are the published
/// values. Where several names stand for one detector with other values each, only changes to them can
/// be given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// `concordance`.
    pub concordance: ConcordanceConfig,
    /// `trendline`, `trendline_srtt` and `trendline_overlapping`.
    pub trendline: TrendlineChanges,
    /// `ssc_rfc8382`, `ssc_lcn14`, `ssc_mptcp_sbd` and `ssc_author_variant`.
    pub summary: SummaryChanges,
    /// `wavelet`.
    pub wavelet: WaveletConfig,
}

/// Changes to a [`TrendlineConfig`]; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrendlineChanges {
    /// The weight of a new sample in the smoothed delay.
    pub alpha: Option<f64>,
    /// How often the slopes are compared.
    pub round: Option<Duration>,
    /// The largest difference of the slopes, as part of the larger one.
    pub error_max: Option<f64>,
    /// How long a pair stays together after the last yes.
    pub hold: Option<Duration>,
}

impl TrendlineChanges {
    pub(crate) fn apply(self, config: TrendlineConfig) -> TrendlineConfig {
        TrendlineConfig {
            alpha: self.alpha.unwrap_or(config.alpha),
            round: self.round.unwrap_or(config.round),
            error_max: self.error_max.unwrap_or(config.error_max),
            hold: self.hold.unwrap_or(config.hold),
            ..config
        }
    }
}

/// Changes to a [`SummaryConfig`]; what is `None` stays. Thresholds stay absolute or relative, as they
/// are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SummaryChanges {
    /// T, the duration of an interval.
    pub interval: Option<Duration>,
    /// p_l, the loss rate that is a bottleneck.
    pub loss: Option<f64>,
    /// p_f.
    pub split_oscillation: Option<f64>,
    /// p_mad.
    pub split_variability: Option<f64>,
    /// p_s.
    pub split_skewness: Option<f64>,
    /// p_d.
    pub split_loss: Option<f64>,
}

impl SummaryChanges {
    pub(crate) fn apply(self, config: SummaryConfig) -> SummaryConfig {
        let changed = |split: Split, to: Option<f64>| match (split, to) {
            (_, None) => split,
            (Split::Absolute(_), Some(to)) => Split::Absolute(to),
            (Split::Relative(_), Some(to)) => Split::Relative(to),
        };
        let mut congested = config.congested;
        if let (Some(congested), Some(loss)) = (&mut congested, self.loss) {
            congested.loss = loss;
        }
        SummaryConfig {
            interval: self.interval.unwrap_or(config.interval),
            congested,
            split_oscillation: changed(config.split_oscillation, self.split_oscillation),
            split_variability: changed(config.split_variability, self.split_variability),
            split_skewness: changed(config.split_skewness, self.split_skewness),
            split_loss: match config.split_loss {
                LossSplit::Never => LossSplit::Never,
                LossSplit::InsteadOfSkewness(split) => LossSplit::InsteadOfSkewness(changed(split, self.split_loss)),
                LossSplit::AfterSkewness(split) => LossSplit::AfterSkewness(changed(split, self.split_loss)),
            },
            ..config
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_changes_nothing() {
        for config in [SummaryConfig::rfc8382(), SummaryConfig::lcn14(), SummaryConfig::author_variant()] {
            assert_eq!(SummaryChanges::default().apply(config), config);
        }
        let config = TrendlineConfig::overlapping();
        assert_eq!(TrendlineChanges::default().apply(config), config);
    }

    #[test]
    fn a_threshold_stays_of_its_kind() {
        let changes = SummaryChanges { split_variability: Some(0.7), split_loss: Some(0.6), ..Default::default() };
        let rfc = changes.apply(SummaryConfig::rfc8382());
        assert_eq!(rfc.split_variability, Split::Relative(0.7));
        assert_eq!(rfc.split_loss, LossSplit::AfterSkewness(Split::Relative(0.6)));
        let other = changes.apply(SummaryConfig::author_variant());
        assert_eq!((other.split_variability, other.split_loss), (Split::Absolute(0.7), LossSplit::Never));
    }
}
