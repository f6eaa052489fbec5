//! The algorithms by name.

use crate::aimd::{Aimd, AimdConfig, Rule};
use crate::algorithm::{
    Balia, Bbr, Bbr3, Coupled, CoupledBbr, Cruise, Cubic, Daimd, Epsilon, Ewtcp, Lia, Olia, Reno, WVegas,
};
use crate::controller::Controller;
use crate::model::BbrConfig;

/// The names that [`by_name`] knows, the default first.
pub const NAMES: &[&str] = &[
    "lia",
    "olia",
    "balia",
    "ewtcp",
    "coupled",
    "epsilon",
    "wvegas",
    "daimd",
    "reno",
    "cubic",
    "bbr",
    "bbr3",
    "coupled_bbr",
];

/// What can be set of the algorithms; an algorithm takes from it what it has. The defaults are the
/// published values, and QUIC's where there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// What all window rules share.
    pub aimd: AimdConfig,
    /// `cubic`.
    pub cubic: Cubic,
    /// `olia`.
    pub olia: Olia,
    /// `ewtcp`.
    pub ewtcp: Ewtcp,
    /// `epsilon`.
    pub epsilon: Epsilon,
    /// `wvegas`.
    pub wvegas: WVegas,
    /// `daimd`.
    pub daimd: Daimd,
    /// `bbr`, `bbr3` and `coupled_bbr`.
    pub bbr: BbrConfig,
    /// `coupled_bbr`.
    pub cruise: Cruise,
}

/// The controller called `name` with its default parameters; `None`: no such name.
pub fn by_name(name: &str) -> Option<Box<dyn Controller>> {
    by_name_with(name, &Parameters::default())
}

/// The controller called `name` with these parameters; `None`: no such name.
///
/// There is no name for "uncoupled": it is `reno` or `cubic`, or any rule with each path a group of
/// its own.
pub fn by_name_with(name: &str, parameters: &Parameters) -> Option<Box<dyn Controller>> {
    let aimd = parameters.aimd;
    Some(match name {
        "lia" => window_rule(Lia, aimd),
        "olia" => window_rule(parameters.olia, aimd),
        "balia" => window_rule(Balia, aimd),
        "ewtcp" => window_rule(parameters.ewtcp, aimd),
        "coupled" => window_rule(Coupled, aimd),
        "epsilon" => window_rule(parameters.epsilon, aimd),
        "wvegas" => window_rule(parameters.wvegas, aimd),
        "daimd" => window_rule(parameters.daimd, aimd),
        "reno" => window_rule(Reno, aimd),
        "cubic" => window_rule(parameters.cubic, aimd),
        "bbr" => Box::new(Bbr::new(parameters.bbr)),
        "bbr3" => Box::new(Bbr3::new(parameters.bbr)),
        "coupled_bbr" => Box::new(CoupledBbr::new(parameters.cruise, parameters.bbr)),
        _ => return None,
    })
}

fn window_rule<R: Rule + 'static>(rule: R, config: AimdConfig) -> Box<dyn Controller> {
    Box::new(Aimd::new(rule, config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathMetric;

    #[test]
    fn every_name_makes_a_controller_and_no_other_does() {
        assert!(NAMES.iter().all(|name| by_name(name).is_some()));
        assert!(by_name("vegas-but-misspelt").is_none());
    }

    #[test]
    fn a_controller_takes_the_parameters_of_its_own_name() {
        let olia = Olia { metric: PathMetric::LSqOverRtt };
        let epsilon = Epsilon { epsilon: 0.25 };
        let parameters = Parameters { olia, epsilon, ..Parameters::default() };
        let shown = |name| format!("{:?}", by_name_with(name, &parameters).unwrap());
        assert!(shown("olia").contains("LSqOverRtt"));
        assert!(shown("epsilon").contains("0.25"));
    }
}
