//! The tests of endpoints and connections, as one program: it is linked once.
//!
//! Apart from it is `guests`, which counts the memory of its whole process.

mod closing;
#[path = "../common/mod.rs"]
mod common;
mod hq_interop;
mod strangers;
