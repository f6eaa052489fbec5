//! Exit codes: 0 for success, 2 where the command line cannot be meant, 3 where a part was done and the
//! rest was named, 1 for everything else.

use fairpath_report::text::safe;

/// The exit code of a failure.
pub(crate) const FAILURE: u8 = 1;

/// The exit code of a command line that cannot be meant.
pub(crate) const USAGE: u8 = 2;

/// The exit code where some of what was asked for was left out.
const INCOMPLETE: u8 = 3;

/// Every exit code with its meaning, for the reference.
#[cfg(test)]
pub(crate) const EXIT_CODES: [(u8, &str); 4] = [
    (0, "done, or ended because the user asked for it"),
    (FAILURE, "every failure that has no code of its own"),
    (USAGE, "a command line that cannot be meant"),
    (INCOMPLETE, "some of what was asked for was left out; the output names it"),
];

/// Some of what was asked for was left out; what was done stays done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Incomplete(pub(crate) String);

/// The user gave something that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Somebody asked this program to end before it was done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Interrupted(pub(crate) String);

/// The exit code for an error.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    let usage = error.chain().any(|cause| {
        cause.is::<UsageError>()
            || is_unusable(cause)
            || cause.downcast_ref::<fairpath_quic::Error>().is_some_and(fairpath_quic::Error::is_usage)
    });
    match usage {
        true => USAGE,
        false if error.is::<Incomplete>() => INCOMPLETE,
        false => FAILURE,
    }
}

/// Whether a described network cannot be meant.
#[cfg(feature = "research")]
fn is_unusable(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<fairpath_runs::Unusable>()
}

#[cfg(not(feature = "research"))]
fn is_unusable(_: &(dyn std::error::Error + 'static)) -> bool {
    false
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
        assert_eq!(exit_code(&Incomplete("a file".into()).into()), INCOMPLETE);
    }
}
