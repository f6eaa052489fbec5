//! The schedulers by their names.

use crate::algorithm::{Arrival, Blest, Deadline, Ecf, MinRtt, Priority, Redundant, RoundRobin, Stms, Weighted};
use crate::scheduler::Scheduler;

/// The names, the default first.
pub const NAMES: &[&str] =
    &["min_rtt", "round_robin", "weighted", "priority", "redundant", "blest", "ecf", "stms", "arrival", "deadline"];

/// A new scheduler of that name; `None` for a name not in [`NAMES`].
pub fn by_name(name: &str) -> Option<Box<dyn Scheduler>> {
    match name {
        "min_rtt" => Some(Box::new(MinRtt)),
        "round_robin" => Some(Box::new(RoundRobin::default())),
        "weighted" => Some(Box::new(Weighted::default())),
        "priority" => Some(Box::new(Priority)),
        "redundant" => Some(Box::new(Redundant)),
        "blest" => Some(Box::new(Blest::default())),
        "ecf" => Some(Box::new(Ecf::default())),
        "stms" => Some(Box::new(Stms::default())),
        "arrival" => Some(Box::new(Arrival)),
        "deadline" => Some(Box::new(Deadline::default())),
        _ => None,
    }
}

/// Whether the scheduler of that name spares paths by their cost; false for a name not in [`NAMES`].
pub fn goes_by_costs(name: &str) -> bool {
    matches!(name, "priority" | "arrival" | "deadline")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{Choice, ConnectionView, Due, PathView, Terms, Train, Transit};
    use crate::testing::{picked, view};
    use core::time::Duration;
    use fairpath_core::{ByteCount, OneWayDelay, PathId, Rtt, Timestamp};
    use proptest::option;
    use proptest::prelude::*;

    prop_compose! {
        fn any_times()(min in 0u64..900, above in 0u64..900, variance in 0u64..500) -> Rtt {
            let [min, smoothed, variance] = [min, min + above, variance].map(Duration::from_millis);
            Rtt { variance, min, windowed_min: min, ..Rtt::steady(smoothed) }
        }
    }

    prop_compose! {
        fn any_path(id: u32)(
            (window, in_flight, max_datagram) in (0u64..40_000, 0u64..40_000, 500u64..2000),
            rtt in option::of(any_times()),
            one_way in option::of((0u64..2_000, 0u64..2_000, 0u64..500)),
            transit in option::of((0u64..500, 0u64..200, 0.0..1.0_f64, 0.0..1.0_f64)),
            ssthresh in option::of(0u64..100_000),
            (weight, cost) in (0u32..5, 0u32..3),
            (usable, backup, paced, window_limited) in any::<(bool, bool, bool, bool)>(),
            (burst_until, heard_at, oldest_sent) in (0u64..10_000, 0u64..5_000, option::of(0u64..5_000)),
        ) -> PathView {
            PathView {
                id: PathId::new(id),
                window: ByteCount::new(window),
                paced,
                in_flight: ByteCount::new(in_flight),
                max_datagram: ByteCount::new(max_datagram),
                rtt,
                one_way: one_way.map(|(windowed_min, above, spread)| {
                    let ms = Duration::from_millis;
                    OneWayDelay { latest: ms(windowed_min + above), windowed_min: ms(windowed_min), spread: ms(spread) }
                }),
                transit: transit.map(|(mean, deviation, late, lost)| {
                    let [mean, deviation] = [mean, deviation].map(Duration::from_millis);
                    Transit { mean, deviation, late, lost }
                }),
                delivery_rate: None,
                ssthresh: ssthresh.map(ByteCount::new),
                in_slow_start: ssthresh.is_none(),
                window_limited,
                burst_until: Timestamp::from_millis(burst_until),
                heard_at: Timestamp::from_millis(heard_at),
                oldest_sent: oldest_sent.map(Timestamp::from_millis),
                usable,
                backup,
                terms: Terms { weight, cost, ..Terms::default() },
            }
        }
    }

    prop_compose! {
        fn any_connection()(
            unsent in option::of(0u64..1_000_000),
            window in option::of(0u64..1_000_000),
            window_used in 0u64..1_000_000,
            due in option::of((1u64..2_000, 0u64..2_000, 0u64..2_000)),
        ) -> ConnectionView {
            let (unsent, window) = (unsent.map(ByteCount::new), window.map(ByteCount::new));
            let due = due.map(|(deadline, waited, held)| {
                let [deadline, waited, held] = [deadline, waited, held.min(waited)].map(Duration::from_millis);
                Due { deadline, left: deadline.saturating_sub(waited), held }
            });
            ConnectionView { unsent, window, window_used: ByteCount::new(window_used), due, ..ConnectionView::default() }
        }
    }

    proptest! {
        /// The contract of every scheduler in the catalogue: it never picks a path that cannot send, and takes
        /// backups only where nothing else is usable. Where a path could send it waits only for one that is
        /// usable and has something in flight, so that the host will hear of it and ask again. Asked twice it
        /// answers the same. Where it promises a train, each of its packets would have been chosen so.
        #[test]
        fn every_scheduler_keeps_the_contract(
            rounds in proptest::collection::vec(
                (any_path(0), any_path(3), any_path(4), any_path(9), any_connection()), 1..30)
        ) {
            let now = Timestamp::from_millis(5_000);
            for name in NAMES {
                let mut scheduler = by_name(name).unwrap();
                for (a, b, c, d, connection) in &rounds {
                    let paths = [*a, *b, *c, *d];
                    let regular_usable = paths.iter().any(|p| p.usable && !p.backup);
                    let is_active = |p: &&PathView| p.usable && (!p.backup || !regular_usable);
                    let may_send = |p: &&PathView| p.has_room() && is_active(p);
                    let view = |id: PathId| paths.iter().find(|p| p.id == id).expect("a path that exists");
                    let choice = scheduler.pick(connection, &paths, now);
                    prop_assert_eq!(scheduler.pick(connection, &paths, now), choice, "{} asked again", name);
                    match choice {
                        Choice::Send(chosen) => {
                            let view = view(chosen);
                            prop_assert!(may_send(&view), "{name} picked {view:?}");
                            let (mut later, at) = (paths, paths.iter().position(|p| p.id == chosen).expect("known"));
                            loop {
                                scheduler.on_sent(chosen, view.max_datagram);
                                later[at].in_flight += view.max_datagram;
                                if scheduler.train(view) != Train::All || !later[at].has_room() {
                                    break;
                                }
                                let choice = scheduler.pick(connection, &later, now);
                                prop_assert_eq!(choice, Choice::Send(chosen), "{} said that it stays", name);
                            }
                        }
                        Choice::Ahead(chosen, _) => {
                            prop_assert!(may_send(&view(chosen)), "{name} picked {:?}", view(chosen));
                            scheduler.on_sent(chosen, view(chosen).max_datagram);
                        }
                        Choice::Copies(copies) => {
                            let first = copies.iter().next().expect("a path");
                            prop_assert!(may_send(&view(first)), "{name} picked {:?}", view(first));
                            prop_assert!(copies.iter().all(|id| is_active(&view(id))), "{name} picked {copies:?}");
                            scheduler.on_sent(first, view(first).max_datagram);
                        }
                        Choice::WaitFor(path) => {
                            let view = view(path);
                            let hears = view.in_flight > ByteCount::ZERO || view.paced && view.max_datagram <= view.window;
                            prop_assert!(is_active(&view) && hears, "{name} waits for {view:?}");
                        }
                        Choice::Wait => prop_assert!(paths.iter().find(may_send).is_none(), "{name} waits"),
                    }
                    for path in paths.iter().filter(|path| path.usable) {
                        scheduler.on_ack(path, path.max_datagram, now);
                        scheduler.on_lost(path.id, path.max_datagram, now);
                        scheduler.on_spurious_loss(path.id, now);
                        scheduler.on_arrived(path.id, path.backup);
                    }
                    scheduler.on_window_blocked(now);
                }
            }
        }
    }

    /// Two paths alike, of which the first costs something: only a scheduler that goes by costs takes the second.
    #[test]
    fn the_schedulers_that_go_by_costs_are_those_that_say_so() {
        let path = |id, cost| PathView { terms: Terms { cost, ..Terms::default() }, ..view(id, 20) };
        for name in NAMES {
            let choice = picked(&*by_name(name).unwrap(), &[path(0, 1), path(1, 0)]);
            assert_eq!(choice == Choice::Send(PathId::new(1)), goes_by_costs(name), "{name}: {choice:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused() {
        assert!(by_name("fastest").is_none());
    }
}
