//! One file for each scheduler.

mod arrival;
mod blest;
mod deadline;
mod ecf;
mod min_rtt;
mod priority;
mod redundant;
mod round_robin;
mod stms;
mod weighted;

pub use arrival::Arrival;
pub use blest::Blest;
pub use deadline::{Deadline, DeadlineParameters, Rank};
pub use ecf::Ecf;
pub use min_rtt::MinRtt;
pub use priority::Priority;
pub use redundant::Redundant;
pub use round_robin::RoundRobin;
pub use stms::Stms;
pub use weighted::Weighted;
