//! The algorithms by name.

use crate::aimd::{Aimd, AimdConfig, Rule, UntilCoupled};
use crate::algorithm::{
    Balia, Bbr, Bbr3, Coupled, CoupledBbr, CoupledBbr3, CoupledCubic, Cruise, Cubic, Daimd, Epsilon, Ewtcp,
    HybridCubic, Lia, Olia, Reno, WVegas,
};
use crate::controller::Controller;
use crate::model::BbrConfig;

/// An algorithm of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Whether it keeps a model of the path and sends at the rate that follows from it: without pacing it is
    /// not itself. The others are rules for a window, which may be paced or not [RFC9002 §7.7].
    pub is_rate_based: bool,
    /// Whether it is a window rule only where others fill the queue, and else keeps it short by its delay.
    pub is_hybrid: bool,
    build: fn(&Parameters) -> Box<dyn Controller>,
}

impl Entry {
    const fn window(name: &'static str, build: fn(&Parameters) -> Box<dyn Controller>) -> Self {
        Self { name, is_rate_based: false, is_hybrid: false, build }
    }

    const fn rate(name: &'static str, build: fn(&Parameters) -> Box<dyn Controller>) -> Self {
        Self { name, is_rate_based: true, is_hybrid: false, build }
    }

    const fn hybrid(name: &'static str, build: fn(&Parameters) -> Box<dyn Controller>) -> Self {
        Self { name, is_rate_based: false, is_hybrid: true, build }
    }

    /// A controller with these parameters.
    pub fn build(&self, parameters: &Parameters) -> Box<dyn Controller> {
        (self.build)(parameters)
    }
}

/// The algorithms, the standard one [RFC6356 §3] first: coupled paths get it unless another is
/// named.
///
/// There is no name for "uncoupled": it is `reno` or `cubic`, or any rule with each path a group of
/// its own.
pub const CATALOGUE: &[Entry] = &[
    Entry::window("lia", |with| coupled_rule(Lia, with)),
    Entry::window("olia", |with| coupled_rule(with.olia, with)),
    Entry::window("balia", |with| coupled_rule(Balia, with)),
    Entry::window("ewtcp", |with| coupled_rule(with.ewtcp, with)),
    Entry::window("coupled", |with| coupled_rule(with.coupled, with)),
    Entry::window("epsilon", |with| coupled_rule(with.epsilon, with)),
    Entry::window("wvegas", |with| coupled_rule(with.wvegas, with)),
    Entry::window("daimd", |with| coupled_rule(with.daimd, with)),
    Entry::window("reno", |with| window_rule(Reno, with)),
    Entry::window("cubic", |with| window_rule(with.cubic, with)),
    Entry::window("coupled_cubic", coupled_cubic),
    Entry::hybrid("hybrid_cubic", |with| Box::new(HybridCubic::new(with.cubic, with.aimd))),
    Entry::rate("bbr", |with| Box::new(Bbr::new(with.bbr))),
    Entry::rate("bbr3", |with| Box::new(Bbr3::new(with.bbr))),
    Entry::rate("coupled_bbr", |with| Box::new(CoupledBbr::new(with.cruise, with.bbr))),
    Entry::rate("coupled_bbr3", |with| Box::new(CoupledBbr3::new(with.bbr))),
];

/// The names of the [`CATALOGUE`], in its order.
pub const NAMES: &[&str] = &names();

const fn names() -> [&'static str; CATALOGUE.len()] {
    let mut names = [""; CATALOGUE.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = CATALOGUE[at].name;
        at += 1;
    }
    names
}

/// The rule of a path that is coupled with no other, where its connection has a coupled rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alone {
    /// The rule itself on a single path, as published: Reno, but for `wvegas` and `daimd`, and for
    /// `coupled_cubic`, which is CUBIC.
    #[default]
    Own,
    /// Reno.
    Reno,
    /// CUBIC, with [`Parameters::cubic`].
    Cubic,
}

/// The parameters of the algorithms; an algorithm takes from them those it has. The defaults are the
/// published values, and QUIC's where there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The parameters that all window rules share.
    pub aimd: AimdConfig,
    /// The rule of a path that is alone, for the coupled window rules.
    pub alone: Alone,
    /// `cubic`, `coupled_cubic` and `hybrid_cubic`.
    pub cubic: Cubic,
    /// `olia`.
    pub olia: Olia,
    /// `ewtcp`.
    pub ewtcp: Ewtcp,
    /// `coupled`.
    pub coupled: Coupled,
    /// `epsilon`.
    pub epsilon: Epsilon,
    /// `wvegas`.
    pub wvegas: WVegas,
    /// `daimd`.
    pub daimd: Daimd,
    /// `bbr`, `bbr3`, `coupled_bbr` and `coupled_bbr3`.
    pub bbr: BbrConfig,
    /// `coupled_bbr`.
    pub cruise: Cruise,
}

/// The algorithm called `name`; `None`: no such name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

/// The controller called `name` with its default parameters; `None`: no such name.
pub fn by_name(name: &str) -> Option<Box<dyn Controller>> {
    by_name_with(name, &Parameters::default())
}

/// The controller called `name` with these parameters; `None`: no such name.
pub fn by_name_with(name: &str, parameters: &Parameters) -> Option<Box<dyn Controller>> {
    entry(name).map(|entry| entry.build(parameters))
}

fn window_rule<R: Rule + 'static>(rule: R, with: &Parameters) -> Box<dyn Controller> {
    Box::new(Aimd::new(rule, with.aimd))
}

fn coupled_rule<R: Rule + 'static>(coupled: R, with: &Parameters) -> Box<dyn Controller> {
    match with.alone {
        Alone::Own => window_rule(coupled, with),
        Alone::Reno => window_rule(UntilCoupled { alone: Reno, coupled }, with),
        Alone::Cubic => window_rule(UntilCoupled { alone: with.cubic, coupled }, with),
    }
}

/// Where nothing else is asked for, a path that is alone is CUBIC itself, of which the coupled rule is an identity
/// only up to rounding.
fn coupled_cubic(with: &Parameters) -> Box<dyn Controller> {
    let alone = if with.alone == Alone::Own { Alone::Cubic } else { with.alone };
    coupled_rule(CoupledCubic { fast_convergence: with.cubic.fast_convergence }, &Parameters { alone, ..*with })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathMetric;

    #[test]
    fn every_name_is_there_once_and_makes_a_controller_and_no_other_does() {
        assert!(NAMES.iter().all(|name| by_name(name).is_some()));
        assert!((1..NAMES.len()).all(|at| !NAMES[..at].contains(&NAMES[at])));
        assert!(by_name("vegas-but-misspelt").is_none());
    }

    #[test]
    fn a_controller_takes_the_parameters_of_its_own_name() {
        let olia = Olia { metric: PathMetric::LSqOverRtt, ..Olia::default() };
        let epsilon = Epsilon { epsilon: 0.25 };
        let parameters = Parameters { olia, epsilon, ..Parameters::default() };
        let shown = |name| format!("{:?}", by_name_with(name, &parameters).unwrap());
        assert!(shown("olia").contains("LSqOverRtt"));
        assert!(shown("epsilon").contains("0.25"));
    }

    /// The machine of the window rules has no rate of its own, only that of a window in a round trip.
    #[test]
    fn what_runs_on_the_machine_of_window_rules_is_not_based_on_rates() {
        for entry in CATALOGUE {
            let is_window_rule = format!("{:?}", entry.build(&Parameters::default())).starts_with("Aimd");
            assert_eq!(entry.is_rate_based || entry.is_hybrid, !is_window_rule, "{}", entry.name);
        }
    }
}
