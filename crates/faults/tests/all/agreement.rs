//! The simulator and the real stack in virtual time are two models of the same thing: they agree on throughput.

use std::time::Duration;

use fairpath_faults::Wire;
use fairpath_net::{Jitter, JitterDistribution};
use fairpath_scenario::Scenario;
use rayon::prelude::*;

use crate::models::{Window, as_scenario, simulated, stacked, wire};
use crate::pairs::{pair, scenario};

/// The largest difference between two hosts with different packets, headers and timers. QUIC's
/// overhead in a datagram exceeds the 52 bytes of the simulator's, and its paths open one after the
/// other.
const AGREE: f64 = 0.10;

/// After slow start.
const WINDOW: Window = Window { warm_up: Duration::from_secs(10), measured: Duration::from_secs(10) };

#[test]
fn the_simulator_and_the_stack_in_virtual_time_agree() {
    let named = ["loss_05", "baseline", "rtt_40", "rtt_70", "rtt_120", "bw_4to1", "bw_10to1"];
    let mut cases: Vec<(String, Scenario, Vec<Wire>)> =
        named.iter().map(|name| ((*name).to_owned(), scenario(name, 1), pair(name).to_vec())).collect();
    for wires in [
        vec![wire(20, 20, 100)],
        vec![wire(20, 20, 40), wire(10, 40, 80)],
        vec![wire(30, 15, 60), wire(30, 15, 60)],
        vec![wire(16, 10, 100), wire(8, 50, 100), wire(4, 25, 100)],
    ] {
        let parts: Vec<_> =
            wires.iter().map(|wire| format!("{:.0} Mbit/s, {:?}", wire.rate.as_mbps_f64(), wire.delay)).collect();
        cases.push((parts.join(" and "), as_scenario(&wires), wires));
    }
    assert!(cases.len() >= 8);
    let apart: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(name, scenario, wires)| {
            let (simulated, stacked) = (simulated(scenario, WINDOW), stacked(&wires, 1, WINDOW));
            println!("{name}: {simulated:.1} in the simulator, {stacked:.1} over the stack");
            let is_near = (stacked / simulated - 1.0).abs() <= AGREE;
            (!is_near).then(|| format!("{name}: {simulated:.1} and {stacked:.1} Mbit/s"))
        })
        .collect();
    assert!(apart.is_empty(), "more than {AGREE} apart: {apart:#?}");
}

/// A wire of this rate in Mbit/s, with one-way delays of 20 ms and this jitter, so that packets
/// overtake each other.
fn spread(mbps: u64, jitter_ms: u64) -> Wire {
    let jitter = Jitter::new(JitterDistribution::Normal, Duration::from_millis(jitter_ms)).overtaking();
    Wire { jitter, ..wire(mbps, 20, 240) }
}

/// Packets that overtake each other are not lost: the stack learns that as the simulator's hosts do.
///
/// With 10 Mbit/s it has as much. noq's receiver takes a packet that more than 128 later ones have
/// overtaken for a duplicate, and drops it. At 50 Mbit/s 128 packets leave in 30 ms. With a jitter
/// of 5 ms one packet in tens of thousands is as late. With 20 ms a quarter are, and more come
/// later than the stack may wait for them (`GIVEN_UP_AFTER` in quic-core says why). It has a
/// twelfth of the simulator's rate, and twice its own rate with less patience.
#[test]
fn packets_that_are_late_cost_the_stack_no_more_than_the_simulator() {
    // Paths, the rate and the jitter of each, and what the stack has at least of what the simulator has.
    let cases = [(2, 10, 5, 0.9), (1, 10, 20, 0.9), (2, 10, 20, 0.9), (1, 50, 5, 0.9), (2, 50, 20, 0.06)];
    let apart: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(paths, mbps, jitter, least)| {
            let wires = vec![spread(mbps, jitter); paths];
            let (simulated, stacked) = (simulated(as_scenario(&wires), WINDOW), stacked(&wires, 1, WINDOW));
            let case = format!(
                "{paths} of {mbps} Mbit/s, jitter {jitter} ms: {simulated:.1} in the simulator, {stacked:.1} over the stack"
            );
            println!("{case}");
            (stacked < least * simulated).then_some(case)
        })
        .collect();
    assert!(apart.is_empty(), "less than it should be: {apart:#?}");
}
