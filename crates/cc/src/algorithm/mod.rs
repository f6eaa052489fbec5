//! One file for each published rule.

mod cubic;
mod lia;
mod olia;
mod reno;

pub use cubic::Cubic;
pub use lia::Lia;
pub use olia::{Olia, PathMetric};
pub use reno::Reno;
