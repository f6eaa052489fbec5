//! The management of paths: opening, watching, keeping data off, closing and opening again. The policy
//! has no clock and no sockets.
//!
//! Only the end that connected opens paths; both close them. Both tell the engine which paths can carry
//! data, and nobody closes a path while no other works. How well a path is, and what follows from that, the engine's
//! `health` says; what is known of addresses, of noq's paths and of the peer's words is here.
//!
//! noq sends the acknowledgements of all paths on the available path of the lowest id: so both ends say something on
//! every path, and what came on it ([`receipts`](crate::receipts)).

mod meter;
mod name;
mod notice;
pub(crate) mod policy;
mod report;
mod slot;

pub use notice::PathNotice;
pub use report::{PathReport, PathState};
