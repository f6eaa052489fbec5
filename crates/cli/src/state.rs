//! Where the program keeps what outlives a run: the user's state directory.

use std::path::PathBuf;

/// The program's own directory there; `None` where the environment names no place.
pub(crate) fn directory() -> Option<PathBuf> {
    let own = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(own.or_else(home)?.join("fairpath"))
}
