//! Extended attributes: those of users, `user.*`. All others are the business of the system.

use std::os::fd::AsFd;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::name::Name;

/// The names that travel begin so.
const OF_USERS: &[u8] = b"user.";

/// The longest name, in bytes: as long as Linux takes them.
const NAME_MAX: usize = 255;

/// The most that all attributes of one file or directory take, in bytes: as much as Linux takes of one.
const BYTES_MAX: usize = 64 << 10;

/// One attribute of a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// The name, with its namespace.
    pub name: Name,
    /// The value: any bytes.
    pub value: Name,
}

/// How many bytes they take.
pub(crate) fn bytes(attributes: &[Attribute]) -> usize {
    attributes.iter().map(|one| one.name.len() + one.value.len()).sum()
}

/// Whether they may be sent and set.
pub(crate) fn may_travel(attributes: &[Attribute]) -> bool {
    let is_fit = |one: &Attribute| {
        let name = one.name.as_bytes();
        name.starts_with(OF_USERS) && (OF_USERS.len() + 1..=NAME_MAX).contains(&name.len()) && !name.contains(&0)
    };
    attributes.iter().all(is_fit) && bytes(attributes) <= BYTES_MAX
}

/// The attributes of an open file that travel: as many as may; none where its file system has none.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn read(file: impl AsFd) -> Vec<Attribute> {
    let mut names = vec![0; BYTES_MAX];
    let Ok(length) = rustix::fs::flistxattr(&file, &mut names[..]) else { return Vec::new() };
    let mut value = vec![0; BYTES_MAX];
    let mut found = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(OF_USERS)) {
        // It may have been removed meanwhile.
        let Ok(length) = rustix::fs::fgetxattr(&file, name, &mut value[..]) else { continue };
        found.push(Attribute { name: Name::new(name), value: Name::new(&value[..length]) });
        if !may_travel(&found) {
            found.pop();
        }
    }
    found
}

/// Sets attributes of an open file, where its file system has such and has room for them.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn set(file: impl AsFd, attributes: &[Attribute]) -> Result<(), Errno> {
    use rustix::fs::XattrFlags;
    for one in attributes {
        match rustix::fs::fsetxattr(&file, one.name.as_bytes(), one.value.as_bytes(), XattrFlags::empty()) {
            Err(Errno::NOTSUP | Errno::PERM | Errno::NOSPC | Errno::TOOBIG | Errno::RANGE | Errno::INVAL) => {}
            set => set?,
        }
    }
    Ok(())
}

/// None: this system's are of another kind.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn read(_file: impl AsFd) -> Vec<Attribute> {
    Vec::new()
}

/// Sets none: this system's are of another kind.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn set(_file: impl AsFd, _attributes: &[Attribute]) -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(name: &str, value: &[u8]) -> Attribute {
        Attribute { name: name.into(), value: Name::new(value) }
    }

    #[test]
    fn only_attributes_of_users_travel_and_not_too_much_of_them() {
        assert!(may_travel(&[]) && may_travel(&[attribute("user.x", b"\0\xff"), attribute("user.y", b"")]));
        for name in ["security.selinux", "system.posix_acl_access", "trusted.x", "user.", "user.a\0b", "", "x"] {
            assert!(!may_travel(&[attribute(name, b"")]), "{name:?}");
        }
        assert!(!may_travel(&[attribute(&format!("user.{}", "x".repeat(251)), b"")]));
        assert!(!may_travel(&[attribute("user.x", &[0; 40_000]), attribute("user.y", &[0; 40_000])]));
    }

    #[test]
    fn attributes_are_read_as_they_were_set() {
        let file = tempfile::tempfile().unwrap();
        let wanted = [attribute("user.a", b"1"), attribute("user.b", b"\0\xff")];
        set(&file, &wanted).unwrap();
        let mut found = read(&file);
        if found.is_empty() {
            println!("skipped: this file system keeps no attributes of users");
            return;
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(found, wanted);
    }
}
