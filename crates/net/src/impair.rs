//! Impairments of packets on the wire besides losses: some come late and out of order, some come
//! twice, some come with other contents than they left with.
//!
//! All of it happens beyond the queue, when a transmission begins. Queues and rates then apply to
//! the packets of the hosts alone: a copy uses no capacity, and a packet that is held back holds up
//! no other. To load a queue with copies, put the impairment on a link before it.

use core::time::Duration;

use crate::error::LinkConfigError;
use crate::jitter::{Delays, Jitter};
use crate::stream::{Coin, Owner};

/// Impairments of a link. Each packet, and each copy, draws for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Packets that are held back, so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// The share of packets that arrive twice, from 0 to 1. The copy goes right before its original.
    pub duplicate: f64,
    /// The share of packets that arrive with other contents, from 0 to 1.
    pub corrupt: f64,
}

/// Some packets are held back. What arrives after a later one is what counts as reordered
/// [RFC4737 §3.3], so that the share that is held back is the share that is reordered, wherever
/// another packet follows within `by`.
///
/// This is the other way round from netem, where the share jumps ahead of what is delayed
/// \[TcNetem\]: there every packet that is overtaken counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The share of packets that are held back, from 0 to 1.
    pub share: f64,
    /// For how long, beyond their delay.
    pub by: Duration,
}

impl Impairments {
    /// Finds what cannot be meant.
    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        LinkConfigError::check_probability("reorder.share", self.reorder.map_or(0.0, |reorder| reorder.share))?;
        LinkConfigError::check_probability("duplicate", self.duplicate)?;
        LinkConfigError::check_probability("corrupt", self.corrupt)
    }
}

/// Everything that makes the way of one packet over the wire different from that of another.
#[derive(Debug)]
pub(crate) struct Wire {
    delays: Option<Delays>,
    overtake: bool,
    hold_back: Option<Coin>,
    hold_back_ns: u64,
    duplicate: Option<Coin>,
    corrupt: Option<Coin>,
}

impl Wire {
    /// The wire of the link `owner`; `None` where it treats all packets alike.
    pub(crate) fn new(jitter: &Jitter, impairments: &Impairments, owner: &Owner) -> Option<Box<Self>> {
        let delays = Delays::new(jitter, owner);
        let mut wire = Self { overtake: jitter.overtake, delays, ..Self::plain() };
        wire.set_impairments(impairments, owner);
        let is_plain =
            wire.delays.is_none() && wire.hold_back.is_none() && wire.duplicate.is_none() && wire.corrupt.is_none();
        (!is_plain).then(|| Box::new(wire))
    }

    /// One that treats all packets alike.
    pub(crate) fn plain() -> Self {
        Self { delays: None, overtake: false, hold_back: None, hold_back_ns: 0, duplicate: None, corrupt: None }
    }

    /// Other impairments for the link `owner`. What was drawn before goes on, so that the same ones a second time
    /// befall other packets.
    pub(crate) fn set_impairments(&mut self, impairments: &Impairments, owner: &Owner) {
        let Impairments { reorder, duplicate, corrupt } = impairments;
        let set = |coin: &mut Option<Coin>, share: f64, kind| match coin {
            Some(coin) => coin.set(share),
            None if share > 0.0 => *coin = Some(Coin::new(share, owner.generator(kind))),
            None => {}
        };
        set(&mut self.hold_back, reorder.map_or(0.0, |reorder| reorder.share), "reorder");
        set(&mut self.duplicate, *duplicate, "duplicate");
        set(&mut self.corrupt, *corrupt, "corrupt");
        if let Some(reorder) = reorder {
            self.hold_back_ns = u64::try_from(reorder.by.as_nanos()).unwrap_or(u64::MAX);
        }
    }

    /// Whether a packet may arrive before one that was transmitted earlier.
    pub(crate) fn reorders(&self) -> bool {
        self.hold_back.is_some() || self.overtakes()
    }

    /// Whether the delay of the next packet is free of that of the one before it.
    pub(crate) fn overtakes(&self) -> bool {
        self.overtake && self.delays.is_some()
    }

    /// Whether a packet may take less than the delay of the link.
    pub(crate) fn may_be_early(&self) -> bool {
        self.delays.as_ref().is_some_and(Delays::may_be_early)
    }

    /// Whether the next packet arrives twice.
    pub(crate) fn duplicates(&mut self) -> bool {
        self.duplicate.as_mut().is_some_and(Coin::falls)
    }

    /// Whether the next packet arrives with other contents, and the number that says with which.
    pub(crate) fn corrupts(&mut self) -> Option<u64> {
        self.corrupt.as_mut().and_then(|coin| coin.falls().then(|| coin.number()))
    }

    /// How long the next packet takes on a link of the delay `delay_ns`, before it is held back.
    pub(crate) fn delay_ns(&mut self, delay_ns: u64) -> u64 {
        self.delays.as_mut().map_or(delay_ns, |delays| delays.next_ns(delay_ns))
    }

    /// For how long the next packet is held back; `None` where it is not.
    pub(crate) fn holds_back_ns(&mut self) -> Option<u64> {
        self.hold_back.as_mut().is_some_and(Coin::falls).then_some(self.hold_back_ns)
    }
}
