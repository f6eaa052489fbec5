//! Fuzz targets: everything that is parsed of peers and of files, one target a file.
//!
//! A target does more than not to panic. Values that are parsed, written and parsed again stay the
//! same. The limits hold, and memory stays within what the size of the input explains. Errors name
//! a place that exists, in words that fit on a screen.
//!
//! `tests/corpus.rs` runs the corpora of all targets as tests; `make fuzz` looks for more.

pub mod corpus;
mod memory;
mod said;
pub mod target;

pub use target::{Seed, TARGETS, Target};
