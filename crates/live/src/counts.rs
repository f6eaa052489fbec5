//! The outcome of a stream, in numbers, so that disabled repair is always seen.

/// The counts of a receiver. A packet that fits into a datagram is one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counts {
    /// Packets that were handed out.
    pub delivered: u64,
    /// Pieces that came by themselves and in time.
    pub received: u64,
    /// Pieces that repair brought back in time, and that have not come by themselves.
    pub recovered: u64,
    /// Pieces that came after their deadline.
    pub late: u64,
    /// Pieces that had come before: copies, and needless retransmissions.
    pub duplicate: u64,
    /// Pieces that have not come by their deadline, and were not brought back.
    pub lost: u64,
    /// Packets of repair that came.
    pub repair: u64,
}

impl Counts {
    /// The share of pieces that were there in time; `None` where there was none.
    pub fn on_time(&self) -> Option<f64> {
        let there = self.received + self.recovered;
        let all = there + self.late + self.lost;
        (all > 0).then(|| there as f64 / all as f64)
    }

    /// In the order in which reports carry them.
    pub(crate) fn as_words(&self) -> [u64; 7] {
        [self.delivered, self.received, self.recovered, self.late, self.duplicate, self.lost, self.repair]
    }

    pub(crate) fn from_words(words: [u64; 7]) -> Self {
        let [delivered, received, recovered, late, duplicate, lost, repair] = words;
        Self { delivered, received, recovered, late, duplicate, lost, repair }
    }
}
