//! The network that a scenario file describes: a ready-made one, and links besides.

use super::link::{BuiltWire, LinkEntry, LinkValues, OpenQueue, WireValues};
use super::reader::{At, Fault, Table, Value};
use super::source::Source;
use super::trace::Files;
use crate::error::Problem;
use crate::keys::{self, Keys};
use crate::model::LinkIndex;
use crate::topology::{self, FatTree, Topology, TopologyError, Wire, default_name};

/// A network, and what is open of the queues of its links until the paths over them are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) topology: Topology,
    pub(crate) open_queues: Vec<(LinkIndex, At<f64>)>,
}

impl Network {
    pub(crate) fn read(root: &Table, defaults: &LinkValues, source: &Source, files: &Files) -> Result<Self, Fault> {
        let mut network = Self::default();
        if let Some(value) = root.get("topology") {
            network.read_shape(&value, defaults, files)?;
        }
        if let Some(value) = root.get("link") {
            let mut places: Vec<(LinkIndex, usize)> = Vec::new();
            for entry in value.list("a list of tables; write [[link]] with two brackets")? {
                let entry = LinkEntry::read(&entry, files)?;
                let at = entry.name.at;
                let added = network.add(entry, defaults);
                let link = added.map_err(|fault| first_place(fault, &network.topology, &places, source))?;
                places.push((link, at));
            }
        }
        Ok(network)
    }

    /// A ready-made network. They consist of wires, each first forward and then back.
    fn read_shape(&mut self, value: &Value, defaults: &LinkValues, files: &Files) -> Result<(), Fault> {
        let table = value.table(&keys::TOPOLOGY)?;
        let (kind, value) = table.the_one()?;
        match kind {
            "dumbbell" => {
                let table = value.table(&keys::DUMBBELL)?;
                let pairs = table.needed("pairs", Value::whole_u32)?.value;
                let wire = |value: &Value| read_wire(value, "topology.dumbbell.bottleneck", files)?.build(defaults);
                let bottleneck = table.needed("bottleneck", wire)?.value;
                let wire = |value: &Value| read_wire(value, "topology.dumbbell.access", files)?.build(defaults);
                let access = table.optional("access", wire)?.map_or_else(at_once, |access| access.value);
                table.close("here")?;
                self.topology = topology::dumbbell(pairs, &bottleneck.wire, &access.wire);
                // The bottleneck is the first wire.
                self.leave_open(&bottleneck, 0..2);
                self.leave_open(&access, 2..self.topology.links().len());
                Ok(())
            }
            "parallel" => {
                let read = |table: &Table| Ok(table.needed("count", Value::whole_u32)?.value);
                let build = |count, wire: &Wire| topology::parallel(count, wire);
                self.read_uniform(&value, &keys::PARALLEL, "topology.parallel", (defaults, files), read, build)
            }
            "chain" => {
                let read = |table: &Table| Ok(table.needed("hops", Value::whole_u32)?.value);
                let build = |hops, wire: &Wire| topology::chain(hops, wire);
                self.read_uniform(&value, &keys::CHAIN, "topology.chain", (defaults, files), read, build)
            }
            "fat_tree" => {
                let keys = &keys::FAT_TREE;
                self.read_uniform(&value, keys, "topology.fat_tree", (defaults, files), read_tree, topology::fat_tree)
            }
            _ => {
                let keys = &keys::OVERSUBSCRIBED_FAT_TREE;
                let path = "topology.oversubscribed_fat_tree";
                let read = |table: &Table| {
                    let tree = read_tree(table)?;
                    let ratio = |value: &Value| {
                        let allowed = || format!("such that there are at most {} hosts", FatTree::HOSTS_MAX);
                        tree.oversubscribed(value.whole_u32()?).ok_or_else(|| value.out_of_range(allowed()))
                    };
                    Ok(table.needed("ratio", ratio)?.value)
                };
                self.read_uniform(&value, keys, path, (defaults, files), read, topology::fat_tree)
            }
        }
    }

    /// A ready-made network whose wires are all alike: `read` reads what it is made from.
    fn read_uniform<T>(
        &mut self,
        value: &Value,
        keys: &'static Keys,
        path: &'static str,
        (defaults, files): (&LinkValues, &Files),
        read: impl FnOnce(&Table) -> Result<T, Fault>,
        build: impl FnOnce(T, &Wire) -> Topology,
    ) -> Result<(), Fault> {
        let table = value.table(keys)?;
        let size = read(&table)?;
        let wire = match table.get("link") {
            Some(value) => read_wire(&value, path, files)?,
            None => WireValues::unsaid(table.at, path),
        };
        let wire = wire.build(defaults)?;
        table.close("here")?;
        self.topology = build(size, &wire.wire);
        self.leave_open(&wire, 0..self.topology.links().len());
        Ok(())
    }

    /// Notes what is open of the queues of `links`, which were all made from `wire`.
    fn leave_open(&mut self, wire: &BuiltWire, links: core::ops::Range<usize>) {
        for index in links {
            let open: OpenQueue = if index % 2 == 0 { wire.open_forward } else { wire.open_back };
            self.open_queues.extend(open.map(|open| (LinkIndex(index as u32), open)));
        }
    }

    fn add(&mut self, entry: LinkEntry, defaults: &LinkValues) -> Result<LinkIndex, Fault> {
        let LinkEntry { name, from, to, one_way, wire } = entry;
        let built = wire.build(defaults)?;
        let name = At { value: name.value.unwrap_or_else(|| default_name(&from, &to.value)), at: name.at };
        let added = if one_way {
            self.topology.add_link(&name.value, &from, &to.value, built.wire.forward)
        } else {
            self.topology.add_wire(&name.value, &from, &to.value, &built.wire)
        };
        let link = added.map_err(|error| match error {
            TopologyError::DuplicateLink { .. } => Fault::new(name.at, "link.name", error),
            TopologyError::Loop { .. } => Fault::new(to.at, "link.to", error),
        })?;
        self.open_queues.extend(built.open_forward.map(|open| (link, open)));
        if let Some(back) = self.topology.opposite(link) {
            self.open_queues.extend(built.open_back.map(|open| (back, open)));
        }
        Ok(link)
    }
}

/// Says in which line the name was given first, where that is the problem and the line is known.
fn first_place(fault: Fault, network: &Topology, places: &[(LinkIndex, usize)], source: &Source) -> Fault {
    let Problem::Topology(TopologyError::DuplicateLink { name }) = &*fault.problem else { return fault };
    let link = network.link(name).map(|link| network.opposite(link).map_or(link, |back| link.min(back)));
    let Some((_, at)) = places.iter().find(|(known, _)| Some(*known) == link) else { return fault };
    let problem = Problem::Duplicate { what: "link", name: name.clone(), line: source.line(*at) };
    Fault::new(fault.at, fault.key, problem)
}

fn read_wire(value: &Value, path: &'static str, files: &Files) -> Result<WireValues, Fault> {
    let table = value.table(&keys::WIRE)?;
    let wire = WireValues::read(&table, path, files)?;
    table.close("here")?;
    Ok(wire)
}

fn read_tree(table: &Table) -> Result<FatTree, Fault> {
    let allowed = || format!("an even number from 2 to {}", FatTree::K_MAX);
    let tree = |value: &Value| FatTree::new(value.whole_u32()?).ok_or_else(|| value.out_of_range(allowed()));
    Ok(table.needed("k", tree)?.value)
}

/// A wire that takes no time.
fn at_once() -> BuiltWire {
    let wire = Wire::both(fairpath_net::LinkConfig::pure_delay(core::time::Duration::ZERO));
    BuiltWire { wire, open_forward: None, open_back: None }
}
