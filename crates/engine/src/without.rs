//! Mechanisms that an ablation takes out.

/// Mechanisms that are disabled, to measure the effect of each. Mechanisms with a named alternative
/// are switched by that name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// Delays of a path that is sent on steadily, but not full, do not reach the detector.
    pub steady_rates: bool,
    /// An end that receives keeps its acknowledgements on a path on which steady data breaks off.
    pub doubts: bool,
}
