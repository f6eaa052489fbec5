//! Why a result could not be kept.

use std::path::PathBuf;

/// A result could not be kept. The fault is the directory's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or a directory could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A figure could not be drawn.
    #[error(transparent)]
    Draw(#[from] fairpath_figure::DrawError),
}
