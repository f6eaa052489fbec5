//! Files in virtual time: what `fairpath send` and `fairpath recv` do, from the sockets up (the driver, the async
//! connection, whoever watches interfaces and asks for answers, admission, delivery with its retries, sender and
//! receiver, resumption), by the clock of a simulated machine and over simulated sockets.
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
