//! The options of the engine: every name comes from its catalogue.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fairpath_quic::{Coupling, EngineConfig};

use crate::path_args::PathArgs;

/// What each end runs on what it sends.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Congestion control of what this end sends
    #[arg(long, value_name = "NAME", default_value_t = EngineConfig::live().congestion)]
    #[arg(value_parser = PossibleValuesParser::new(EngineConfig::CONGESTION))]
    congestion: String,
    /// When paths are coupled: coupled ones are fair together on a bottleneck that they share
    #[arg(long, value_name = "WHEN", default_value_t = EngineConfig::live().coupling, value_parser = coupling())]
    coupling: Coupling,
    /// What finds shared bottlenecks, with `--coupling auto`
    #[arg(long, value_name = "NAME", default_value = EngineConfig::DETECTORS[0])]
    #[arg(value_parser = PossibleValuesParser::new(EngineConfig::DETECTORS))]
    detector: String,
    /// How much longer paths stay coupled after the detector has let go of them, with `--coupling auto`
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = fairpath_scenario::units::time)]
    hold: Duration,
    /// Which path carries the next packet
    #[arg(long, value_name = "NAME", default_value_t = EngineConfig::live().scheduler)]
    #[arg(value_parser = PossibleValuesParser::new(EngineConfig::SCHEDULERS))]
    scheduler: String,
}

/// Reads one of the names of the couplings.
pub(crate) fn coupling() -> impl TypedValueParser<Value = Coupling> {
    PossibleValuesParser::new(Coupling::NAMES).try_map(|name| name.parse::<Coupling>())
}

impl EngineArgs {
    /// The configuration; clap has checked every name.
    pub(crate) fn config(&self) -> EngineConfig {
        EngineConfig {
            congestion: self.congestion.clone(),
            coupling: self.coupling,
            detector: self.detector.clone(),
            hold: self.hold,
            scheduler: self.scheduler.clone(),
            ..EngineConfig::live()
        }
    }

    /// The configuration with what is said of single paths.
    pub(crate) fn config_with(&self, paths: &PathArgs) -> anyhow::Result<EngineConfig> {
        paths.check(&self.scheduler)?;
        Ok(EngineConfig { terms: paths.terms(), ..self.config() })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        engine: EngineArgs,
    }

    #[test]
    fn without_options_the_engine_is_the_default_one() {
        assert_eq!(Alone::parse_from(["x"]).engine.config(), EngineConfig::live());
    }

    #[test]
    fn every_name_of_the_catalogues_can_be_given() {
        let lists = [
            ("--congestion", EngineConfig::CONGESTION),
            ("--scheduler", EngineConfig::SCHEDULERS),
            ("--coupling", Coupling::NAMES),
            ("--detector", EngineConfig::DETECTORS),
        ];
        for (option, names) in lists {
            for name in names {
                let config = Alone::parse_from(["x", option, name]).engine.config();
                assert!(config.build().is_ok(), "{option} {name}");
            }
            let error = Alone::try_parse_from(["x", option, "magic"]).unwrap_err().to_string();
            assert!(names.iter().all(|name| error.contains(name)), "{error}");
        }
    }
}
