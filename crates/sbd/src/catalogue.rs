//! The detectors by name.

use crate::algorithm::{Always, Concordance, Never, Summary, SummaryConfig, Trendline, TrendlineConfig, Wavelet};
use crate::detector::Detector;

/// The names that [`by_name`] knows, the default first.
///
/// The oracle has none: it must be told the truth.
pub const NAMES: &[&str] = &[
    "concordance",
    "trendline",
    "trendline_srtt",
    "trendline_overlapping",
    "ssc_rfc8382",
    "ssc_lcn14",
    "ssc_mptcp_sbd",
    "ssc_author_variant",
    "wavelet",
    "always",
    "never",
];

/// A name that is not in [`NAMES`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown detector '{name}'; known are {}", NAMES.join(", "))]
pub struct UnknownDetector {
    /// The name given.
    pub name: String,
}

/// The detector called `name`, with its default parameters.
pub fn by_name(name: &str) -> Result<Box<dyn Detector>, UnknownDetector> {
    Ok(match name {
        "concordance" => Box::<Concordance>::default(),
        "trendline" => Box::<Trendline>::default(),
        "trendline_srtt" => Box::new(Trendline::new(TrendlineConfig::smoothed_input())),
        "trendline_overlapping" => Box::new(Trendline::new(TrendlineConfig::overlapping())),
        "ssc_rfc8382" => Box::new(Summary::new(SummaryConfig::rfc8382())),
        "ssc_lcn14" => Box::new(Summary::new(SummaryConfig::lcn14())),
        "ssc_mptcp_sbd" => Box::new(Summary::new(SummaryConfig::mptcp_sbd())),
        "ssc_author_variant" => Box::new(Summary::new(SummaryConfig::author_variant())),
        "wavelet" => Box::<Wavelet>::default(),
        "always" => Box::<Always>::default(),
        "never" => Box::<Never>::default(),
        _ => return Err(UnknownDetector { name: name.into() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_detector() {
        assert!(NAMES.iter().all(|name| by_name(name).is_ok()));
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let error = by_name("trend_line").unwrap_err();
        assert_eq!(error.name, "trend_line");
        let text = error.to_string();
        assert!(text.contains("'trend_line'") && NAMES.iter().all(|name| text.contains(name)), "{text}");
    }
}
