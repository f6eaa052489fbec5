//! A partition of the paths: the answer of a shared-bottleneck detector. Paths of one group are
//! taken to share a bottleneck and are coupled; paths of different groups are not.
//!
//! One group of all paths is full coupling, all singletons is none.

use crate::path::{PathId, PathMap};

/// The name of a group: the lowest path id in it, so that it does not depend on history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u32);

impl GroupId {
    /// The number: the lowest path id of the group.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A partition of the paths of a connection into groups. A path it has not been told of is a
/// group of its own.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    of: PathMap<GroupId>,
}

impl Groups {
    /// Every path a group of its own: nothing is coupled.
    pub fn singletons(paths: impl IntoIterator<Item = PathId>) -> Self {
        Self::from_members(paths.into_iter().map(|path| [path]))
    }

    /// All paths in one group: everything is coupled.
    pub fn one(paths: impl IntoIterator<Item = PathId>) -> Self {
        Self::from_members([paths])
    }

    /// The groups listed. A path listed twice stays in the first group that names it.
    pub fn from_members<G: IntoIterator<Item = PathId>>(groups: impl IntoIterator<Item = G>) -> Self {
        let mut of = PathMap::new();
        for group in groups {
            let mut members: Vec<PathId> = group.into_iter().filter(|path| !of.contains(*path)).collect();
            members.sort_unstable();
            members.dedup();
            if let Some(lowest) = members.first().copied() {
                for path in members {
                    of.insert(path, GroupId(lowest.get()));
                }
            }
        }
        Self { of }
    }

    /// The group of `path`.
    pub fn of(&self, path: PathId) -> GroupId {
        self.of.get(path).copied().unwrap_or(GroupId(path.get()))
    }

    /// Whether both paths are in one group.
    pub fn together(&self, a: PathId, b: PathId) -> bool {
        self.of(a) == self.of(b)
    }

    /// The paths this partition was made of, in order.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + '_ {
        self.of.paths()
    }

    /// The groups as lists of paths, both in order.
    pub fn members(&self) -> Vec<Vec<PathId>> {
        let mut groups: Vec<(GroupId, Vec<PathId>)> = Vec::new();
        for (path, group) in self.of.iter() {
            match groups.iter_mut().find(|(id, _)| id == group) {
                Some((_, members)) => members.push(path),
                None => groups.push((*group, vec![path])),
            }
        }
        groups.into_iter().map(|(_, members)| members).collect()
    }
}

/// Two partitions are equal when they group the same paths in the same way.
impl PartialEq for Groups {
    fn eq(&self, other: &Self) -> bool {
        self.of.len() == other.of.len() && self.of.iter().zip(other.of.iter()).all(|(a, b)| a.0 == b.0 && a.1 == b.1)
    }
}

impl Eq for Groups {}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32) -> PathId {
        PathId::new(id)
    }

    #[test]
    fn one_group_couples_all_and_singletons_couple_none() {
        let paths = [path(0), path(1), path(2)];
        assert!(Groups::one(paths).together(path(0), path(2)));
        assert!(!Groups::singletons(paths).together(path(0), path(2)));
        assert_eq!(Groups::singletons(paths).members().len(), 3);
    }

    #[test]
    fn a_path_named_twice_stays_in_its_first_group() {
        let groups = Groups::from_members([vec![path(2), path(1)], vec![path(1), path(5)]]);
        assert_eq!(groups.members(), [vec![path(1), path(2)], vec![path(5)]]);
        assert_eq!(groups.of(path(2)).get(), 1);
    }

    #[test]
    fn an_unknown_path_is_alone() {
        let groups = Groups::one([path(0), path(1)]);
        assert!(!groups.together(path(0), path(9)));
        assert_eq!(groups.of(path(9)).get(), 9);
    }

    #[test]
    fn equality_ignores_the_order_in_which_groups_were_listed() {
        let a = Groups::from_members([vec![path(0)], vec![path(1), path(2)]]);
        let b = Groups::from_members([vec![path(2), path(1)], vec![path(0)]]);
        assert_eq!(a, b);
        assert_ne!(a, Groups::one([path(0), path(1), path(2)]));
    }
}
