//! Scenario files: TOML that a person writes.

mod change;
mod expand;
mod flow;
mod link;
mod network;
mod parameters;
mod queue;
mod reader;
mod remedies;
mod source;
mod sweep;
mod trace;
mod traffic;
mod transport;

use core::time::Duration;

use crate::error::{Problem, ScenarioError};
use crate::keys;
use crate::model::{Change, Scenario};
use expand::Expansion;
use flow::{FlowEntry, FlowValues};
use link::LinkValues;
use network::Network;
use reader::{At, Fault, Table, Value};
use source::Source;
use sweep::Template;
use trace::Files;

pub use sweep::{ParameterValue, Sweep};

/// How often the time series take a sample where nothing is said.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// No run takes more samples than this.
const SAMPLES_MAX: u32 = 10_000_000;

/// The seed where nothing is said.
const SEED: u64 = 1;

/// A scenario file that was read: the network stands, the flows are described.
///
/// The format is described in `docs/reference/scenario.md`.
///
/// ```
/// use fairpath_scenario::ScenarioFile;
///
/// let text = r#"
///     duration = "10s"
///     [[link]]
///     name = "wifi"
///     from = "server"
///     to = "phone"
///     rate = "30Mbit/s"
///     delay = "10ms"
///     [[link]]
///     name = "lte"
///     from = "server"
///     to = "phone"
///     rate = "20Mbit/s"
///     delay = "30ms"
///     [[flow]]
///     name = "download"
///     from = "server"
///     to = "phone"
///     paths = 2
/// "#;
/// let scenario = ScenarioFile::parse(text, "download.toml")?.expand(Some(7))?;
/// assert_eq!(scenario.links.len(), 4);
/// assert_eq!(scenario.flows[0].paths.len(), 2);
/// # Ok::<(), fairpath_scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    source: Source,
    title: String,
    seed: u64,
    duration: Duration,
    warm_up: Duration,
    sample_every: Duration,
    network: Network,
    flow_defaults: FlowValues,
    flows: Vec<FlowEntry>,
    changes: Vec<Change>,
}

impl ScenarioFile {
    /// Reads a scenario file that names no other files. `file` is its name, for messages.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it, with its place.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, &|_| Err("no files can be read here".to_owned()))
    }

    /// Reads a scenario file. `read` gives the text of a file that it names, or says why it cannot.
    /// A file whose parameters have several values is several scenarios: a [`Sweep`] reads them.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it, with its place.
    ///
    /// ```
    /// use fairpath_scenario::ScenarioFile;
    ///
    /// let text = r#"
    ///     duration = "10s"
    ///     link = [{ from = "a", to = "b", trace = "walk.csv" }]
    ///     flow = [{ name = "bulk", from = "a", to = "b" }]
    /// "#;
    /// let read = |path: &str| match path {
    ///     "walk.csv" => Ok("time_s,rate_mbps\n0,20\n5,2\n".to_owned()),
    ///     _ => Err("there is no such file".to_owned()),
    /// };
    /// let file = ScenarioFile::parse_with(text, "walk.toml", &read)?;
    /// assert_eq!(file.expand(None)?.links.len(), 2);
    /// # Ok::<(), fairpath_scenario::ScenarioError>(())
    /// ```
    pub fn parse_with(
        text: &str,
        file: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ScenarioError> {
        let source = Source::new(file, text);
        let template = Template::parse(text, &[]).and_then(Template::only_one).map_err(|fault| source.error(fault))?;
        Self::read_point(&template, 0, &source, read)
    }

    /// Reads the file with the values that its parameters have in this combination.
    fn read_point(template: &Template, point: usize, source: &Source, files: &Files) -> Result<Self, ScenarioError> {
        let source = source.with(template.said(point));
        let read = || {
            let root = template.at(point)?;
            Self::read(Table::open(&root, 0, "", &keys::FILE)?, &source, files)
        };
        read().map_err(|fault| source.error(fault))
    }

    /// The scenario, with everything drawn that is random in it but what its elements draw while it
    /// runs. The same file and seed give the same scenario. Without a seed it is that of the file.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with its flows, with its place.
    pub fn expand(&self, seed: Option<u64>) -> Result<Scenario, ScenarioError> {
        let seed = seed.unwrap_or(self.seed);
        Expansion::new(self, seed).run(seed).map_err(|fault| self.source.error(fault))
    }

    fn read(root: Table, source: &Source, files: &Files) -> Result<Self, Fault> {
        let text = |value: &Value| value.text("a title, like \"Two links\"").map(str::to_owned);
        let title = root.optional("title", text)?.map_or_else(|| source.name().to_owned(), |title| title.value);
        let seed = root.optional("seed", Value::whole)?.map_or(SEED, |seed| seed.value);
        let duration = root.needed("duration", Value::positive_time)?.value;
        let warm_up = root.optional("warm_up", Value::time)?;
        before_end("warm_up", warm_up, duration)?;
        let sample_every = root.optional("sample_every", |value| read_sample_every(value, duration))?;

        let (link_defaults, flow_defaults) = read_defaults(&root, files)?;
        let network = Network::read(&root, &link_defaults, source, files)?;
        let flows = read_flows(&root, &flow_defaults, duration, source)?;
        let changes = read_changes(&root, &network, duration)?;
        root.close("here")?;
        Ok(Self {
            source: source.clone(),
            title,
            seed,
            duration,
            warm_up: warm_up.map_or(Duration::ZERO, |time| time.value),
            sample_every: sample_every.map_or(SAMPLE_EVERY, |time| time.value),
            network,
            flow_defaults,
            flows,
            changes,
        })
    }
}

/// Zero is no samples at all.
fn read_sample_every(value: &Value, duration: Duration) -> Result<Duration, Fault> {
    let time = value.time()?;
    let least = duration / SAMPLES_MAX;
    if time.is_zero() || time >= least {
        return Ok(time);
    }
    Err(value.out_of_range(format!("\"0s\" for no samples, or at least {least:?} for {SAMPLES_MAX} of them")))
}

fn read_defaults(root: &Table, files: &Files) -> Result<(LinkValues, FlowValues), Fault> {
    let Some(value) = root.get("defaults") else { return Ok(Default::default()) };
    let table = value.table(&keys::DEFAULTS)?;
    let mut links = LinkValues::default();
    if let Some(value) = table.get("link") {
        let table = value.table(&keys::LINK_DEFAULTS)?;
        links = LinkValues::read(&table, files)?;
        table.close("here")?;
    }
    let mut flows = FlowValues::default();
    if let Some(value) = table.get("flow") {
        let table = value.table(&keys::FLOW_DEFAULTS)?;
        flows = FlowValues::read(&table)?;
        table.close("here")?;
    }
    table.close("here")?;
    Ok((links, flows))
}

fn read_flows(
    root: &Table,
    defaults: &FlowValues,
    duration: Duration,
    source: &Source,
) -> Result<Vec<FlowEntry>, Fault> {
    let mut flows: Vec<FlowEntry> = Vec::new();
    let entries = root.get("flow").ok_or_else(|| root.missing("flow"))?;
    for value in entries.list("a list of tables; write [[flow]] with two brackets")? {
        let entry = FlowEntry::read(&value)?;
        let values = entry.values.or(defaults);
        before_end("flow.start", values.start, duration)?;
        let start = values.start.map_or(Duration::ZERO, |start| start.value);
        if let Some(stop) = values.stop.filter(|stop| stop.value <= start) {
            return Err(order(stop.at, "flow.stop", stop.value, "after", "start", start));
        }
        values.transport()?;
        if let Some(same) = flows.iter().find(|other| other.name.value == entry.name.value) {
            let (name, line) = (entry.name.value, source.line(same.name.at));
            return Err(Fault::new(entry.name.at, "flow.name", Problem::Duplicate { what: "flow", name, line }));
        }
        flows.push(entry);
    }
    if flows.is_empty() { Err(root.missing("flow")) } else { Ok(flows) }
}

fn read_changes(root: &Table, network: &Network, duration: Duration) -> Result<Vec<Change>, Fault> {
    let mut changes = Vec::new();
    if let Some(value) = root.get("change") {
        for value in value.list("a list of tables; write [[change]] with two brackets")? {
            let (at, read) = change::read_change(&value, &network.topology)?;
            before_end("change.at", read.first().map(|change| At { value: change.at, at }), duration)?;
            changes.extend(read);
        }
    }
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

/// Refuses a time that is not before the end of the run.
fn before_end(key: &str, time: Option<At<Duration>>, duration: Duration) -> Result<(), Fault> {
    match time.filter(|time| time.value >= duration) {
        Some(time) => Err(order(time.at, key, time.value, "before", "duration", duration)),
        None => Ok(()),
    }
}

fn order(at: usize, key: &str, value: Duration, relation: &'static str, other: &'static str, limit: Duration) -> Fault {
    let (value, limit) = (format!("{value:?}"), format!("{limit:?}"));
    Fault::new(at, key, Problem::Order { value, relation, other, limit })
}
