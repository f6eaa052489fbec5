//! Faults that a host puts into a link's entrance while it runs.

use fairpath_core::{ByteCount, Timestamp};
use rand_chacha::ChaCha8Rng;

use crate::policer::{Bucket, Policer};
use crate::stream::{Chance, Stream};

/// A filter: packets that a link drops at its entrance, before everything else. For faults: a host sets it and takes
/// it away in mid-run ([`Network::set_filters`](crate::Network::set_filters)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Filter {
    /// Nothing.
    #[default]
    Pass,
    /// Everything that is offered. What is on the link already goes on, other than where a link is
    /// switched off.
    DropAll,
    /// Every packet of more than this size: a black hole for large packets, which says nothing of its
    /// limit.
    DropLarger(ByteCount),
    /// Every packet whose number, from 1 when the filter is set, is a multiple of this; with 0 none.
    DropEvery(u64),
    /// This share of packets, at random: from 0 to 1, what is outside counts as the nearer of the two.
    DropShare(f64),
    /// The next packets, this many.
    DropNext(u64),
}

/// The entrance of a link: whether it is on, its filters, and its policer.
#[derive(Debug)]
pub(crate) struct Gate {
    up: bool,
    /// None of them is [`Filter::Pass`].
    filters: Vec<Filter>,
    /// How many packets have come since the filters were set.
    seen: u64,
    policer: Option<Box<Bucket>>,
    stream: Stream,
    /// Made when it is first needed. It goes on from filter to filter, so that two of the same share
    /// drop different packets.
    generator: Option<Box<ChaCha8Rng>>,
}

impl Gate {
    /// One without filters, which draws from `stream`.
    pub(crate) fn new(policer: Option<Policer>, stream: Stream) -> Self {
        let policer = policer.map(|policer| Box::new(Bucket::new(policer)));
        Self { up: true, filters: Vec::new(), seen: 0, policer, stream, generator: None }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    pub(crate) fn set_filters(&mut self, filters: &[Filter]) {
        self.filters.clear();
        self.filters.extend(filters.iter().filter(|filter| **filter != Filter::Pass));
        self.seen = 0;
    }

    /// Whether it lets everything in.
    pub(crate) fn is_open(&self) -> bool {
        self.up && self.filters.is_empty() && self.policer.is_none()
    }

    /// Whether the policer drops a packet of `size` that comes now.
    pub(crate) fn polices(&mut self, now: Timestamp, size: ByteCount) -> bool {
        self.policer.as_mut().is_some_and(|bucket| !bucket.admits(now, size))
    }

    /// Whether one of the filters drops the next packet, which is of `size`.
    pub(crate) fn drops(&mut self, size: ByteCount) -> bool {
        self.seen += 1;
        let Self { filters, seen, stream, generator, .. } = self;
        filters.iter().any(|filter| match *filter {
            Filter::Pass => false,
            Filter::DropAll => true,
            Filter::DropLarger(largest) => size > largest,
            Filter::DropEvery(nth) => nth > 0 && seen.is_multiple_of(nth),
            Filter::DropNext(count) => *seen <= count,
            Filter::DropShare(share) => {
                let generator = generator.get_or_insert_with(|| Box::new(stream.generator()));
                Chance::new(share).happens(generator)
            }
        })
    }
}
