//! Shared-bottleneck detection: which paths share a bottleneck, as a partition of the paths.
//!
//! `detector` is the contract, `catalogue` has the detectors by name, `algorithm` has one file for
//! each. The partition itself, [`Groups`], is a word that congestion control needs too and lives in
//! `fairpath-core`.
//!
//! ```
//! use fairpath_core::{PathId, Timestamp};
//!
//! let mut detector = fairpath_sbd::by_name("concordance")?;
//! detector.on_path_opened(PathId::new(0), Timestamp::ZERO);
//! detector.on_path_opened(PathId::new(1), Timestamp::ZERO);
//! let groups = detector.poll(Timestamp::ZERO).expect("the paths are new");
//! assert!(!groups.together(PathId::new(0), PathId::new(1)), "nothing is known yet");
//! # Ok::<(), fairpath_sbd::UnknownDetector>(())
//! ```

mod algorithm;
mod catalogue;
#[cfg(test)]
mod contract;
mod detector;
mod fixed;
mod grid;
mod held;
mod pairs;
mod parameters;
#[cfg(test)]
mod testing;

pub use algorithm::*;
pub use catalogue::{NAMES, UnknownDetector, by_name, by_name_with};
pub use detector::{Detector, PairVerdict};
pub use fairpath_core::{GroupId, Groups};
pub use fixed::{Fixed, FixedRule};
pub use held::HoldTime;
pub use parameters::{Parameters, SummaryChanges, TrendlineChanges};
