//! The configuration of an engine, by published names.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use fairpath_cc::Controller;
use fairpath_core::Bitrate;
use fairpath_sbd::{Always, Detector, HoldTime, Never};
use fairpath_sched::Scheduler;

use crate::engine::Engine;
use crate::health_parameters::HealthParameters;
use crate::named_terms::NamedTerms;
use crate::without::Without;

/// A name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'; known are {}", known.join(", "))]
pub struct UnknownName {
    /// The kind of thing that was named, such as a detector.
    pub kind: &'static str,
    /// The name given.
    pub name: String,
    /// The known names.
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
    /// The parameters of the congestion control.
    pub parameters: fairpath_cc::Parameters,
    /// The packet scheduler, one of [`EngineConfig::SCHEDULERS`].
    pub scheduler: String,
    /// When paths are coupled.
    pub coupling: Coupling,
    /// The detector of shared bottlenecks with [`Coupling::Auto`], one of
    /// [`EngineConfig::DETECTORS`].
    pub detector: String,
    /// The parameters of the detector.
    pub detection: fairpath_sbd::Parameters,
    /// How much longer paths stay coupled after the detector has separated them. Some detectors
    /// have a hold time of their own.
    pub hold: Duration,
    /// Whether, with [`Coupling::Auto`], paths take turns to send a little less for a moment while
    /// the detector is in doubt. Published detectors do without.
    pub dips: bool,
    /// The terms that the user has set for paths.
    pub terms: Vec<NamedTerms>,
    /// The rate limit of all paths together.
    pub limit: Option<Bitrate>,
    /// Mechanisms that are disabled.
    pub without: Without,
    /// The parameters by which the health of paths is judged.
    pub health: HealthParameters,
}

/// The published combination: the standard coupling [RFC6356 §3], always on, and the scheduler that
/// evaluations compare with.
///
/// Scenario files start from here. Most repeat a paper, and a paper must not change with the best
/// choice for real networks, which is [`EngineConfig::live`].
impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            congestion: Self::CONGESTION[0].into(),
            parameters: fairpath_cc::Parameters::default(),
            scheduler: Self::SCHEDULERS[0].into(),
            coupling: Coupling::default(),
            detector: Self::DETECTORS[0].into(),
            detection: fairpath_sbd::Parameters::default(),
            hold: Duration::ZERO,
            dips: false,
            terms: Vec::new(),
            limit: None,
            without: Without::default(),
            health: HealthParameters::default(),
        }
    }
}

impl EngineConfig {
    /// The names of the congestion controls, that of [`EngineConfig::default`] first.
    pub const CONGESTION: &'static [&'static str] = fairpath_cc::NAMES;
    /// The names of the detectors, the default first.
    pub const DETECTORS: &'static [&'static str] = fairpath_sbd::NAMES;
    /// The names of the schedulers, that of [`EngineConfig::default`] first.
    pub const SCHEDULERS: &'static [&'static str] = fairpath_sched::NAMES;

    /// The defaults for connections over real networks, for users who choose nothing.
    ///
    /// The paths of a bottleneck together are one flow of CUBIC, since their competitors there are
    /// CUBIC. The rules of published evaluations are Reno's, which get half of their share beside
    /// CUBIC in a deep queue. Shared bottlenecks are detected, as nobody states them. Slow start
    /// also ends when the round-trip time grows, which avoids filling a deep queue and losing
    /// hundreds of packets. Losses without a queue are not taken for congestion. The scheduler
    /// compares expected times of arrival, not the last measured round-trip times.
    pub fn live() -> Self {
        let congestion = "coupled_cubic".into();
        let scheduler = "arrival".into();
        let mut config = Self { congestion, scheduler, coupling: Coupling::Auto, dips: true, ..Self::default() };
        config.parameters.aimd.slow_start = fairpath_cc::SlowStart::HyStartPlusPlus;
        config.parameters.aimd.losses = fairpath_cc::Losses::ByQueue;
        config
    }

    /// Whether the scheduler of this name prefers paths of lower cost.
    pub fn goes_by_costs(scheduler: &str) -> bool {
        fairpath_sched::goes_by_costs(scheduler)
    }

    /// Whether the congestion control is based on rates, and so depends on pacing.
    pub fn is_rate_based(&self) -> bool {
        fairpath_cc::entry(&self.congestion).is_some_and(|entry| entry.is_rate_based)
    }

    /// Builds an engine, or returns the unknown name.
    pub fn build(&self) -> Result<Engine, UnknownName> {
        self.build_of(None, None)
    }

    /// Builds an engine around a caller's congestion controller in place of the named one, or
    /// returns the unknown name. The named controller decides whether dips are used.
    pub fn build_around(&self, controller: Box<dyn Controller>) -> Result<Engine, UnknownName> {
        self.build_of(Some(controller), None)
    }

    /// Builds an engine with a caller's congestion controller, scheduler, or both, in place of the
    /// named ones, or returns the unknown name.
    pub fn build_of(
        &self,
        controller: Option<Box<dyn Controller>>,
        scheduler: Option<Box<dyn Scheduler>>,
    ) -> Result<Engine, UnknownName> {
        let controller = controller.map_or_else(|| self.controller(), Ok)?;
        let scheduler = scheduler.map_or_else(|| self.scheduler(), Ok)?;
        let engine = Engine::new(controller, self.detector()?, scheduler);
        let dips = self.dips && self.coupling == Coupling::Auto && !self.is_rate_based();
        let engine = if dips { engine.with_dips() } else { engine };
        let engine = match self.limit {
            Some(rate) => engine.with_limit(rate),
            None => engine,
        };
        Ok(engine.with_terms(self.terms.clone()).but_for(self.without).with_health(self.health))
    }

    fn controller(&self) -> Result<Box<dyn Controller>, UnknownName> {
        fairpath_cc::by_name_with(&self.congestion, &self.parameters).ok_or_else(|| UnknownName {
            kind: "congestion control",
            name: self.congestion.clone(),
            known: Self::CONGESTION.to_vec(),
        })
    }

    fn scheduler(&self) -> Result<Box<dyn Scheduler>, UnknownName> {
        fairpath_sched::by_name(&self.scheduler).ok_or_else(|| UnknownName {
            kind: "scheduler",
            name: self.scheduler.clone(),
            known: Self::SCHEDULERS.to_vec(),
        })
    }

    fn detector(&self) -> Result<Box<dyn Detector>, UnknownName> {
        let found = fairpath_sbd::by_name_with(&self.detector, &self.detection).map_err(|error| UnknownName {
            kind: "detector",
            name: error.name,
            known: Self::DETECTORS.to_vec(),
        })?;
        Ok(match self.coupling {
            Coupling::Always => Box::new(Always::default()),
            Coupling::Never => Box::new(Never::default()),
            Coupling::Auto if self.hold.is_zero() => found,
            Coupling::Auto => Box::new(HoldTime::new(found, self.hold)),
        })
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
        let config = EngineConfig { detector: "trend".into(), ..EngineConfig::default() };
        let error = config.build().unwrap_err().to_string();
        assert!(error.contains("unknown detector 'trend'") && error.contains("trendline"), "{error}");
    }
}
