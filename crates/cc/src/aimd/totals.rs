//! Sums over the whole group, for the equations of the coupled rules.

/// Sums and maxima over the paths of a group. Windows are in bytes, times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// The number of paths.
    pub paths: u32,
    /// The sum of the windows, in bytes.
    pub cwnd: f64,
    /// The sum of window over round-trip time, in bytes per second.
    pub rate: f64,
    /// The largest window over round-trip time, in bytes per second.
    pub rate_max: f64,
    /// The largest window over squared round-trip time, in bytes per second squared.
    pub rate_over_rtt_max: f64,
}

impl Totals {
    /// The totals of these paths; all zero for none.
    pub fn of<'a, M: 'a>(paths: impl Iterator<Item = Member<'a, M>>) -> Self {
        paths.fold(Self::default(), |totals, path| Self {
            paths: totals.paths + 1,
            cwnd: totals.cwnd + path.cwnd,
            rate: totals.rate + path.rate(),
            rate_max: totals.rate_max.max(path.rate()),
            rate_over_rtt_max: totals.rate_over_rtt_max.max(path.rate() * path.inverse_rtt),
        })
    }
}

/// A path that takes part in the coupling.
#[derive(Debug)]
pub struct Member<'a, M> {
    /// The congestion window, in bytes; the threshold while the path recovers.
    pub cwnd: f64,
    /// One over the smoothed round-trip time, in 1/s.
    pub inverse_rtt: f64,
    /// The size of a full datagram, in bytes.
    pub max_datagram: f64,
    /// The rule's memory of the path.
    pub memory: &'a M,
}

impl<'a, M> Member<'a, M> {
    /// The same path with a part of what is remembered of it.
    pub(super) fn with_part<N>(self, part: fn(&M) -> &N) -> Member<'a, N> {
        let Self { cwnd, inverse_rtt, max_datagram, memory } = self;
        Member { cwnd, inverse_rtt, max_datagram, memory: part(memory) }
    }

    /// Window over round-trip time, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.cwnd * self.inverse_rtt
    }

    /// The window in datagrams.
    pub fn datagrams(&self) -> f64 {
        self.cwnd / self.max_datagram
    }
}
