//! Path identifiers and a small ordered map keyed by them.

use core::fmt;

/// A path of one connection. Ids are given by the host, never reused within a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u32);

impl PathId {
    /// Path number `id`.
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

/// A map from path to `T`, iterated in order of the ids. A connection has few paths, so it is a
/// sorted vector: a look-up touches one or two cache lines and never allocates.
#[derive(Clone, Debug)]
pub struct PathMap<T> {
    entries: Vec<(PathId, T)>,
}

impl<T> Default for PathMap<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> PathMap<T> {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many paths have an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no path has an entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The position of `path` in iteration order.
    #[inline]
    pub fn index_of(&self, path: PathId) -> Option<usize> {
        // While no path has gone, each stands where its id says.
        let at = path.0 as usize;
        match self.entries.get(at) {
            Some((id, _)) if *id == path => Some(at),
            _ => self.search(path),
        }
    }

    #[inline(never)]
    fn search(&self, path: PathId) -> Option<usize> {
        self.entries.iter().position(|(id, _)| *id == path)
    }

    /// The entry of `path`.
    #[inline]
    pub fn get(&self, path: PathId) -> Option<&T> {
        self.index_of(path).map(|at| &self.entries[at].1)
    }

    /// The entry of `path`, mutable.
    #[inline]
    pub fn get_mut(&mut self, path: PathId) -> Option<&mut T> {
        self.index_of(path).map(|at| &mut self.entries[at].1)
    }

    /// Whether `path` has an entry.
    pub fn contains(&self, path: PathId) -> bool {
        self.get(path).is_some()
    }

    /// Sets the entry of `path` and gives back the one it replaces.
    pub fn insert(&mut self, path: PathId, value: T) -> Option<T> {
        match self.entries.binary_search_by_key(&path, |(id, _)| *id) {
            Ok(at) => Some(core::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (path, value));
                None
            }
        }
    }

    /// Removes the entry of `path`.
    pub fn remove(&mut self, path: PathId) -> Option<T> {
        let at = self.index_of(path)?;
        Some(self.entries.remove(at).1)
    }

    /// The entries in order of the path ids.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, &T)> + Clone {
        self.entries.iter().map(|(id, value)| (*id, value))
    }

    /// The entries in order of the path ids, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut T)> {
        self.entries.iter_mut().map(|(id, value)| (*id, value))
    }

    /// The values in order of the path ids.
    pub fn values(&self) -> impl Iterator<Item = &T> + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The paths in order.
    pub fn paths(&self) -> impl Iterator<Item = PathId> + Clone + '_ {
        self.entries.iter().map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iteration_follows_the_ids_whatever_the_order_of_insertion() {
        let mut map = PathMap::new();
        for id in [7, 0, 3] {
            assert_eq!(map.insert(PathId::new(id), id * 10), None);
        }
        assert_eq!(map.insert(PathId::new(3), 31), Some(30));
        let seen: Vec<_> = map.iter().map(|(path, value)| (path.get(), *value)).collect();
        assert_eq!(seen, [(0, 0), (3, 31), (7, 70)]);
    }

    #[test]
    fn a_removed_path_is_gone() {
        let mut map = PathMap::new();
        map.insert(PathId::new(1), ());
        assert_eq!(map.remove(PathId::new(1)), Some(()));
        assert_eq!(map.remove(PathId::new(1)), None);
        assert!(map.is_empty());
    }
}
