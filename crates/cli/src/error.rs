//! Exit codes: 0 for success, 2 where the command line cannot be meant, 1 for everything else.

/// The exit code of a failure.
pub(crate) const FAILURE: u8 = 1;

/// The exit code of a command line that cannot be meant.
const USAGE: u8 = 2;

/// The user gave something that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// The exit code for an error.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    let usage = error.chain().any(|cause| {
        cause.is::<UsageError>()
            || cause.is::<fairpath_engine::UnknownName>()
            || cause.downcast_ref::<fairpath_quic::Error>().is_some_and(fairpath_quic::Error::is_usage)
    });
    if usage { USAGE } else { FAILURE }
}
