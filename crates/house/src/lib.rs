//! Checks of the house, not of the programs: that every citation names a known source, that the
//! crates depend downwards only, that every dependency may be used under our licence.
//!
//! The checks are this crate's tests; what they share is here.

pub mod citation;
pub mod comparison;
pub mod constants;
pub mod default_path;
pub mod english;
pub mod figures;
pub mod imports;
pub mod ratchet;
pub mod repository;
pub mod size;
pub mod source;
