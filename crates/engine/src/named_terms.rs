//! What a person has said of paths, by the names that hosts give them.

use fairpath_sched::Terms;

/// What a person has said of the paths that begin at an interface or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTerms {
    /// What the host calls it: see [`Engine::name_path`](crate::Engine::name_path).
    pub of: String,
    /// What was said.
    pub terms: Terms,
}
