//! The tests of congestion control, as one program: it is linked once.

mod bbr;
mod bbr_properties;
#[path = "../bottleneck/mod.rs"]
mod bottleneck;
mod delay;
