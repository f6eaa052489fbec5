//! The tests of the engine, as one program: it is linked once.

mod dips;
mod growth;
mod health;
mod samples;
mod trains;
