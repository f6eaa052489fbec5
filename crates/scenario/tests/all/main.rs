//! The tests of scenario files, as one program: it is linked once.

mod errors;
mod examples;
mod fuzz;
mod names;
mod parameters;
mod preset;
mod queues;
mod schema;
mod sweep;
