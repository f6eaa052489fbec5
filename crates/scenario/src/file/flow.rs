//! Flows as a scenario file describes them.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{Coupling, EngineConfig};

use super::parameters::Parameters;
use super::reader::{At, Fault, Table, Value};
use super::remedies::RemedyValues;
use super::traffic::read_traffic;
use super::transport::TransportValues;
use crate::error::Problem;
use crate::keys;
use crate::model::{Traffic, Transport};

/// A flow, as far as it is said; the rest is left to what stands further out.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowValues {
    /// Whether what is not said is as over real networks.
    is_live: Option<bool>,
    congestion: Option<String>,
    coupling: Option<Coupling>,
    detector: Option<String>,
    hold: Option<Duration>,
    dips: Option<bool>,
    pub(crate) remedies: RemedyValues,
    scheduler: Option<String>,
    pub(crate) traffic: Option<Traffic>,
    pub(crate) start: Option<At<Duration>>,
    pub(crate) start_jitter: Option<Duration>,
    pub(crate) stop: Option<At<Duration>>,
    transport: TransportValues,
    parameters: Parameters,
}

impl FlowValues {
    pub(crate) fn read(table: &Table) -> Result<Self, Fault> {
        let name = |key, what| {
            Ok::<_, Fault>(table.optional(key, |value| value.word(what))?.map(|name| name.value.to_owned()))
        };
        let coupling = |value: &Value| {
            let unknown =
                |error: fairpath_engine::UnknownName| value.fault(Problem::Senseless { reason: error.to_string() });
            value.word("coupling")?.parse().map_err(unknown)
        };
        let transport = table.optional("transport", TransportValues::read)?;
        let parameters = table.optional("parameters", Parameters::read)?;
        Ok(Self {
            is_live: table.optional("preset", |value| value.word("preset"))?.map(|_| true),
            congestion: name("congestion", "congestion control")?,
            coupling: table.optional("coupling", coupling)?.map(|coupling| coupling.value),
            detector: name("detector", "detector")?,
            hold: table.optional("hold", Value::time)?.map(|hold| hold.value),
            dips: table.optional("dips", Value::flag)?.map(|dips| dips.value),
            remedies: table.optional("remedies", RemedyValues::read)?.map(|read| read.value).unwrap_or_default(),
            scheduler: name("scheduler", "scheduler")?,
            traffic: table.optional("traffic", read_traffic)?.map(|traffic| traffic.value),
            start: table.optional("start", Value::time)?,
            start_jitter: table.optional("start_jitter", Value::time)?.map(|jitter| jitter.value),
            stop: table.optional("stop", Value::time)?,
            transport: transport.map(|transport| transport.value).unwrap_or_default(),
            parameters: parameters.map(|parameters| parameters.value).unwrap_or_default(),
        })
    }

    pub(crate) fn or(&self, outer: &Self) -> Self {
        Self {
            is_live: self.is_live.or(outer.is_live),
            congestion: self.congestion.clone().or_else(|| outer.congestion.clone()),
            coupling: self.coupling.or(outer.coupling),
            detector: self.detector.clone().or_else(|| outer.detector.clone()),
            hold: self.hold.or(outer.hold),
            dips: self.dips.or(outer.dips),
            remedies: self.remedies.or(outer.remedies),
            scheduler: self.scheduler.clone().or_else(|| outer.scheduler.clone()),
            traffic: self.traffic.or(outer.traffic),
            start: self.start.or(outer.start),
            start_jitter: self.start_jitter.or(outer.start_jitter),
            stop: self.stop.or(outer.stop),
            transport: self.transport.or(outer.transport),
            parameters: self.parameters.or(&outer.parameters),
        }
    }

    fn is_live(&self) -> bool {
        self.is_live.unwrap_or_default()
    }

    /// How packets are made, as described.
    pub(crate) fn transport(&self) -> Result<Transport, Fault> {
        self.transport.build(self.is_live())
    }

    /// The engine described.
    pub(crate) fn engine(&self) -> EngineConfig {
        let mut engine = if self.is_live() { EngineConfig::live() } else { EngineConfig::default() };
        if let Some(congestion) = &self.congestion {
            engine.congestion.clone_from(congestion);
        }
        if let Some(scheduler) = &self.scheduler {
            engine.scheduler.clone_from(scheduler);
        }
        if let Some(detector) = &self.detector {
            engine.detector.clone_from(detector);
        }
        engine.coupling = self.coupling.unwrap_or(engine.coupling);
        engine.hold = self.hold.unwrap_or(engine.hold);
        engine.dips = self.dips.unwrap_or(engine.dips);
        self.parameters.apply(&mut engine);
        engine
    }
}

/// An entry `[[flow]]`.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntry {
    pub(crate) name: At<String>,
    /// The numbers of its copies, where it has such.
    pub(crate) copies: Option<core::ops::Range<u64>>,
    pub(crate) ends: Ends,
    /// Path by path.
    pub(crate) weights: Option<At<Vec<u32>>>,
    pub(crate) costs: Option<At<Vec<u32>>>,
    /// `None` in it: none.
    pub(crate) caps: Option<At<Vec<Option<Bitrate>>>>,
    pub(crate) quotas: Option<At<Vec<Option<ByteCount>>>>,
    pub(crate) values: FlowValues,
}

/// Between which nodes flows go.
#[derive(Clone, Debug)]
pub(crate) enum Ends {
    /// From one to another.
    Pair { from: At<String>, to: At<String>, routing: Routing },
    /// From some of the hosts, as a matrix says.
    Matrix { matrix: At<Matrix>, share: Option<At<f64>>, subflows: u32 },
}

/// The two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrix {
    Permutation,
    Random,
}

/// The ways that a flow takes.
#[derive(Clone, Debug)]
pub(crate) enum Routing {
    /// A number of ways that share no link.
    Disjoint(At<u32>),
    /// A number of those with the fewest links.
    EqualCost(At<u32>),
    /// These, and these back.
    Along { ways: Vec<At<Vec<String>>>, back: Option<Vec<At<Vec<String>>>> },
}

impl FlowEntry {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let table = value.table(&keys::FLOW)?;
        let name = table.needed("name", Value::name)?;
        let matrix = table.optional("matrix", read_matrix)?;
        let ends = match matrix {
            Some(matrix) => read_matrix_ends(&table, matrix)?,
            None => read_pair(&table)?,
        };
        let values = FlowValues::read(&table)?;
        let count = table.optional("count", Value::whole)?;
        let first = table.optional("first", Value::whole)?;
        if let (None, Some(_), Some(value)) = (&count, &first, table.get("first")) {
            return Err(value.fault(Problem::Meaningless { without: "without count".to_owned() }));
        }
        let copies = count.map(|count| {
            let first = first.map_or(0, |first| first.value);
            first..first + count.value
        });
        let weights = table.optional("weights", read_numbers)?;
        let costs = table.optional("costs", read_numbers)?;
        let caps = table.optional("caps", read_caps)?;
        let quotas = table.optional("quotas", read_quotas)?;
        table.close("without matrix")?;
        Ok(Self { name, copies, ends, weights, costs, caps, quotas, values })
    }
}

/// A number for each path.
fn read_numbers(value: &Value) -> Result<Vec<u32>, Fault> {
    value.list("a list of whole numbers, one for each path, like [3, 1]")?.iter().map(Value::whole_u32).collect()
}

/// A rate, or none, for each path.
fn read_caps(value: &Value) -> Result<Vec<Option<Bitrate>>, Fault> {
    let of = |value: &Value| match value.as_text() {
        Some("unlimited") => Ok(None),
        _ => value.positive_rate().map(Some),
    };
    value.list("a list of rates, one for each path, like [\"unlimited\", \"5Mbit/s\"]")?.iter().map(of).collect()
}

/// A size, or none, for each path.
fn read_quotas(value: &Value) -> Result<Vec<Option<ByteCount>>, Fault> {
    let of = |value: &Value| match value.as_text() {
        Some("unlimited") => Ok(None),
        _ => value.positive_size().map(Some),
    };
    value.list("a list of sizes, one for each path, like [\"unlimited\", \"20MB\"]")?.iter().map(of).collect()
}

fn read_matrix(value: &Value) -> Result<Matrix, Fault> {
    Ok(match value.word("matrix")? {
        "permutation" => Matrix::Permutation,
        _ => Matrix::Random,
    })
}

fn read_matrix_ends(table: &Table, matrix: At<Matrix>) -> Result<Ends, Fault> {
    for other in ["from", "to", "via", "back_via", "paths", "count", "first"] {
        table.exclude(other, "matrix")?;
    }
    let read_share = |value: &Value| match value.as_text() {
        Some("rest") => Ok(None),
        _ => value.share().map(Some),
    };
    let share = table.optional("share", read_share)?;
    let share = share.and_then(|share| share.value.map(|value| At { value, at: share.at }));
    let subflows = table.optional("subflows", Value::whole_u32)?.map_or(1, |subflows| subflows.value);
    Ok(Ends::Matrix { matrix, share, subflows })
}

fn read_pair(table: &Table) -> Result<Ends, Fault> {
    let from = table.needed("from", Value::name)?;
    let to = table.needed("to", Value::name)?;
    table.exclude("paths", "via")?;
    table.exclude("subflows", "via")?;
    table.exclude("subflows", "paths")?;
    let ways = table.optional("via", read_ways)?;
    let back = table.optional("back_via", read_ways)?;
    let routing = match (ways, back) {
        (Some(ways), back) => {
            if let Some(back) = back.as_ref().filter(|back| back.value.len() != ways.value.len()) {
                let (given, needed) = (back.value.len(), ways.value.len());
                let reason = format!("via has {needed} paths and back_via {given}; give a way back for each path");
                return Err(Fault::new(back.at, "flow.back_via", Problem::Senseless { reason }));
            }
            Routing::Along { ways: ways.value, back: back.map(|back| back.value) }
        }
        (None, Some(back)) => {
            let without = "without via".to_owned();
            return Err(Fault::new(back.at, "flow.back_via", Problem::Meaningless { without }));
        }
        (None, None) => match table.optional("subflows", Value::whole_u32)? {
            Some(subflows) => Routing::EqualCost(subflows),
            None => {
                let paths = table.optional("paths", Value::whole_u32)?;
                Routing::Disjoint(paths.unwrap_or(At { value: 1, at: from.at }))
            }
        },
    };
    Ok(Ends::Pair { from, to, routing })
}

/// The ways of a flow: a list of lists, or one list where there is one way.
fn read_ways(value: &Value) -> Result<Vec<At<Vec<String>>>, Fault> {
    let expected = "a list of paths, each a list of nodes or links, like [[\"wifi\"], [\"lte\"]]";
    let names = |elements: Vec<Value>| elements.iter().map(Value::name).collect::<Result<Vec<String>, Fault>>();
    let elements = value.list(expected)?;
    let Some(first) = elements.first() else {
        let reason = "a flow needs at least one path; write [[]] for the link that joins its ends".to_owned();
        return Err(value.fault(Problem::Senseless { reason }));
    };
    if first.as_text().is_some() {
        return Ok(vec![At { value: names(elements)?, at: value.at }]);
    }
    if elements.len() as u64 > keys::PATHS_MAX {
        return Err(value.out_of_range(format!("at most {} paths", keys::PATHS_MAX)));
    }
    elements.iter().map(|way| Ok(At { value: names(way.list(expected)?)?, at: way.at })).collect()
}
