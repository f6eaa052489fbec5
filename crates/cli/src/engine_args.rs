//! The options of the engine: every name comes from its catalogue.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fairpath_quic::{Coupling, EngineConfig};

use crate::error::UsageError;
use crate::path_args::PathArgs;

/// The heading of the options that only research changes.
pub(crate) const RESEARCH: &str = "For research";

/// The algorithms of what each end sends.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Congestion control of what this end sends. `hybrid_cubic` keeps queues short that nobody else fills, as those of
    /// cellular links are
    #[arg(long, help_heading = RESEARCH, value_name = "NAME", default_value_t = EngineConfig::live().congestion)]
    #[arg(value_parser = PossibleValuesParser::new(EngineConfig::CONGESTION))]
    congestion: String,
    /// When paths are coupled: coupled ones are fair together on a bottleneck that they share
    #[arg(long, help_heading = RESEARCH, value_name = "WHEN", default_value_t = EngineConfig::live().coupling, value_parser = coupling())]
    coupling: Coupling,
    /// The detector of shared bottlenecks, with `--coupling auto`
    #[arg(long, help_heading = RESEARCH, value_name = "NAME", default_value = EngineConfig::DETECTORS[0])]
    #[arg(value_parser = PossibleValuesParser::new(EngineConfig::DETECTORS))]
    detector: String,
    /// How much longer paths stay coupled after the detector has let go of them, with `--coupling auto`
    #[arg(long, help_heading = RESEARCH, value_name = "TIME", default_value = "0s", value_parser = fairpath_scenario::units::time)]
    hold: Duration,
    // An option, so that a command that it has no effect on can tell whether it was given.
    #[arg(long, help_heading = RESEARCH, value_name = "NAME", help = scheduler_help())]
    #[arg(value_parser = PossibleValuesParser::new(EngineConfig::SCHEDULERS))]
    scheduler: Option<String>,
}

fn scheduler_help() -> String {
    format!("Which path carries the next packet [default: {}]", EngineConfig::live().scheduler)
}

/// Reads one of the names of the couplings.
pub(crate) fn coupling() -> impl TypedValueParser<Value = Coupling> {
    PossibleValuesParser::new(Coupling::NAMES).try_map(|name| name.parse::<Coupling>())
}

impl EngineArgs {
    /// The configuration; clap has checked every name.
    pub(crate) fn config(&self) -> EngineConfig {
        let live = EngineConfig::live();
        EngineConfig {
            congestion: self.congestion.clone(),
            coupling: self.coupling,
            detector: self.detector.clone(),
            hold: self.hold,
            scheduler: self.scheduler.clone().unwrap_or(live.scheduler),
            ..live
        }
    }

    /// The configuration with what is said of single paths.
    pub(crate) fn config_with(&self, paths: &PathArgs) -> anyhow::Result<EngineConfig> {
        let config = self.config();
        paths.check(&config.scheduler)?;
        Ok(EngineConfig { terms: paths.terms(), ..config })
    }

    /// Refuses a scheduler where it would decide nothing: live flows have rates of their own.
    pub(crate) fn check_live_flows(&self, paths: &PathArgs) -> Result<(), UsageError> {
        match &self.scheduler {
            Some(name) => Err(UsageError(format!(
                "--scheduler {name} has no effect on live flows, which go by the rates and delays of the paths; \
                 leave it out (--path IF:cost=1 says which path comes last)"
            ))),
            None => paths.check_live_flows(),
        }
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
