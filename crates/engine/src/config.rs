//! What a person can choose, by the published names.

use core::fmt;
use core::str::FromStr;

use fairpath_sbd::{Always, Concordance, Detector, Never};

use crate::engine::Engine;

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'; known are {}", known.join(", "))]
pub struct UnknownName {
    /// What was to be named.
    pub kind: &'static str,
    /// The name given.
    pub name: String,
    /// The names there are.
    pub known: Vec<&'static str>,
}

/// When paths are coupled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coupling {
    /// All paths, always.
    #[default]
    Always,
    /// No path, ever: each runs as a connection of its own would.
    Never,
    /// The paths that are found to share a bottleneck.
    Auto,
}

impl Coupling {
    /// The names, the default first.
    pub const NAMES: &'static [&'static str] = &["always", "never", "auto"];

    fn detector(self) -> Box<dyn Detector> {
        match self {
            Self::Always => Box::new(Always::default()),
            Self::Never => Box::new(Never::default()),
            Self::Auto => Box::new(Concordance::default()),
        }
    }
}

impl FromStr for Coupling {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            "auto" => Ok(Self::Auto),
            _ => Err(UnknownName { kind: "coupling", name: name.into(), known: Self::NAMES.to_vec() }),
        }
    }
}

impl fmt::Display for Coupling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "always",
            Self::Never => "never",
            Self::Auto => "auto",
        })
    }
}

/// How to build an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// The congestion control, one of [`EngineConfig::CONGESTION`].
    pub congestion: String,
    /// What can be set of it.
    pub parameters: fairpath_cc::Parameters,
    /// The packet scheduler, one of [`EngineConfig::SCHEDULERS`].
    pub scheduler: String,
    /// When paths are coupled.
    pub coupling: Coupling,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            congestion: Self::CONGESTION[0].into(),
            parameters: fairpath_cc::Parameters::default(),
            scheduler: Self::SCHEDULERS[0].into(),
            coupling: Coupling::default(),
        }
    }
}

impl EngineConfig {
    /// The names of the congestion controls, the default first.
    pub const CONGESTION: &'static [&'static str] = fairpath_cc::NAMES;
    /// The names of the schedulers, the default first.
    pub const SCHEDULERS: &'static [&'static str] = fairpath_sched::NAMES;

    /// The defaults for connections over real networks: there slow start also ends where the
    /// round-trip time grows, which spares a deep queue and hundreds of losses. The plain default is
    /// that of published evaluations.
    pub fn live() -> Self {
        let mut config = Self::default();
        config.parameters.aimd.slow_start = fairpath_cc::SlowStart::HyStartPlusPlus;
        config
    }

    /// Whether the congestion control is based on rates, so that without pacing it is not itself.
    pub fn is_rate_based(&self) -> bool {
        matches!(self.congestion.as_str(), "bbr" | "bbr3" | "coupled_bbr")
    }

    /// An engine, or the name that is not known.
    pub fn build(&self) -> Result<Engine, UnknownName> {
        let unknown = |kind, name: &str, known: &'static [&'static str]| UnknownName {
            kind,
            name: name.into(),
            known: known.to_vec(),
        };
        let controller = fairpath_cc::by_name_with(&self.congestion, &self.parameters)
            .ok_or_else(|| unknown("congestion control", &self.congestion, Self::CONGESTION))?;
        let scheduler = fairpath_sched::by_name(&self.scheduler)
            .ok_or_else(|| unknown("scheduler", &self.scheduler, Self::SCHEDULERS))?;
        Ok(Engine::new(controller, self.coupling.detector(), scheduler))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_catalogues_builds() {
        for congestion in EngineConfig::CONGESTION {
            for scheduler in EngineConfig::SCHEDULERS {
                for coupling in Coupling::NAMES {
                    let config = EngineConfig {
                        congestion: (*congestion).into(),
                        scheduler: (*scheduler).into(),
                        coupling: coupling.parse().unwrap(),
                        ..EngineConfig::default()
                    };
                    assert!(config.build().is_ok(), "{config:?}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let config = EngineConfig { congestion: "vegas9".into(), ..EngineConfig::default() };
        let error = config.build().unwrap_err().to_string();
        assert!(error.contains("'vegas9'") && error.contains("olia"), "{error}");
    }
}
