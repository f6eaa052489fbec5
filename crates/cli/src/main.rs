//! Fairpath.
fn main() {}
