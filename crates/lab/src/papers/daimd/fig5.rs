//! Figure 5: windows on paths of different delay beside Reno.
//!
//! # Claim
//!
//! DAIMD behaves much like LIA: both are ahead of the Reno flow beside them for instants only. DAIMD
//! prevents loss on most occasions, by a delay cut before the queue overflows.
//!
//! # Topology
//!
//! ```text
//!               ┌─── A, queue of one bandwidth-delay product ───┐
//!   multipath ──┤                                               ├── multipath
//!               └─── B, queue of one bandwidth-delay product ───┘
//!   Reno 1 ───────── A ──────────────────────────────────────────── Reno 1
//!   Reno 2 ───────── B ──────────────────────────────────────────── Reno 2
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | paths | 5 Mbit/s, one-way delay A 25 ms, B 50 ms | paper (heading of Table I) |
//! | queue | round-trip time times rate, drop-tail | paper |
//! | start | within 100 ms of each other | assumed: the paper says at the same time |
//! | duration | 300 s, of which the first 5 s do not count; 150 s are drawn | assumed |
//! | packets | 1500 B, of which 1448 B are data; each is acknowledged | assumed |
//! | D0, D1 | 0.9 and 0.5 of the longest queue seen | assumed |
//! | T, W0 | one smoothed round-trip time, 10 packets | assumed |
//!
//! # Deviations
//!
//! - How long "instants" are the paper does not say; less than a tenth of the time is taken here.
//! - The paper's curves exist as a picture only: they are compared by what its text says of them.

use super::setup::DELAY;
use super::shared::run as windows;
use crate::{Context, Experiment, Failure, Report};

pub(super) const EXPERIMENT: Experiment = Experiment::new("daimd/fig5", include_str!("fig5.rs"), run);

fn run(context: &Context) -> Result<Report, Failure> {
    windows(context, "fig5", DELAY)
}
