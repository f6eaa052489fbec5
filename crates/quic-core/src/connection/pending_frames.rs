//! Frames of the stack's own that may be pending, beside data. The stack sends them only when asked for
//! a packet, and asking in vain costs half as much as a packet. So it is asked only after something
//! that may call for a frame.

use noq_proto::FrameStats;

/// An upper bound on the frames that are pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PendingFrames {
    /// It was asked, and nothing has come since but acknowledgements.
    Nothing,
    /// DATAGRAMs have come since, which are answered by acknowledgements.
    Acknowledgement,
    /// It has to be asked.
    #[default]
    Anything,
}

impl PendingFrames {
    /// The bound after the frames received between two calls. Acknowledgements call for no answer.
    pub(super) fn after(before: FrameStats, mut now: FrameStats) -> Self {
        let has_datagrams = now.datagram != before.datagram;
        (now.acks, now.path_acks, now.datagram) = (before.acks, before.path_acks, before.datagram);
        match (now == before, has_datagrams) {
            (false, _) => Self::Anything,
            (true, true) => Self::Acknowledgement,
            (true, false) => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_owed_for_datagrams_and_nothing_for_acknowledgements() {
        let mut before = FrameStats::default();
        (before.acks, before.path_acks, before.datagram, before.ping) = (3, 4, 5, 6);
        let after = |change: fn(&mut FrameStats)| {
            let mut now = before;
            change(&mut now);
            PendingFrames::after(before, now)
        };
        assert_eq!(after(|now| now.path_acks += 2), PendingFrames::Nothing);
        assert_eq!(after(|now| (now.acks, now.datagram) = (4, 9)), PendingFrames::Acknowledgement);
        assert_eq!(after(|now| (now.datagram, now.ping) = (9, 7)), PendingFrames::Anything);
        assert_eq!(after(|now| now.path_challenge = 1), PendingFrames::Anything);
    }
}
