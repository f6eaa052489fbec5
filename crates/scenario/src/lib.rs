//! What a run is: links, routes over them, and the flows that use them.
//!
//! A [`Scenario`] is complete: every link, every route and every flow stands in it, nothing is left
//! to be drawn but what its elements draw while it runs. The simulator and the emulator take it as
//! it is.

mod model;

pub use model::{
    Change, ChangeKind, Distribution, Flow, LinkIndex, PathRoute, Scenario, ScenarioLink, Traffic, Transport,
};
