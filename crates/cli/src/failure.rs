//! A failure as an object for programs: a short code, the text that people read, and what to do.

use fairpath_transfer::{Fault, ReceiveError, SendError};
use serde::Serialize;

use crate::error::{Incomplete, Interrupted, describe, exit_code};

/// The last line that `--json` prints after a failure: `{"error":{…}}` on one line.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    error: Told,
}

#[derive(Debug, Serialize)]
struct Told {
    /// The kind of failure, which stays the same where its words change.
    code: &'static str,
    exit_code: u8,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl Failure {
    /// The outcome of a command.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let exit_code = exit_code(error);
        let (code, hint) = kind(error, exit_code);
        Self { error: Told { code, exit_code, text: describe(error), hint } }
    }

    /// A command line that could not be read.
    pub(crate) fn usage(text: &str) -> Self {
        Self::of(&crate::error::UsageError(text.to_owned()).into())
    }

    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The code of a failure, and what to do about it where that is known.
fn kind(error: &anyhow::Error, exit_code: u8) -> (&'static str, Option<&'static str>) {
    let of_cause = error.chain().find_map(|cause| {
        let of_quic = cause.downcast_ref().map(of_quic);
        let of_sender = || cause.downcast_ref().map(of_sender);
        let of_receiver = || cause.downcast_ref().map(of_receiver);
        let of_user = || cause.is::<Interrupted>().then_some(("interrupted", Some(RESUMES)));
        let of_part = || cause.is::<Incomplete>().then_some(("incomplete", Some("`skipped` names what was left out")));
        of_quic.or_else(of_sender).or_else(of_receiver).or_else(of_user).or_else(of_part)
    });
    match of_cause {
        Some(kind) => kind,
        None if exit_code == crate::error::USAGE => ("usage", Some("`fairpath help COMMAND` shows what can be given")),
        None => ("failed", None),
    }
}

const RESUMES: &str = "the same command goes on where this one ended, while the receiver waits";
const PATHS: &str = "`fairpath paths` shows the interfaces, and why others are not used";
const NEW_TICKET: &str = "give the ticket that the other machine shows now";

fn of_quic(error: &fairpath_quic::Error) -> (&'static str, Option<&'static str>) {
    use fairpath_quic::Error;
    match error {
        Error::UnknownName(_) => ("usage", None),
        Error::UnknownInterface(_) => ("usage", Some(PATHS)),
        Error::NoUsableInterface | Error::OtherFamily { .. } => ("no_interface", Some(PATHS)),
        Error::Bind { .. } => ("cannot_listen", Some("give another address or port to --listen, or port 0 for any")),
        Error::Unreachable { .. } => {
            let hint = "see whether the other end runs, and whether UDP reaches one of the addresses in its ticket";
            ("no_answer", Some(hint))
        }
        Error::WrongFingerprint { .. } => ("wrong_peer", Some(NEW_TICKET)),
        Error::Busy(_) => ("busy", Some("try again in a while")),
        Error::NoMultipath(_) => ("no_multipath", None),
        _ => ("failed", None),
    }
}

fn of_sender(error: &SendError) -> (&'static str, Option<&'static str>) {
    use fairpath_transfer::Refusal;
    match error {
        SendError::Nothing => ("usage", None),
        SendError::NoSuchFile(_) => ("no_such_file", None),
        SendError::PermissionDenied(_) => ("permission_denied", None),
        SendError::Refused { refusal: Refusal::Taken, .. } => {
            ("ticket_in_use", Some("wait until the other sender is gone"))
        }
        SendError::Refused { refusal: Refusal::Busy, .. } => ("busy", Some("try again in a while")),
        SendError::Refused { refusal: Refusal::Version, .. } => ("version", Some("update the older end")),
        SendError::Refused { .. } => ("refused", Some(NEW_TICKET)),
        SendError::Receiver { fault, .. } => of_peer(*fault),
        SendError::PeerGone(_) => ("connection_lost", Some(RESUMES)),
        SendError::GivenUp { .. } => ("given_up", Some(RESUMES)),
        SendError::Stuck { .. } => ("no_progress", Some(RESUMES)),
        SendError::Protocol(_) => ("protocol", None),
        _ => ("failed", None),
    }
}

/// A fault at the other end.
fn of_peer(fault: Fault) -> (&'static str, Option<&'static str>) {
    match fault {
        Fault::Exists => ("exists", Some("move it away at the receiver, or start that with --force")),
        Fault::DiskFull => ("disk_full", Some("make room at the receiver; the same command then goes on")),
        Fault::PermissionDenied => {
            ("permission_denied", Some("let the receiver write there, or give it another --dir"))
        }
        Fault::Declined => ("declined", None),
        Fault::Mismatch => ("damaged", None),
        Fault::Protocol => ("protocol", None),
        _ => ("failed", None),
    }
}

fn of_receiver(error: &ReceiveError) -> (&'static str, Option<&'static str>) {
    match error {
        ReceiveError::Exists { .. } => ("exists", Some("move it away, or give --force")),
        ReceiveError::InTheWay { .. } | ReceiveError::Symlink { .. } => ("exists", Some("move away what is there")),
        ReceiveError::NoSpace { .. } | ReceiveError::DiskFull { .. } => {
            ("disk_full", Some("make room; the same ticket then goes on"))
        }
        ReceiveError::PermissionDenied(_) | ReceiveError::Untrusted { .. } => {
            ("permission_denied", Some("give another --dir"))
        }
        ReceiveError::Busy(_) => ("busy", Some("end the other receiver, or give another --dir")),
        ReceiveError::Declined => ("declined", None),
        ReceiveError::Mismatch { .. } => ("damaged", None),
        ReceiveError::PeerGone(_) => ("connection_lost", Some("the same ticket resumes the transfer")),
        ReceiveError::Protocol(_) => ("protocol", None),
        _ => ("failed", None),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;
    use crate::error::UsageError;

    fn told(error: impl Into<anyhow::Error>) -> (String, serde_json::Value) {
        let line = Failure::of(&error.into()).line();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        (value["error"]["code"].as_str().unwrap().to_owned(), value)
    }

    #[test]
    fn a_failure_is_one_line_with_a_code_a_text_and_what_to_do() {
        let (code, value) = told(SendError::NoSuchFile("a\nb".into()));
        assert_eq!((code.as_str(), value["error"]["exit_code"].as_u64()), ("no_such_file", Some(1)));
        assert!(!Failure::usage("one\ntwo").line().contains('\n'));
        let (code, value) = told(ReceiveError::Exists { path: "x".into() });
        assert_eq!(code, "exists");
        assert!(value["error"]["hint"].as_str().unwrap().contains("--force"), "{value}");
    }

    #[test]
    fn every_kind_has_its_code_also_below_a_context() {
        let below = Err::<(), _>(fairpath_quic::Error::NoUsableInterface).context("cannot begin").unwrap_err();
        assert_eq!(told(below).0, "no_interface");
        assert_eq!(told(UsageError("no".into())).0, "usage");
        assert_eq!(told(Incomplete("1 file".into())).0, "incomplete");
        assert_eq!(told(Interrupted("interrupted".into())).0, "interrupted");
        assert_eq!(told(anyhow::anyhow!("no")).0, "failed");
    }
}
