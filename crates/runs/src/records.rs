//! Samples of a run as records of a trace.

use fairpath_core::Timestamp;
use fairpath_report::recording::sample;
use fairpath_sim::View;
use fairpath_trace::{LinkRecord, Record};

/// Each path of a run at one time.
pub(crate) fn path_records<'a>(
    flows: &'a [String],
    now: Timestamp,
    view: &'a View<'_>,
) -> impl Iterator<Item = Record> + use<'a> {
    view.paths().map(move |(flow, snapshot)| {
        let flow = Some(flows[flow.0 as usize].clone());
        Record { flow, ..Record::from(sample(now, &snapshot)) }
    })
}

/// Each link of a run at one time.
pub(crate) fn link_records<'a>(now: Timestamp, view: &'a View<'_>) -> impl Iterator<Item = LinkRecord> + use<'a> {
    view.links().map(move |(link, stats)| LinkRecord {
        time_ns: now.as_nanos(),
        link: link.name.clone(),
        queued_packets: stats.queued.packets,
        queued_bytes: stats.queued.bytes.get(),
        delivered_bytes: stats.delivered.bytes.get(),
        dropped_packets: stats.dropped().packets,
        marked_packets: stats.marked.packets,
    })
}
