//! Remedies in the simulator: what each is for, alone and together with the others.

use fairpath_core::ByteCount;
use fairpath_net::QueueConfig;
use fairpath_scenario::{Remedies, Scenario, Traffic};
use fairpath_sim::{Outcome, run};
use proptest::prelude::*;

use crate::common::{Net, ms};

const NONE: Remedies = Remedies { bloat_clamp: None, probe: false, penalty: false };

/// Uncoupled Reno with `min_rtt` over two paths of 30 Mbit/s and 100 ms with deep queues, for a minute.
fn odd_couple(remedies: Remedies, send_buffer: Option<u64>, receive_buffer: Option<u64>) -> Outcome {
    let mut net = Net::new(60, 1);
    let routes = [(); 2].map(|()| net.path(30, ms(50), QueueConfig::packets(3_000)));
    let flow = net.flow("transfer", "uncoupled reno", &routes);
    flow.engine.scheduler = "min_rtt".into();
    flow.remedies = remedies;
    flow.transport.send_buffer = send_buffer.map(ByteCount::new);
    flow.transport.receive_buffer = receive_buffer.map(ByteCount::new);
    run(&net.scenario, &mut ()).unwrap()
}

fn mbps(outcome: &Outcome) -> f64 {
    outcome.flows[0].goodput.as_mbps_f64()
}

/// The share of the path that carried less.
fn smaller_share(outcome: &Outcome) -> f64 {
    let carried = [0, 1].map(|path| outcome.flows[0].paths[path].goodput.as_mbps_f64());
    carried[0].min(carried[1]) / (carried[0] + carried[1])
}

#[test]
fn a_path_that_was_left_for_a_stale_round_trip_time_is_used_again_where_it_is_probed() {
    let [without, with] = [false, true].map(|probe| odd_couple(Remedies { probe, ..NONE }, Some(2_000_000), None));
    // It is sent on in the first second, before the other one has all of the buffer.
    assert!(smaller_share(&without) < 0.05, "{:.3}", smaller_share(&without));
    assert!(smaller_share(&with) > 0.2, "{:.3}", smaller_share(&with));
    assert!(mbps(&with) > 1.1 * mbps(&without), "{:.1} and {:.1}", mbps(&with), mbps(&without));
}

#[test]
fn a_clamp_keeps_round_trips_within_its_bound_and_leaves_room_in_the_buffer() {
    for lambda in [1.5, 3.0] {
        let clamped = odd_couple(Remedies { bloat_clamp: Some(lambda), ..NONE }, None, None);
        let plain = odd_couple(NONE, None, None);
        // Between two cuts a window grows for a round trip; slow start doubles it before the first.
        let bound = ms(100).mul_f64((lambda - 1.0) * 1.2);
        for path in 0..2 {
            let [held, full] = [&clamped, &plain].map(|outcome| outcome.links[2 * path].mean_wait);
            assert!(held < bound && held < full / 2, "{lambda}: {held:?} of {full:?}");
        }
        assert!(mbps(&clamped) > 0.95 * mbps(&plain), "{lambda}: {:.1} of {:.1}", mbps(&clamped), mbps(&plain));
    }
}

#[test]
fn a_full_receive_window_is_shared_where_its_holder_is_penalised() {
    let [without, with] = [false, true].map(|penalty| odd_couple(Remedies { penalty, ..NONE }, None, Some(700_000)));
    assert!(mbps(&with) > 1.1 * mbps(&without), "{:.1} and {:.1}", mbps(&with), mbps(&without));
    assert!(smaller_share(&with) > smaller_share(&without) + 0.1);
}

/// A transfer over paths of these rates, in Mbit/s, and one-way delays, in ms.
fn transfer(paths: &[(u64, u64)], remedies: Remedies, buffer: u64, seed: u64) -> Scenario {
    let mut net = Net::new(120, seed);
    let routes: Vec<_> =
        paths.iter().map(|(mbps, one_way)| net.path(*mbps, ms(*one_way), QueueConfig::sojourn(ms(500)))).collect();
    let flow = net.flow("transfer", "lia", &routes);
    flow.remedies = remedies;
    flow.traffic = Traffic::Finite { size: ByteCount::new(1_000_000) };
    flow.transport.receive_buffer = Some(ByteCount::new(buffer));
    net.scenario
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever is on, alone or together: the transfer ends, every byte is delivered once, and the same seed gives
    /// the same run. What must hold between the ends is checked as it runs.
    #[test]
    fn a_transfer_ends_whatever_remedies_are_on(
        paths in proptest::collection::vec((1u64..50, 1u64..200), 1..4),
        bloat_clamp in proptest::option::of(1.1f64..4.0),
        (probe, penalty) in any::<(bool, bool)>(),
        buffer in 50_000u64..1_000_000,
        seed in 0u64..1000,
    ) {
        let scenario = transfer(&paths, Remedies { bloat_clamp, probe, penalty }, buffer, seed);
        let outcome = run(&scenario, &mut ()).unwrap();
        prop_assert_eq!(outcome.flows[0].completions.len(), 1);
        prop_assert_eq!(outcome.flows[0].delivered, ByteCount::new(1_000_000));
        prop_assert_eq!(&run(&scenario, &mut ()).unwrap(), &outcome);
    }
}
