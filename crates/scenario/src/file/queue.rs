//! Queues as a scenario file describes them.

use fairpath_core::ByteCount;
use fairpath_net::{CoDelConfig, FqCoDelConfig, QueueConfig, QueueLimit, RedConfig, RedSpacing};

use super::reader::{Fault, Table, Value};
use crate::error::Problem;
use crate::keys;
use crate::units::{self, Room};

/// Where nothing is said, an arrival at the upper threshold of RED is dropped with this probability,
/// as in the testbed of [CoNEXT2012OLIA §3].
const MAX_PROBABILITY: f64 = 0.1;

/// A queue as far as the file settles it.
#[derive(Clone, Debug)]
pub(crate) enum Queue {
    Settled(QueueConfig),
    /// Drop-tail with room for this many bandwidth-delay products.
    Bdp(f64),
}

impl Queue {
    /// Whether it drops before it is full.
    pub(crate) fn is_managed(&self) -> bool {
        matches!(self, Self::Settled(QueueConfig::Red(_) | QueueConfig::CoDel(_) | QueueConfig::FqCoDel(_)))
    }
}

pub(crate) fn read_queue(value: &Value) -> Result<Queue, Fault> {
    if !value.is_table() {
        return read_drop_tail(value);
    }
    let table = value.table(&keys::QUEUE)?;
    let (kind, value) = table.the_one()?;
    match kind {
        "drop_tail" => read_drop_tail(&value),
        "red" => read_red(&value).map(|red| Queue::Settled(red.into())),
        "codel" => read_codel(&value).map(|codel| Queue::Settled(codel.into())),
        _ => read_fq_codel(&value).map(|fair| Queue::Settled(fair.into())),
    }
}

fn read_drop_tail(value: &Value) -> Result<Queue, Fault> {
    match read_room(value)? {
        Room::Bdp(factor) => Ok(Queue::Bdp(factor)),
        room => Ok(Queue::Settled(QueueConfig::DropTail(limit(value, room)?))),
    }
}

fn read_red(value: &Value) -> Result<RedConfig, Fault> {
    let table = value.table(&keys::RED)?;
    for other in ["min", "max", "max_probability", "gentle"] {
        table.exclude(other, "points")?;
    }
    let mut red = match table.get("points") {
        Some(points) => RedConfig::new(read_points(&points)?),
        None => read_thresholds(&table)?,
    };
    if let Some(weight) = table.optional("weight", Value::number)? {
        red.weight = weight.value;
    }
    if let Some(spacing) = table.optional("spacing", |value| value.word("spacing"))? {
        red.spacing = if spacing.value == "geometric" { RedSpacing::Geometric } else { RedSpacing::Uniform };
    }
    if let Some(limit) = table.optional("limit", read_limit)? {
        red.limit = limit.value;
    }
    table.close("here")?;
    Ok(red)
}

fn read_thresholds(table: &Table) -> Result<RedConfig, Fault> {
    let min = table.needed("min", read_threshold)?.value;
    let max = table.get("max").ok_or_else(|| table.missing("max"))?;
    let max = not_below(min, read_threshold(&max)?, &max)?;
    let probability = table.optional("max_probability", Value::share)?;
    let probability = probability.map_or(MAX_PROBABILITY, |probability| probability.value);
    let gentle = table.optional("gentle", Value::flag)?;
    let build = if gentle.is_none_or(|gentle| gentle.value) { RedConfig::gentle } else { RedConfig::classic };
    Ok(build(min, max, probability))
}

fn read_points(value: &Value) -> Result<Vec<(QueueLimit, f64)>, Fault> {
    let expected = "a list of points, like [[\"30ms\", 0], [\"60ms\", \"10%\"], [\"120ms\", 1]]";
    let mut points: Vec<(QueueLimit, f64)> = Vec::new();
    for point in value.list(expected)? {
        let pair = point.list(expected)?;
        let [threshold, probability] = &pair[..] else {
            return Err(point.not("an average queue and a probability, like [\"60ms\", \"10%\"]"));
        };
        let read = read_threshold(threshold)?;
        let before = points.last().map_or(read, |(before, _)| *before);
        points.push((not_below(before, read, threshold)?, probability.share()?));
    }
    if points.is_empty() { Err(value.not(expected)) } else { Ok(points) }
}

fn read_codel(value: &Value) -> Result<CoDelConfig, Fault> {
    let table = value.table(&keys::CODEL)?;
    let codel = read_control(&table, CoDelConfig::default())?;
    table.close("here")?;
    Ok(codel)
}

/// The keys that CoDel and FQ-CoDel have in common.
fn read_control(table: &Table, mut codel: CoDelConfig) -> Result<CoDelConfig, Fault> {
    if let Some(target) = table.optional("target", Value::positive_time)? {
        codel.target = target.value;
    }
    if let Some(interval) = table.optional("interval", Value::positive_time)? {
        codel.interval = interval.value;
    }
    if let Some(limit) = table.optional("limit", read_limit)? {
        codel.limit = limit.value;
    }
    Ok(codel)
}

fn read_fq_codel(value: &Value) -> Result<FqCoDelConfig, Fault> {
    let table = value.table(&keys::FQ_CODEL)?;
    let mut fair = FqCoDelConfig::default();
    fair.codel = read_control(&table, fair.codel)?;
    if let Some(queues) = table.optional("queues", Value::whole)? {
        fair.queues = u16::try_from(queues.value).unwrap_or(u16::MAX);
    }
    if let Some(quantum) = table.optional("quantum", read_quantum)? {
        fair.quantum = quantum.value;
    }
    table.close("here")?;
    Ok(fair)
}

fn read_quantum(value: &Value) -> Result<ByteCount, Fault> {
    let size = value.size()?;
    if size == ByteCount::ZERO { Err(value.out_of_range("at least 1B")) } else { Ok(size) }
}

fn read_room(value: &Value) -> Result<Room, Fault> {
    value.unit("the room of a queue, like \"100ms\" or \"300 packets\"", units::room)
}

fn read_limit(value: &Value) -> Result<QueueLimit, Fault> {
    limit(value, read_room(value)?)
}

fn read_threshold(value: &Value) -> Result<QueueLimit, Fault> {
    match read_limit(value)? {
        QueueLimit::Unlimited => Err(value.not("a threshold, like \"60ms\" or \"50 packets\"")),
        limit => Ok(limit),
    }
}

fn limit(value: &Value, room: Room) -> Result<QueueLimit, Fault> {
    Ok(match room {
        Room::Unlimited => QueueLimit::Unlimited,
        Room::Time(time) => QueueLimit::Sojourn(time),
        Room::Bytes(bytes) => QueueLimit::Bytes(bytes),
        Room::Packets(packets) => QueueLimit::Packets(usize::try_from(packets).unwrap_or(usize::MAX)),
        Room::Bdp(_) => return Err(value.not("a time, a size or a number of packets, like \"60ms\"")),
    })
}

/// Refuses a threshold that is below the one before or of another unit.
fn not_below(before: QueueLimit, threshold: QueueLimit, value: &Value) -> Result<QueueLimit, Fault> {
    let rises = match (before, threshold) {
        (QueueLimit::Bytes(before), QueueLimit::Bytes(after)) => before <= after,
        (QueueLimit::Packets(before), QueueLimit::Packets(after)) => before <= after,
        (QueueLimit::Sojourn(before), QueueLimit::Sojourn(after)) => before <= after,
        _ => {
            let reason = "the thresholds are of different units; give all as times, all as sizes or all in packets";
            return Err(value.fault(Problem::Senseless { reason: reason.to_owned() }));
        }
    };
    if rises { Ok(threshold) } else { Err(value.out_of_range("at least the threshold before it")) }
}
