//! The things that the sender's user named, turned into a manifest.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{Access, AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use crate::attributes::{self, Attribute};
use crate::choice::{Choice, Filter, Links};
use crate::destination::mode;
use crate::entry::{Entry, Kind};
use crate::error::SendError;
use crate::feed::Feed;
use crate::manifest::{Limits, Manifest, ManifestBuilder, ManifestError, may_link};
use crate::name::{Name, path_of, split};
use crate::offer::{LeftOut, is_left_out};
use crate::skip::{Reason, Skipped};
use crate::source::{Base, Identity, Opener, Source, mtime_ns, reason};

/// The things to send: files that may be read, directories, links, and what was left out.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub(crate) manifest: Manifest,
    /// The things that the user named.
    pub(crate) bases: Vec<Base>,
    /// Where each entry of the manifest lies.
    pub(crate) sources: Vec<Source>,
    pub(crate) links: Links,
    skipped: Vec<Skipped>,
    /// The same as the receiver is told: by name, without what the user did not want to be sent.
    pub(crate) unsent: Vec<(Name, Reason)>,
}

impl Selection {
    /// Walks the named files and directories. Each keeps its last component as its name; inside a
    /// directory, special files are left out, links that lead elsewhere, and what may
    /// not be read or has a name that cannot travel. What the user named must be readable.
    ///
    /// This reads file systems: call it where blocking is allowed.
    pub fn collect(paths: &[PathBuf]) -> Result<Self, SendError> {
        Self::collect_with(paths, &Choice::default())
    }

    /// The same, of what is chosen.
    pub fn collect_with(paths: &[PathBuf], choice: &Choice) -> Result<Self, SendError> {
        if paths.is_empty() && !choice.input {
            return Err(SendError::Nothing);
        }
        let bases = bases(paths, choice)?;
        let links = choice.links;
        let mut walk = Walk {
            bases: &bases,
            links,
            filter: &choice.filter,
            opener: Opener::new(&bases, links),
            builder: ManifestBuilder::new(Limits::default()),
            sources: Vec::new(),
            skipped: Vec::new(),
            unsent: Vec::new(),
            above: Vec::new(),
            archive: choice.archive.then(BTreeMap::new),
        };
        for number in 0..bases.len() {
            walk.base(number as u32)?;
        }
        let Walk { builder, sources, mut skipped, mut unsent, .. } = walk;
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        unsent.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Self { manifest: builder.finish()?, sources, links, skipped, unsent, bases })
    }

    /// The rest of it for a receiver that takes no hidden names, and what is not.
    pub(crate) fn without_hidden(&self) -> (Self, LeftOut) {
        let mut left_out = LeftOut::default();
        let (mut entries, mut sources) = (Vec::new(), Vec::new());
        // Files of which only other names are sent, and the first of those.
        let mut files: BTreeMap<&Name, (&Entry, Option<Name>)> = BTreeMap::new();
        for (entry, source) in self.manifest.entries().iter().zip(&self.sources) {
            if is_left_out(&entry.path, false) {
                left_out.push(&entry.path);
                files.insert(&entry.path, (entry, None));
                continue;
            }
            let mut kept = entry.clone();
            if let Kind::HardLink { to } = &entry.kind
                && let Some((file, first)) = files.get_mut(to)
            {
                match first {
                    Some(first) => kept.kind = Kind::HardLink { to: first.clone() },
                    None => {
                        kept = Entry { path: entry.path.clone(), ..(*file).clone() };
                        *first = Some(entry.path.clone());
                    }
                }
            }
            entries.push(kept);
            sources.push(*source);
        }
        let manifest = self.manifest.with(entries);
        (Self { manifest, sources, ..self.clone() }, left_out)
    }

    /// The manifest as the receiver will see it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The things that are not sent.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// How many streams are among the entries.
    pub fn streams(&self) -> usize {
        self.manifest.entries().iter().filter(|entry| entry.is_stream()).count()
    }

    /// Where an entry comes from that is a stream.
    pub(crate) fn feed(&self, number: u32) -> Option<&Arc<Feed>> {
        self.bases[self.sources.get(number as usize)?.base as usize].feed.as_ref()
    }

    /// How much of the total an entry makes.
    pub(crate) fn counted(&self, number: u32) -> u64 {
        self.feed(number).map_or_else(|| self.manifest.entries()[number as usize].size(), |feed| feed.length())
    }

    /// Where an entry lies, for messages.
    pub(crate) fn full(&self, number: u32) -> PathBuf {
        let base = &self.bases[self.sources[number as usize].base as usize];
        base.full(self.manifest.entries()[number as usize].path.as_bytes())
    }
}

/// The things that the user named, each once. Two things cannot arrive under one name.
fn bases(paths: &[PathBuf], choice: &Choice) -> Result<Vec<Base>, SendError> {
    let mut bases: Vec<Base> = Vec::new();
    let mut known: BTreeMap<Name, (usize, Option<Identity>)> = BTreeMap::new();
    let input = || Base { path: INPUT.into(), name: INPUT_NAME.into(), feed: Some(Arc::new(Feed::input())) };
    bases.extend(choice.input.then(input));
    known.extend(bases.iter().map(|base| (base.name.clone(), (0, None))));
    for path in paths {
        let name = name_of(path)?;
        // A missing file is reported later.
        let stat = rustix::fs::stat(path).ok();
        let identity = stat.as_ref().map(Identity::of);
        match known.get(&name) {
            Some((_, before)) if identity.is_some() && *before == identity => continue,
            Some((first, _)) => {
                let (first, second) = (bases[*first].path.clone(), path.clone());
                return Err(SendError::SameName { name, first, second });
            }
            None => drop(known.insert(name.clone(), (bases.len(), identity))),
        }
        let is_pipe = stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        let feed = is_pipe.then(|| Arc::new(Feed::pipe(path.clone())));
        bases.push(Base { path: path.clone(), name, feed });
    }
    match (&choice.name, &mut bases[..]) {
        (None, _) => {}
        (Some(name), [one]) if name.components().count() == 1 => one.name = name.clone(),
        (Some(name), _) => return Err(SendError::Renamed(name.clone())),
    }
    Ok(bases)
}

/// Standard input, in messages.
const INPUT: &str = "standard input";

/// The name under which it arrives.
const INPUT_NAME: &str = "stdin";

/// The last component; of `.` and `..` that of the directory that they mean.
fn name_of(path: &Path) -> Result<Name, SendError> {
    let canonical;
    let name = match path.file_name() {
        Some(name) => name,
        None => {
            canonical = fs::canonicalize(path).map_err(|error| SendError::io(path, error))?;
            canonical.file_name().ok_or_else(|| SendError::Special(path.to_owned()))?
        }
    };
    Ok(Name::new(name.as_bytes()))
}

/// Something that was found.
struct Found {
    name: Name,
    kind: Kind,
    stat: Stat,
}

impl Found {
    /// A file or a directory.
    // The types of the fields differ from system to system.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    fn of(name: Name, stat: Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            _ => Kind::File { size: stat.st_size as u64 },
        };
        Self { name, kind, stat }
    }
}

struct Walk<'a> {
    bases: &'a [Base],
    links: Links,
    filter: &'a Filter,
    opener: Opener<'a>,
    builder: ManifestBuilder,
    sources: Vec<Source>,
    skipped: Vec<Skipped>,
    unsent: Vec<(Name, Reason)>,
    /// The directories in which the one that is read stands, where links are followed.
    above: Vec<(Name, Identity)>,
    /// Where everything is kept: the first names of files that have several.
    archive: Option<BTreeMap<Identity, Name>>,
}

impl Walk<'_> {
    /// Walks one of the things that the user named.
    fn base(&mut self, number: u32) -> Result<(), SendError> {
        let base = &self.bases[number as usize];
        if base.feed.is_some() {
            return self.stream(number);
        }
        let failed = |error: Errno| SendError::io(&base.path, error.into());
        // The user may name a link, and then means where it leads.
        let stat = rustix::fs::stat(&base.path).map_err(failed)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => rustix::fs::access(&base.path, Access::READ_OK).map_err(failed)?,
            FileType::Directory => drop(self.opener.directory(number, b"").map_err(failed)?),
            _ => return Err(SendError::Special(base.path.clone())),
        }
        // One stack instead of recursion: directories may be nested deeply.
        let mut stack = vec![Found::of(base.name.clone(), stat)];
        while let Some(found) = stack.pop() {
            let directory = (found.kind == Kind::Directory).then(|| (found.name.clone(), Identity::of(&found.stat)));
            if self.push(number, found)?
                && let Some((name, identity)) = directory
            {
                self.above.retain(|(above, _)| name.parents().any(|parent| parent == above.as_bytes()));
                self.above.push((name.clone(), identity));
                stack.append(&mut self.list(number, &name));
            }
        }
        Ok(())
    }

    /// Takes a stream. Its time of change is that of its beginning, by which the receiver tells it from another one.
    fn stream(&mut self, number: u32) -> Result<(), SendError> {
        let name = self.bases[number as usize].name.clone();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.builder.push(Entry { mtime_ns: since.as_nanos() as i64, ..Entry::stream(name) })?;
        self.sources.push(Source { base: number, identity: Identity::default() });
        Ok(())
    }

    /// Takes one entry; false where its name cannot travel. The user's own words must be able to.
    fn push(&mut self, base: u32, found: Found) -> Result<bool, SendError> {
        let Found { name, kind, stat } = found;
        let identity = Identity::of(&stat);
        let is_named = self.bases[base as usize].name == name;
        let kind = match self.first_name(&stat, &kind) {
            Some(to) => Kind::HardLink { to },
            None => kind,
        };
        // Nobody sets the times of symbolic links, and those of directories only an archive.
        let mtime_ns = match kind {
            Kind::Link { .. } => 0,
            Kind::Directory if self.archive.is_none() => 0,
            _ => mtime_ns(&stat),
        };
        let attributes = self.attributes(&Source { base, identity }, &name, &kind);
        let is_first = self.archive.is_some() && stat.st_nlink > 1 && matches!(kind, Kind::File { .. });
        let entry = Entry { path: name.clone(), mode: mode(&stat) as u16, mtime_ns, kind, attributes };
        match self.builder.push(entry) {
            Ok(()) => {
                self.sources.push(Source { base, identity });
                if let Some(names) = self.archive.as_mut().filter(|_| is_first) {
                    names.insert(identity, name);
                }
            }
            Err(ManifestError::Name { fault, .. }) if !is_named => {
                self.skip(base, &name, Reason::Name(fault));
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// The name under which a file is sent already.
    fn first_name(&self, stat: &Stat, kind: &Kind) -> Option<Name> {
        let names = self.archive.as_ref().filter(|_| stat.st_nlink > 1 && matches!(kind, Kind::File { .. }))?;
        names.get(&Identity::of(stat)).cloned()
    }

    /// The extended attributes of a file or directory, where everything is kept.
    fn attributes(&mut self, source: &Source, name: &Name, kind: &Kind) -> Vec<Attribute> {
        if self.archive.is_none() {
            return Vec::new();
        }
        match kind {
            Kind::File { .. } => {
                self.opener.open(source, name).map(|(file, _)| attributes::read(file)).unwrap_or_default()
            }
            Kind::Directory => {
                let below = self.bases[source.base as usize].below(name.as_bytes());
                self.opener.directory(source.base, below).map(attributes::read).unwrap_or_default()
            }
            Kind::Stream | Kind::Link { .. } | Kind::HardLink { .. } => Vec::new(),
        }
    }

    fn skip(&mut self, base: u32, name: &Name, reason: Reason) {
        self.skipped.push(Skipped { path: self.bases[base as usize].full(name.as_bytes()), reason });
        if !reason.is_expected() {
            self.unsent.push((name.clone(), reason));
        }
    }

    /// The content of a directory, the last name first.
    fn list(&mut self, base: u32, name: &Name) -> Vec<Found> {
        let mut inside = Vec::new();
        if let Err(error) = self.read(base, name, &mut inside) {
            self.skip(base, name, reason(error));
        }
        inside.sort_by(|a, b| b.name.cmp(&a.name));
        inside
    }

    fn read(&mut self, base: u32, name: &Name, inside: &mut Vec<Found>) -> Result<(), Errno> {
        let below = self.bases[base as usize].below(name.as_bytes());
        let directory = self.opener.directory(base, below)?;
        for item in Dir::read_from(&directory)? {
            let item = item?;
            let last = item.file_name().to_bytes();
            if matches!(last, b"." | b"..") {
                continue;
            }
            let full = name.with(last);
            match self.look(&directory, &full) {
                Ok(found) if self.is_unwanted(base, &full, found.kind == Kind::Directory) => {}
                Ok(found) => inside.push(found),
                Err(_) if self.is_unwanted(base, &full, false) => {}
                // It vanished while the directory was read, and nobody has promised it yet.
                Err(Reason::Vanished) => {}
                Err(reason) => self.skip(base, &full, reason),
            }
        }
        Ok(())
    }

    fn is_unwanted(&self, base: u32, name: &Name, is_directory: bool) -> bool {
        self.filter.leaves_out(path_of(self.bases[base as usize].below(name.as_bytes())), is_directory)
    }

    /// The thing under a name in a directory, if it can be sent.
    fn look(&self, directory: &Arc<OwnedFd>, name: &Name) -> Result<Found, Reason> {
        let last = split(name.as_bytes()).1;
        let stat = rustix::fs::statat(directory, last, AtFlags::SYMLINK_NOFOLLOW).map_err(reason)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return readable(directory, name, stat);
        }
        match self.links {
            Links::Skip => Err(Reason::SymbolicLink),
            Links::Keep => {
                let target = rustix::fs::readlinkat(directory, last, Vec::new()).map_err(reason)?;
                let target = Name::new(target.into_bytes());
                match may_link(name, &target) {
                    true => Ok(Found { name: name.clone(), kind: Kind::Link { target }, stat }),
                    false => Err(Reason::LeadsOut),
                }
            }
            Links::Follow => {
                let stat = rustix::fs::statat(directory, last, AtFlags::empty()).map_err(|error| match error {
                    Errno::NOENT | Errno::LOOP | Errno::NOTDIR => Reason::LeadsNowhere,
                    error => reason(error),
                })?;
                match self.above.iter().any(|(_, above)| *above == Identity::of(&stat)) {
                    true => Err(Reason::LeadsRound),
                    false => readable(directory, name, stat),
                }
            }
        }
    }
}

/// A file that may be read, or a directory.
fn readable(directory: &Arc<OwnedFd>, name: &Name, stat: Stat) -> Result<Found, Reason> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {}
        FileType::RegularFile => {
            let last = split(name.as_bytes()).1;
            rustix::fs::accessat(directory, last, Access::READ_OK, AtFlags::empty()).map_err(reason)?;
        }
        _ => return Err(Reason::Special),
    }
    Ok(Found::of(name.clone(), stat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::NameFault;

    fn names(selection: &Selection) -> Vec<String> {
        selection.manifest().entries().iter().map(|entry| entry.path.to_string()).collect()
    }

    fn collected(root: &Path, links: Links) -> Selection {
        Selection::collect_with(&[root.to_owned()], &Choice { links, ..Choice::default() }).unwrap()
    }

    #[test]
    fn links_are_carried_left_out_or_followed_as_the_user_wants() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d");
        fs::create_dir_all(root.join("empty")).unwrap();
        fs::write(root.join("f"), "x").unwrap();
        fs::write(directory.path().join("outside"), "o").unwrap();
        for (name, target) in
            [("in", "f"), ("out", "../outside"), ("nowhere", "g"), ("round", "."), ("empty/up", "../f")]
        {
            std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        }
        let told = |selection: &Selection| {
            let told = |one: &Skipped| (one.path.file_name().unwrap().to_str().unwrap().to_owned(), one.reason);
            selection.skipped().iter().map(told).collect::<Vec<_>>()
        };
        let kept = collected(&root, Links::Keep);
        assert_eq!(names(&kept), ["d", "d/empty", "d/empty/up", "d/f", "d/in", "d/nowhere", "d/round"]);
        assert_eq!(told(&kept), [("out".into(), Reason::LeadsOut)]);
        assert_eq!(kept.unsent, [("d/out".into(), Reason::LeadsOut)], "the receiver is told too");
        let skipped = collected(&root, Links::Skip);
        assert_eq!(names(&skipped), ["d", "d/empty", "d/f"]);
        assert_eq!((told(&skipped).len(), skipped.unsent.len()), (5, 0), "nobody misses what was not wanted");
        let followed = collected(&root, Links::Follow);
        assert_eq!(names(&followed), ["d", "d/empty", "d/empty/up", "d/f", "d/in", "d/out"]);
        assert_eq!(told(&followed), [("nowhere".into(), Reason::LeadsNowhere), ("round".into(), Reason::LeadsRound)]);
        assert!(followed.manifest().entries()[2..].iter().all(Entry::is_file));
    }

    #[test]
    fn names_that_are_not_wanted_are_neither_sent_nor_told() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d.o");
        fs::create_dir_all(root.join("target/deep")).unwrap();
        for name in ["a.o", "keep.o", "b.c", "target/x", "target/deep/keep.o"] {
            fs::write(root.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc", root.join("out.o")).unwrap();
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let filter = Filter::new(&words(&["*.o", "/target/"]), &words(&["keep.o"])).unwrap();
        let selection = Selection::collect_with(&[root], &Choice { filter, ..Choice::default() }).unwrap();
        assert_eq!(names(&selection), ["d.o", "d.o/b.c", "d.o/keep.o"], "the user's own words always count");
        assert_eq!(selection.skipped(), []);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Selection::collect(&[PathBuf::from("/nowhere/x")]).unwrap_err();
        assert_eq!(error.to_string(), "no such file: /nowhere/x");
    }

    #[test]
    fn a_file_that_may_not_be_read_is_named_before_anything_is_sent() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::File::open(&path).is_ok() {
            println!("skipped: this user may read everything");
            return;
        }
        let error = Selection::collect(std::slice::from_ref(&path)).unwrap_err();
        assert!(matches!(error, SendError::PermissionDenied(denied) if denied == path));
        let selection = Selection::collect(&[directory.path().to_owned()]).unwrap();
        assert_eq!(selection.skipped(), [Skipped { path, reason: Reason::Unreadable }]);
    }

    #[test]
    fn a_name_that_cannot_travel_is_left_out_and_the_others_go() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d");
        fs::create_dir_all(root.join("back\\slash")).unwrap();
        fs::write(root.join("back\\slash/inside"), "").unwrap();
        fs::write(root.join("line\nend"), "").unwrap();
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
        let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
        assert_eq!(names(&selection), ["d", "d/back\\slash", "d/back\\slash/inside", "d/\\xff"]);
        let reasons: Vec<_> = selection.skipped().iter().map(|skipped| skipped.reason).collect();
        assert_eq!(reasons, [Reason::Name(NameFault::Control)]);
    }

    #[test]
    fn two_things_of_one_name_are_told_by_their_paths_and_one_that_is_named_twice_is_sent_once() {
        let directory = tempfile::tempdir().unwrap();
        for parent in ["a", "b"] {
            fs::create_dir(directory.path().join(parent)).unwrap();
            fs::write(directory.path().join(parent).join("x"), "").unwrap();
        }
        let paths = ["a/x", "b/x", "a/../a/x"].map(|name| directory.path().join(name));
        let error = Selection::collect(&paths[..2]).unwrap_err().to_string();
        assert!(paths[..2].iter().all(|path| error.contains(path.to_str().unwrap())), "{error}");
        let twice = [paths[0].clone(), paths[2].clone()];
        assert_eq!(names(&Selection::collect(&twice).unwrap()), ["x"]);
    }
}
