//! The engine's view of a connection as trace records, and the file they go to.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fairpath_engine::{PathSnapshot, Phase, Timestamp};
use fairpath_quic::Connection;
use fairpath_trace::{Header, Record, Sample, State, WriteError, Writer};

/// The records of all paths of a connection at this moment.
pub fn records(connection: &Connection, run: Option<&str>, flow: Option<&str>) -> Vec<Record> {
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

/// A path as a trace shows it.
pub fn sample(now: Timestamp, path: &PathSnapshot) -> Sample {
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
            _ if path.is_silent() => State::Suspected,
            Phase::SlowStart => State::SlowStart,
            Phase::CongestionAvoidance => State::CongestionAvoidance,
            Phase::Recovery => State::Recovery,
        },
    }
}

/// A trace that is being written.
pub struct TraceFile {
    path: PathBuf,
    writer: Writer<File>,
}

impl TraceFile {
    /// Creates the file, with its header.
    pub fn create(path: &Path, run: &str) -> anyhow::Result<Self> {
        let name = || format!("cannot write the trace {}", path.display());
        let file = File::create(path).with_context(name)?;
        let writer = Writer::new(file, &Header::new(Some(run))).with_context(name)?;
        Ok(Self { path: path.to_owned(), writer })
    }

    /// Adds records.
    pub fn write<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) -> anyhow::Result<()> {
        let written = records.into_iter().try_for_each(|record| self.writer.write(record));
        self.named(written)
    }

    /// Brings everything to the file.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let written = self.writer.flush();
        self.named(written)
    }

    fn named(&self, result: Result<(), WriteError>) -> anyhow::Result<()> {
        result.with_context(|| format!("cannot write the trace {}", self.path.display()))
    }
}
