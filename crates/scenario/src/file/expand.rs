//! From a scenario file to a scenario: copies are made, ways are found, what is random is drawn.

use core::time::Duration;
use std::collections::BTreeMap;

use fairpath_engine::Terms;
use fairpath_net::{QueueConfig, Streams};
use rand_chacha::rand_core::RngCore as _;

use super::ScenarioFile;
use super::flow::{Ends, FlowEntry, Matrix, Routing};
use super::reader::{At, Fault};
use crate::error::Problem;
use crate::keys::FLOWS_MAX;
use crate::matrix::{permutation, random_receivers, shuffled};
use crate::model::{Flow, LinkIndex, PathRoute, Scenario, Traffic};
use crate::route::RouteError;
use crate::topology::Topology;

/// No scenario has flows whose paths, there and back, go over more links than these together: ten for
/// each path of 100,000 flows with 20 paths.
const HOPS_MAX: usize = 20_000_000;

/// A scenario in the making.
pub(super) struct Expansion<'f> {
    file: &'f ScenarioFile,
    topology: Topology,
    streams: Streams,
    /// The hosts in random order, from which the entries with a matrix take one after the other.
    order: Option<Vec<usize>>,
    /// How many of them are taken.
    taken: usize,
    /// Where each name of a flow stands.
    names: BTreeMap<String, usize>,
    /// Ways that were found, since many flows may take the same.
    found: BTreeMap<(String, String, u32), Vec<PathRoute>>,
    flows: Vec<Flow>,
    /// How many links the paths of all flows have, one behind the other.
    hops: usize,
}

impl<'f> Expansion<'f> {
    pub(super) fn new(file: &'f ScenarioFile, seed: u64) -> Self {
        Self {
            file,
            topology: file.network.topology.clone(),
            streams: Streams::new(seed),
            order: None,
            taken: 0,
            names: BTreeMap::new(),
            found: BTreeMap::new(),
            flows: Vec::new(),
            hops: 0,
        }
    }

    pub(super) fn run(mut self, seed: u64) -> Result<Scenario, Fault> {
        for entry in &self.file.flows {
            self.add_entry(entry)?;
        }
        self.settle_queues()?;
        let file = self.file;
        Ok(Scenario {
            title: file.title.clone(),
            seed,
            duration: file.duration,
            warm_up: file.warm_up,
            sample_every: file.sample_every,
            links: self.topology.into_links(),
            flows: self.flows,
            changes: file.changes.clone(),
        })
    }

    fn add_entry(&mut self, entry: &FlowEntry) -> Result<(), Fault> {
        match &entry.ends {
            Ends::Matrix { matrix, share, subflows } => self.add_matrix(entry, *matrix, *share, *subflows),
            Ends::Pair { from, to, routing } => match &entry.copies {
                None => self.add_copy(entry, &entry.name.value, None, (from, to, routing)),
                Some(numbers) => numbers.clone().try_for_each(|number| {
                    let name = format!("{}.{number}", entry.name.value);
                    self.add_copy(entry, &name, Some(number), (from, to, routing))
                }),
            },
        }
    }

    fn add_copy(
        &mut self,
        entry: &FlowEntry,
        name: &str,
        number: Option<u64>,
        (from, to, routing): (&At<String>, &At<String>, &Routing),
    ) -> Result<(), Fault> {
        let from = At { value: numbered(&from.value, from.at, "flow.from", number)?, at: from.at };
        let to = At { value: numbered(&to.value, to.at, "flow.to", number)?, at: to.at };
        // Where one of the ends is not known, that is to be said at its own place.
        for (end, key) in [(&from, "flow.from"), (&to, "flow.to")] {
            self.topology.known(&end.value).map_err(|error| Fault::new(end.at, key, error))?;
        }
        if from.value == to.value {
            return Err(Fault::new(to.at, "flow.to", RouteError::SameEnds { node: to.value }));
        }
        let (from, at, to) = (from.value.as_str(), to.at, to.value.as_str());
        let paths = match routing {
            Routing::Disjoint(paths) => {
                let key = (from.to_owned(), to.to_owned(), paths.value);
                if let Some(found) = self.found.get(&key) {
                    found.clone()
                } else {
                    let found = self.topology.disjoint(from, to, paths.value);
                    let found = found.map_err(|error| Fault::new(paths.at, "flow.paths", error))?;
                    self.found.insert(key, found.clone());
                    found
                }
            }
            Routing::EqualCost(subflows) => {
                let mut generator = self.streams.generator(name, "paths");
                let drawn = self.topology.equal_cost(from, to, subflows.value, &mut generator);
                drawn.map_err(|error| Fault::new(at, "flow.to", error))?
            }
            Routing::Along { ways, back } => self.along(ways, back.as_deref(), from, to, number)?,
        };
        self.push(entry, name.to_owned(), paths)
    }

    fn along(
        &self,
        ways: &[At<Vec<String>>],
        back: Option<&[At<Vec<String>>]>,
        from: &str,
        to: &str,
        number: Option<u64>,
    ) -> Result<Vec<PathRoute>, Fault> {
        let walk = |way: &At<Vec<String>>, key: &'static str, from: &str, to: &str| {
            let names = way.value.iter().map(|name| numbered(name, way.at, key, number));
            let names = names.collect::<Result<Vec<String>, Fault>>()?;
            self.topology.along(from, to, &names).map_err(|error| Fault::new(way.at, key, error))
        };
        let path = |(index, way): (usize, &At<Vec<String>>)| {
            let forward = walk(way, "flow.via", from, to)?;
            match back {
                Some(back) => Ok(PathRoute { forward, backward: walk(&back[index], "flow.back_via", to, from)? }),
                None => {
                    self.topology.and_back(forward, to, from).map_err(|error| Fault::new(way.at, "flow.via", error))
                }
            }
        };
        ways.iter().enumerate().map(path).collect()
    }

    fn add_matrix(
        &mut self,
        entry: &FlowEntry,
        matrix: At<Matrix>,
        share: Option<At<f64>>,
        subflows: u32,
    ) -> Result<(), Fault> {
        let hosts = self.topology.hosts().to_vec();
        let senseless = |at, key: &str, reason: String| Fault::new(at, key, Problem::Senseless { reason });
        let receivers = match matrix.value {
            Matrix::Permutation => permutation(hosts.len(), &mut self.streams.generator("matrix", "permutation")),
            Matrix::Random => random_receivers(hosts.len(), &mut self.streams.generator("matrix", "random")),
        };
        let receivers = receivers.ok_or_else(|| {
            let reason = "a matrix needs the hosts of a [topology]; without one, give from and to".to_owned();
            senseless(matrix.at, "flow.matrix", reason)
        })?;
        let streams = self.streams;
        let order = self.order.get_or_insert_with(|| shuffled(hosts.len(), &mut streams.generator("matrix", "order")));
        let left = hosts.len() - self.taken;
        let wanted = share.map_or(left, |share| (share.value * hosts.len() as f64).round() as usize);
        if wanted == 0 || wanted > left {
            let reason = format!("{wanted} of {} hosts should send, and {left} are left for this entry", hosts.len());
            let (at, key) = share.map_or((matrix.at, "flow.matrix"), |share| (share.at, "flow.share"));
            return Err(senseless(at, key, reason));
        }
        let mut senders = order[self.taken..self.taken + wanted].to_vec();
        senders.sort_unstable();
        self.taken += wanted;
        for sender in senders {
            let (from, to) = (&hosts[sender], &hosts[receivers[sender]]);
            let name = format!("{}.{from}", entry.name.value);
            let mut generator = self.streams.generator(&name, "paths");
            let paths = self.topology.equal_cost(from, to, subflows, &mut generator);
            let paths = paths.map_err(|error| Fault::new(matrix.at, "flow.matrix", error))?;
            self.push(entry, name, paths)?;
        }
        Ok(())
    }

    fn push(&mut self, entry: &FlowEntry, name: String, paths: Vec<PathRoute>) -> Result<(), Fault> {
        let file = self.file;
        if self.flows.len() as u64 >= FLOWS_MAX {
            let reason = format!("there are more than {FLOWS_MAX} flows in the file");
            return Err(Fault::new(entry.name.at, "flow.count", Problem::Senseless { reason }));
        }
        self.hops += paths.iter().map(|path| path.forward.len() + path.backward.len()).sum::<usize>();
        if self.hops > HOPS_MAX {
            let reason = format!(
                "the paths of all flows together go over more than {HOPS_MAX} links; give fewer flows or shorter ways"
            );
            return Err(Fault::new(entry.name.at, "flow.count", Problem::Senseless { reason }));
        }
        if let Some(at) = self.names.insert(name.clone(), entry.name.at) {
            let problem = Problem::Duplicate { what: "flow", name, line: file.source.line(at) };
            return Err(Fault::new(entry.name.at, "flow.name", problem));
        }
        let terms = terms(entry, paths.len())?;
        let values = entry.values.or(&file.flow_defaults);
        let mut engine = values.engine();
        // Flows whose congestion control draws something should not all draw the same.
        engine.parameters.bbr.seed = self.streams.generator(&name, "congestion").next_u64();
        self.flows.push(Flow {
            name,
            class: entry.name.value.clone(),
            paths,
            terms,
            engine,
            transport: values.transport()?,
            remedies: values.remedies.build(),
            traffic: values.traffic.unwrap_or(Traffic::Bulk),
            start: values.start.map_or(Duration::ZERO, |start| start.value),
            start_jitter: values.start_jitter.unwrap_or_default(),
            stop: values.stop.map(|stop| stop.value),
        });
        Ok(())
    }

    /// Sizes the queues that are given in bandwidth-delay products. The round-trip time is the
    /// longest of the paths over the link, or its own if there are none.
    fn settle_queues(&mut self) -> Result<(), Fault> {
        let open = &self.file.network.open_queues;
        if open.is_empty() {
            return Ok(());
        }
        let mut longest: BTreeMap<LinkIndex, Duration> = BTreeMap::new();
        for path in self.flows.iter().flat_map(|flow| &flow.paths) {
            let rtt = self.topology.base_rtt(path);
            for link in path.forward.iter().chain(&path.backward) {
                let known = longest.entry(*link).or_default();
                *known = rtt.max(*known);
            }
        }
        for (link, factor) in open {
            let own = || {
                let there_and_back =
                    PathRoute { forward: vec![*link], backward: Vec::from_iter(self.topology.opposite(*link)) };
                self.topology.base_rtt(&there_and_back)
            };
            let rtt = longest.get(link).copied().unwrap_or_else(own);
            let room = Duration::from_nanos((rtt.as_nanos() as f64 * factor.value).round() as u64);
            if room.is_zero() {
                let reason = "the bandwidth-delay product is zero, since no link has a delay; give a time or a size";
                let problem = Problem::Senseless { reason: reason.to_owned() };
                return Err(Fault::new(factor.at, "link.queue", problem));
            }
            self.topology.config_mut(*link).queue = QueueConfig::sojourn(room);
        }
        Ok(())
    }
}

/// The terms of each path.
fn terms(entry: &FlowEntry, paths: usize) -> Result<Vec<Terms>, Fault> {
    fn checked<T: Clone>(given: &Option<At<Vec<T>>>, key: &'static str, paths: usize) -> Result<Option<Vec<T>>, Fault> {
        match given {
            Some(given) if given.value.len() != paths => {
                let reason = format!("it has {} and the flow {paths} paths; give one for each", given.value.len());
                Err(Fault::new(given.at, key, Problem::Senseless { reason }))
            }
            Some(given) => Ok(Some(given.value.clone())),
            None => Ok(None),
        }
    }
    let weights = checked(&entry.weights, "flow.weights", paths)?;
    let costs = checked(&entry.costs, "flow.costs", paths)?;
    let caps = checked(&entry.caps, "flow.caps", paths)?;
    let quotas = checked(&entry.quotas, "flow.quotas", paths)?;
    if weights.is_none() && costs.is_none() && caps.is_none() && quotas.is_none() {
        return Ok(Vec::new());
    }
    let said = |numbers: &Option<Vec<u32>>, path: usize| numbers.as_ref().map(|numbers| numbers[path]);
    let of = |path| {
        let default = Terms::default();
        Terms {
            weight: said(&weights, path).unwrap_or(default.weight),
            cost: said(&costs, path).unwrap_or(default.cost),
            cap: caps.as_ref().and_then(|caps| caps[path]),
            quota: quotas.as_ref().and_then(|quotas| quotas[path]),
            ..default
        }
    };
    Ok((0..paths).map(of).collect())
}

/// The name with the number of the copy in place of `{i}`.
fn numbered(name: &str, at: usize, key: &str, number: Option<u64>) -> Result<String, Fault> {
    match number {
        Some(number) => Ok(name.replace("{i}", &number.to_string())),
        None if name.contains("{i}") => {
            let reason = format!("{name:?} has the number of a copy, and there are no copies; give a count");
            Err(Fault::new(at, key, Problem::Senseless { reason }))
        }
        None => Ok(name.to_owned()),
    }
}
