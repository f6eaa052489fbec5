//! The targets, and what they have in common.

mod control;
mod datagrams;
mod delays;
mod gzip;
mod journal;
mod manifest;
mod ndjson;
mod parcel;
mod pcap;
mod pcapng;
mod qlog;
mod rates;
mod rtt;
mod scenario;
mod stream;
mod streams;
mod table;
mod ticket;

/// Something that is parsed of others.
#[derive(Debug)]
pub struct Target {
    /// Its name, which is that of its file and of its corpus.
    pub name: &'static str,
    /// The input in words.
    pub about: &'static str,
    /// Parses an input and panics where something does not hold of the result.
    pub check: fn(&[u8]),
    /// Inputs to begin with, made by the writer of the format.
    pub seeds: fn() -> Vec<Seed>,
    /// Words of the format, which a fuzzer would take long to find.
    pub words: &'static [&'static str],
    /// Folders of the repository with more inputs.
    pub also: &'static [&'static str],
}

/// An input to begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Its name, which is a part of that of its file.
    pub name: String,
    /// The input.
    pub content: Vec<u8>,
}

impl Seed {
    pub(crate) fn new(name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), content: content.into() }
    }
}

/// All targets.
pub static TARGETS: [&Target; 17] = [
    &ticket::TARGET,
    &control::TARGET,
    &manifest::TARGET,
    &journal::TARGET,
    &parcel::TARGET,
    &datagrams::TARGET,
    &streams::TARGET,
    &delays::TARGET,
    &stream::TARGET,
    &scenario::TARGET,
    &rates::TARGET,
    &pcap::TARGET,
    &pcapng::TARGET,
    &qlog::TARGET,
    &table::TARGET,
    &ndjson::TARGET,
    &gzip::TARGET,
];

/// The target of this name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
