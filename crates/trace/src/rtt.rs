//! Round-trip times out of files of several kinds.
//!
//! The first bytes of a file show its kind, not its name; any of them may be packed with
//! gzip. `docs/detect.md` describes what is read of each.
//!
//! ```
//! let file = "time_s,rtt_ms\n0.5,20.0\n0.6,21.5\n";
//! let traces = fairpath_trace::rtt::read(file.as_bytes())?;
//! assert_eq!(traces.series[0].samples.len(), 2);
//! # Ok::<(), fairpath_trace::rtt::RttError>(())
//! ```

mod capture;
mod clock;
mod columns;
mod limits;
mod lines;
mod ndjson;
mod qlog;
mod table;
mod tcp;

use core::fmt;
use core::time::Duration;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use fairpath_core::{Timestamp, printable};

use limits::Bounded;
pub use limits::{Limits, TooMuch};

/// A round-trip time, and when it was measured by the clock of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// When.
    pub at: Timestamp,
    /// The round-trip time.
    pub rtt: Duration,
}

/// The round-trip times of one path or flow, in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The label that tells it from the others of its file; `None` where the file holds only one.
    pub label: Option<String>,
    /// Its samples; at least one.
    pub samples: Vec<RttSample>,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table: comma-separated values or the like.
    Table,
    /// The records of this crate.
    Ndjson,
    /// qlog, as one JSON document or as a sequence of them.
    Qlog,
    /// Captured packets, pcap or pcapng.
    Capture,
}

impl Format {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "csv",
            Self::Ndjson => "ndjson",
            Self::Qlog => "qlog",
            Self::Capture => "pcap",
        }
    }
}

/// A line that says no round-trip time and should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The line, counted from 1.
    pub line: u64,
    /// The reason, and what would be right.
    pub reason: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// The round-trip times of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The kind of the file.
    pub format: Format,
    /// At least one.
    pub series: Vec<Series>,
    /// The first bad lines, up to [`BAD_LINES_KEPT`]; they were skipped.
    pub bad: Vec<BadLine>,
    /// How many bad lines there were, those that are not kept included.
    pub bad_count: u64,
    /// Notes for a person: what was assumed, and what was left out.
    pub notes: Vec<String>,
}

/// The most bad lines that are kept; the others are only counted.
pub const BAD_LINES_KEPT: usize = 10;

/// A reason is cut where it is longer: it may quote what a file holds.
const REASON_CHARS_MAX: usize = 200;

/// No label is longer. Two addresses of version 6 with their ports have 100 characters.
const LABEL_CHARS_MAX: usize = 200;

/// No round-trip times could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RttError {
    /// The file could not be read, or what packs it is damaged.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("is empty")]
    Empty,
    /// The file begins like none of the kinds that are known.
    #[error("is of no known kind: it begins with {begin}; known are CSV, Fairpath's NDJSON, qlog, pcap and pcapng")]
    Unknown {
        /// Its first bytes.
        begin: String,
    },
    /// The file is a trace of links.
    #[error("is a trace of links, which have no round-trip times; the trace of paths is beside it")]
    Links,
    /// The header of a trace of this crate is wrong.
    #[error(transparent)]
    Header(crate::ReadError),
    /// The first line of a table names no column for something that is needed.
    #[error("line {line}: no column is called {needed}: '{header}'")]
    Column {
        /// The line, counted from 1.
        line: u64,
        /// The names that would do.
        needed: &'static str,
        /// The line.
        header: String,
    },
    /// More lines are bad than good; the first of them.
    #[error("{first} ({bad} bad lines, {good} good ones)")]
    MostlyBad {
        /// The first bad line.
        first: BadLine,
        /// How many lines are bad.
        bad: u64,
        /// How many lines are good.
        good: u64,
    },
    /// A JSON document is damaged.
    #[error("line {line}, column {column}: not the JSON of a qlog: {reason}")]
    Json {
        /// The line, counted from 1.
        line: usize,
        /// Where in the line, counted from 1.
        column: usize,
        /// The reason.
        reason: String,
    },
    /// A capture is damaged from the beginning.
    #[error("not a capture that can be read: {0}")]
    Capture(String),
    /// There is more in the file than is kept in memory.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// Nothing is wrong with the file, but no round-trip time is in it.
    #[error("has no round-trip times: {0}")]
    NoSamples(&'static str),
}

/// Reads all round-trip times of a file.
///
/// Bad lines are skipped and told. Where there are more of them than good ones, that is an error. So
/// is a file of which more would have to be kept than the default [`Limits`] allow.
pub fn read(input: impl Read) -> Result<Traces, RttError> {
    read_within(input, &Limits::default())
}

/// Reads all round-trip times of a file, as [`read`] does, within these limits.
pub fn read_within(input: impl Read, limits: &Limits) -> Result<Traces, RttError> {
    let (begin, input) = peek(BufReader::new(input))?;
    if !begin.starts_with(&[0x1f, 0x8b]) {
        return read_unpacked(&begin, input, limits);
    }
    let (unpacked, exceeded) = Bounded::new(flate2::bufread::MultiGzDecoder::new(input), limits.unpacked);
    let found = peek(BufReader::new(unpacked)).map_err(RttError::from);
    let found = found.and_then(|(begin, unpacked)| read_unpacked(&begin, unpacked, limits));
    if exceeded.get() { Err(TooMuch::Unpacked(limits.unpacked).into()) } else { found }
}

/// How much of a file is looked at to know its kind.
const BEGIN: u64 = 4096;

/// The first bytes, and the whole input.
fn peek<R: BufRead>(mut input: R) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut begin = Vec::new();
    input.by_ref().take(BEGIN).read_to_end(&mut begin)?;
    Ok((begin.clone(), Cursor::new(begin).chain(input)))
}

fn read_unpacked(begin: &[u8], input: impl BufRead, limits: &Limits) -> Result<Traces, RttError> {
    let text = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let found = match text.trim_ascii_start().first() {
        None => return Err(RttError::Empty),
        _ if capture::is_pcap(begin) => capture::read_pcap(input, limits)?,
        _ if capture::is_pcapng(begin) => capture::read_pcapng(input, limits)?,
        Some(0x1e) => qlog::read_lines(input, limits)?,
        Some(b'{') if has(text, b"\"fairpath_trace\"") => ndjson::read(input, limits)?,
        Some(b'{') if has(text, b"\"fairpath_links\"") => return Err(RttError::Links),
        Some(b'{') if says(text, b"\"qlog_format\"", b"\"NDJSON\"") => qlog::read_lines(input, limits)?,
        Some(b'{') if has(text, b"\"qlog_") => qlog::read_document(input, limits)?,
        Some(first) if !begin.contains(&0) && *first != b'{' => table::read(input, limits)?,
        Some(_) => return Err(RttError::Unknown { begin: shown(begin) }),
    };
    found.checked()
}

fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

/// Whether this is said with these words: what a title or a name has in it says nothing of the file.
fn says(text: &[u8], key: &[u8], value: &[u8]) -> bool {
    let said = |at: usize| {
        let after = text[at..].strip_prefix(key).map(<[u8]>::trim_ascii_start);
        let after = after.and_then(|after| after.strip_prefix(b":")).map(<[u8]>::trim_ascii_start);
        after.is_some_and(|after| after.starts_with(value))
    };
    (0..text.len()).any(said)
}

/// The first bytes as a person can read them.
fn shown(begin: &[u8]) -> String {
    format!("'{}'", begin[..begin.len().min(16)].escape_ascii())
}

impl Traces {
    fn new(format: Format) -> Self {
        Self { format, series: Vec::new(), bad: Vec::new(), bad_count: 0, notes: Vec::new() }
    }

    /// Skips a line. The reason may quote it, and nobody knows what is in it.
    fn skip(&mut self, line: u64, reason: &str) {
        self.bad_count += 1;
        if self.bad.len() < BAD_LINES_KEPT {
            self.bad.push(BadLine { line, reason: printable(reason, REASON_CHARS_MAX) });
        }
    }

    /// The same in order of time and without empty series; an error where too little is left.
    fn checked(mut self) -> Result<Self, RttError> {
        self.series.retain(|series| !series.samples.is_empty());
        let good = self.series.iter().map(|series| series.samples.len() as u64).sum();
        if self.bad_count > good {
            let first = self.bad.swap_remove(0);
            return Err(RttError::MostlyBad { first, bad: self.bad_count, good });
        }
        if good == 0 {
            return Err(RttError::NoSamples(match self.format {
                Format::Table => "there is no line below the header",
                Format::Ndjson => "no path has a smoothed round-trip time",
                Format::Qlog => "no event `metrics_updated` has `latest_rtt` or `smoothed_rtt`",
                Format::Capture => "no TCP flow has 20 packets that were echoed or acknowledged",
            }));
        }
        if let [only] = self.series.as_mut_slice() {
            only.label = None;
        }
        for label in self.series.iter_mut().filter_map(|series| series.label.as_mut()) {
            *label = printable(label, LABEL_CHARS_MAX);
        }
        for series in &mut self.series {
            series.samples.sort_by_key(|sample| sample.at);
        }
        Ok(self)
    }
}
