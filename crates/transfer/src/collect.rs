//! What the sender's user named, turned into a manifest.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use crate::error::SendError;
use crate::manifest::{Entry, Limits, Manifest, ManifestBuilder, ManifestError};
use crate::offer::{LeftOut, is_left_out};
use crate::skip::{Reason, Skipped};
use crate::source::{Base, Identity, Opener, Source, reason};

/// What is to be sent: files that may be read, directories, and what was left out.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub(crate) manifest: Manifest,
    /// What the user named.
    pub(crate) bases: Vec<Base>,
    /// Where each entry of the manifest lies.
    pub(crate) sources: Vec<Source>,
    skipped: Vec<Skipped>,
}

impl Selection {
    /// Walks the named files and directories. Each keeps its last component as its name; inside a
    /// directory, symbolic links and special files are left out, never followed, and so is what may
    /// not be read or has a name that cannot travel. What the user named must be readable.
    ///
    /// This reads file systems: call it where blocking is allowed.
    pub fn collect(paths: &[PathBuf]) -> Result<Self, SendError> {
        if paths.is_empty() {
            return Err(SendError::Nothing);
        }
        let named = |path: &PathBuf| Ok(Base { path: path.clone(), name: name_of(path)? });
        let bases = paths.iter().map(named).collect::<Result<Vec<_>, SendError>>()?;
        let mut walk = Walk {
            bases: &bases,
            opener: Opener::new(&bases),
            builder: ManifestBuilder::new(Limits::default()),
            sources: Vec::new(),
            skipped: Vec::new(),
        };
        for number in 0..bases.len() {
            walk.base(number as u32)?;
        }
        let Walk { builder, sources, mut skipped, .. } = walk;
        skipped.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { manifest: builder.finish()?, sources, skipped, bases })
    }

    /// What is left of it for a receiver that takes no hidden names, and what is not.
    pub(crate) fn without_hidden(&self) -> (Self, LeftOut) {
        let mut left_out = LeftOut::default();
        let (mut entries, mut sources) = (Vec::new(), Vec::new());
        for (entry, source) in self.manifest.entries().iter().zip(&self.sources) {
            if is_left_out(entry.path(), false) {
                left_out.push(entry.path());
            } else {
                entries.push(entry.clone());
                sources.push(*source);
            }
        }
        let manifest = self.manifest.with(entries);
        (Self { manifest, sources, ..self.clone() }, left_out)
    }

    /// The manifest as the receiver will see it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What is not sent.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Where an entry lies, for messages.
    pub(crate) fn full(&self, number: u32) -> PathBuf {
        let base = &self.bases[self.sources[number as usize].base as usize];
        base.full(self.manifest.entries()[number as usize].path())
    }
}

/// The last component; of `.` and `..` that of the directory that they mean.
fn name_of(path: &Path) -> Result<String, SendError> {
    let canonical;
    let name = match path.file_name() {
        Some(name) => name,
        None => {
            canonical = fs::canonicalize(path).map_err(|error| SendError::io(path, error))?;
            canonical.file_name().ok_or_else(|| SendError::Special(path.to_owned()))?
        }
    };
    name.to_str().map(str::to_owned).ok_or_else(|| SendError::NotUtf8(path.to_owned()))
}

/// A file or directory that was found.
struct Found {
    name: String,
    kind: FileType,
    stat: Stat,
}

struct Walk<'a> {
    bases: &'a [Base],
    opener: Opener<'a>,
    builder: ManifestBuilder,
    sources: Vec<Source>,
    skipped: Vec<Skipped>,
}

impl Walk<'_> {
    /// Walks one of the things that the user named.
    fn base(&mut self, number: u32) -> Result<(), SendError> {
        let base = &self.bases[number as usize];
        let failed = |error: Errno| SendError::io(&base.path, error.into());
        // The user may name a link, and then means where it leads.
        let stat = rustix::fs::stat(&base.path).map_err(failed)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        match kind {
            FileType::RegularFile => rustix::fs::access(&base.path, Access::READ_OK).map_err(failed)?,
            FileType::Directory => drop(self.opener.directory(number, "").map_err(failed)?),
            _ => return Err(SendError::Special(base.path.clone())),
        }
        // One stack instead of recursion: directories may be nested deeply.
        let mut stack = vec![Found { name: base.name.clone(), kind, stat }];
        while let Some(found) = stack.pop() {
            let directory = (found.kind == FileType::Directory).then(|| found.name.clone());
            if self.push(number, found)?
                && let Some(name) = directory
            {
                stack.append(&mut self.list(number, &name));
            }
        }
        Ok(())
    }

    /// Takes one entry; false where its name cannot travel. The user's own words must be able to.
    fn push(&mut self, base: u32, found: Found) -> Result<bool, SendError> {
        let identity = Identity::of(&found.stat);
        let is_named = self.bases[base as usize].name == found.name;
        let entry = match found.kind {
            FileType::Directory => Entry::Directory { path: found.name.clone() },
            _ => file_entry(found.name.clone(), &found.stat),
        };
        match self.builder.push(entry) {
            Ok(()) => self.sources.push(Source { base, identity }),
            Err(ManifestError::Name { fault, .. }) if !is_named => {
                self.skip(base, &found.name, Reason::Name(fault));
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn skip(&mut self, base: u32, name: &str, reason: Reason) {
        self.skipped.push(Skipped { path: self.bases[base as usize].full(name), reason });
    }

    /// The files and directories in a directory, the last name first.
    fn list(&mut self, base: u32, name: &str) -> Vec<Found> {
        let mut inside = Vec::new();
        if let Err(error) = self.read(base, name, &mut inside) {
            self.skip(base, name, reason(error));
        }
        inside.sort_by(|a, b| b.name.cmp(&a.name));
        inside
    }

    fn read(&mut self, base: u32, name: &str, inside: &mut Vec<Found>) -> Result<(), Errno> {
        let below = name.strip_prefix(self.bases[base as usize].name.as_str()).unwrap_or_default();
        let directory = self.opener.directory(base, below.trim_start_matches('/'))?;
        for item in Dir::read_from(&directory)? {
            let item = item?;
            let last = item.file_name();
            if matches!(last.to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(last) = last.to_str() else {
                self.skip(base, &format!("{name}/{}", last.to_string_lossy()), Reason::NotUtf8);
                continue;
            };
            let full = format!("{name}/{last}");
            match look(&directory, last) {
                Ok((kind, stat)) => inside.push(Found { name: full, kind, stat }),
                // It vanished while the directory was read, and nobody has promised it yet.
                Err(Reason::Vanished) => {}
                Err(reason) => self.skip(base, &full, reason),
            }
        }
        Ok(())
    }
}

/// What stands under a name in a directory, if it can be sent.
fn look(directory: &Arc<OwnedFd>, name: &str) -> Result<(FileType, Stat), Reason> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(reason)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok((FileType::Directory, stat)),
        FileType::RegularFile => {
            rustix::fs::accessat(directory, name, Access::READ_OK, AtFlags::empty()).map_err(reason)?;
            Ok((FileType::RegularFile, stat))
        }
        FileType::Symlink => Err(Reason::SymbolicLink),
        _ => Err(Reason::Special),
    }
}

/// The entry of a regular file.
// The types of the fields differ from system to system.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
pub(crate) fn file_entry(path: String, stat: &Stat) -> Entry {
    let mtime_ns = (stat.st_mtime as i64).saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
    Entry::File { path, size: stat.st_size as u64, mtime_ns, executable: stat.st_mode & 0o100 != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::NameFault;

    #[test]
    fn links_are_left_out_and_said_so() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d");
        fs::create_dir_all(root.join("empty")).unwrap();
        fs::write(root.join("f"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
        let names: Vec<_> = selection.manifest().entries().iter().map(Entry::path).collect();
        assert_eq!(names, ["d", "d/empty", "d/f"]);
        let said = selection.skipped()[0].to_string();
        assert!(said.ends_with("d/link is a symbolic link"), "{said}");
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
        use std::os::unix::ffi::OsStrExt;
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d");
        fs::create_dir_all(root.join("back\\slash")).unwrap();
        fs::write(root.join("back\\slash/inside"), "").unwrap();
        fs::write(root.join("f"), "x").unwrap();
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
        let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
        let names: Vec<_> = selection.manifest().entries().iter().map(Entry::path).collect();
        assert_eq!(names, ["d", "d/f"]);
        let reasons: Vec<_> = selection.skipped().iter().map(|skipped| skipped.reason).collect();
        assert_eq!(reasons, [Reason::Name(NameFault::Backslash), Reason::NotUtf8]);
    }

    #[test]
    fn two_files_of_one_name_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for parent in ["a", "b"] {
            fs::create_dir(directory.path().join(parent)).unwrap();
            fs::write(directory.path().join(parent).join("x"), "").unwrap();
        }
        let paths = ["a/x", "b/x"].map(|name| directory.path().join(name));
        assert!(matches!(Selection::collect(&paths), Err(SendError::Manifest(ManifestError::Duplicate(_)))));
    }
}
