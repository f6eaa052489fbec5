//! The engine's view of a connection as trace records.

use fairpath_engine::{PathSnapshot, Phase, Timestamp};
use fairpath_quic::Connection;
use fairpath_trace::{Record, Sample, State};

/// The records of all paths of a connection at this moment.
pub(crate) fn records(connection: &Connection, run: Option<&str>, flow: Option<&str>) -> Vec<Record> {
    let (now, snapshots) = connection.snapshots();
    snapshots
        .iter()
        .map(|snapshot| Record {
            run: run.map(str::to_owned),
            flow: flow.map(str::to_owned),
            ..Record::from(sample(now, snapshot))
        })
        .collect()
}

fn sample(now: Timestamp, path: &PathSnapshot) -> Sample {
    Sample {
        now,
        path: path.path,
        cwnd: path.window,
        srtt: path.rtt.map(|rtt| rtt.smoothed),
        rtt_min: path.rtt.map(|rtt| rtt.min),
        in_flight: path.in_flight,
        rate: path.rate,
        lost: path.lost,
        group: path.group,
        state: match path.phase {
            _ if path.suspected => State::Suspected,
            Phase::SlowStart => State::SlowStart,
            Phase::CongestionAvoidance => State::CongestionAvoidance,
            Phase::Recovery => State::Recovery,
        },
    }
}
