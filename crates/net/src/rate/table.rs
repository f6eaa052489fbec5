//! Rates over time: a step function, from a table of (time, rate).

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use super::{quoted, work};

/// How a table goes on after its last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateTableEnd {
    /// The last rate stays for ever.
    Hold,
    /// The table starts over when this much time has passed since its start.
    Repeat(Duration),
}

/// A step function of time: each rate holds until the next entry.
///
/// As a file it is CSV. The first line names the columns and their units: `time_s`, `time_ms` or
/// `time_ns`, then `rate_bps`, `rate_kbps` or `rate_mbps`. Empty lines and lines that begin with
/// `#` are skipped. Times start at 0 and rise.
///
/// ```text
/// time_s,rate_mbps
/// 0,20
/// 1.5,4.25
/// 3,0
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTable {
    entries: Vec<(Timestamp, Bitrate)>,
    end: RateTableEnd,
}

/// Why a table of rates is refused. The fault is the file's, at the line named, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateTableError {
    /// The first line does not name the columns.
    #[error(
        "line {line}: the columns must be named time_s|time_ms|time_ns,rate_bps|rate_kbps|rate_mbps, not {value:?}"
    )]
    BadHeader {
        /// The line.
        line: usize,
        /// The text there, cut where it is long.
        value: String,
    },
    /// A line does not have two fields.
    #[error("line {line}: two fields are needed, time and rate, in {value:?}")]
    NotTwoFields {
        /// The line.
        line: usize,
        /// The text there, cut where it is long.
        value: String,
    },
    /// A field is not a number, or is negative, infinite or too large.
    #[error("line {line}: {value:?} is not a number from 0 up to what 64 bits hold")]
    NotANumber {
        /// The line.
        line: usize,
        /// The field, cut where it is long.
        value: String,
    },
    /// The first time is not 0.
    #[error("line {line}: the first time must be 0, not {value}")]
    StartsLate {
        /// The line; 1 for the first entry of a table that is not from a file.
        line: usize,
        /// The time.
        value: Timestamp,
    },
    /// A time is not later than the one before.
    #[error("line {line}: the time {value} is not after {previous}")]
    NotRising {
        /// The line; the number of the entry, from 1, for a table that is not from a file.
        line: usize,
        /// The time.
        value: Timestamp,
        /// The time before it.
        previous: Timestamp,
    },
    /// There are no entries.
    #[error("the table has no entries")]
    Empty,
    /// The table starts over before its last entry.
    #[error("the period {period:?} ends before the last entry, at {last}")]
    PeriodTooShort {
        /// The period.
        period: Duration,
        /// The time of the last entry.
        last: Timestamp,
    },
    /// The table repeats and its rate is zero throughout, so nothing would ever be sent.
    #[error("the table repeats and every rate in it is zero")]
    NothingMoves,
}

impl RateTable {
    /// The step function of `entries`.
    ///
    /// # Errors
    ///
    /// Where times do not rise from 0, or the period does not fit.
    pub fn new(entries: Vec<(Timestamp, Bitrate)>, end: RateTableEnd) -> Result<Self, RateTableError> {
        let lines: Vec<usize> = (1..=entries.len()).collect();
        Self::checked(entries, &lines, end)
    }

    /// Reads the CSV form.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line and value.
    pub fn parse(text: &str, end: RateTableEnd) -> Result<Self, RateTableError> {
        let mut rows = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (line, header) = rows.next().ok_or(RateTableError::Empty)?;
        let units = header.split_once(',').and_then(|(time, rate)| Some((nanos_per(time)?, bps_per(rate)?)));
        let (time_unit, rate_unit) = units.ok_or(RateTableError::BadHeader { line, value: quoted(header) })?;
        let mut entries = Vec::new();
        let mut lines = Vec::new();
        for (line, row) in rows {
            let fields = row.split_once(',').filter(|(_, rate)| !rate.contains(','));
            let (time, rate) = fields.ok_or_else(|| RateTableError::NotTwoFields { line, value: quoted(row) })?;
            let time = Timestamp::from_nanos(number(time, time_unit, line)?);
            entries.push((time, Bitrate::from_bps(number(rate, rate_unit, line)?)));
            lines.push(line);
        }
        Self::checked(entries, &lines, end)
    }

    fn checked(entries: Vec<(Timestamp, Bitrate)>, lines: &[usize], end: RateTableEnd) -> Result<Self, RateTableError> {
        let first = entries.first().ok_or(RateTableError::Empty)?.0;
        if first != Timestamp::ZERO {
            return Err(RateTableError::StartsLate { line: lines[0], value: first });
        }
        for (pair, line) in entries.windows(2).zip(&lines[1..]) {
            let (previous, value) = (pair[0].0, pair[1].0);
            if value <= previous {
                return Err(RateTableError::NotRising { line: *line, value, previous });
            }
        }
        if let RateTableEnd::Repeat(period) = end {
            let last = entries[entries.len() - 1].0;
            if Timestamp::ZERO + period <= last {
                return Err(RateTableError::PeriodTooShort { period, last });
            }
            if entries.iter().all(|(_, rate)| *rate == Bitrate::ZERO) {
                return Err(RateTableError::NothingMoves);
            }
        }
        Ok(Self { entries, end })
    }

    /// The entries.
    pub fn entries(&self) -> &[(Timestamp, Bitrate)] {
        &self.entries
    }

    /// How it goes on after them.
    pub fn end(&self) -> RateTableEnd {
        self.end
    }

    /// The rate in the long run: the mean of a period, or the last rate where it holds.
    pub fn mean(&self) -> Bitrate {
        let RateTableEnd::Repeat(period) = self.end else {
            return self.entries[self.entries.len() - 1].1;
        };
        Bitrate::from_bps(u64::try_from(self.period_work(period) / period.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The work done in a period, in bits times nanoseconds per second.
    fn period_work(&self, period: Duration) -> u128 {
        let ends = self.entries[1..].iter().map(|(at, _)| *at).chain([Timestamp::ZERO + period]);
        self.entries.iter().zip(ends).map(|((at, rate), end)| area(*rate, end.since(*at))).sum()
    }
}

fn area(rate: Bitrate, time: Duration) -> u128 {
    u128::from(rate.as_bps()) * time.as_nanos()
}

fn nanos_per(column: &str) -> Option<f64> {
    match column.trim() {
        "time_s" => Some(1e9),
        "time_ms" => Some(1e6),
        "time_ns" => Some(1.0),
        _ => None,
    }
}

fn bps_per(column: &str) -> Option<f64> {
    match column.trim() {
        "rate_bps" => Some(1.0),
        "rate_kbps" => Some(1e3),
        "rate_mbps" => Some(1e6),
        _ => None,
    }
}

/// `field` times `unit`, to the nearest whole number.
fn number(field: &str, unit: f64, line: usize) -> Result<u64, RateTableError> {
    let scaled = field.trim().parse::<f64>().map(|value| (value * unit).round());
    match scaled {
        Ok(value) if (0.0..u64::MAX as f64).contains(&value) => Ok(value as u64),
        _ => Err(RateTableError::NotANumber { line, value: quoted(field.trim()) }),
    }
}

/// Transmits at the rates of a table. As with a fixed rate, ends are rounded down to the
/// nanosecond and what that leaves undone is added to the next packet.
#[derive(Debug)]
pub(crate) struct Stepped {
    table: Arc<RateTable>,
    /// The entry that holds at the last time asked about, and the start of its repetition.
    entry: usize,
    base: Timestamp,
    free_at: Timestamp,
    undone: u64,
    /// The period of a table that repeats, in nanoseconds, and the work done in it.
    period: Option<(u64, u128)>,
}

impl Stepped {
    pub(crate) fn new(table: Arc<RateTable>, free_at: Timestamp) -> Self {
        let period = match table.end {
            RateTableEnd::Repeat(period) => Some((period.as_nanos() as u64, table.period_work(period))),
            RateTableEnd::Hold => None,
        };
        Self { table, entry: 0, base: Timestamp::ZERO, free_at, undone: 0, period }
    }

    pub(crate) fn next_start(&self, arrival: Timestamp) -> Timestamp {
        self.free_at.max(arrival)
    }

    pub(crate) fn free_at(&self) -> Timestamp {
        self.free_at
    }

    pub(crate) fn mean(&self) -> Bitrate {
        self.table.mean()
    }

    pub(crate) fn rate_at(&mut self, now: Timestamp) -> Bitrate {
        // The transmission under way may have looked further ahead than now.
        if now < self.base + self.table.entries[self.entry].0.since(Timestamp::ZERO) {
            (self.entry, self.base) = (0, Timestamp::ZERO);
        }
        self.seek(now);
        self.table.entries[self.entry].1
    }

    pub(crate) fn transmit(&mut self, start: Timestamp, size: ByteCount) -> Timestamp {
        let undone = if start == self.free_at { self.undone } else { 0 };
        let mut left = work(size).saturating_add(undone);
        let mut at = start;
        self.undone = 0;
        self.free_at = loop {
            self.seek(at);
            self.skip_periods(&mut at, &mut left);
            let rate = self.table.entries[self.entry].1.as_bps();
            let until_change = self.entry_end().since(at).as_nanos() as u64;
            let possible = rate.saturating_mul(until_change);
            if left <= possible && rate > 0 {
                self.undone = left % rate;
                break at + Duration::from_nanos(left / rate);
            }
            if at == Timestamp::MAX || self.entry_end() == Timestamp::MAX {
                break Timestamp::MAX;
            }
            left -= possible;
            at = self.entry_end();
        };
        self.free_at
    }

    /// At the beginning of a period: passes over all that `left` fills whole, but for the last. A packet may
    /// take any number of them.
    fn skip_periods(&mut self, at: &mut Timestamp, left: &mut u64) {
        let Some((period_ns, work)) = self.period.filter(|_| *at == self.base && *left > 0) else { return };
        // The rest is no more than 64 bits, and so is its divisor.
        let whole = ((u128::from(*left) - 1) / work) as u64;
        if whole > 0 {
            *left -= (u128::from(whole) * work) as u64;
            *at = *at + Duration::from_nanos(period_ns.saturating_mul(whole));
            self.seek(*at);
        }
    }

    /// The end of the entry that holds now.
    fn entry_end(&self) -> Timestamp {
        match (self.table.entries.get(self.entry + 1), self.table.end) {
            (Some((next, _)), _) => self.base + next.since(Timestamp::ZERO),
            (None, RateTableEnd::Repeat(period)) => self.base + period,
            (None, RateTableEnd::Hold) => Timestamp::MAX,
        }
    }

    /// Moves forward to the entry that holds at `at`.
    fn seek(&mut self, at: Timestamp) {
        if at < self.entry_end() || at == Timestamp::MAX {
            return;
        }
        if let RateTableEnd::Repeat(period) = self.table.end {
            let period_ns = period.as_nanos() as u64;
            let repetitions = at.since(self.base).as_nanos() as u64 / period_ns;
            self.base = self.base + Duration::from_nanos(repetitions * period_ns);
        }
        let within = Timestamp::ZERO + at.since(self.base);
        self.entry = self.table.entries.partition_point(|(start, _)| *start <= within) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn mbps(rate: u64) -> Bitrate {
        Bitrate::from_mbps(rate)
    }

    #[test]
    fn a_table_in_csv_is_read_with_its_units() {
        let table =
            RateTable::parse("# drive\ntime_s,rate_mbps\n\n0,20\n1.5, 4.25\n3,0\n", RateTableEnd::Hold).unwrap();
        let expected = [(ms(0), mbps(20)), (ms(1_500), Bitrate::from_kbps(4_250)), (ms(3_000), Bitrate::ZERO)];
        assert_eq!(table.entries(), expected);
        let table = RateTable::parse("time_ms,rate_kbps\n0,1\n10,2", RateTableEnd::Hold).unwrap();
        assert_eq!(table.entries(), [(ms(0), Bitrate::from_kbps(1)), (ms(10), Bitrate::from_kbps(2))]);
    }

    #[test]
    fn errors_name_the_line_and_the_value() {
        let error = |text: &str| RateTable::parse(text, RateTableEnd::Hold).unwrap_err();
        assert_eq!(error(""), RateTableError::Empty);
        assert_eq!(error("time_s,rate_mbps\n"), RateTableError::Empty);
        assert_eq!(error("0,20\n"), RateTableError::BadHeader { line: 1, value: "0,20".into() });
        let head = "time_s,rate_mbps\n";
        assert_eq!(error(&format!("{head}0,1\n5\n")), RateTableError::NotTwoFields { line: 3, value: "5".into() });
        assert_eq!(error(&format!("{head}0,1\n2,fast")), RateTableError::NotANumber { line: 3, value: "fast".into() });
        assert_eq!(error(&format!("{head}0,-1")), RateTableError::NotANumber { line: 2, value: "-1".into() });
        assert_eq!(error(&format!("{head}0,inf")), RateTableError::NotANumber { line: 2, value: "inf".into() });
        assert_eq!(error(&format!("{head}1,1")), RateTableError::StartsLate { line: 2, value: ms(1_000) });
        let not_rising = RateTableError::NotRising { line: 4, value: ms(1_000), previous: ms(2_000) };
        assert_eq!(error(&format!("{head}0,1\n2,1\n1,1")), not_rising);
        assert!(not_rising.to_string().contains("line 4"));
    }

    #[test]
    fn a_period_must_hold_the_table_and_move_something() {
        let entries = vec![(ms(0), mbps(1)), (ms(100), mbps(2))];
        let period = Duration::from_millis(100);
        let error = RateTable::new(entries, RateTableEnd::Repeat(period)).unwrap_err();
        assert_eq!(error, RateTableError::PeriodTooShort { period, last: ms(100) });
        let error = RateTable::new(vec![(ms(0), Bitrate::ZERO)], RateTableEnd::Repeat(period)).unwrap_err();
        assert_eq!(error, RateTableError::NothingMoves);
    }

    #[test]
    fn a_packet_is_sent_at_the_rates_it_meets() {
        let entries = vec![(ms(0), mbps(12)), (ms(10), mbps(6)), (ms(20), Bitrate::ZERO), (ms(30), mbps(12))];
        let table = RateTable::new(entries, RateTableEnd::Repeat(Duration::from_millis(40))).unwrap();
        // (12 + 6 + 0 + 12) / 4
        assert_eq!(table.mean(), Bitrate::from_kbps(7_500));
        let mut stepped = Stepped::new(Arc::new(table), Timestamp::ZERO);
        let mut send = |arrival: u64, size: u64| {
            let start = stepped.next_start(ms(arrival));
            stepped.transmit(start, ByteCount::new(size))
        };
        assert_eq!(send(0, 1_500), ms(1));
        // 9 ms at 12 Mbit/s carry 13,500 B, 5 ms at 6 Mbit/s 3,750 B.
        assert_eq!(send(0, 17_250), ms(15));
        // 5 ms at 6 carry 3,750 B; nothing for 10 ms; 1,500 B more take 1 ms.
        assert_eq!(send(15, 5_250), ms(31));
        // In a much later repetition: 4,000 ms is 100 periods.
        assert_eq!(send(4_009, 2_250), ms(4_011));
        assert_eq!(stepped.rate_at(ms(4_025)), Bitrate::ZERO);
    }

    #[test]
    fn the_rate_at_now_is_not_that_of_the_end_of_the_transmission_under_way() {
        let entries = vec![(ms(0), mbps(1)), (ms(10), mbps(100))];
        let table = RateTable::new(entries, RateTableEnd::Hold).unwrap();
        assert_eq!(table.mean(), mbps(100));
        let mut stepped = Stepped::new(Arc::new(table), Timestamp::ZERO);
        assert!(stepped.transmit(Timestamp::ZERO, ByteCount::new(10_000)) > ms(10));
        assert_eq!(stepped.rate_at(ms(5)), mbps(1));
        assert_eq!(stepped.rate_at(ms(11)), mbps(100));
    }

    #[test]
    fn after_a_last_rate_of_zero_nothing_ends() {
        let table = RateTable::new(vec![(ms(0), mbps(1)), (ms(1), Bitrate::ZERO)], RateTableEnd::Hold).unwrap();
        let mut stepped = Stepped::new(Arc::new(table), Timestamp::ZERO);
        assert_eq!(stepped.transmit(Timestamp::ZERO, ByteCount::new(1_500)), Timestamp::MAX);
        assert_eq!(stepped.next_start(ms(5)), Timestamp::MAX);
    }

    #[test]
    fn the_remainder_is_carried_over_changes_of_the_rate() {
        // 7 and 9 Mbit/s in turn, mean 8: 1,000,000 B take 1 s.
        let entries = vec![(ms(0), mbps(7)), (ms(1), mbps(9))];
        let table = RateTable::new(entries, RateTableEnd::Repeat(Duration::from_millis(2))).unwrap();
        let mut stepped = Stepped::new(Arc::new(table), Timestamp::ZERO);
        let mut end = Timestamp::ZERO;
        for _ in 0..10_000 {
            let start = stepped.next_start(Timestamp::ZERO);
            end = stepped.transmit(start, ByteCount::new(100));
        }
        assert_eq!(end, ms(1_000));
    }

    #[test]
    fn a_packet_that_takes_countless_periods_is_through_at_once() {
        // 12,000 bits at one bit a second.
        let table = RateTable::new(vec![(ms(0), Bitrate::from_bps(1))], RateTableEnd::Repeat(Duration::from_nanos(1)));
        let mut stepped = Stepped::new(Arc::new(table.unwrap()), ms(0));
        assert_eq!(stepped.transmit(ms(0), ByteCount::new(1500)), Timestamp::from_secs(12_000));
        assert_eq!(stepped.transmit(ms(0), ByteCount::MAX), Timestamp::MAX);
    }

    proptest::proptest! {
        /// Against one step after the other.
        #[test]
        fn whole_periods_are_passed_over_without_a_difference(
            steps in proptest::collection::vec((1..50_u64, 0..3_000_000_u64), 1..5),
            size in 1..3_000_u64,
            start in 0..200_u64,
        ) {
            proptest::prop_assume!(steps.iter().any(|(_, rate)| *rate > 0));
            let begins = steps.iter().scan(0, |at, (length, _)| Some(core::mem::replace(at, *at + length)));
            let entries = begins.zip(&steps).map(|(at, (_, rate))| (Timestamp::from_micros(at), Bitrate::from_bps(*rate)));
            let period: u64 = steps.iter().map(|(length, _)| *length).sum();
            let table = RateTable::new(entries.collect(), RateTableEnd::Repeat(Duration::from_micros(period))).unwrap();
            let mut stepped = Stepped::new(Arc::new(table), ms(0));
            let end = stepped.transmit(Timestamp::from_micros(start), ByteCount::new(size));

            let (mut left, mut at_us) = (work(ByteCount::new(size)), start);
            let expected = loop {
                let mut within = at_us % period;
                let (length, rate) = steps.iter().find(|(length, _)| {
                    let found = within < *length;
                    within = if found { within } else { within - length };
                    found
                }).unwrap();
                let possible = rate * (length - within) * 1_000;
                if left <= possible && *rate > 0 {
                    break at_us * 1_000 + left / rate;
                }
                left -= possible;
                at_us += length - within;
            };
            proptest::prop_assert_eq!(end.as_nanos(), expected);
        }
    }
}
