//! The algorithms that are compared, and what all experiments have in common.

use fairpath_core::ByteCount;
use fairpath_engine::{AimdConfig, Coupled, CoupledConstants, EngineConfig, Epsilon, Parameters};
use fairpath_theory::FluidRule;

use crate::engine;

/// Every packet of data.
pub(super) const PACKET: ByteCount = ByteCount::new(1500);

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Algorithm {
    /// Its name in tables.
    pub(super) title: &'static str,
    /// The key of its colour.
    pub(super) colour: &'static str,
    /// How to ask for it.
    pub(super) engine: &'static str,
    /// Its fluid model.
    pub(super) rule: FluidRule,
}

pub(super) const TCP: Algorithm = Algorithm { title: "TCP", colour: "reno", engine: "reno", rule: FluidRule::Reno };
pub(super) const LIA: Algorithm = Algorithm { title: "LIA", colour: "lia", engine: "lia", rule: FluidRule::Lia };
pub(super) const OLIA: Algorithm = Algorithm { title: "OLIA", colour: "olia", engine: "olia", rule: FluidRule::Olia };
pub(super) const BALIA: Algorithm =
    Algorithm { title: "BALIA", colour: "balia", engine: "balia", rule: FluidRule::Balia };
/// The optimal algorithm of the slides [KellyVoice2005], with TCP's constants.
pub(super) const COUPLED: Algorithm =
    Algorithm { title: "fully coupled", colour: "coupled", engine: "coupled", rule: FluidRule::Coupled };
/// The same with its own constants, which are those of Scalable TCP.
pub(super) const KELLY_VOICE: Algorithm = Algorithm { title: "Kelly and Voice", colour: "wvegas", ..COUPLED };
pub(super) const UNCOUPLED: Algorithm =
    Algorithm { title: "uncoupled", colour: "uncoupled", engine: "uncoupled reno", rule: FluidRule::Reno };

/// OLIA's first term alone, which is the ε-family at ε = 0 where round-trip times are equal.
pub(super) const OLIA_WITHOUT_ALPHA: Algorithm =
    Algorithm { title: "OLIA without α", colour: "epsilon", engine: "epsilon", rule: FluidRule::Olia };

impl Algorithm {
    /// TCP's parameters: a path that is not worth using costs one packet per round trip, as on the
    /// paper's testbed, where QUIC would keep two.
    pub(super) fn parameters(&self) -> Parameters {
        let tcp = Parameters { aimd: AimdConfig::tcp(), ..Parameters::default() };
        if *self == KELLY_VOICE {
            return Parameters { coupled: Coupled { constants: CoupledConstants::Scalable }, ..tcp };
        }
        if *self != OLIA_WITHOUT_ALPHA {
            return tcp;
        }
        // OLIA's least threshold is 1 packet where paths are coupled.
        let aimd = AimdConfig { min_ssthresh_datagrams: 1, ..tcp.aimd };
        Parameters { aimd, epsilon: Epsilon { epsilon: 0.0 }, ..tcp }
    }

    /// An engine with these parameters.
    pub(super) fn with(&self, parameters: Parameters) -> EngineConfig {
        EngineConfig { parameters, ..engine(self.engine) }
    }

    /// An engine with TCP's parameters.
    pub(super) fn tcp(&self) -> EngineConfig {
        self.with(self.parameters())
    }
}
