//! The detectors by name.

use crate::algorithm::{Always, Concordance, Never, Summary, SummaryConfig, Trendline, TrendlineConfig, Wavelet};
use crate::detector::Detector;
use crate::parameters::Parameters;

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
    by_name_with(name, &Parameters::default())
}

/// The detector called `name`, with these parameters.
pub fn by_name_with(name: &str, parameters: &Parameters) -> Result<Box<dyn Detector>, UnknownDetector> {
    let trendline = |config| Box::new(Trendline::new(parameters.trendline.apply(config)));
    let summary = |config| Box::new(Summary::new(parameters.summary.apply(config)));
    Ok(match name {
        "concordance" => Box::new(Concordance::new(parameters.concordance)),
        "trendline" => trendline(TrendlineConfig::default()),
        "trendline_srtt" => trendline(TrendlineConfig::smoothed_input()),
        "trendline_overlapping" => trendline(TrendlineConfig::overlapping()),
        "ssc_rfc8382" => summary(SummaryConfig::rfc8382()),
        "ssc_lcn14" => summary(SummaryConfig::lcn14()),
        "ssc_mptcp_sbd" => summary(SummaryConfig::mptcp_sbd()),
        "ssc_author_variant" => summary(SummaryConfig::author_variant()),
        "wavelet" => Box::new(Wavelet::new(parameters.wavelet)),
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
    fn a_detector_takes_the_parameters_of_its_own_name() {
        let mut parameters = Parameters::default();
        parameters.trendline.alpha = Some(0.375);
        parameters.summary.loss = Some(0.0625);
        parameters.concordance.join = 0.875;
        parameters.wavelet.correlation_min = 0.8125;
        for (name, value) in
            [("trendline_srtt", "0.375"), ("ssc_lcn14", "0.0625"), ("concordance", "0.875"), ("wavelet", "0.8125")]
        {
            let shown = |parameters| format!("{:?}", by_name_with(name, parameters).unwrap());
            assert!(shown(&parameters).contains(value) && !shown(&Parameters::default()).contains(value), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let error = by_name("trend_line").unwrap_err();
        assert_eq!(error.name, "trend_line");
        let text = error.to_string();
        assert!(text.contains("'trend_line'") && NAMES.iter().all(|name| text.contains(name)), "{text}");
    }
}
