//! The health of the paths of a connection, and the treatment of ill ones: which to probe, to keep
//! data off, to close and to open again, and when.
//!
//! This module knows neither addresses nor protocols. A host keeps a [`PathHealth`] for each pair
//! of addresses, with its own name `P` for the path on it. It reports what it has seen ([`Signs`])
//! and the outcome of its actions, and applies [`treatment`] to one path after the other. The
//! treatment of one path may decide that of the next: of two ill paths only one may be closed. The
//! host opens paths; [`UseState::is_due`] says when.
//!
//! # Signs of a dead path
//!
//! Missing acknowledgements are not enough. A stack may send the acknowledgements of all paths on
//! one of them. If that one dies, it takes the others along, at both ends, and each waits for the
//! other. Datagrams that come *in* on a path are free of that, and receipts report what arrived at
//! the other end. So while data flows, both ends send something on every path.
//!
//! A path that is worse than another becomes a backup. That moves acknowledgements and data off it
//! at once, and its data in flight is sent again elsewhere. It is closed only while another path
//! works both ways: a path that works in one direction may be needed, if each of two paths does,
//! and could not be validated again.
//!
//! An end that only receives makes a path a backup in two more cases: if its acknowledgements would
//! queue there, or if steady data on it breaks off, so that they might be lost ([`relieve`]).

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
