//! Schedulers in the simulator: what each is for, and that none stands still.

use fairpath_core::{Bitrate, ByteCount, PathId};
use fairpath_engine::EngineConfig;
use fairpath_net::QueueConfig;
use fairpath_scenario::Traffic;
use fairpath_sim::{Outcome, run};
use proptest::prelude::*;

use crate::common::{Net, ms};

/// A transfer of `size` over paths of these rates (Mbit/s) and one-way delays (ms), with queues of
/// 30 ms.
fn transfer(scheduler: &str, size: u64, paths: &[(u64, u64)], receive_buffer: Option<u64>, seed: u64) -> Outcome {
    let mut net = Net::new(60, seed);
    let routes: Vec<_> =
        paths.iter().map(|(mbps, one_way)| net.path(*mbps, ms(*one_way), QueueConfig::sojourn(ms(100)))).collect();
    let flow = net.flow("transfer", "uncoupled reno", &routes);
    flow.engine.scheduler = scheduler.into();
    flow.traffic = Traffic::Finite { size: ByteCount::new(size) };
    flow.transport.receive_buffer = receive_buffer.map(ByteCount::new);
    run(&net.scenario, &mut ()).unwrap()
}

/// How long the transfer took, in seconds.
fn seconds(outcome: &Outcome) -> Option<f64> {
    Some(outcome.flows[0].completions.first()?.as_secs_f64())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// No scheduler leaves a usable path idle for long: a transfer takes at most a few times as
    /// long as the sum of the paths would, or the slowest of them alone.
    #[test]
    fn every_scheduler_completes_a_transfer(
        paths in proptest::collection::vec((1u64..50, 1u64..200), 1..4),
        size in 1_000u64..3_000_000,
        buffer in proptest::option::of(50_000u64..4_000_000),
        seed in 0u64..1000,
    ) {
        let slowest = paths.iter().map(|(mbps, one_way)| {
            let window = buffer.map_or(f64::INFINITY, |bytes| bytes as f64 * 8.0 / (2.0 * *one_way as f64 / 1e3));
            let rate = (*mbps as f64 * 1e6).min(window);
            size as f64 * 8.0 / rate + 30.0 * *one_way as f64 / 1e3
        });
        let bound = 3.0 * slowest.fold(0.0, f64::max) + 2.0;
        for scheduler in EngineConfig::SCHEDULERS {
            let took = seconds(&transfer(scheduler, size, &paths, buffer, seed));
            if bound < 60.0 {
                prop_assert!(took.is_some_and(|took| took < bound), "{scheduler}: {took:?} of {bound:.1} s");
            }
        }
    }
}

/// The tail goes on the slow path only where it arrives earlier that way [ECF §3].
#[test]
fn a_tail_is_complete_earlier_where_the_scheduler_waits_for_the_fast_path() {
    let took = |scheduler: &str| {
        let outcomes =
            (0..5).map(|seed| transfer(scheduler, 2_000_000 + 7_000 * seed, &[(20, 10), (2, 150)], None, seed));
        let took: Vec<f64> = outcomes.map(|outcome| seconds(&outcome).expect("it completes")).collect();
        took.iter().sum::<f64>() / took.len() as f64
    };
    let (ecf, min_rtt) = (took("ecf"), took("min_rtt"));
    assert!(ecf < 0.8 * min_rtt, "{ecf:.3} and {min_rtt:.3} s");
}

/// Data in flight on the slow path fills a small receive window, and blocks the fast path [BLEST
/// §II].
#[test]
fn a_small_receive_buffer_is_used_better_where_the_scheduler_foresees_that_it_blocks() {
    let took = |scheduler: &str| {
        seconds(&transfer(scheduler, 8_000_000, &[(20, 10), (2, 100)], Some(250_000), 1)).expect("it completes")
    };
    let (blest, min_rtt) = (took("blest"), took("min_rtt"));
    assert!(blest < 0.9 * min_rtt, "{blest:.2} and {min_rtt:.2} s");
}

/// Each path carries everything, and what the better one alone would take is what it takes.
#[test]
fn redundant_paths_carry_everything_twice() {
    let single = seconds(&transfer("redundant", 5_000_000, &[(20, 10)], None, 1)).unwrap();
    let outcome = transfer("redundant", 5_000_000, &[(20, 10), (20, 10)], None, 1);
    let twice = seconds(&outcome).unwrap();
    assert!((twice / single - 1.0).abs() < 0.1, "{twice:.2} and {single:.2} s");
    let delivered: Vec<u64> = outcome.flows[0].paths.iter().map(|path| path.count.sent).collect();
    assert!(delivered.iter().all(|sent| *sent > 3_000), "{delivered:?} packets");
}

/// Weights bound shares where windows do not.
#[test]
fn weights_divide_what_an_application_sends() {
    let mut net = Net::new(20, 1);
    let routes = [10, 30].map(|one_way| net.path(50, ms(one_way), QueueConfig::sojourn(ms(100))));
    let flow = net.flow("constant", "uncoupled reno", &routes);
    flow.engine.scheduler = "weighted".into();
    flow.terms = [3, 1].map(|weight| fairpath_engine::Terms { weight, ..Default::default() }).to_vec();
    flow.traffic = Traffic::Constant { rate: Bitrate::from_mbps(8) };
    let outcome = run(&net.scenario, &mut ()).unwrap();
    let sent: Vec<f64> = outcome.flows[0].paths.iter().map(|path| path.count.sent as f64).collect();
    assert!(
        (sent[0] / sent[1] - 3.0).abs() < 0.05,
        "{sent:?} packets on {:?} and {:?}",
        PathId::new(0),
        PathId::new(1)
    );
}

/// A path carries its quota and no more, and the other one all the rest, with any scheduler.
#[test]
fn a_path_whose_quota_is_used_up_carries_nothing_more() {
    let (quota, size) = (ByteCount::new(2_000_000), ByteCount::new(20_000_000));
    for scheduler in EngineConfig::SCHEDULERS {
        let mut net = Net::new(120, 1);
        let routes = [10, 30].map(|one_way| net.path(20, ms(one_way), QueueConfig::sojourn(ms(100))));
        let flow = net.flow("transfer", "uncoupled reno", &routes);
        flow.engine.scheduler = (*scheduler).into();
        flow.terms = vec![fairpath_engine::Terms { quota: Some(quota), ..Default::default() }];
        flow.traffic = Traffic::Finite { size };
        let outcome = run(&net.scenario, &mut ()).unwrap();
        assert!(seconds(&outcome).is_some(), "{scheduler} does not complete");
        let [first, second] = [0, 1].map(|path: usize| outcome.flows[0].paths[path].count.sent);
        // Packets of 1,500 B, the last of which may go beyond it with a train of those behind it.
        let most = quota.get() / 1_500 + 20;
        assert!(first <= most && second >= 12_000, "{scheduler}: {first} packets of {most}, and {second}");
        assert!(*scheduler == "priority" || first > 1_000, "{scheduler}: {first} packets");
    }
}

/// At the end the fast path reinjects data that is in flight on the slow one.
#[test]
fn a_tail_is_complete_earlier_where_it_is_sent_again_on_the_fast_path() {
    let took = |reinjection: bool| {
        let mut net = Net::new(60, 1);
        let routes =
            [(50, 10), (10, 150)].map(|(mbps, one_way)| net.path(mbps, ms(one_way), QueueConfig::sojourn(ms(300))));
        let flow = net.flow("transfer", "uncoupled reno", &routes);
        flow.traffic = Traffic::Finite { size: ByteCount::new(20_000_000) };
        flow.transport.reinjection = reinjection;
        let outcome = run(&net.scenario, &mut ()).unwrap();
        (seconds(&outcome).unwrap(), outcome.flows[0].duplicates)
    };
    let ((with, copies), (without, none)) = (took(true), took(false));
    assert!(with < 0.9 * without, "{with:.2} and {without:.2} s, {copies} copies");
    assert!(none == 0 && (1..400).contains(&copies), "{copies} pieces arrived twice, and {none}");
}

/// An application that sends less than the paths carry, turn by turn over two of them: what goes on the faster one waits
/// for the packet before it on the slower one.
#[test]
fn what_comes_out_of_order_waits_as_long_as_one_path_is_slower() {
    let waits = |one_ways: [u64; 2]| {
        let mut net = Net::new(20, 1).warm_up(5);
        let routes = one_ways.map(|one_way| net.path(100, ms(one_way), QueueConfig::sojourn(ms(100))));
        let flow = net.flow("constant", "uncoupled reno", &routes);
        flow.engine.scheduler = "round_robin".into();
        flow.traffic = Traffic::Constant { rate: Bitrate::from_mbps(8) };
        run(&net.scenario, &mut ()).unwrap().flows[0].out_of_order.as_secs_f64() * 1e3
    };
    assert_eq!(waits([30, 30]), 0.0);
    // A packet in 1.448 ms. Of two in a row the first is on the slow path: the next one waits for 50 ms less 1.448.
    let waited = waits([10, 60]);
    assert!((waited - (50.0 - 1.448) / 2.0).abs() < 0.2, "{waited} ms on average");
}

/// Data that is further on goes on the slower path, so that both arrive in step [STMS].
#[test]
fn data_arrives_in_order_where_the_slow_path_carries_what_is_further_on() {
    let ran = |scheduler: &str, buffer: Option<u64>| {
        let mut net = Net::new(40, 1).warm_up(10);
        let routes =
            [(20, 10), (20, 60)].map(|(mbps, one_way)| net.path(mbps, ms(one_way), QueueConfig::sojourn(ms(20))));
        let flow = net.flow("transfer", "uncoupled reno", &routes);
        flow.engine.scheduler = scheduler.into();
        flow.transport.receive_buffer = buffer.map(ByteCount::new);
        let outcome = run(&net.scenario, &mut ()).unwrap();
        let flow = &outcome.flows[0];
        (flow.out_of_order.as_secs_f64() * 1e3, flow.goodput.as_mbps_f64())
    };
    let ((stms, rate), (min_rtt, other)) = (ran("stms", None), ran("min_rtt", None));
    assert!(
        stms < 0.5 * min_rtt && rate > 0.95 * other,
        "{stms:.1} and {min_rtt:.1} ms, {rate:.1} and {other:.1} Mbit/s"
    );
    // The bandwidth-delay products of both paths sum up to 350 kB.
    let ((_, stms), (_, min_rtt)) = (ran("stms", Some(300_000)), ran("min_rtt", Some(300_000)));
    assert!(stms > 1.05 * min_rtt, "{stms:.1} and {min_rtt:.1} Mbit/s");
}
