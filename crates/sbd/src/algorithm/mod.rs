//! One file for each detector.

mod always;
mod never;

pub use always::{Always, Together};
pub use never::{Apart, Never};
