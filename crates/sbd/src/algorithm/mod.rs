//! One file for each detector.

mod always;
mod never;

pub use always::Always;
pub use never::Never;
