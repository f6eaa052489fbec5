//! One thing that is sent.

use serde::{Deserialize, Serialize};

use crate::attributes::{self, Attribute};
use crate::name::Name;

/// The permission bits that can travel: all but those by which a program runs as somebody else.
pub const PERMISSIONS: u16 = 0o1777;

/// One thing to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Relative, `/` between components.
    pub path: Name,
    /// The permission bits at the sender, as `chmod` takes them.
    pub mode: u16,
    /// When it was last modified: nanoseconds since 1970, negative before. Zero for symbolic links,
    /// and for directories whose time is not kept.
    pub mtime_ns: i64,
    /// Its kind.
    pub kind: Kind,
    /// Its extended attributes that travel.
    pub attributes: Vec<Attribute>,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A regular file.
    File {
        /// Its size in bytes.
        size: u64,
    },
    /// The same of a size that is known when all of it is sent: standard input, or a named pipe.
    Stream,
    /// A directory; needed for empty ones, allowed for all.
    Directory,
    /// A symbolic link.
    Link {
        /// Where it leads, as it stands in the link.
        target: Name,
    },
    /// Another name of a file that is sent, too.
    HardLink {
        /// The name under which that is sent.
        to: Name,
    },
}

impl Entry {
    /// A regular file of no special kind.
    pub fn file(path: impl Into<Name>, size: u64) -> Self {
        Self { path: path.into(), mode: 0o644, mtime_ns: 0, kind: Kind::File { size }, attributes: vec![] }
    }

    /// A directory of no special kind.
    pub fn directory(path: impl Into<Name>) -> Self {
        Self { path: path.into(), mode: 0o755, mtime_ns: 0, kind: Kind::Directory, attributes: vec![] }
    }

    /// A symbolic link.
    pub fn link(path: impl Into<Name>, target: impl Into<Name>) -> Self {
        Self {
            path: path.into(),
            mode: 0o777,
            mtime_ns: 0,
            kind: Kind::Link { target: target.into() },
            attributes: vec![],
        }
    }

    /// A stream.
    pub fn stream(path: impl Into<Name>) -> Self {
        Self { path: path.into(), mode: 0o644, mtime_ns: 0, kind: Kind::Stream, attributes: vec![] }
    }

    /// Another name of a file.
    pub fn hard_link(path: impl Into<Name>, to: impl Into<Name>) -> Self {
        Self { kind: Kind::HardLink { to: to.into() }, ..Self::file(path, 0) }
    }

    /// Whether it becomes a regular file.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. } | Kind::Stream)
    }

    /// Whether its size is not known beforehand.
    pub fn is_stream(&self) -> bool {
        self.kind == Kind::Stream
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// The size of a file that is known; zero for everything else.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size } => size,
            Kind::Stream | Kind::Directory | Kind::Link { .. } | Kind::HardLink { .. } => 0,
        }
    }

    /// How many bytes of names and the like are in it.
    pub(crate) fn names_bytes(&self) -> usize {
        let other = match &self.kind {
            Kind::Link { target: other } | Kind::HardLink { to: other } => other.len(),
            Kind::File { .. } | Kind::Stream | Kind::Directory => 0,
        };
        self.path.len() + other + attributes::bytes(&self.attributes)
    }
}

/// Whether a symbolic link at `path` stays inside what it was sent with, the directory that is the first
/// component of `path`, whatever other such links stand there.
///
/// A target may climb from the link's own directory, which is no link itself, and from there only go down.
/// So no step leads up from behind another link, and each link on the way down keeps to the same rule.
pub(crate) fn stays_inside(path: &Name, target: &Name) -> bool {
    let depth = path.components().count();
    let mut climbs = 0;
    let mut goes_down = false;
    for component in target.components() {
        match component {
            b".." if goes_down => return false,
            b".." => climbs += 1,
            b"" | b"." => {}
            _ => goes_down = true,
        }
    }
    // The first component of the path is the directory itself, the last is the link.
    !target.is_empty() && target.as_bytes()[0] != b'/' && depth >= 2 && climbs <= depth - 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_climb_as_far_as_what_it_was_sent_with() {
        for (path, target, is_inside) in [
            ("d/l", "x", true),
            ("d/l", "./e/x", true),
            ("d/l", "..", false),
            ("d/l", "../x", false),
            ("d/e/l", "..", true),
            ("d/e/l", "../x/y", true),
            ("d/e/l", "../../x", false),
            ("d/e/l", "/etc/passwd", false),
            ("d/e/l", "", false),
            // Where `x` is a link itself, what is above it is not known.
            ("d/e/f/l", "x/../y", false),
            ("d/e/f/l", ".././../x", true),
            // Nothing is sent around it.
            ("l", "x", false),
        ] {
            assert_eq!(stays_inside(&path.into(), &target.into()), is_inside, "{path} -> {target}");
        }
    }
}
