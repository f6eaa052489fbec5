//! The traffic of applications, as a scenario file describes it.

use core::time::Duration;

use fairpath_core::ByteCount;
use fairpath_live::{Copies, DEADLINE_MAX, DEADLINE_MIN, PACKET_MAX, Sharing};

use super::reader::{Fault, Value};
use crate::keys;
use crate::model::{Distribution, Live, Traffic};

/// How many frames a second has, after how many a key frame comes, and how many times larger it is,
/// where nothing is said. Assumed: a camera that sends a key frame every two seconds.
const FRAMES_PER_SECOND: u32 = 30;
const KEY_FRAME_EVERY: u32 = 60;
const KEY_FRAME_RATIO: f64 = 5.0;

/// The smallest packet of a live stream: its number and its time are in it.
const LIVE_PACKET_MIN: ByteCount = ByteCount::new(16);

pub(crate) fn read_traffic(value: &Value) -> Result<Traffic, Fault> {
    if !value.is_table() {
        let expected = || format!("\"bulk\", or a table with one of the keys {}", keys::TRAFFIC.names().join(", "));
        return if value.as_text() == Some("bulk") { Ok(Traffic::Bulk) } else { Err(value.not(expected())) };
    }
    let table = value.table(&keys::TRAFFIC)?;
    let (kind, value) = table.the_one()?;
    match kind {
        "size" => Ok(Traffic::Finite { size: value.positive_size()? }),
        "constant" => Ok(Traffic::Constant { rate: value.positive_rate()? }),
        "unresponsive" => Ok(Traffic::Unresponsive { rate: value.positive_rate()? }),
        "short_flows" => read_short_flows(&value),
        "on_off" => read_on_off(&value),
        "live" => read_live(&value),
        _ => read_media(&value),
    }
}

fn read_short_flows(value: &Value) -> Result<Traffic, Fault> {
    let table = value.table(&keys::SHORT_FLOWS)?;
    let size: ByteCount = table.needed("size", Value::positive_size)?.value;
    let mean_interval = table.needed("mean_interval", Value::positive_time)?.value;
    table.close("here")?;
    Ok(Traffic::ShortFlows { size, mean_interval })
}

fn read_on_off(value: &Value) -> Result<Traffic, Fault> {
    let table = value.table(&keys::ON_OFF)?;
    let on = table.needed("on", Value::positive_time)?.value;
    let off = table.needed("off", Value::positive_time)?.value;
    let word = table.optional("distribution", |value| value.word("distribution"))?;
    table.close("here")?;
    let distribution = match word.map(|word| word.value) {
        Some("fixed") => Distribution::Fixed,
        _ => Distribution::Exponential,
    };
    Ok(Traffic::OnOff { on, off, distribution })
}

fn read_media(value: &Value) -> Result<Traffic, Fault> {
    let table = value.table(&keys::MEDIA)?;
    let whole = |name, default| Ok(table.optional(name, Value::whole_u32)?.map_or(default, |number| number.value));
    let ratio = table.optional("key_frame_ratio", Value::number)?;
    let media = Traffic::Media {
        rate: table.needed("rate", Value::positive_rate)?.value,
        frames_per_second: whole("frames_per_second", FRAMES_PER_SECOND)?,
        key_frame_every: whole("key_frame_every", KEY_FRAME_EVERY)?,
        key_frame_ratio: ratio.map_or(KEY_FRAME_RATIO, |ratio| ratio.value),
    };
    table.close("here")?;
    Ok(media)
}

fn read_live(value: &Value) -> Result<Traffic, Fault> {
    let table = value.table(&keys::LIVE)?;
    let mut live =
        Live { rate: table.optional("rate", Value::positive_rate)?.map(|rate| rate.value), ..Live::default() };
    if let Some(packet) = table.optional("packet", live_packet)? {
        live.packet = packet.value;
    }
    if let Some(deadline) = table.optional("deadline", live_deadline)? {
        live.stream.deadline = deadline.value;
    }
    if let Some(repair) = table.optional("repair", Value::flag)? {
        live.stream.repair = repair.value;
    }
    let copies = table.optional("copies", Value::flag)?.is_some_and(|copies| copies.value);
    live.stream.copies = if copies { Copies::All } else { Copies::None };
    live.sharing = match table.optional("sharing", |value| value.word("sharing"))?.map(|word| word.value) {
        Some("coupled") => Sharing::Coupled,
        Some("equal") => Sharing::Equal,
        _ => Sharing::Best,
    };
    table.close("here")?;
    Ok(Traffic::Live(live))
}

fn live_packet(value: &Value) -> Result<ByteCount, Fault> {
    let most = ByteCount::new(PACKET_MAX as u64);
    let packet = value.size()?;
    let is_one = (LIVE_PACKET_MIN..=most).contains(&packet);
    if is_one { Ok(packet) } else { Err(value.out_of_range("from 16 B to 65,507 B")) }
}

fn live_deadline(value: &Value) -> Result<Duration, Fault> {
    let deadline = value.time()?;
    let is_one = (DEADLINE_MIN..=DEADLINE_MAX).contains(&deadline);
    if is_one { Ok(deadline) } else { Err(value.out_of_range("from 10 ms to 10 s")) }
}
