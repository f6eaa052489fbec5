//! Files in virtual time: `fairpath send` and `fairpath recv` from the sockets up, by the clock of
//! a simulated machine and over simulated sockets.
//!
//! This runs the driver, the async connection, the watch of interfaces, admission, delivery with
//! its retries, sender and receiver, and resumption.
//!
//! The seam is below the sockets and not below the transfer: so of the product nothing is left out but the system's
//! calls for datagrams. Files are real, in a memory file system.

mod ends;
mod machine;
mod nat;
mod process;
mod scenario;
mod tree;
mod world;

pub use scenario::{LiedTo, Transfer};
