//! A congestion control of one's own in the simulator: `cargo run -p fairpath-sim --example own_controller`.
//!
//! The rule is that of Scalable TCP (T. Kelly, 2003): the window grows by a hundredth of what is acknowledged,
//! and an eighth of it goes at each loss. Two such flows and two of Reno share a link.

use std::time::Duration;

use fairpath_engine::{Aimd, AimdConfig, Bitrate, ByteCount, GroupView, Rule};
use fairpath_net::QueueConfig;
use fairpath_scenario::build::{Net, engine, ms};
use fairpath_sim::{SimError, Simulation};

#[derive(Clone, Copy, Debug)]
struct Scalable;

impl Rule for Scalable {
    type Memory = ();
    type News = ();

    fn increase(&self, _group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        0.01 * acked.as_f64()
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        group.own().cwnd() * 7.0 / 8.0
    }
}

fn main() -> Result<(), SimError> {
    let mut net = Net::new("Scalable TCP beside Reno", 1, ms(20_000), Duration::from_secs(120));
    let link = net.path("link", Bitrate::from_mbps(50), ms(20), QueueConfig::packets(170));
    for (number, class) in ["scalable", "scalable", "reno", "reno"].into_iter().enumerate() {
        net.flow(class, engine("reno"), std::slice::from_ref(&link)).start = ms(number as u64 * 100);
    }
    let mut simulation = Simulation::with_engines(&net.scenario, |flow| match flow.class.as_str() {
        "scalable" => flow.engine.build_around(Box::new(Aimd::new(Scalable, AimdConfig::default()))),
        _ => flow.engine.build(),
    })?;
    simulation.run(&mut ())?;
    let outcome = simulation.outcome();
    for class in ["scalable", "reno"] {
        println!("{class:9} {:5.2} Mbit/s each", outcome.mean_goodput(class).as_mbps_f64());
    }
    Ok(())
}
