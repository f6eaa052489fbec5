//! The simulator and the real stack in virtual time are two models of the same thing: they agree on throughput.

mod pairs;

use std::time::Duration;

use fairpath_core::{Bitrate, Bytes};
use fairpath_faults::{Cryptography, Wire, World};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_quic_core::EngineConfig;
use fairpath_scenario::build::Net;
use fairpath_scenario::{PathRoute, Scenario, Traffic};
use pairs::{pair, scenario};
use rayon::prelude::*;

/// By how much two hosts may differ whose packets, headers and timers are not the same: QUIC has more of a datagram for
/// itself than the 52 bytes of the simulator's, and paths that come one after the other.
const AGREE: f64 = 0.10;

/// From then on rates are measured, for so long: after slow start.
const WARM_UP: Duration = Duration::from_secs(10);
const MEASURED: Duration = Duration::from_secs(20);

/// What the simulator has of a scenario, in Mbit/s.
fn simulated(mut scenario: Scenario) -> f64 {
    (scenario.warm_up, scenario.duration) = (WARM_UP, WARM_UP + MEASURED);
    scenario.sample_every = Duration::ZERO;
    let flow = &mut scenario.flows[0];
    (flow.traffic, flow.engine, flow.transport.pacing) = (Traffic::Bulk, EngineConfig::live(), Some(true));
    fairpath_sim::run(&scenario, &mut ()).expect("it runs").flows[0].goodput.as_mbps_f64()
}

/// What the stack has over the same wires.
fn stacked(wires: &[Wire], seed: u64) -> f64 {
    let mut world = World::protected_by(Cryptography::Null, wires, &EngineConfig::live(), seed).opened();
    world.client.send(u64::MAX);
    world.run_for(WARM_UP);
    let before = world.server.received();
    world.run_for(MEASURED);
    (world.server.received() - before) as f64 * 8e-6 / MEASURED.as_secs_f64()
}

/// Wires of so many Mbit/s and so many ms one way with queues of 100 ms, as a scenario.
fn as_scenario(wires: &[Wire]) -> Scenario {
    let mut net = Net::new("wires", 1, WARM_UP, WARM_UP + MEASURED);
    let path = |(at, wire): (usize, &Wire)| {
        let config = LinkConfig::new(wire.rate).delay(wire.delay).queue(QueueConfig::bytes(wire.queue));
        let there = net.link(&format!("there {at}"), config.clone());
        let back = net.link(&format!("back {at}"), config);
        PathRoute { forward: vec![there], backward: vec![back] }
    };
    let paths: Vec<_> = wires.iter().enumerate().map(path).collect();
    net.flow("transfer", EngineConfig::live(), &paths).transport.reinjection = true;
    net.scenario
}

fn wire(mbps: u64, delay_ms: u64, queue_ms: u64) -> Wire {
    let wire = Wire::new(mbps, delay_ms);
    let queue: Bytes = Bitrate::from_mbps(mbps) * Duration::from_millis(queue_ms);
    Wire { queue, ..wire }
}

#[test]
fn the_simulator_and_the_stack_in_virtual_time_agree() {
    let named = ["loss_05", "loss_2", "baseline", "rtt_40", "rtt_70", "rtt_120", "bw_4to1", "bw_10to1"];
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
            let (simulated, stacked) = (simulated(scenario), stacked(&wires, 1));
            println!("{name}: {simulated:.1} in the simulator, {stacked:.1} over the stack");
            let is_near = (stacked / simulated - 1.0).abs() <= AGREE;
            (!is_near).then(|| format!("{name}: {simulated:.1} and {stacked:.1} Mbit/s"))
        })
        .collect();
    assert!(apart.is_empty(), "more than {AGREE} apart: {apart:#?}");
}
