//! Where the two ends of `serve` and `proxy` keep their state.

use std::path::PathBuf;

use fairpath_proxy::{FarState, StateError};

use crate::error::UsageError;

/// The state directory of the far end.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FarStateArgs {
    /// Keep the state here: the identity, the devices, the invitations; by default in ~/.local/state/fairpath/serve
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// The state directory of the near end.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NearStateArgs {
    /// Keep the state here: this device's key, and the far end that it has joined; by default in
    /// ~/.local/state/fairpath/proxy
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl FarStateArgs {
    pub(crate) fn directory(&self) -> Result<PathBuf, UsageError> {
        directory(self.state.as_ref(), "serve")
    }

    pub(crate) fn open(&self) -> anyhow::Result<FarState> {
        Ok(FarState::open(&self.directory()?)?)
    }
}

impl NearStateArgs {
    pub(crate) fn directory(&self) -> Result<PathBuf, UsageError> {
        directory(self.state.as_ref(), "proxy")
    }
}

fn directory(given: Option<&PathBuf>, name: &str) -> Result<PathBuf, UsageError> {
    let default = || crate::state::directory().map(|own| own.join(name));
    given.cloned().or_else(default).ok_or_else(|| {
        UsageError("neither HOME nor XDG_STATE_HOME names a place for the state: give one with --state".to_owned())
    })
}

/// An error of the state whose cause is in the command line.
pub(crate) fn told(error: StateError) -> anyhow::Error {
    match error {
        StateError::NameTaken(_) | StateError::Unknown { .. } => UsageError(error.to_string()).into(),
        other => other.into(),
    }
}
