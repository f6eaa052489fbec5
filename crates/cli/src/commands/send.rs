//! `fairpath send`: files and directories to whoever printed the ticket.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fairpath_quic::{ConnectConfig, Connection, Fingerprint};
use fairpath_trace::{Header, Record, Sample, State, Writer};
use fairpath_transfer::{Selection, Sender, Ticket};
use tokio::sync::broadcast::error::RecvError;

use crate::error::UsageError;

pub(super) mod view;

use view::{EngineArgs, Role, Summary, TICK, View, transport_error};

const EXAMPLE: &str = "\
Example, with the ticket that `fairpath recv` prints on the other machine:
  fairpath send photos/ notes.txt fp1aaaa…
Over two interfaces only, with a trace of every path:
  fairpath send photos/ fp1aaaa… --via wlan0 --via wwan0 --trace photos.ndjson
The same command again resumes an interrupted transfer.";

/// Send files and directories over all networks at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// What to send; directories are sent whole, symbolic links inside them are not.
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    files: Vec<PathBuf>,
    /// What `fairpath recv` printed.
    #[arg(value_name = "TICKET", required = true)]
    ticket: String,
    /// Use this interface or local address only; may be given several times.
    #[arg(long, value_name = "IF")]
    via: Vec<String>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Print the summary as one line of JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Show neither progress nor summary.
    #[arg(long)]
    quiet: bool,
    /// Write what every path did, ten times a second, as newline-delimited JSON.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Sends, and shows how it goes.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let ticket: Ticket = args.ticket.parse().map_err(|error| UsageError(format!("{error}")))?;
    let engine = args.engine.config()?;
    let files = args.files;
    let selection = tokio::task::spawn_blocking(move || Selection::collect(&files)).await??;
    let skipped: Vec<_> = selection.skipped().iter().map(ToString::to_string).collect();
    let mut trace = args.trace.as_deref().map(Trace::create).transpose()?;

    let mut config = ConnectConfig::new(ticket.addresses, Fingerprint(ticket.fingerprint));
    config.via = args.via;
    config.engine = engine;
    let connection = fairpath_quic::connect(config).await.map_err(transport_error)?;
    let sender = Sender::new(selection, ticket.secret);
    let mut view = View::new(Role::Send, sender.progress(), args.quiet);
    skipped.iter().for_each(|text| view.line(text));

    let mut notices = Vec::new();
    let sent = tokio::select! {
        sent = sender.send(connection.quic()) => sent.map_err(anyhow::Error::from),
        error = watch(&connection, &mut view, &mut notices, trace.as_mut()) => Err(error),
    };
    view.clear();
    connection.close(0, "done");
    // The peer should hear of the end; nothing tells when that packet has left.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    if let Some(trace) = trace {
        trace.finish()?;
    }
    let sent = sent?;
    let progress = sender.progress().snapshot();
    Summary::new(Role::Send, &progress, sent.elapsed, &connection.paths(), notices).show(args.quiet, args.json)
}

/// Shows progress and notices until something ends it: only interruption and a trace that cannot be
/// written do.
async fn watch(
    connection: &Connection,
    view: &mut View,
    notices: &mut Vec<String>,
    mut trace: Option<&mut Trace>,
) -> anyhow::Error {
    let mut happened = connection.notices();
    let mut tick = tokio::time::interval(TICK);
    let mut sample = tokio::time::interval(TICK / 2);
    loop {
        tokio::select! {
            _ = tick.tick() => view.tick(&connection.paths()),
            _ = sample.tick(), if trace.is_some() => {
                if let Some(trace) = trace.as_deref_mut()
                    && let Err(error) = trace.sample(connection)
                {
                    connection.close(1, "the sender cannot write its trace");
                    return error;
                }
            }
            notice = happened.recv() => match notice {
                Ok(notice) => {
                    view.line(&notice.to_string());
                    notices.push(notice.to_string());
                }
                Err(RecvError::Lagged(_)) => {}
                // The manager of the paths has ended with the connection: the transfer says why.
                Err(RecvError::Closed) => std::future::pending().await,
            },
            _ = tokio::signal::ctrl_c() => {
                connection.close(2, "interrupted by the sender's user");
                return anyhow::anyhow!("interrupted; the same command resumes while the receiver waits");
            }
        }
    }
}

/// The trace of a transfer's paths.
struct Trace {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl Trace {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let name = || format!("cannot write the trace {}", path.display());
        let file = File::create(path).with_context(name)?;
        let writer = Writer::new(BufWriter::new(file), &Header::new(Some("send"))).with_context(name)?;
        Ok(Self { path: path.to_owned(), writer })
    }

    fn sample(&mut self, connection: &Connection) -> anyhow::Result<()> {
        let (now, paths) = connection.snapshots();
        for path in paths {
            let state = match path.phase {
                _ if path.suspected => State::Suspected,
                fairpath_engine::Phase::SlowStart => State::SlowStart,
                fairpath_engine::Phase::CongestionAvoidance => State::CongestionAvoidance,
                fairpath_engine::Phase::Recovery => State::Recovery,
            };
            let sample = Sample {
                now,
                path: path.path,
                cwnd: path.window,
                srtt: path.rtt.map(|rtt| rtt.smoothed),
                rtt_min: path.rtt.map(|rtt| rtt.min),
                in_flight: path.in_flight,
                rate: path.rate,
                lost: path.lost,
                group: path.group,
                state,
            };
            let written = self.writer.write(&Record::from(sample));
            written.with_context(|| format!("cannot write the trace {}", self.path.display()))?;
        }
        Ok(())
    }

    fn finish(self) -> anyhow::Result<()> {
        self.writer.finish().with_context(|| format!("cannot write the trace {}", self.path.display()))?;
        Ok(())
    }
}
