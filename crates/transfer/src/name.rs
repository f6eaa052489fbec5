//! Names of files: bytes, as file systems keep them, and how they are shown.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::escaped;

/// A relative name with `/` between its components, or the target of a symbolic link. Any bytes: file
/// systems do not ask for UTF-8.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<u8>);

impl Name {
    /// The name of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same as a path.
    pub fn as_path(&self) -> &Path {
        path_of(&self.0)
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its components.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    /// The names of all directories above it, the outermost first.
    pub fn parents(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &self.0[..at])
    }

    /// The name of `last` in the directory of this name.
    pub(crate) fn with(&self, last: &[u8]) -> Self {
        Self([&self.0, &b"/"[..], last].concat())
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

/// As a person may be shown it: what is no text, or would control a terminal, is escaped, once.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// One encoding with a text or a list of bytes of the same content.
impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfBytes;
        impl Visitor<'_> for OfBytes {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the bytes of a name")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Name, E> {
                Ok(Name(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(OfBytes)
    }
}

/// These bytes as a path.
pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path as a person may be shown it.
pub fn shown_path(path: &Path) -> String {
    shown(path.as_os_str().as_bytes())
}

/// Bytes as a person may be shown them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.extend(chunk.valid().chars().flat_map(escaped));
        for byte in chunk.invalid() {
            // Writing to memory does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The directory in which a name stands, empty for the root, and its last component.
pub(crate) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (b"", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_is_escaped_once() {
        for (name, shown) in [
            (&b"back\\slash"[..], "back\\slash"),
            (b"gr\xc3\xbc\xc3\x9fe", "grüße"),
            (b"caf\xe9.txt", "caf\\xe9.txt"),
            (b"a\x1b[2J\xff\xfe", "a\\u{1b}[2J\\xff\\xfe"),
        ] {
            let name = Name::new(name);
            assert_eq!(name.to_string(), shown);
            assert_eq!(crate::printable(&name.to_string()), shown, "what is shown is not escaped again");
        }
    }

    #[test]
    fn a_name_is_encoded_as_the_same_text_is() {
        let name = Name::from("d/ü");
        let encoded = postcard::to_stdvec(&name).unwrap();
        assert_eq!(encoded, postcard::to_stdvec("d/ü").unwrap());
        assert_eq!(postcard::from_bytes::<Name>(&encoded), Ok(name));
    }

    #[test]
    fn a_name_knows_what_stands_above_it() {
        let name = Name::from("a/b/c");
        assert_eq!(name.parents().collect::<Vec<_>>(), [&b"a"[..], b"a/b"]);
        assert_eq!((split(b"a/b/c"), split(b"c")), ((&b"a/b"[..], &b"c"[..]), (&b""[..], &b"c"[..])));
    }
}
