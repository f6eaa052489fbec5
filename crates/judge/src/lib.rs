//! The verdict on several series of round-trip times: which of them share a bottleneck, with tables and a picture. The program's `detect` and the Python package show it.

mod judge;
mod picture;
mod report;

use core::time::Duration;

use fairpath_core::Timestamp;
use fairpath_sbd::{HoldTime, UnknownDetector};
use fairpath_trace::rtt::{RttSample, Traces};

pub use fairpath_sbd::NAMES as DETECTORS;
pub use judge::{Judgement, Pair, Span};
pub use report::Report;

/// More series make more pairs than anybody can read.
pub const SERIES_MAX: usize = 200;

/// A series under the name by which the answer calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The kind of its source, such as `csv`.
    pub kind: &'static str,
    /// At least one, in order of time.
    pub samples: Vec<RttSample>,
}

/// There is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoVerdict {
    /// There is one series, or none.
    #[error("{0} is the only series of round-trip times; two are needed")]
    One(String),
    /// There is no series.
    #[error("there is no series of round-trip times; two are needed")]
    None,
    /// There are more than can be compared.
    #[error("{0} series of round-trip times are too many; {SERIES_MAX} can be compared")]
    TooMany(usize),
    /// No two of them have a time in common.
    #[error("no two series were measured at the same time: {0}, {1}; is it one clock?")]
    NeverTogether(String, String),
    /// There is no such detector.
    #[error(transparent)]
    Unknown(#[from] UnknownDetector),
}

/// Judges them by the detector of this name, which holds what it found together for `hold` longer. `progress` is
/// told of every sample.
///
/// # Errors
///
/// Where there is nothing to compare, or no such detector.
pub fn judge(
    series: Vec<Named>,
    detector: &str,
    hold: Duration,
    warnings: Vec<String>,
    progress: impl FnMut(),
) -> Result<Report, NoVerdict> {
    comparable(&series)?;
    let mut inner = HoldTime::new(fairpath_sbd::by_name(detector)?, hold);
    let samples: Vec<&[RttSample]> = series.iter().map(|one| one.samples.as_slice()).collect();
    let judgement = judge::judge(&mut inner, &samples, progress);
    Ok(Report { detector: detector.to_owned(), series, judgement, warnings })
}

/// The series of a file of this name; of several, each has its label behind a colon.
pub fn named(file: &str, traces: Traces) -> impl Iterator<Item = Named> {
    let kind = traces.format.as_str();
    traces.series.into_iter().map(move |one| {
        let name = one.label.map_or_else(|| file.to_owned(), |label| format!("{file}:{label}"));
        Named { name, kind, samples: one.samples }
    })
}

/// Warnings about a file of this name: bad lines, and what was assumed.
pub fn warnings(file: &str, traces: &Traces) -> Vec<String> {
    let mut told: Vec<String> = traces.notes.iter().map(|note| format!("{file}: {note}")).collect();
    told.extend(traces.bad.iter().map(|bad| format!("{file}: {bad}; the line is skipped")));
    let more = traces.bad_count - traces.bad.len() as u64;
    if more > 0 {
        told.push(format!("{file}: {more} more bad lines are skipped"));
    }
    told
}

/// Whether there is anything to compare.
fn comparable(series: &[Named]) -> Result<(), NoVerdict> {
    match series {
        [] => return Err(NoVerdict::None),
        [only] => return Err(NoVerdict::One(only.name.clone())),
        _ if series.len() > SERIES_MAX => return Err(NoVerdict::TooMany(series.len())),
        _ => {}
    }
    let meet = |a: &Named, b: &Named| first(a) < last(b) && first(b) < last(a);
    if series.iter().enumerate().any(|(at, one)| series[..at].iter().any(|other| meet(one, other))) {
        return Ok(());
    }
    let span = |one: &Named| format!("{} from {} to {} s", one.name, first(one).as_secs_f64(), last(one).as_secs_f64());
    Err(NoVerdict::NeverTogether(span(&series[0]), span(&series[1])))
}

fn first(series: &Named) -> Timestamp {
    series.samples[0].at
}

fn last(series: &Named) -> Timestamp {
    series.samples[series.samples.len() - 1].at
}
