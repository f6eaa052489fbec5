//! The use of metered interfaces in this month, over all runs.
//!
//! The count lies in one small file in the user's state directory. It is replaced as a whole, under a
//! lock. So concurrent runs add to the same count, and a run that is killed leaves it whole. A run
//! records more than it has used and gives back the rest at its end. So a run that is killed has
//! counted too much rather than too little.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use fairpath_core::ByteCount;
use fairpath_quic::{Allowance, PathReport};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::path_args::Said;
use crate::state;

/// The largest amount that is written ahead of what was used: at 1 Gbit/s that of 0.1 s.
const AHEAD_MAX: u64 = 12_500_000;

/// The smallest.
const AHEAD_MIN: u64 = 64_000;

/// A month of the calendar, like `2026-11`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Month(String);

impl Month {
    fn of(time: OffsetDateTime) -> Self {
        Self(format!("{:04}-{:02}", time.year(), u8::from(time.month())))
    }
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    month: Month,
    /// How much went over each interface, in bytes.
    bytes: BTreeMap<String, u64>,
}

/// The file with the counts.
#[derive(Debug)]
pub(crate) struct Book {
    path: PathBuf,
}

impl Book {
    /// That of this user.
    pub(crate) fn of_user() -> anyhow::Result<Self> {
        let state = state::directory().ok_or_else(|| {
            anyhow!("there is no place for the count of a quota: neither XDG_STATE_HOME nor HOME is set")
        })?;
        Ok(Self { path: state.join("quota.json") })
    }

    /// Adds to the counts of this month, or takes away, and gives what they are then.
    fn add(&self, interface: &str, more: i64, now: OffsetDateTime) -> anyhow::Result<ByteCount> {
        let whole = || format!("cannot keep the count of the quota in {}", self.path.display());
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).with_context(whole)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(self.path.with_extension("lock"));
        let lock = lock.with_context(whole)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).with_context(whole)?;
        let mut counts = self.read()?;
        let month = Month::of(now);
        // A clock that was set back does not bring an old month's count to life.
        if counts.month.0 < month.0 {
            counts = Counts { month, bytes: BTreeMap::new() };
        }
        let count = counts.bytes.entry(interface.to_owned()).or_default();
        *count = count.saturating_add_signed(more);
        let count = ByteCount::new(*count);
        if more != 0 {
            self.write(&counts).with_context(whole)?;
        }
        Ok(count)
    }

    fn read(&self) -> anyhow::Result<Counts> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Counts { month: Month(String::new()), bytes: BTreeMap::new() });
            }
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot read the count of the quota in {}", self.path.display()));
            }
        };
        serde_json::from_str(&text).map_err(|error| {
            let path = self.path.display();
            anyhow!("{path} is no count of quotas: {error}; mend it, or remove it to count from 0 again")
        })
    }

    /// The file is there as it was or as it is to be, whatever happens meanwhile.
    fn write(&self, counts: &Counts) -> std::io::Result<()> {
        let part = self.path.with_extension("json.part");
        let mut file = File::create(&part)?;
        file.write_all(serde_json::to_string(counts)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, &self.path)
    }
}

/// One metered interface in this run.
#[derive(Debug)]
struct Meter {
    said: Said,
    quota: ByteCount,
    /// The allowance of this run, and its use.
    allowance: Allowance,
    /// The part of it that the book has, which is ahead.
    written: ByteCount,
    /// The book's total for all runs after this one's last write, this one included.
    counted: ByteCount,
    is_told: bool,
}

impl Meter {
    /// The use of all other runs.
    fn others(&self) -> ByteCount {
        self.counted.saturating_sub(self.written)
    }

    /// The use of all runs.
    fn all(&self) -> ByteCount {
        self.others() + self.allowance.used()
    }

    /// How much is written ahead: a fiftieth of the quota, so that a run that is killed costs no more.
    fn ahead(&self) -> ByteCount {
        ByteCount::new((self.quota.get() / 50).clamp(AHEAD_MIN, AHEAD_MAX))
    }
}

/// The metered interfaces of this run.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    book: Option<Book>,
    meters: Vec<Meter>,
}

/// A quota that is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsedUp {
    /// The interface.
    pub(crate) interface: String,
    quota: ByteCount,
    used: ByteCount,
}

impl std::fmt::Display for UsedUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { interface, quota, used } = self;
        write!(f, "{interface}: the quota of {quota} is used up ({used} in this month)")
    }
}

impl Meters {
    /// Those of what was said. What was used before is looked up.
    pub(crate) fn open(said: &[Said]) -> anyhow::Result<Self> {
        let metered: Vec<(&Said, ByteCount)> = said.iter().filter_map(|said| Some((said, said.quota?))).collect();
        if metered.is_empty() {
            return Ok(Self { book: None, meters: Vec::new() });
        }
        Self::with(Book::of_user()?, &metered, OffsetDateTime::now_utc())
    }

    fn with(book: Book, metered: &[(&Said, ByteCount)], now: OffsetDateTime) -> anyhow::Result<Self> {
        let mut meters = Vec::new();
        for (said, quota) in metered {
            let counted = book.add(&said.of, 0, now)?;
            let allowance = Allowance::new(&said.of, quota.saturating_sub(counted));
            let (said, quota, written) = ((*said).clone(), *quota, ByteCount::ZERO);
            meters.push(Meter { said, quota, allowance, written, counted, is_told: false });
        }
        Ok(Self { book: Some(book), meters })
    }

    /// The allowances of this run, for its connections.
    pub(crate) fn allowances(&self) -> Vec<Allowance> {
        self.meters.iter().map(|meter| meter.allowance.clone()).collect()
    }

    /// Writes down what was used up to now, and takes in what other runs have used.
    pub(crate) fn count(&mut self) -> anyhow::Result<()> {
        self.count_at(OffsetDateTime::now_utc())
    }

    fn count_at(&mut self, now: OffsetDateTime) -> anyhow::Result<()> {
        let Some(book) = &self.book else { return Ok(()) };
        for meter in &mut self.meters {
            let used = meter.allowance.used();
            if used > meter.written {
                let more = used + meter.ahead() - meter.written;
                meter.counted = book.add(&meter.said.of, more.get() as i64, now)?;
                meter.written += more;
                meter.allowance.grant(meter.quota.saturating_sub(meter.others()));
            }
        }
        Ok(())
    }

    /// Lets out what tells the peers of the end of all connections, which are closed next.
    pub(crate) fn allow_goodbye(&self) {
        self.meters.iter().for_each(|meter| meter.allowance.allow_goodbye());
    }

    /// Whether the quota of the path is used up.
    pub(crate) fn is_used_up(&self, path: &PathReport) -> bool {
        self.of(path).is_some_and(|(used, quota)| used >= quota)
    }

    /// The quotas that are used up and were not told yet.
    pub(crate) fn news(&mut self) -> Vec<UsedUp> {
        let untold = self.meters.iter_mut().filter(|meter| !meter.is_told && meter.all() >= meter.quota);
        let tell = |meter: &mut Meter| {
            meter.is_told = true;
            UsedUp { interface: meter.said.of.clone(), quota: meter.quota, used: meter.all() }
        };
        untold.map(tell).collect()
    }

    /// The use of the path's quota by all runs, and the quota; `None` without a quota.
    pub(crate) fn of(&self, path: &PathReport) -> Option<(ByteCount, ByteCount)> {
        let meter = self.meters.iter().find(|meter| meter.said.is_of(path))?;
        Some((meter.all(), meter.quota))
    }

    /// Gives back what was written ahead, or adds what was used since.
    fn close_at(&mut self, now: OffsetDateTime) -> anyhow::Result<()> {
        let Some(book) = &self.book else { return Ok(()) };
        for meter in &mut self.meters {
            let used = meter.allowance.used();
            let rest = meter.written.get() as i64 - used.get() as i64;
            if rest != 0 {
                meter.counted = book.add(&meter.said.of, -rest, now)?;
                meter.written = used;
            }
        }
        Ok(())
    }
}

impl Drop for Meters {
    /// If the rest cannot be given back, it stays counted: too much rather than too little.
    fn drop(&mut self) {
        let _ = self.close_at(OffsetDateTime::now_utc());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_args::tests::said;
    use crate::role::tests::path;

    /// 2026-11-23 15:00 and 2026-12-01 00:00 UTC, in seconds since 1970.
    const NOVEMBER: i64 = 1_795_446_000;
    const DECEMBER: i64 = 1_796_083_200;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(seconds).unwrap()
    }

    /// A directory of its own for each test.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let directory = std::env::temp_dir().join(format!("fairpath-quota-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&directory);
            Self(directory)
        }

        fn book(&self) -> Book {
            Book { path: self.0.join("fairpath/quota.json") }
        }

        fn meters(&self, now: i64) -> Meters {
            Meters::with(self.book(), &[(&said("wwan0:quota=100MB"), ByteCount::new(100_000_000))], at(now)).unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The path of the metered interface.
    fn metered() -> PathReport {
        path("wwan0", "192.0.2.1:9", 0)
    }

    /// Has so much go over the interface.
    fn carry(meters: &Meters, megabytes: u64) {
        let allowance = &meters.allowances()[0];
        allowance.add(ByteCount::new(megabytes * 1_000_000));
    }

    const CARRIED: ByteCount = ByteCount::new(60_000_000);

    #[test]
    fn what_went_over_the_interface_both_ways_is_counted_over_all_runs_of_a_month() {
        let place = Place::new("runs");
        let mut first = place.meters(NOVEMBER);
        carry(&first, 60);
        first.count_at(at(NOVEMBER)).unwrap();
        assert_eq!(first.of(&metered()), Some((CARRIED, ByteCount::new(100_000_000))));
        assert!(!first.is_used_up(&metered()) && first.news().is_empty());
        first.close_at(at(NOVEMBER)).unwrap();
        let mut second = place.meters(NOVEMBER);
        assert_eq!(second.of(&metered()).map(|(used, _)| used), Some(CARRIED));
        assert!(!second.allowances()[0].is_spent(), "40 MB are left");
        carry(&second, 60);
        second.count_at(at(NOVEMBER)).unwrap();
        assert!(second.is_used_up(&metered()) && second.allowances()[0].is_spent());
        assert_eq!(second.news()[0].to_string(), "wwan0: the quota of 100.0 MB is used up (120.0 MB in this month)");
        assert!(second.news().is_empty(), "it is told once");
        second.close_at(at(NOVEMBER)).unwrap();
        assert!(place.meters(NOVEMBER).allowances()[0].is_spent(), "before anything is sent");
        assert_eq!(place.meters(DECEMBER).of(&metered()).map(|(used, _)| used), Some(ByteCount::ZERO));
    }

    #[test]
    fn a_run_that_is_killed_has_counted_what_it_used_and_a_little_more() {
        let place = Place::new("killed");
        let mut killed = place.meters(NOVEMBER);
        carry(&killed, 60);
        killed.count_at(at(NOVEMBER)).unwrap();
        std::mem::forget(killed);
        let used = place.meters(NOVEMBER).of(&metered()).map(|(used, _)| used).unwrap();
        assert!(used >= CARRIED && used <= CARRIED + ByteCount::new(2_000_000), "{used}: a fiftieth of the quota");
        // An incomplete file, left by a run that was killed while it wrote, is not read.
        fs::write(place.0.join("fairpath/quota.json.part"), "{").unwrap();
        assert!(place.meters(NOVEMBER).of(&metered()).is_some());
    }

    #[test]
    fn what_another_run_uses_meanwhile_is_not_granted_a_second_time() {
        let place = Place::new("both");
        let [mut first, mut second] = [(); 2].map(|()| place.meters(NOVEMBER));
        for _ in 0..4 {
            for run in [&mut first, &mut second] {
                carry(run, 15);
                run.count_at(at(NOVEMBER)).unwrap();
            }
        }
        assert!(first.allowances()[0].is_spent() && second.allowances()[0].is_spent());
    }

    #[test]
    fn two_runs_at_the_same_time_add_to_one_count() {
        let place = Place::new("two");
        let add = || {
            for _ in 0..50 {
                place.book().add("wwan0", 10, at(NOVEMBER)).unwrap();
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(add)));
        });
        assert_eq!(place.book().add("wwan0", 0, at(NOVEMBER)).unwrap(), ByteCount::new(2_000));
    }

    #[test]
    fn a_file_that_is_no_count_is_told_and_left_alone() {
        let place = Place::new("broken");
        place.book().add("wwan0", 10, at(NOVEMBER)).unwrap();
        fs::write(&place.book().path, "not a count").unwrap();
        let error = place.book().add("wwan0", 10, at(NOVEMBER)).unwrap_err().to_string();
        assert!(error.contains("quota.json is no count of quotas") && error.contains("remove it"), "{error}");
        assert_eq!(fs::read_to_string(&place.book().path).unwrap(), "not a count");
    }
}
