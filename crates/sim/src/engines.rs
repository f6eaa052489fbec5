//! Factories of the flows' engines: by the names in the scenario, or from algorithms of one's own.

use core::fmt;
use std::sync::Arc;

use fairpath_engine::{Engine, UnknownName};
use fairpath_scenario::Flow;

type Build = dyn Fn(&Flow) -> Result<Engine, UnknownName> + Send + Sync;

/// Builds an engine for each connection of a flow.
#[derive(Clone)]
pub(crate) struct Engines(Arc<Build>);

impl Engines {
    pub(crate) fn new(build: impl Fn(&Flow) -> Result<Engine, UnknownName> + Send + Sync + 'static) -> Self {
        Self(Arc::new(build))
    }

    pub(crate) fn build(&self, flow: &Flow) -> Result<Engine, UnknownName> {
        (self.0)(flow)
    }
}

impl Default for Engines {
    fn default() -> Self {
        Self::new(|flow| flow.engine.build())
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engines")
    }
}
