//! Networks as wires of the real stack and as scenarios of the simulator, and what each has of them.
#![allow(dead_code)]

use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_faults::{Cryptography, Wire, World};
use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
use fairpath_quic_core::EngineConfig;
use fairpath_scenario::build::Net;
use fairpath_scenario::{PathRoute, Scenario, Traffic};

/// From when on goodput is measured, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// The simulator's rate for a scenario, in Mbit/s.
pub(crate) fn simulated(mut scenario: Scenario, window: Window) -> f64 {
    (scenario.warm_up, scenario.duration) = (window.warm_up, window.warm_up + window.measured);
    scenario.sample_every = Duration::ZERO;
    let flow = &mut scenario.flows[0];
    flow.as_live(EngineConfig::live()).traffic = Traffic::Bulk;
    fairpath_sim::run(&scenario, &mut ()).expect("it runs").flows[0].goodput.as_mbps_f64()
}

/// The stack's rate over the same wires, in Mbit/s.
pub(crate) fn stacked(wires: &[Wire], seed: u64, window: Window) -> f64 {
    let mut world = World::protected_by(Cryptography::Null, wires, &EngineConfig::live(), seed).opened();
    world.client.send(u64::MAX);
    world.run_for(window.warm_up);
    let before = world.server.received();
    world.run_for(window.measured);
    (world.server.received() - before) as f64 * 8e-6 / window.measured.as_secs_f64()
}

/// One direction of a wire.
pub(crate) fn link(wire: &Wire) -> LinkConfig {
    let loss = match wire.loss {
        0.0 => LossConfig::None,
        probability => LossConfig::Random { probability },
    };
    let link = LinkConfig::new(wire.rate).delay(wire.delay).jitter(wire.jitter).loss(loss);
    link.queue(QueueConfig::bytes(wire.queue))
}

/// Wires as a scenario.
pub(crate) fn as_scenario(wires: &[Wire]) -> Scenario {
    let mut net = Net::new("wires", 1, Duration::ZERO, Duration::from_secs(1));
    let path = |(at, wire): (usize, &Wire)| {
        let there = net.link(&format!("there {at}"), link(wire));
        let back = net.link(&format!("back {at}"), link(wire));
        PathRoute { forward: vec![there], backward: vec![back] }
    };
    let paths: Vec<_> = wires.iter().enumerate().map(path).collect();
    net.live("transfer", EngineConfig::live(), &paths).transport.reinjection = true;
    net.scenario
}

/// A wire with this rate in Mbit/s, one-way delay in ms, and queue in ms.
pub(crate) fn wire(mbps: u64, delay_ms: u64, queue_ms: u64) -> Wire {
    let wire = Wire::new(mbps, delay_ms);
    let queue: ByteCount = Bitrate::from_mbps(mbps) * Duration::from_millis(queue_ms);
    Wire { queue, ..wire }
}
