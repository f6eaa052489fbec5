//! Unfinished files that nobody has gone on with for a long time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fairpath_core::ByteCount;

use crate::manifest::PARTIAL;
use crate::part;
use crate::partial::PartNames;
use crate::words::printable;

/// Age at which an unfinished file is left over: a month without progress.
pub const LEFT_OVER_AFTER: Duration = Duration::from_secs(30 * 86_400);

/// An unfinished file that is left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its name inside the directory, as it may be shown.
    pub name: String,
    /// How long nothing has come of it.
    pub age: Duration,
    /// How much of it is here.
    pub bytes: ByteCount,
    /// Its data and its journal: what is to be deleted.
    pub files: [PathBuf; 2],
}

/// The leftovers of earlier transfers into a directory, the oldest first. Changes nothing, and finds nothing where it
/// may not look.
pub fn leftovers(directory: &Path, now: SystemTime) -> Vec<Leftover> {
    let partial = directory.join(PARTIAL);
    // A link could lead to a directory of somebody else's making.
    if !fs::symlink_metadata(&partial).is_ok_and(|there| there.is_dir()) {
        return Vec::new();
    }
    let listed = fs::read_dir(&partial).into_iter().flatten();
    let names = listed.filter_map(|item| item.ok()?.file_name().into_string().ok());
    let journals = names.filter(|name| name.ends_with(".journal"));
    let mut found: Vec<_> = journals.filter_map(|journal| leftover(&partial, journal, now)).collect();
    found.sort_by(|a, b| b.age.cmp(&a.age).then_with(|| a.name.cmp(&b.name)));
    found
}

fn leftover(partial: &Path, journal: String, now: SystemTime) -> Option<Leftover> {
    let files = [PartNames::pair_of(&journal)?, journal].map(|name| partial.join(name));
    let last = files.iter().map(|file| regular(file)?.modified().ok()).collect::<Option<Vec<_>>>()?;
    let age = now.duration_since(*last.iter().max()?).ok()?;
    if age < LEFT_OVER_AFTER {
        return None;
    }
    let (name, bytes) = part::summary(&fs::read(&files[1]).ok()?)?;
    Some(Leftover { name: printable(&name), age, bytes: ByteCount::new(bytes), files })
}

/// The facts of a regular file that is small enough to be looked at, or no journal.
fn regular(file: &Path) -> Option<fs::Metadata> {
    let there = fs::symlink_metadata(file).ok()?;
    let is_journal = file.extension().is_some_and(|ending| ending == "journal");
    (there.is_file() && (!is_journal || there.len() <= part::MAX_JOURNAL)).then_some(there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Destination;
    use crate::entry::Entry;
    use crate::partial::Partial;
    use crate::ranges::RangeSet;

    #[test]
    fn only_what_is_older_than_a_month_is_left_over() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        assert_eq!(leftovers(directory.path(), now), []);
        let partial = Partial::open(&Destination::open(directory.path()).unwrap()).unwrap().0;
        let ranges = RangeSet::from_pairs(&[(0, 4), (6, 8)], 10).unwrap();
        for (name, days) in [("d/old", 31), ("d/new", 29), ("d/older", 400)] {
            let names = PartNames::of(&name.into());
            partial.replace(&names.data, b"12345678").unwrap();
            part::save(&partial, &Entry::file(name, 10), &ranges).unwrap();
            for file in [names.data, names.journal] {
                let path = directory.path().join(PARTIAL).join(file);
                let time = now - Duration::from_secs(days * 86_400);
                fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
            }
        }
        let found = leftovers(directory.path(), now);
        let told: Vec<_> = found.iter().map(|one| (&*one.name, one.bytes.get(), one.age.as_secs() / 86_400)).collect();
        assert_eq!(told, [("d/older", 6, 400), ("d/old", 6, 31)]);
        found.iter().flat_map(|one| &one.files).for_each(|file| fs::remove_file(file).unwrap());
        assert_eq!(leftovers(directory.path(), now), []);
    }
}
