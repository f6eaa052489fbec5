//! How many files this process may have open: each connection that it carries is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many as the system grants. Shells and services begin with 1,024 for programs that cannot tell more than that
/// apart, so this is not for a process that starts others.
pub(crate) fn as_many_as_granted() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
