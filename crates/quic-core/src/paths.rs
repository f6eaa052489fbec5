//! Which paths to open, to watch, to keep data off, to close and to open again. The policy has no clock and
//! no sockets.
//!
//! Only the end that connected opens paths; both close them. Both tell the engine which paths can carry
//! data, and nobody closes a path while no other works.
//!
//! # What tells that a path is dead
//!
//! That its packets are not acknowledged is not enough: noq sends the acknowledgements of all paths
//! on the available path of the lowest id, so when that one dies, every path falls silent at both
//! ends, and each waits for the other. What comes *in* on a path is free of that, and receipts say what came
//! at the other end. While data flows both ends therefore say something on every path. A path
//! that is worse than another gets the status of a backup, which takes acknowledgements and data off it at
//! once, and what it holds is sent again elsewhere. It is closed only while another works both ways: what works
//! in one direction may be needed, where each of two paths does, and could not be validated again.

mod meter;
mod notice;
pub(crate) mod policy;
mod report;
mod slot;
mod traffic;

pub use notice::PathNotice;
pub use report::{PathReport, PathState};
