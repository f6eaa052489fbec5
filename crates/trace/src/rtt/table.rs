//! Tables: one measurement to a line, separated by commas, semicolons, tabs or spaces.

use std::io::BufRead;

use fairpath_core::printable;

use super::columns::{self, Column};
use super::lines::{Lines, duration, time};
use super::{Format, Limits, RttError, RttSample, Series, Traces};

/// Reads a table. The first line may name the columns; without names, the first column is the time
/// in seconds and the second the round-trip time in milliseconds.
pub(super) fn read(input: impl BufRead, limits: &Limits) -> Result<Traces, RttError> {
    let mut traces = Traces::new(Format::Table);
    let mut samples = Vec::new();
    let mut lines = Lines::new(input);
    let mut layout: Option<Layout> = None;
    while let Some((number, line)) = lines.next()? {
        let line = match line {
            Ok(line) if line.starts_with('#') => continue,
            Ok(line) => line,
            Err(reason) => {
                traces.skip(number, &reason);
                continue;
            }
        };
        let layout = match &layout {
            Some(layout) => layout,
            None => {
                let (found, is_header) = Layout::of(line, number)?;
                traces.notes.extend(found.assumed(is_header));
                let found = layout.insert(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        match layout.sample(line) {
            Ok(sample) => samples.extend(sample),
            Err(reason) => traces.skip(number, &reason),
        }
        limits.check_samples(samples.len())?;
    }
    traces.series.push(Series { label: None, samples });
    Ok(traces)
}

/// The most characters of a line that are quoted.
const QUOTED: usize = 40;

/// How a line is to be read.
#[derive(Clone, Copy, Debug)]
struct Layout {
    separator: Option<char>,
    time: Column,
    rtt: Column,
    /// Whether a unit is assumed.
    assumed: bool,
}

impl Layout {
    /// The layout that the first line shows, and whether that line is a header.
    fn of(line: &str, number: u64) -> Result<(Self, bool), RttError> {
        let separator = [',', ';', '\t'].into_iter().find(|separator| line.contains(*separator));
        let cells: Vec<&str> = cells(line, separator).collect();
        if cells.iter().any(|cell| cell.parse::<f64>().is_ok()) {
            let [time, rtt] = [Column { at: 0, unit_s: 1.0 }, Column { at: 1, unit_s: 1e-3 }];
            return Ok((Self { separator, time, rtt, assumed: true }, false));
        }
        let ([time, rtt], assumed) = columns::find(&cells).map_err(|needed| {
            let header = printable(line, 80);
            RttError::Column { line: number, needed, header }
        })?;
        Ok((Self { separator, time, rtt, assumed }, true))
    }

    /// The assumptions, as a sentence.
    fn assumed(&self, is_header: bool) -> Option<String> {
        let unit = |column: Column| match column.unit_s {
            1.0 => "seconds",
            1e-3 => "milliseconds",
            1e-6 => "microseconds",
            _ => "nanoseconds",
        };
        let (time, rtt) = (unit(self.time), unit(self.rtt));
        self.assumed.then(|| match is_header {
            true => format!("not every column names its unit: times are read as {time}, round-trip times as {rtt}"),
            false => {
                format!("no header: the first column is read as time in {time}, the second as round-trip time in {rtt}")
            }
        })
    }

    /// The sample of a line; `None`: its cell is empty. The error says what is wrong.
    fn sample(&self, line: &str) -> Result<Option<RttSample>, String> {
        let cell = |column: Column, name: &str| {
            let missing = || format!("no column {} for the {name}: '{}'", column.at + 1, printable(line, QUOTED));
            cells(line, self.separator).nth(column.at).ok_or_else(missing)
        };
        let (at, rtt) = (cell(self.time, "time")?, cell(self.rtt, "round-trip time")?);
        if rtt.is_empty() {
            return Ok(None);
        }
        let quoted = |text: &str| printable(text, QUOTED);
        let number = |text: &str| text.parse::<f64>().map_err(|_| format!("'{}' is not a number", quoted(text)));
        let impossible =
            |text: &str, what| format!("'{}' cannot be a {what}: a number from 0 on is needed", quoted(text));
        let at = time(number(at)?, self.time.unit_s).ok_or_else(|| impossible(at, "time"))?;
        let rtt = duration(number(rtt)?, self.rtt.unit_s).ok_or_else(|| impossible(rtt, "round-trip time"))?;
        Ok(Some(RttSample { at, rtt }))
    }
}

/// The cells of a line, without white space and quotation marks around them. Without a separator,
/// white space parts them.
fn cells(line: &str, separator: Option<char>) -> impl Iterator<Item = &str> {
    let spaces = separator.is_none();
    let parts = line.split(move |c: char| separator.map_or(c.is_whitespace(), |separator| c == separator));
    parts.map(|cell| cell.trim().trim_matches('"').trim()).filter(move |cell| !spaces || !cell.is_empty())
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::Timestamp;

    use super::*;

    fn samples(text: &str) -> Vec<(u64, u64)> {
        let traces = super::super::read(text.as_bytes()).unwrap();
        assert_eq!(traces.bad_count, 0, "{:?}", traces.bad);
        assert_eq!(traces.series[0].label, None);
        let micros =
            |sample: &RttSample| (sample.at.since(Timestamp::ZERO).as_micros() as u64, sample.rtt.as_micros() as u64);
        traces.series[0].samples.iter().map(micros).collect()
    }

    #[test]
    fn separators_and_units_may_be_any() {
        let expected = [(500_000, 20_000), (600_000, 21_500)];
        assert_eq!(samples("time_s,rtt_ms\n0.5,20\n0.6,21.5\n"), expected);
        assert_eq!(samples("# by hand\n\"time_ms\";\"n\";\"rtt_us\"\r\n500;1;20000\r\n600;2;21500"), expected);
        assert_eq!(samples("rtt_s\ttime_s\n0.02\t0.5\n0.0215\t0.6\n"), expected);
        assert_eq!(samples("  0.5   20\n  0.6   21.5\n"), expected);
        assert_eq!(samples("\u{feff}time_s,rtt_ms\n0.6,21.5\n0.5,20\n"), expected, "in order of time");
    }

    #[test]
    fn a_cell_without_a_measurement_is_no_bad_line() {
        assert_eq!(samples("frame.time_epoch,tcp.analysis.ack_rtt\n1,\n2,0.020\n"), [(2_000_000, 20_000)]);
    }

    #[test]
    fn what_is_assumed_is_told() {
        let notes = |text: &str| super::super::read(text.as_bytes()).unwrap().notes;
        assert!(notes("time_s,rtt_ms\n1,2\n").is_empty());
        assert!(notes("1,2\n")[0].starts_with("no header"));
        assert!(notes("time,rtt\n1,2\n")[0].contains("milliseconds"));
    }

    #[test]
    fn bad_lines_are_skipped_and_named() {
        let text = "time_s,rtt_ms\n1,20\n2,abc\n3\n4,-1\n5,20\n6,20\n7,20\n";
        let traces = super::super::read(text.as_bytes()).unwrap();
        assert_eq!((traces.bad_count, traces.series[0].samples.len()), (3, 4));
        let told: Vec<String> = traces.bad.iter().map(ToString::to_string).collect();
        assert_eq!(told[0], "line 3: 'abc' is not a number");
        assert_eq!(told[1], "line 4: no column 2 for the round-trip time: '3'");
        assert_eq!(told[2], "line 5: '-1' cannot be a round-trip time: a number from 0 on is needed");
    }

    #[test]
    fn a_file_of_mostly_bad_lines_is_an_error_with_the_first_of_them() {
        let error = super::super::read("time_s,rtt_ms\n1,20\n2,x\n3,x\n".as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "line 3: 'x' is not a number (2 bad lines, 1 good ones)");
        let error = super::super::read("time_s,size\n1,20\n".as_bytes()).unwrap_err();
        assert!(matches!(error, RttError::Column { line: 1, .. }), "{error}");
        let error = super::super::read("time_s,rtt_ms\n".as_bytes()).unwrap_err();
        assert!(matches!(error, RttError::NoSamples(_)), "{error}");
    }

    #[test]
    fn a_round_trip_of_a_microsecond_is_kept() {
        let traces = super::super::read("time_s,rtt_us\n0,1\n".as_bytes()).unwrap();
        assert_eq!(traces.series[0].samples[0].rtt, Duration::from_micros(1));
    }
}
