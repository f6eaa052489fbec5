//! How much a run may hold at once. A scenario may describe more than fits any memory, and what it comes
//! to only the run itself shows: a fast link with a long queue is harmless behind a slow one.

use fairpath_core::{Bitrate, Timestamp};
use fairpath_net::{LinkStats, QueueConfig, QueueLimit};
use fairpath_scenario::{Flow, ScenarioLink};

use crate::error::SimError;
use crate::hosts::FlowState;
use crate::moment::Moment;
use crate::packet::PACKETS_MAX;

/// How much a run may hold at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Packets that links hold or hosts remember. Each takes up to a kilobyte: on the link, in its sender's
    /// list of what is to be acknowledged, and in the engine's.
    pub(crate) packets: u64,
    /// Open connections. Each takes some kilobytes.
    pub(crate) connections: usize,
    /// Transfers and frames whose times one flow has noted, of 16 bytes each.
    pub(crate) times: usize,
    /// Events without any time between them.
    pub(crate) standstill: u64,
    /// How many events and packets may pass until all this is counted again.
    pub(crate) every: u64,
}

impl Default for Limits {
    /// As many packets as anything may hold, and about a gigabyte of connections. Ten packets of each of a hundred thousand flows
    /// that begin at the same moment are a million events; ten times as many come to no end.
    fn default() -> Self {
        Self { packets: PACKETS_MAX, connections: 200_000, times: 20_000_000, standstill: 10_000_000, every: 1 << 18 }
    }
}

/// When what a run holds was counted last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Events and packets so far.
    work: u64,
    /// The time of the event before this one, and how many events there had been when it began.
    at: Timestamp,
    pub(crate) since: u64,
}

impl Counted {
    /// How many events and packets there had been.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Whether to count again. `events` and `work` are the totals so far.
    #[inline]
    pub(crate) fn is_due(&mut self, now: Timestamp, events: u64, work: u64, limits: &Limits) -> bool {
        if now != self.at {
            (self.at, self.since) = (now, events);
        }
        if work - self.work < limits.every {
            return false;
        }
        self.work = work;
        true
    }
}

impl Limits {
    /// Refuses to go on where a run holds more than it may, or has had `events` without any time between them.
    pub(crate) fn check(&self, run: &Moment<'_>, events: u64) -> Result<(), SimError> {
        let at = run.at;
        if events > self.standstill {
            return Err(SimError::Standstill { at, events: self.standstill });
        }
        let waiting = |(_, stats): &(&ScenarioLink, LinkStats)| stats.queued.packets + stats.in_flight.packets;
        let on_links: u64 = run.links().map(|link| waiting(&link)).sum();
        let remembered: u64 = run.connections().map(|connection| connection.remembered()).sum();
        if on_links.max(remembered) > self.packets
            && let Some((link, _)) = run.links().max_by_key(waiting)
        {
            let config = &link.config;
            let (name, rate, queue) = (link.name.clone(), shown_rate(config.rate.mean()), shown_queue(&config.queue));
            return Err(SimError::TooManyPackets { at, most: self.packets, name, rate, delay: config.delay, queue });
        }
        let name = |flow: Option<&Flow>| flow.map_or(String::new(), |flow| flow.name.clone());
        if run.open_connections() > self.connections {
            let open = |state: &FlowState| state.count.begun - state.count.completions.len() as u64;
            let flow = name(run.flows().max_by_key(|(_, state)| open(state)).map(|(flow, _)| flow));
            return Err(SimError::TooManyConnections { at, most: self.connections, flow });
        }
        let noted = |state: &FlowState| state.count.completions.len() + state.count.frame_delays.len();
        match run.flows().find(|(_, state)| noted(state) > self.times) {
            Some((flow, _)) => Err(SimError::TooManyTimes { at, most: self.times, flow: name(Some(flow)) }),
            None => Ok(()),
        }
    }
}

fn shown_rate(rate: Option<Bitrate>) -> String {
    rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string())
}

fn shown_queue(queue: &QueueConfig) -> String {
    let (kind, limit) = match queue {
        QueueConfig::DropTail(limit) => ("", limit),
        QueueConfig::Red(red) => ("red, limit ", &red.limit),
        QueueConfig::CoDel(codel) => ("codel, limit ", &codel.limit),
        QueueConfig::FqCoDel(fair) => ("fq_codel, limit ", &fair.codel.limit),
    };
    let limit = match limit {
        QueueLimit::Bytes(bytes) => bytes.to_string(),
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Sojourn(time) => format!("{time:?}"),
        QueueLimit::Unlimited => "unlimited".to_owned(),
    };
    format!("{kind}{limit}")
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_scenario::ScenarioFile;

    use super::*;
    use crate::simulation::Simulation;

    /// Runs the scenario under small limits, and returns the error that ends it.
    fn end(scenario: &str) -> Result<(), SimError> {
        let scenario = ScenarioFile::parse(scenario, "test").unwrap().expand(None).unwrap();
        let mut simulation = Simulation::new(&scenario).unwrap();
        simulation.limits =
            Limits { packets: 10_000, connections: 100, times: 1_000, standstill: 50_000, every: 1_000 };
        simulation.run(&mut ())
    }

    /// A flow of `flow` over a link of `link`.
    fn scenario(link: &str, flow: &str) -> String {
        format!(
            "duration = \"10s\"\nsample_every = \"0s\"\nlink = [{{ name = \"x\", from = \"a\", to = \"b\", {link} }}]\nflow = [{{ name = \"f\", from = \"a\", to = \"b\", {flow} }}]\n"
        )
    }

    #[test]
    fn a_link_that_holds_too_much_is_named_with_its_values() {
        let fast = "rate = \"10000Gbit/s\"";
        let error = end(&scenario(fast, "traffic = \"bulk\"")).unwrap_err();
        assert!(matches!(&error, SimError::TooManyPackets { name, .. } if name == "x"), "{error}");
        let said = error.to_string();
        for part in ["10000 packets", "link \"x\"", "10000.00 Gbit/s", "`rate`", "`queue`", "100ms"] {
            assert!(said.contains(part), "{said}");
        }
        let flood =
            end(&scenario("rate = \"1Mbit/s\", queue = \"unlimited\"", "traffic = { unresponsive = \"1Gbit/s\" }"));
        assert!(matches!(flood, Err(SimError::TooManyPackets { .. })), "{flood:?}");
        let far = end(&scenario("rate = \"1Gbit/s\", delay = \"1h\"", "traffic = { unresponsive = \"1Gbit/s\" }"));
        assert!(matches!(far, Err(SimError::TooManyPackets { .. })), "{far:?}");
    }

    #[test]
    fn a_link_that_takes_no_time_ends_in_an_error_and_not_in_one_endless_moment() {
        let flood = end(&scenario("rate = \"10000Gbit/s\", delay = \"0ms\"", "traffic = \"bulk\""));
        assert!(matches!(flood, Err(SimError::TooManyPackets { .. })), "{flood:?}");
    }

    #[test]
    fn a_large_room_that_nobody_fills_is_no_fault() {
        assert_eq!(end(&scenario("rate = \"10000Gbit/s\", delay = \"50ms\"", "traffic = { size = \"5MB\" }")), Ok(()));
        assert_eq!(
            end(&scenario("rate = \"20Mbit/s\", queue = \"unlimited\"", "traffic = { size = \"5MB\" }")),
            Ok(())
        );
    }

    #[test]
    fn pieces_that_wait_for_one_another_count_for_what_they_take() {
        // Data on the slow path arrives a second later. Meanwhile 8,000 pieces arrive on the other.
        let text = r#"
            duration = "5s"
            sample_every = "0s"
            link = [
                { name = "fast", from = "a", to = "b", rate = "100Mbit/s", delay = "5ms" },
                { name = "slow", from = "a", to = "b", rate = "100kbit/s", delay = "5ms", queue = "2s" },
            ]
            flow = [{ name = "f", from = "a", to = "b", via = [["fast"], ["slow"]], traffic = "bulk" }]
        "#;
        assert_eq!(end(text), Ok(()));
    }

    #[test]
    fn transfers_that_begin_faster_than_they_end_are_told() {
        let traffic = "traffic = { short_flows = { size = \"1MB\", mean_interval = \"1us\" } }";
        let error = end(&scenario("rate = \"1Mbit/s\", queue = \"10 packets\"", traffic)).unwrap_err();
        assert!(matches!(&error, SimError::TooManyConnections { flow, .. } if flow == "f"), "{error}");
        assert!(error.to_string().contains("`mean_interval`"), "{error}");
    }

    #[test]
    fn times_without_number_are_told() {
        let traffic = "traffic = { short_flows = { size = \"10B\", mean_interval = \"100us\" } }";
        let error = end(&scenario("rate = \"1Gbit/s\"", traffic)).unwrap_err();
        assert!(matches!(&error, SimError::TooManyTimes { flow, .. } if flow == "f"), "{error}");
    }

    #[test]
    fn a_network_without_time_is_told() {
        let held = "transport = { receive_buffer = \"100kB\", send_buffer = \"100kB\" }";
        let error = end(&scenario("rate = \"unlimited\"", held)).unwrap_err();
        assert!(matches!(error, SimError::Standstill { at: Timestamp::ZERO, .. }), "{error}");
        assert!(error.to_string().contains("`delay`"), "{error}");
    }

    #[test]
    fn the_queue_is_told_as_it_was_written() {
        assert_eq!(shown_queue(&QueueConfig::sojourn(Duration::from_millis(60))), "60ms");
        assert_eq!(shown_queue(&QueueConfig::packets(9)), "9 packets");
        assert_eq!(shown_queue(&fairpath_net::CoDelConfig::default().into()), "codel, limit unlimited");
    }
}
