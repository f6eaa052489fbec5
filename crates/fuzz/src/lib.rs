//! Fuzz targets: everything that is parsed of peers and of files, one target a file.
//!
//! A target does more than not to panic: what is parsed and written again is parsed to the same, the
//! limits hold, memory stays within what the size of the input explains, and errors name a place that
//! there is, in words that fit on a screen.
//!
//! `tests/corpus.rs` runs the corpora of all targets as tests; `make fuzz` looks for more.

pub mod corpus;
mod memory;
mod said;
pub mod target;

pub use target::{Seed, TARGETS, Target};
