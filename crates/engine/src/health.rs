//! How well the paths of a connection are, and what is to be done about it: which to ask for a sign of life, to
//! keep data off, to close, to open again, and when.
//!
//! Nothing here knows addresses, or how a protocol says what it says. A host keeps a [`PathHealth`] for each pair of
//! addresses, with its own name `P` for the path on it, reports what it has seen ([`Signs`]) and what came of what
//! it did, and does for one path after the other what [`treatment`] says. What is done about one path may decide
//! about the next: of two that are ill only one may be closed. Opening is the host's: when it is time,
//! [`UseState::is_due`] says.
//!
//! # What tells that a path is dead
//!
//! That its packets are not acknowledged is not enough: where a stack sends the acknowledgements of all paths on one
//! of them, that one takes the others along when it dies, at both ends, and each waits for the other. What comes
//! *in* on a path is free of that, and receipts say what came at the other end. While data flows both ends therefore
//! say something on every path. A path that is worse than another becomes a backup, which takes acknowledgements
//! and data off it at once, and what it holds is sent again elsewhere. It is closed only while another works both
//! ways: what works in one direction may be needed, where each of two paths does, and could not be validated again.
//! An end that only receives makes those backups, too, on which its acknowledgements would wait, or might be lost because
//! data came on them steadily and breaks off ([`relieve`]).

mod condition;
mod path_health;
mod relief;
mod steadiness;
mod traffic;
mod treatment;

pub use crate::health_parameters::HealthParameters;
pub use crate::path::UseState;
pub use condition::Condition;
pub use path_health::{PathHealth, Signs};
pub use relief::relieve;
pub use traffic::Traffic;
pub use treatment::{ANSWER_MIN, Action, CloseReason, best_rank, treatment};
