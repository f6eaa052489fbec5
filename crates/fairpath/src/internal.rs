//! For the programs of Fairpath's own workspace, with the feature `internal`: what they do with the crates below this
//! one. These may change at any time, and what is here with them.

use fairpath_quic as quic;

use crate::{Connection, Path};

/// The connection below that there is now, or was last: after an interruption it is another.
pub fn connection(of: &Connection) -> quic::Connection {
    of.now()
}

/// The paths of these reports.
pub fn paths(reports: Vec<quic::PathReport>) -> Vec<Path> {
    crate::path::paths(reports)
}
