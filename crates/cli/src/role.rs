//! The end of a transfer that this program is.

use fairpath_core::{Bitrate, ByteCount};
use fairpath_quic::PathReport;
use serde::Serialize;

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Send,
    Receive,
}

impl Role {
    pub(crate) fn rate(self, path: &PathReport) -> Bitrate {
        match self {
            Self::Send => path.send_rate,
            Self::Receive => path.receive_rate,
        }
    }

    pub(crate) fn bytes(self, path: &PathReport) -> ByteCount {
        match self {
            Self::Send => path.acked,
            Self::Receive => path.received,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fairpath_quic::{Binding, PathState, PathUse};

    use super::*;

    /// A path that has carried so much.
    pub(crate) fn path(interface: &str, remote: &str, bytes: u64) -> PathReport {
        PathReport {
            interface: interface.into(),
            local: None,
            remote: remote.parse().unwrap(),
            binding: Some(Binding::Device),
            state: PathState::Open,
            path_use: PathUse::Open,
            opened: 1,
            acked: ByteCount::new(bytes),
            lost: ByteCount::ZERO,
            received: ByteCount::new(bytes),
            send_rate: Bitrate::from_mbps(8),
            receive_rate: Bitrate::from_mbps(8),
            snapshot: None,
            numbers: Vec::new(),
        }
    }
}
