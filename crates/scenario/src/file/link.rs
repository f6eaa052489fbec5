//! Links as a scenario file describes them.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    GilbertElliott, Impairments, Jitter, JitterDistribution, LinkConfig, LossConfig, Policer, Rate, RateTable, Reorder,
};

use super::queue::{Queue, read_queue};
use super::reader::{At, Fault, Table, Value, missing};
use super::trace::{Files, read_end, read_trace};
use super::transport::PACKET_MAX;
use crate::error::Problem;
use crate::keys;
use crate::topology::Wire;

/// The description of one direction. What is not said is left to what stands further out.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkValues {
    rate: Option<At<Rate>>,
    delay: Option<Duration>,
    queue: Option<At<Queue>>,
    policer: Option<Policer>,
    loss: Option<LossConfig>,
    jitter: Option<Jitter>,
    reorder: Option<Reorder>,
    duplicate: Option<f64>,
    corrupt: Option<f64>,
    overhead: Option<ByteCount>,
}

impl LinkValues {
    pub(crate) fn read(table: &Table, files: &Files) -> Result<Self, Fault> {
        table.exclude("trace", "rate")?;
        let rate = table.optional("rate", read_rate)?;
        let trace = table.optional("trace", |value| read_trace(value, files))?;
        Ok(Self {
            rate: rate.or(trace),
            delay: table.optional("delay", Value::time)?.map(|delay| delay.value),
            queue: table.optional("queue", read_queue)?,
            policer: table.optional("policer", read_policer)?.map(|policer| policer.value),
            loss: table.optional("loss", read_loss)?.map(|loss| loss.value),
            jitter: table.optional("jitter", read_jitter)?.map(|jitter| jitter.value),
            reorder: table.optional("reorder", read_reorder)?.map(|reorder| reorder.value),
            duplicate: table.optional("duplicate", Value::share)?.map(|share| share.value),
            corrupt: table.optional("corrupt", Value::share)?.map(|share| share.value),
            overhead: table.optional("overhead", read_overhead)?.map(|overhead| overhead.value),
        })
    }

    fn or(&self, outer: &Self) -> Self {
        Self {
            rate: self.rate.clone().or_else(|| outer.rate.clone()),
            delay: self.delay.or(outer.delay),
            queue: self.queue.clone().or_else(|| outer.queue.clone()),
            policer: self.policer.or(outer.policer),
            loss: self.loss.or(outer.loss),
            jitter: self.jitter.or(outer.jitter),
            reorder: self.reorder.or(outer.reorder),
            duplicate: self.duplicate.or(outer.duplicate),
            corrupt: self.corrupt.or(outer.corrupt),
            overhead: self.overhead.or(outer.overhead),
        }
    }

    /// The same, but for a policer and a queue that is managed: these are meant for the packets of the direction
    /// which they are written for. In the other one they would drop acknowledgements, and nobody asked for that.
    fn without_management(&self) -> Self {
        let plain = |queue: &At<Queue>| !queue.value.is_managed();
        Self { queue: self.queue.clone().filter(plain), policer: None, ..self.clone() }
    }

    /// The link described, and what is open of its queue; `None` where it has no rate.
    fn build(&self) -> Option<(LinkConfig, OpenQueue)> {
        let rate = self.rate.as_ref()?;
        let mut config = LinkConfig::new(rate.value.clone());
        config.delay = self.delay.unwrap_or(config.delay);
        config.jitter = self.jitter.unwrap_or(config.jitter);
        config.policer = self.policer;
        config.loss = self.loss.unwrap_or(config.loss);
        config.impairments = Impairments {
            reorder: self.reorder,
            duplicate: self.duplicate.unwrap_or(0.0),
            corrupt: self.corrupt.unwrap_or(0.0),
        };
        config.overhead = self.overhead.unwrap_or(config.overhead);
        let mut open = None;
        if let Some(queue) = &self.queue {
            match &queue.value {
                Queue::Bdp(factor) => open = Some(At { value: *factor, at: queue.at }),
                Queue::Settled(settled) => config.queue = settled.clone(),
            }
        }
        Some((config, open))
    }
}

/// How many bandwidth-delay products a queue has room for, where it is so described: only the
/// paths over the link tell how much that is.
pub(crate) type OpenQueue = Option<At<f64>>;

/// The description of a wire.
#[derive(Clone, Debug)]
pub(crate) struct WireValues {
    forward: LinkValues,
    back: LinkValues,
    at: usize,
    path: &'static str,
}

/// A wire, and what is open of its queues.
#[derive(Clone, Debug)]
pub(crate) struct BuiltWire {
    pub(crate) wire: Wire,
    pub(crate) open_forward: OpenQueue,
    pub(crate) open_back: OpenQueue,
}

impl WireValues {
    /// Reads the values and `back` of `table`, which is called `path` in messages.
    pub(crate) fn read(table: &Table, path: &'static str, files: &Files) -> Result<Self, Fault> {
        let forward = LinkValues::read(table, files)?;
        let back = match table.get("back") {
            None => LinkValues::default(),
            Some(value) => {
                let table = value.table(&keys::BACK)?;
                let back = LinkValues::read(&table, files)?;
                table.close("here")?;
                back
            }
        };
        Ok(Self { forward, back, at: table.at, path })
    }

    /// A wire of which nothing is said.
    pub(crate) fn unsaid(at: usize, path: &'static str) -> Self {
        Self { forward: LinkValues::default(), back: LinkValues::default(), at, path }
    }

    pub(crate) fn build(&self, defaults: &LinkValues) -> Result<BuiltWire, Fault> {
        let forward = self.forward.or(defaults);
        let back = self.back.or(&self.forward.without_management()).or(defaults);
        let missing = || missing(&keys::LINK, "rate", self.at, self.path);
        let (forward, open_forward) = forward.build().ok_or_else(missing)?;
        let (back, open_back) = back.build().ok_or_else(missing)?;
        Ok(BuiltWire { wire: Wire { forward, back }, open_forward, open_back })
    }
}

/// An entry `[[link]]`.
#[derive(Clone, Debug)]
pub(crate) struct LinkEntry {
    /// Where the name stands, or the entry where it has none.
    pub(crate) name: At<Option<String>>,
    pub(crate) from: String,
    pub(crate) to: At<String>,
    pub(crate) one_way: bool,
    pub(crate) wire: WireValues,
}

impl LinkEntry {
    pub(crate) fn read(value: &Value, files: &Files) -> Result<Self, Fault> {
        let table = value.table(&keys::LINK)?;
        let name = table.optional("name", Value::name)?;
        let from = table.needed("from", Value::name)?.value;
        let to = table.needed("to", Value::name)?;
        let one_way = table.optional("one_way", Value::flag)?.is_some_and(|flag| flag.value);
        if one_way {
            table.exclude("back", "one_way")?;
        }
        let wire = WireValues::read(&table, "link", files)?;
        let name = name.map_or(At { value: None, at: table.at }, |name| At { value: Some(name.value), at: name.at });
        table.close("here")?;
        Ok(Self { name, from, to, one_way, wire })
    }
}

fn read_rate(value: &Value) -> Result<Rate, Fault> {
    if value.is_table() {
        return read_steps(value);
    }
    match value.as_text() {
        Some("unlimited") => Ok(Rate::Unlimited),
        _ => value.positive_rate().map(Rate::Fixed),
    }
}

fn read_steps(value: &Value) -> Result<Rate, Fault> {
    let table = value.table(&keys::RATE_STEPS)?;
    let expected = "a list of steps, like [[\"0s\", \"20Mbit/s\"], [\"12s\", \"5Mbit/s\"]]";
    let steps = table.get("steps").ok_or_else(|| table.missing("steps"))?;
    let mut entries: Vec<(Timestamp, Bitrate)> = Vec::new();
    for step in steps.list(expected)? {
        let pair = step.list(expected)?;
        let [time, rate] = &pair[..] else { return Err(step.not("a time and a rate, like [\"12s\", \"5Mbit/s\"]")) };
        let at = Timestamp::ZERO + time.time()?;
        match entries.last() {
            None if at > Timestamp::ZERO => return Err(time.out_of_range("\"0s\" in the first step")),
            Some((before, _)) if at <= *before => {
                return Err(time.out_of_range(format!("after the step before, at {before}")));
            }
            _ => entries.push((at, rate.rate()?)),
        }
    }
    let end = read_end(&table)?;
    table.close("here")?;
    let senseless = |error: fairpath_net::RateTableError| Problem::Senseless { reason: error.to_string() };
    let built = RateTable::new(entries, end).map_err(|error| value.fault(senseless(error)))?;
    Ok(built.into())
}

/// More than the largest packet is no framing.
fn read_overhead(value: &Value) -> Result<ByteCount, Fault> {
    let size = value.size()?;
    if size > PACKET_MAX { Err(value.out_of_range("at most 65535B")) } else { Ok(size) }
}

fn read_policer(value: &Value) -> Result<Policer, Fault> {
    let table = value.table(&keys::POLICER)?;
    let rate = table.needed("rate", Value::positive_rate)?.value;
    let burst = table.needed("burst", Value::size)?;
    table.close("here")?;
    if burst.value == ByteCount::ZERO {
        return Err(value.fault(Problem::Senseless { reason: "a burst of 0B would let nothing pass".to_owned() }));
    }
    Ok(Policer { rate, burst: burst.value })
}

fn read_jitter(value: &Value) -> Result<Jitter, Fault> {
    if !value.is_table() {
        return value.time().map(Jitter::from);
    }
    let table = value.table(&keys::JITTER)?;
    let distribution = table.optional("distribution", read_distribution)?;
    let scale = table.needed("scale", Value::time)?.value;
    let overtake = table.optional("overtake", Value::flag)?.is_some_and(|flag| flag.value);
    table.close("here")?;
    Ok(Jitter { distribution: distribution.map_or(JitterDistribution::Uniform, |at| at.value), scale, overtake })
}

fn read_distribution(value: &Value) -> Result<JitterDistribution, Fault> {
    Ok(match value.word("distribution")? {
        "normal" => JitterDistribution::Normal,
        "exponential" => JitterDistribution::Exponential,
        _ => JitterDistribution::Uniform,
    })
}

fn read_reorder(value: &Value) -> Result<Reorder, Fault> {
    let table = value.table(&keys::REORDER)?;
    let share = table.needed("share", Value::share)?.value;
    let by = table.needed("by", Value::positive_time)?.value;
    table.close("here")?;
    Ok(Reorder { share, by })
}

fn read_loss(value: &Value) -> Result<LossConfig, Fault> {
    if !value.is_table() {
        let probability = value.share()?;
        return Ok(if probability == 0.0 { LossConfig::None } else { LossConfig::Random { probability } });
    }
    let table = value.table(&keys::LOSS)?;
    let (_, model) = table.the_one()?;
    let model = model.table(&keys::GILBERT_ELLIOTT)?;
    let share = |name, default| Ok(model.optional(name, Value::share)?.map_or(default, |share| share.value));
    let burst = GilbertElliott {
        good_to_bad: model.needed("good_to_bad", Value::share)?.value,
        bad_to_good: model.needed("bad_to_good", Value::share)?.value,
        loss_in_good: share("loss_in_good", 0.0)?,
        loss_in_bad: share("loss_in_bad", 1.0)?,
    };
    model.close("here")?;
    Ok(LossConfig::GilbertElliott(burst))
}
