//! `fairpath send`: files and directories to whoever printed the ticket.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use fairpath_quic::Connection;
use fairpath_transfer::{Refusal, Selection, SendError, Sender};
use tokio::sync::broadcast::error::RecvError;

use crate::ends::{ConnectArgs, parse_ticket, say_goodbye};
use crate::error::Incomplete;
use crate::recording::{TraceFile, records};
use crate::signals::Interruption;
use crate::transfer::{Role, Shown, Summary, TICK, View};

const EXAMPLE: &str = "\
Example:
  fairpath send photos/ notes.txt TICKET
  fairpath send photos/ TICKET --via wlan0 --via wwan0 --trace photos.ndjson

TICKET is what `fairpath recv` printed on the other machine. The same command again resumes an
interrupted transfer. A file that changes or vanishes meanwhile is left out and named in the end; the
exit code is then 3.";

/// Send files and directories over all networks at once
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// What to send; directories are sent whole, symbolic links inside them are not
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// What `fairpath recv` printed
    #[arg(value_name = "TICKET", required = true)]
    ticket: String,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    shown: Shown,
    /// Write what every path does, ten times a second, as newline-delimited JSON
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Sends, and shows how it goes.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let ticket = parse_ticket(&args.ticket)?;
    let files = args.files;
    let selection = tokio::task::spawn_blocking(move || Selection::collect(&files)).await??;
    let mut skipped = selection.skipped().to_vec();
    let mut trace = args.trace.as_deref().map(|path| TraceFile::create(path, "send")).transpose()?;

    let interruption = Interruption::listen()?;
    let connection = tokio::select! {
        connection = args.connect.connect(&ticket) => connection?,
        () = interruption.asked() => bail!("interrupted before the receiver had answered"),
    };
    let sender = Sender::new(selection, ticket.secret)?;
    let mut view = View::new(Role::Send, sender.progress(), args.shown.quiet);
    skipped.iter().for_each(|one| view.line(&one.to_string()));

    let sent = tokio::select! {
        sent = sender.send(connection.quic()) => sent.map_err(explained),
        error = watch(&connection, &mut view, trace.as_mut(), &interruption) => Err(error),
    };
    let happened = view.end();
    let paths = connection.paths_now().await;
    say_goodbye(&connection).await;
    if let Some(trace) = trace {
        trace.finish()?;
    }
    let sent = sent?;
    let progress = sender.progress().snapshot();
    let can_follow = !sent.skipped.is_empty();
    skipped.extend(sent.skipped);
    skipped.retain(|one| !one.reason.is_expected());
    let summary = Summary::new(Role::Send, &progress, sent.elapsed, &paths, happened);
    summary.with_tried(&connection.tried(), &paths).without(&skipped).show(args.shown)?;
    match skipped.len() {
        0 => Ok(()),
        count => Err(Incomplete(left_out(count, progress.files_total, can_follow)).into()),
    }
}

/// That not everything was sent; the receiver waits for what it was promised.
fn left_out(count: usize, sent: u64, can_follow: bool) -> String {
    let files = if count == 1 { "1 file was" } else { &format!("{count} files were") };
    let next = if can_follow { "; the receiver waits, and the same command sends what is missing" } else { "" };
    format!("{files} not sent, {sent} are in place{next}")
}

/// An error of the transfer, told by its cause where the ticket is of another kind.
fn explained(error: SendError) -> anyhow::Error {
    match error {
        SendError::Refused { refusal: Refusal::WrongPurpose, .. } => anyhow!(
            "this ticket is not from `fairpath recv`; what `fairpath perf server` prints is for `fairpath perf client`"
        ),
        error => error.into(),
    }
}

/// Shows progress and notices until something ends it: only interruption and a trace that cannot be
/// written do.
async fn watch(
    connection: &Connection,
    view: &mut View,
    mut trace: Option<&mut TraceFile>,
    interruption: &Interruption,
) -> anyhow::Error {
    let mut happened = connection.notices();
    let mut tick = tokio::time::interval(TICK);
    let mut sample = tokio::time::interval(TICK / 2);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                view.tick(&connection.paths());
                view.sharing(connection);
            }
            _ = sample.tick(), if trace.is_some() => {
                if let Some(trace) = trace.as_deref_mut()
                    && let Err(error) = trace.write(&records(connection, None, None))
                {
                    connection.close(1, "the sender cannot write its trace");
                    return error;
                }
            }
            notice = happened.recv() => match notice {
                Ok(notice) => view.notice(notice),
                Err(RecvError::Lagged(_)) => {}
                // The manager of the paths has ended with the connection: the transfer says why.
                Err(RecvError::Closed) => std::future::pending().await,
            },
            () = interruption.asked() => {
                connection.close(2, "interrupted by the sender's user");
                return anyhow!("interrupted; the same command resumes while the receiver waits");
            }
        }
    }
}
