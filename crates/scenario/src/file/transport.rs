//! How packets are made, acknowledged and buffered, as a scenario file describes it.

use core::time::Duration;

use fairpath_core::ByteCount;

use super::reader::{At, Fault, Value};
use crate::error::Problem;
use crate::keys;
use crate::model::Transport;

/// The largest packet: what an IP packet can be.
pub(crate) const PACKET_MAX: ByteCount = ByteCount::new(65_535);

/// The transport, as far as it is said; the rest is left to what stands further out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportValues {
    packet: Option<At<ByteCount>>,
    header: Option<At<ByteCount>>,
    ack: Option<ByteCount>,
    ack_every: Option<u32>,
    ack_delay_max: Option<Duration>,
    /// Inside, `None` is a buffer that is said to be unlimited.
    send_buffer: Option<At<Option<ByteCount>>>,
    receive_buffer: Option<At<Option<ByteCount>>>,
    reinjection: Option<bool>,
    ecn: Option<bool>,
    pacing: Option<bool>,
}

impl TransportValues {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let table = value.table(&keys::TRANSPORT)?;
        let flag = |name| Ok(table.optional(name, Value::flag)?.map(|flag| flag.value));
        let values = Self {
            packet: table.optional("packet", read_packet)?,
            header: table.optional("header", Value::size)?,
            ack: table.optional("ack", read_packet)?.map(|ack| ack.value),
            ack_every: table.optional("ack_every", Value::whole_u32)?.map(|every| every.value),
            ack_delay_max: table.optional("ack_delay_max", Value::time)?.map(|delay| delay.value),
            send_buffer: table.optional("send_buffer", read_buffer)?,
            receive_buffer: table.optional("receive_buffer", read_buffer)?,
            reinjection: flag("reinjection")?,
            ecn: flag("ecn")?,
            pacing: flag("pacing")?,
        };
        table.close("here")?;
        Ok(values)
    }

    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            packet: self.packet.or(outer.packet),
            header: self.header.or(outer.header),
            ack: self.ack.or(outer.ack),
            ack_every: self.ack_every.or(outer.ack_every),
            ack_delay_max: self.ack_delay_max.or(outer.ack_delay_max),
            send_buffer: self.send_buffer.or(outer.send_buffer),
            receive_buffer: self.receive_buffer.or(outer.receive_buffer),
            reinjection: self.reinjection.or(outer.reinjection),
            ecn: self.ecn.or(outer.ecn),
            pacing: self.pacing.or(outer.pacing),
        }
    }

    /// The transport described. `is_live`: what is not said is as over real networks.
    pub(crate) fn build(self, is_live: bool) -> Result<Transport, Fault> {
        let plain = if is_live { Transport::live() } else { Transport::default() };
        let packet = self.packet.map_or(plain.packet, |packet| packet.value);
        let header = self.header.map_or(plain.header, |header| header.value);
        if header >= packet {
            return Err(match (self.header, self.packet) {
                (Some(given), _) => order(given.at, "header", header, "below", ("packet", packet)),
                (None, given) => {
                    order(given.map_or(0, |given| given.at), "packet", packet, "above", ("header", header))
                }
            });
        }
        let buffer = |name: &'static str, given: Option<At<Option<ByteCount>>>| match given {
            Some(At { value: Some(size), at }) if size < packet => {
                Err(order(at, name, size, "at least", ("packet", packet)))
            }
            Some(given) => Ok(given.value),
            None => Ok(None),
        };
        Ok(Transport {
            packet,
            header,
            ack: self.ack.unwrap_or(plain.ack),
            ack_every: self.ack_every.unwrap_or(plain.ack_every),
            ack_delay_max: self.ack_delay_max.unwrap_or(plain.ack_delay_max),
            send_buffer: buffer("send_buffer", self.send_buffer)?,
            receive_buffer: buffer("receive_buffer", self.receive_buffer)?,
            reinjection: self.reinjection.unwrap_or(plain.reinjection),
            ecn: self.ecn.unwrap_or(plain.ecn),
            pacing: self.pacing.or(plain.pacing),
        })
    }
}

fn order(
    at: usize,
    key: &str,
    value: ByteCount,
    relation: &'static str,
    (other, limit): (&'static str, ByteCount),
) -> Fault {
    let (value, limit) = (value.to_string(), limit.to_string());
    Fault::new(at, format!("transport.{key}"), Problem::Order { value, relation, other, limit })
}

fn read_packet(value: &Value) -> Result<ByteCount, Fault> {
    let size = value.positive_size()?;
    if size > PACKET_MAX { Err(value.out_of_range("at most 65535B")) } else { Ok(size) }
}

fn read_buffer(value: &Value) -> Result<Option<ByteCount>, Fault> {
    match value.as_text() {
        Some("unlimited") => Ok(None),
        _ => value.positive_size().map(Some),
    }
}
