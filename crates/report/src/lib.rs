//! The output of the programs: tables for people, lines for other programs, findings about paths, traces.

pub mod recording;
pub mod sharing;
pub mod text;
