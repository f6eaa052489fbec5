//! The totals of a transfer's paths over all its connections.

use fairpath_core::Bitrate;
use fairpath_quic::{PathReport, PathState};

/// The paths of the connections that are gone.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<PathReport>);

impl History {
    /// A connection is gone; these were its paths.
    pub(crate) fn keep(&mut self, gone: Vec<PathReport>) {
        let closed = gone.into_iter().map(|path| PathReport {
            state: PathState::Closed,
            send_rate: Bitrate::ZERO,
            receive_rate: Bitrate::ZERO,
            snapshot: None,
            ..path
        });
        self.0 = self.with(closed.collect());
    }

    /// The paths of the present connection, with what those before it carried between the same
    /// interfaces; then the pairs that only those before it had.
    pub(crate) fn with(&self, present: Vec<PathReport>) -> Vec<PathReport> {
        let mut all = present;
        for gone in &self.0 {
            match all.iter_mut().find(|path| is_same_pair(path, gone)) {
                Some(path) => {
                    path.acked += gone.acked;
                    path.lost += gone.lost;
                    path.received += gone.received;
                    path.opened += gone.opened;
                }
                None => all.push(gone.clone()),
            }
        }
        all
    }
}

/// Ports change with every connection.
fn is_same_pair(one: &PathReport, other: &PathReport) -> bool {
    one.interface == other.interface && one.local == other.local && one.remote.ip() == other.remote.ip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::tests::path;

    #[test]
    fn what_a_pair_carried_over_several_connections_is_one_sum() {
        let mut history = History::default();
        history.keep(vec![path("eth0", "192.0.2.1:9", 100), path("wwan0", "192.0.2.1:9", 10)]);
        history.keep(vec![path("eth0", "192.0.2.1:8", 200)]);
        let all = history.with(vec![path("eth0", "192.0.2.1:7", 1_000)]);
        let told: Vec<_> = all.iter().map(|path| (path.interface.as_str(), path.acked.get(), path.opened)).collect();
        assert_eq!(told, [("eth0", 1_300, 3), ("wwan0", 10, 1)]);
        assert_eq!((all[0].state, all[1].state), (PathState::Open, PathState::Closed));
    }
}
