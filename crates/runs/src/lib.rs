//! Runs of described networks, as the program and the Python package show them.
//!
//! A [`Described`] is read. One run of it writes time series, a picture and a summary ([`Files`]).
//! Several ([`Plan`]) come to [`Results`]: means with intervals over seeds, at each combination of the
//! values of its parameters. The same file and seeds give the same bytes.

mod described;
mod emulated;
mod files;
mod kept;
mod many;
mod means;
mod measured;
mod picture;
mod records;
mod run;
mod summary;
mod tables;

pub use fairpath_scenario::ParameterValue;
pub use fairpath_sim::Outcome;

pub use described::{Described, expand};
pub use emulated::{Emulated, choose_flow, too_large};
pub use files::Files;
pub use kept::Kept;
pub use many::{Part, Plan, Stopped};
pub use means::figure;
pub use picture::Picture;
pub use run::Run;
pub use summary::{json, text};
pub use tables::{Results, Row, values_json};

/// A description that cannot be meant, or is more than can be run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);
