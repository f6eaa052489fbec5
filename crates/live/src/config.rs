//! The configuration of both ends of a stream.

use core::time::Duration;

/// The shortest deadline: the time to fill the smallest block and to learn its fate.
pub const DEADLINE_MIN: Duration = Duration::from_millis(10);

/// The longest deadline. Anything slower is no live stream; it also bounds the memory of both ends.
pub const DEADLINE_MAX: Duration = Duration::from_secs(10);

/// How many flows there may be.
pub const FLOWS_MAX: usize = 16;

/// The largest packet of an application: the largest payload of UDP over IPv4, in bytes.
pub const PACKET_MAX: usize = 65_507;

/// A flow of UDP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u8);

/// The packets that leave twice, on two paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// None.
    None,
    /// Those that the application marks.
    #[default]
    Marked,
    /// All.
    All,
}

/// When the receiver hands out packets that came in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Playout {
    /// As soon as all before it was, at its deadline at the latest. For what has a buffer of its own, as players of SRT
    /// and RTP do: a delay that is always the deadline would be added to theirs, and to every round trip of SRT.
    #[default]
    InOrder,
    /// At its deadline: the gaps between packets are those with which they were sent. For decoders of bare MPEG-TS,
    /// whose clock follows the packets.
    Steady,
}

/// The configuration of one end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many flows there are, at most [`FLOWS_MAX`].
    pub flows: u8,
    /// How long what this end sends may take, within [`DEADLINE_MIN`] and [`DEADLINE_MAX`].
    pub deadline: Duration,
    /// The packets that leave twice.
    pub copies: Copies,
    /// When packets are handed out.
    pub playout: Playout,
    /// Whether blocks have repair; without it losses can only be sent again.
    pub repair: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            flows: 1,
            deadline: Duration::from_millis(300),
            copies: Copies::default(),
            playout: Playout::default(),
            repair: true,
        }
    }
}

impl Config {
    /// The same with a deadline and a number of flows that can be.
    pub(crate) fn bounded(self) -> Self {
        let flows = self.flows.clamp(1, FLOWS_MAX as u8);
        Self { flows, deadline: self.deadline.clamp(DEADLINE_MIN, DEADLINE_MAX), ..self }
    }
}
