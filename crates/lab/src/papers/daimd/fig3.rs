//! Figure 3: windows on idle paths of different delay.
//!
//! # Claim
//!
//! The window of DAIMD behaves much like that of LIA, with somewhat lower peaks and smaller, more
//! frequent swings; after slow start each of its decreases is one by delay.
//!
//! # Topology
//!
//! ```text
//!               ┌─── A, queue of one bandwidth-delay product ───┐
//!   multipath ──┤                                               ├── multipath
//!               └─── B, queue of one bandwidth-delay product ───┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | paths | 5 Mbit/s, one-way delay A 25 ms, B 50 ms | paper |
//! | queue | round-trip time times rate, drop-tail | paper |
//! | duration | 300 s, of which the first 5 s do not count; 150 s are drawn | assumed |
//! | packets | 1500 B, of which 1448 B are data; each is acknowledged | assumed |
//! | D0, D1 | 0.9 and 0.5 of the longest queue seen | assumed |
//! | T, W0 | one smoothed round-trip time, 10 packets | assumed |
//!
//! # Deviations
//!
//! - The paper's curves exist as a picture only: they are compared by what its text says of them.

use super::idle::run as windows;
use super::setup::DELAY;
use crate::{Context, Experiment, Failure, Report};

pub(super) const EXPERIMENT: Experiment = Experiment::new("daimd/fig3", include_str!("fig3.rs"), run);

fn run(context: &Context) -> Result<Report, Failure> {
    windows(context, "fig3", DELAY)
}
