//! The schedulers by their names.

use crate::algorithm::{MinRtt, RoundRobin};
use crate::scheduler::Scheduler;

/// The names, the default first.
pub const NAMES: &[&str] = &["min_rtt", "round_robin"];

/// A new scheduler of that name; `None` for a name not in [`NAMES`].
pub fn by_name(name: &str) -> Option<Box<dyn Scheduler>> {
    match name {
        "min_rtt" => Some(Box::new(MinRtt)),
        "round_robin" => Some(Box::new(RoundRobin::default())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{Choice, PathView, Pending};
    use core::time::Duration;
    use fairpath_core::{Bytes, PathId, Timestamp};
    use proptest::prelude::*;

    fn any_path(id: u32) -> impl Strategy<Value = PathView> {
        (0u64..40_000, 0u64..40_000, 500u64..2000, proptest::option::of(0u64..900), any::<bool>(), any::<bool>())
            .prop_map(move |(window, in_flight, max_datagram, rtt, usable, backup)| PathView {
                id: PathId::new(id),
                window: Bytes::new(window),
                in_flight: Bytes::new(in_flight),
                max_datagram: Bytes::new(max_datagram),
                smoothed_rtt: rtt.map(Duration::from_millis),
                usable,
                backup,
            })
    }

    proptest! {
        /// The contract of every scheduler in the catalogue: it never picks a path that cannot
        /// send, picks one if any can, and prefers backups to nothing only where nothing else is
        /// usable. Where it says that a choice stays, it does while the chosen path has room.
        #[test]
        fn every_scheduler_keeps_the_contract(
            rounds in proptest::collection::vec((any_path(0), any_path(3), any_path(4), any_path(9)), 1..30)
        ) {
            for name in NAMES {
                let mut scheduler = by_name(name).unwrap();
                for (a, b, c, d) in &rounds {
                    let paths = [*a, *b, *c, *d];
                    let regular_usable = paths.iter().any(|p| p.usable && !p.backup);
                    let may_send = |p: &&PathView| p.has_room() && (!p.backup || !regular_usable);
                    match scheduler.pick(&paths, &Pending::default(), Timestamp::ZERO) {
                        Choice::Send(chosen) => {
                            let view = paths.iter().find(|p| p.id == chosen).expect("a path that exists");
                            prop_assert!(may_send(&view), "{name} picked {view:?}");
                            let (mut later, at) = (paths, paths.iter().position(|p| p.id == chosen).expect("known"));
                            loop {
                                scheduler.on_sent(chosen, view.max_datagram);
                                later[at].in_flight += view.max_datagram;
                                if !scheduler.stays() || !later[at].has_room() {
                                    break;
                                }
                                let choice = scheduler.pick(&later, &Pending::default(), Timestamp::ZERO);
                                prop_assert_eq!(choice, Choice::Send(chosen), "{} said that it stays", name);
                            }
                        }
                        Choice::Wait => prop_assert!(paths.iter().find(may_send).is_none(), "{name} waits"),
                    }
                }
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(by_name("fastest").is_none());
    }
}
