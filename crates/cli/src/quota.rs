//! What went over metered interfaces in this month, over all runs.
//!
//! The count lies in the user's state directory, in one small file that is replaced as a whole, under a lock: runs at
//! the same time add to the same count, and one that is killed leaves it whole. A run writes ahead of what it has used
//! and gives back the rest at its end, so that one that is killed has counted too much rather than too little.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use fairpath_core::Bytes;
use fairpath_quic::PathReport;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::path_args::Said;
use crate::state;

/// So much is written ahead of what was used: at 1 Gbit/s that of 0.1 s.
const AHEAD: u64 = 12_500_000;

/// A datagram takes so much more on the way than its contents: headers of UDP and IPv6, the larger ones.
const HEADERS: Bytes = Bytes::new(48);

/// The contents of a full datagram are at least so large [RFC9000 §14]; by it headers are reckoned.
const DATAGRAM: Bytes = Bytes::new(1_200);

/// A month of the calendar, like `2026-11`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Month(String);

impl Month {
    fn of(time: OffsetDateTime) -> Self {
        Self(format!("{:04}-{:02}", time.year(), u8::from(time.month())))
    }
}

/// What stands in the file.
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
    fn add(&self, interface: &str, more: i64, now: OffsetDateTime) -> anyhow::Result<Bytes> {
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
        let count = Bytes::new(*count);
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
    quota: Bytes,
    /// What this run has used, and what of it the book has, which is ahead.
    used: Bytes,
    written: Bytes,
    /// What the book had of all runs when this one wrote last, this one included.
    counted: Bytes,
    is_told: bool,
}

impl Meter {
    /// What all runs have used.
    fn all(&self) -> Bytes {
        self.counted.saturating_sub(self.written) + self.used
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
    quota: Bytes,
    used: Bytes,
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
        let metered: Vec<(&Said, Bytes)> = said.iter().filter_map(|said| Some((said, said.quota?))).collect();
        if metered.is_empty() {
            return Ok(Self { book: None, meters: Vec::new() });
        }
        Self::with(Book::of_user()?, &metered, OffsetDateTime::now_utc())
    }

    fn with(book: Book, metered: &[(&Said, Bytes)], now: OffsetDateTime) -> anyhow::Result<Self> {
        let mut meters = Vec::new();
        for (said, quota) in metered {
            let counted = book.add(&said.of, 0, now)?;
            let (used, written) = (Bytes::ZERO, Bytes::ZERO);
            meters.push(Meter { said: (*said).clone(), quota: *quota, used, written, counted, is_told: false });
        }
        Ok(Self { book: Some(book), meters })
    }

    /// Takes what the paths of this run have carried up to now, both ways.
    pub(crate) fn count(&mut self, paths: &[PathReport]) -> anyhow::Result<()> {
        self.count_at(paths, OffsetDateTime::now_utc())
    }

    fn count_at(&mut self, paths: &[PathReport], now: OffsetDateTime) -> anyhow::Result<()> {
        let Some(book) = &self.book else { return Ok(()) };
        for meter in &mut self.meters {
            let carried: Bytes = paths.iter().filter(|path| meter.said.is_of(path)).map(on_the_way).sum();
            meter.used = meter.used.max(carried);
            if meter.used > meter.written {
                let more = meter.used + Bytes::new(AHEAD) - meter.written;
                meter.counted = book.add(&meter.said.of, more.get() as i64, now)?;
                meter.written += more;
            }
        }
        Ok(())
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

    /// What of its quota the path has used, by all runs, and the quota; `None` where it has none.
    pub(crate) fn of(&self, path: &PathReport) -> Option<(Bytes, Bytes)> {
        let meter = self.meters.iter().find(|meter| meter.said.is_of(path))?;
        Some((meter.all(), meter.quota))
    }

    /// Gives back what was written ahead.
    fn close_at(&mut self, now: OffsetDateTime) -> anyhow::Result<()> {
        let Some(book) = &self.book else { return Ok(()) };
        for meter in &mut self.meters {
            let rest = meter.written.saturating_sub(meter.used);
            if rest > Bytes::ZERO {
                meter.counted = book.add(&meter.said.of, -(rest.get() as i64), now)?;
                meter.written = meter.used;
            }
        }
        Ok(())
    }
}

impl Drop for Meters {
    /// What cannot be given back stays counted: too much rather than too little.
    fn drop(&mut self) {
        let _ = self.close_at(OffsetDateTime::now_utc());
    }
}

/// What a path has carried both ways, with headers. What was lost was sent, too.
fn on_the_way(path: &PathReport) -> Bytes {
    let contents = path.acked + path.lost + path.received;
    contents + HEADERS * (contents / DATAGRAM)
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
            Meters::with(self.book(), &[(&said("wwan0:quota=100MB"), Bytes::new(100_000_000))], at(now)).unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A path on which 30 MB went each way: with headers 60 · (1 + 48 / 1,200) = 62.4 MB.
    fn carried() -> [PathReport; 2] {
        [path("wwan0", "192.0.2.1:9", 30_000_000), path("eth0", "192.0.2.1:9", 900_000_000)]
    }

    const BOTH_WAYS: Bytes = Bytes::new(62_400_000);

    #[test]
    fn what_went_over_the_interface_both_ways_is_counted_over_all_runs_of_a_month() {
        let place = Place::new("runs");
        let mut first = place.meters(NOVEMBER);
        first.count_at(&carried(), at(NOVEMBER)).unwrap();
        assert_eq!(first.of(&carried()[0]), Some((BOTH_WAYS, Bytes::new(100_000_000))));
        assert!(!first.is_used_up(&carried()[0]) && first.news().is_empty());
        first.close_at(at(NOVEMBER)).unwrap();
        let mut second = place.meters(NOVEMBER);
        assert_eq!(second.of(&carried()[0]).map(|(used, _)| used), Some(BOTH_WAYS));
        second.count_at(&carried(), at(NOVEMBER)).unwrap();
        assert!(second.is_used_up(&carried()[0]));
        assert_eq!(second.news()[0].to_string(), "wwan0: the quota of 100.0 MB is used up (124.8 MB in this month)");
        assert!(second.news().is_empty(), "it is told once");
        second.close_at(at(NOVEMBER)).unwrap();
        assert_eq!(place.meters(DECEMBER).of(&carried()[0]).map(|(used, _)| used), Some(Bytes::ZERO));
    }

    #[test]
    fn a_run_that_is_killed_has_counted_what_it_used_and_a_little_more() {
        let place = Place::new("killed");
        let mut killed = place.meters(NOVEMBER);
        killed.count_at(&carried(), at(NOVEMBER)).unwrap();
        std::mem::forget(killed);
        let used = place.meters(NOVEMBER).of(&carried()[0]).map(|(used, _)| used).unwrap();
        assert!(used >= BOTH_WAYS && used <= BOTH_WAYS + Bytes::new(AHEAD), "{used}");
        // What another run was writing when it was killed is not taken for a count.
        fs::write(place.0.join("fairpath/quota.json.part"), "{").unwrap();
        assert!(place.meters(NOVEMBER).of(&carried()[0]).is_some());
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
        assert_eq!(place.book().add("wwan0", 0, at(NOVEMBER)).unwrap(), Bytes::new(2_000));
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
