//! The columns of a table that hold the time and the round-trip time, and their units.

/// A column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    /// Its place in a line.
    pub(super) at: usize,
    /// Its unit in seconds.
    pub(super) unit_s: f64,
}

/// Names of columns of time; those that come first are preferred.
const TIME: [&str; 6] = ["time", "timestamp", "t", "ts", "epoch", "elapsed"];
/// Names of columns of round-trip times.
const RTT: [&str; 6] = ["rtt", "srtt", "delay", "latency", "ping", "owd"];

/// Words of columns that say of many measurements how small, large or different they are; they follow the
/// queue on a path badly or not at all, and are taken where there is nothing else.
const EXTREMES: [&str; 8] = ["min", "minimum", "max", "maximum", "var", "rttvar", "dev", "mdev"];

/// The names to tell a person who gave no column of time.
pub(super) const TIME_NAMES: &str = "time, timestamp, t, ts, epoch or elapsed, with a unit behind it as in time_s";
/// The names to tell a person who gave no column of round-trip times.
pub(super) const RTT_NAMES: &str = "rtt, srtt, delay, latency, ping or owd, with a unit behind it as in rtt_ms";

const UNITS: [(&str, f64); 13] = [
    ("ns", 1e-9),
    ("nanoseconds", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("usec", 1e-6),
    ("microseconds", 1e-6),
    ("ms", 1e-3),
    ("msec", 1e-3),
    ("milliseconds", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("secs", 1.0),
    ("seconds", 1.0),
];

/// The columns of time and of round-trip times of a header, and whether a unit had to be assumed.
/// The error says which names would do.
pub(super) fn find(header: &[&str]) -> Result<([Column; 2], bool), &'static str> {
    let words: Vec<Vec<String>> = header.iter().map(|name| split(name)).collect();
    let column = |names: [&str; 6], not: Option<usize>| {
        let named = |name: &str, extremes: bool| {
            words.iter().enumerate().position(|(at, words)| {
                let is_extreme = words.iter().any(|word| EXTREMES.contains(&word.as_str()));
                Some(at) != not && is_extreme == extremes && words.iter().any(|word| word == name)
            })
        };
        [false, true].into_iter().find_map(|extremes| names.iter().find_map(|name| named(name, extremes)))
    };
    let rtt = column(RTT, None).ok_or(RTT_NAMES)?;
    let time = column(TIME, Some(rtt)).ok_or(TIME_NAMES)?;
    let units = [unit(&words[time]), unit(&words[rtt])];
    let [time_unit, rtt_unit] = units;
    let columns =
        [Column { at: time, unit_s: time_unit.unwrap_or(1.0) }, Column { at: rtt, unit_s: rtt_unit.unwrap_or(1e-3) }];
    Ok((columns, units.contains(&None)))
}

/// The words of a name, in lower case: `RTT (ms)` has `rtt` and `ms`.
fn split(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

/// The unit that a name says, in seconds.
fn unit(words: &[String]) -> Option<f64> {
    let last = words.last()?;
    // Wireshark's `frame.time_epoch` and `tcp.analysis.ack_rtt` are in seconds.
    let wireshark = words.ends_with(&["time".into(), "epoch".into()]) || words.ends_with(&["ack".into(), "rtt".into()]);
    let named = UNITS.iter().find(|(unit, _)| unit == last).map(|(_, seconds)| *seconds);
    named.or(wireshark.then_some(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(header: &[&str]) -> (usize, f64, usize, f64, bool) {
        let ([time, rtt], assumed) = find(header).unwrap();
        (time.at, time.unit_s, rtt.at, rtt.unit_s, assumed)
    }

    #[test]
    fn names_say_the_columns_and_their_units() {
        assert_eq!(found(&["time_s", "rtt_ms"]), (0, 1.0, 1, 1e-3, false));
        assert_eq!(found(&["seq", "RTT (us)", "Timestamp [ms]"]), (2, 1e-3, 1, 1e-6, false));
        assert_eq!(found(&["frame.time_epoch", "tcp.analysis.ack_rtt"]), (0, 1.0, 1, 1.0, false));
        assert_eq!(found(&["t_ns", "delay_s"]), (0, 1e-9, 1, 1.0, false));
    }

    #[test]
    fn without_units_times_are_seconds_and_round_trips_milliseconds() {
        assert_eq!(found(&["time", "rtt"]), (0, 1.0, 1, 1e-3, true));
        assert_eq!(found(&["time_ms", "latency"]), (0, 1e-3, 1, 1e-3, true));
    }

    #[test]
    fn the_better_name_is_taken_of_two() {
        assert_eq!(found(&["srtt_ms", "time_s", "rtt_ms"]).2, 2);
        assert_eq!(found(&["rtt_time_ms", "time_s"]), (1, 1.0, 0, 1e-3, false), "one column is not both");
    }

    #[test]
    fn the_extremes_of_a_round_trip_time_are_taken_only_where_there_is_nothing_else() {
        let srtt = crate::csv::COLUMNS.iter().position(|name| *name == "srtt_ns").unwrap();
        assert_eq!(found(&crate::csv::COLUMNS), (2, 1e-9, srtt, 1e-9, false), "the table made of a trace");
        assert_eq!(found(&["time_s", "rtt_min_ms", "rtt_mdev_ms", "rtt_avg_ms"]).2, 3);
        assert_eq!(found(&["time_s", "rtt_min_ms"]).2, 1);
    }

    #[test]
    fn a_missing_column_is_told_with_the_names_that_would_do() {
        assert_eq!(find(&["time_s", "bytes"]), Err(RTT_NAMES));
        assert_eq!(find(&["rtt_ms", "bytes"]), Err(TIME_NAMES));
    }
}
