//! Shared-bottleneck detection: which paths share a bottleneck, as a partition of the paths.
//!
//! `detector` is the contract, `algorithm` has one file for each detector. The partition itself,
//! [`Groups`], is a word that congestion control needs too and lives in `fairpath-core`.

mod algorithm;
mod detector;
mod fixed;

pub use algorithm::{Always, Apart, Never, Together};
pub use detector::Detector;
pub use fairpath_core::{GroupId, Groups};
pub use fixed::{Fixed, FixedRule};
