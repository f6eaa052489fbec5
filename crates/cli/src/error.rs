//! Exit codes: 0 for success, 2 where the command line cannot be meant, 1 for everything else.

use crate::text::safe;

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
            || cause.downcast_ref::<fairpath_quic::Error>().is_some_and(fairpath_quic::Error::is_usage)
    });
    if usage { USAGE } else { FAILURE }
}

/// An error and its causes on one line; a cause that the words before it tell already is left out.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    safe(&text)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn no_cause_is_told_twice() {
        let source = std::io::Error::other("address in use");
        let address = "127.0.0.1:9".parse().unwrap();
        let error = anyhow::Error::from(fairpath_quic::Error::Bind { address, source }).context("cannot begin");
        assert_eq!(describe(&error), "cannot begin: cannot listen on 127.0.0.1:9: address in use");
    }

    #[test]
    fn what_an_error_quotes_is_short_and_cannot_control_the_terminal() {
        let said = describe(&UsageError(format!("no such key {}\u{1b}[2J", "x".repeat(4_000_000))).into());
        assert!(said.len() < 3_000 && !said.contains('\u{1b}'), "{} bytes", said.len());
    }

    #[test]
    fn a_usage_error_is_found_below_its_context() {
        let error = Err::<(), _>(UsageError("no".into())).context("while reading").unwrap_err();
        assert_eq!(exit_code(&error), USAGE);
        assert_eq!(exit_code(&anyhow::anyhow!("no")), FAILURE);
    }
}
