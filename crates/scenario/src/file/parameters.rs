//! The parameters of congestion control, as a scenario file describes them.

use fairpath_core::Bytes;
use fairpath_engine::{EngineConfig, SlowStart};

use super::reader::{Fault, Value};
use crate::keys;

/// What is said of them; the rest is left to what stands further out, and then to the algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parameters {
    initial_window: Option<u32>,
    min_window: Option<u32>,
    min_ssthresh: Option<u32>,
    hystart: Option<bool>,
    epsilon: Option<f64>,
}

impl Parameters {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let table = value.table(&keys::PARAMETERS)?;
        let packets = |name| Ok(table.optional(name, Value::whole_u32)?.map(|packets| packets.value));
        let parameters = Self {
            initial_window: packets("initial_window")?,
            min_window: packets("min_window")?,
            min_ssthresh: packets("min_ssthresh")?,
            hystart: table.optional("hystart", Value::flag)?.map(|hystart| hystart.value),
            epsilon: table.optional("epsilon", Value::number)?.map(|epsilon| epsilon.value),
        };
        table.close("here")?;
        Ok(parameters)
    }

    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            initial_window: self.initial_window.or(outer.initial_window),
            min_window: self.min_window.or(outer.min_window),
            min_ssthresh: self.min_ssthresh.or(outer.min_ssthresh),
            hystart: self.hystart.or(outer.hystart),
            epsilon: self.epsilon.or(outer.epsilon),
        }
    }

    /// Puts what is said into the configuration of an engine.
    pub(crate) fn apply(self, engine: &mut EngineConfig) {
        let parameters = &mut engine.parameters;
        if let Some(packets) = self.initial_window {
            // Who says how many packets means them, not what they may be at most.
            parameters.aimd.initial_window_datagrams = packets;
            parameters.aimd.initial_window_cap = Bytes::MAX;
            parameters.bbr.initial_window_datagrams = packets;
            parameters.bbr.initial_window_cap = Bytes::MAX;
        }
        if let Some(packets) = self.min_window {
            parameters.aimd.min_window_datagrams = packets;
        }
        if let Some(packets) = self.min_ssthresh {
            parameters.aimd.min_ssthresh_datagrams = packets;
        }
        if let Some(hystart) = self.hystart {
            parameters.aimd.slow_start = if hystart { SlowStart::HyStartPlusPlus } else { SlowStart::Standard };
        }
        if let Some(epsilon) = self.epsilon {
            parameters.epsilon.epsilon = epsilon;
        }
    }
}
