//! One file for each scheduler.

mod min_rtt;
mod round_robin;

pub use min_rtt::MinRtt;
pub use round_robin::RoundRobin;
