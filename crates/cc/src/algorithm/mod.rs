//! One file for each published rule.

pub mod balia;
mod bbr;
mod bbr3;
pub mod coupled;
mod coupled_bbr;
mod coupled_bbr3;
pub mod coupled_cubic;
pub mod cubic;
mod daimd;
pub mod epsilon;
pub mod ewtcp;
pub mod hybrid_cubic;
pub mod lia;
pub mod olia;
mod reno;
mod wvegas;

use fairpath_core::ByteCount;

pub use balia::Balia;
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use coupled::{Coupled, CoupledConstants};
pub use coupled_bbr::{CoupledBbr, Cruise};
pub use coupled_bbr3::CoupledBbr3;
pub use coupled_cubic::CoupledCubic;
pub use cubic::Cubic;
pub use daimd::{BaseRtt, Daimd, LongestQueue};
pub use epsilon::Epsilon;
pub use ewtcp::Ewtcp;
pub use hybrid_cubic::HybridCubic;
pub use lia::Lia;
pub use olia::{Olia, PathMetric};
pub use reno::Reno;
pub use wvegas::WVegas;

use crate::aimd::{GroupView, Member, Totals};

/// The growth of the own path's window, in bytes.
/// It grows by `gain` for each byte acknowledged and each byte of a full datagram; in packets,
/// `gain` is the growth for each packet. A path that is alone grows as Reno does.
fn coupled_increase<M>(
    group: &impl GroupView<M>,
    acked: ByteCount,
    gain: impl FnOnce(&Member<'_, M>, &Totals) -> f64,
) -> f64 {
    match group.coupled_member() {
        Some(own) => gain(&own, &group.totals()) * acked.as_f64() * own.max_datagram,
        None => reno::increase(group.own(), acked),
    }
}
