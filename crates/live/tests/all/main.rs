//! The tests of live flows, as one program: it is linked once.

#[path = "../common/mod.rs"]
mod common;
mod paths;
mod properties;
mod terms;
