//! `fairpath send`: files and directories to whoever printed the ticket.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use fairpath_proxy::End;
use fairpath_quic::{Connection, PathNotice};
use fairpath_report::recording::{TraceFile, records};
use fairpath_report::text::{clock, duration, tell};
use fairpath_transfer::{DeliveryEvent, INTERRUPTED_CODE, Refusal, Selection, SendError, Sender, Sent};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use crate::ends::{ConnectArgs, connect, say_goodbye};
use crate::engine_args::RESEARCH;
use crate::error::{Incomplete, Interrupted};
use crate::file_args::SentFiles;
use crate::path_facts::Books;
use crate::role::Role;
use crate::sender_seat::Seat;
use crate::signals::Interruption;
use crate::ticket_args::{TicketArgs, without_ticket};
use crate::transfer::{History, Shown, Summary, TICK, View, dry_run};

const COMMON: &str = "\
Common use:
  fairpath send photos/ notes.txt TICKET                     over every interface there is
  fairpath send photos/ TICKET --via wlan0 --via wwan0       over these only
  fairpath send photos/ TICKET --path wwan0:cost=1           the modem only for what the others cannot carry
  fairpath send photos/ TICKET --path wwan0:cap=5Mbit/s      no more than that on the modem
  fairpath send photos/ TICKET --path wwan0:quota=20GB       no more than that in a month
  fairpath send photos/ TICKET --path wwan0:backup           the modem only where all others fail
  fairpath send photos/ TICKET --limit 20Mbit/s              leaves the rest to others
  fairpath send photos/ TICKET --congestion hybrid_cubic     a cellular link stays quick for calls and pages
  fairpath send photos/ TICKET --give-up-after 2h            waits longer for a network that is gone
  fairpath send photos/ --ticket-file FILE                   other users do not see the ticket
  tar c photos/ | fairpath send - TICKET                     what another program writes, as it comes
  fairpath send photos/ TICKET --quiet --json                for programs: the summary as JSON";

const NOTES: &str = "\
TICKET is what `fairpath recv` printed on the other machine. A transfer whose connection is lost goes on
over a new one by itself; the same command again resumes one that was interrupted. What cannot be sent is
left out and named in the end, at both ends, and the exit code is then 3: files that change or vanish
meanwhile, links that lead out of what is sent, pipes and devices, hidden names where the receiver takes none.

Anyone who knows the ticket may send in your place until you do. A command line can be read by other users of
this machine; what they cannot read:
  fairpath send photos/ --ticket-file FILE       a file of yours
  fairpath send photos/ -                        standard input
  FAIRPATH_TICKET=TICKET fairpath send photos/   the environment";

/// Said where a stream is sent.
const STREAMS: &str =
    "a stream is sent, of unknown length: if this program ends before the stream does, what went of it is lost";

/// Send files and directories over all networks at once
#[derive(Debug, clap::Args)]
#[command(before_help = COMMON, after_help = NOTES, override_usage = "fairpath send [OPTIONS] <FILE>... [TICKET]")]
pub(crate) struct Args {
    /// Files and directories to send; directories are sent with all that is in them. `-` is standard input, and
    /// a named pipe is read to its end. The last word is the ticket that `fairpath recv` printed, or `-` to read
    /// it from standard input, unless it comes with `--ticket-file` or in FAIRPATH_TICKET
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    words: Vec<PathBuf>,
    #[command(flatten)]
    ticket: TicketArgs,
    #[command(flatten)]
    files: SentFiles,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    shown: Shown,
    /// Where a connection is lost, or nothing moves, try again for so long; 0: not at all
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    give_up_after: Duration,
    /// Write what every path does, ten times a second, as newline-delimited JSON
    #[arg(long, value_name = "FILE", help_heading = RESEARCH)]
    trace: Option<PathBuf>,
}

/// Sends, and shows how it goes.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    if args.files.dry_run {
        let (files, choice) = args.files.chosen(without_ticket(args.words)?)?;
        let selection = tokio::task::spawn_blocking(move || Selection::collect_with(&files, &choice)).await??;
        return dry_run(&selection, args.shown);
    }
    let (files, ticket) = args.ticket.take_behind_files(args.words)?;
    let (files, choice) = args.files.chosen(files)?;
    let is_typed = choice.input && std::io::stdin().is_terminal();
    let selection = tokio::task::spawn_blocking(move || Selection::collect_with(&files, &choice)).await??;
    let mut skipped = selection.skipped().to_vec();
    let streams = selection.streams();
    let mut books = Books::open(args.connect.paths().all())?;
    books.announce(|line| tell(line));
    let redial = args.connect.config(&ticket, &books)?;
    books.running.listen(End::Send, "send", "receiver", &args.connect.scheduler());
    let trace = args.trace.as_deref().map(|path| TraceFile::create(path, "send")).transpose()?;

    let interruption = Interruption::listen()?;
    let connection = tokio::select! {
        connection = connect(&redial) => connection?,
        () = interruption.asked() => bail!(Interrupted("interrupted before the receiver had answered".into())),
    };
    let seat = Seat::take(&ticket.secret).map_err(SendError::NoRandomness)?;
    let sender = Sender::with_id(selection, ticket.secret, seat.id());
    let view = View::new(Role::Send, sender.progress(), args.shown.quiet).giving_up_after(args.give_up_after);
    skipped.iter().for_each(|one| view.line(&one.to_string()));
    if streams > 0 {
        view.line(STREAMS);
        if is_typed {
            view.line("standard input is a terminal: what is typed is sent, line by line; Ctrl-D ends it");
        }
    }

    let (events_sender, events) = mpsc::unbounded_channel();
    let history = History::default();
    let mut watch = Watch { connection: connection.clone(), view, history, trace, events, books };
    let sent = tokio::select! {
        sent = sender.deliver(connection, &redial, args.give_up_after, &events_sender) => {
            if is_over(&sent) {
                seat.forget();
            }
            sent.map_err(explained)
        }
        error = watch.run(&interruption, args.give_up_after) => Err(match error.is::<Interrupted>() && streams > 0 {
            true => Interrupted("interrupted; what was read of the stream is lost".into()).into(),
            false => error,
        }),
    };
    let Watch { connection, mut view, history, trace, mut books, .. } = watch;
    let happened = view.end();
    let paths = history.with(connection.paths_now().await);
    books.meters.count()?;
    say_goodbye(&connection).await;
    if let Some(trace) = trace {
        trace.finish()?;
    }
    let sent = sent?;
    let progress = sender.progress().snapshot();
    let can_follow = sent.skipped.iter().any(|one| !one.reason.is_expected());
    // Only what this end's user did not want is not missed: the receiver may give any reason.
    let missing = skipped.iter().filter(|one| !one.reason.is_expected()).count() + sent.skipped.len();
    skipped.extend(sent.skipped);
    let summary = Summary::new(Role::Send, &progress, sent.elapsed, (&paths, &books), happened);
    let summary = summary.after(sent.reconnections);
    let not_taken = sender.not_taken();
    let hidden = not_taken.count;
    let summary = summary.with_not_taken(not_taken).with_tried(&connection.tried(), &paths).without(&skipped);
    summary.show(args.shown)?;
    match (missing, hidden) {
        (0, 0) => Ok(()),
        (0, _) => Err(Incomplete(format!("{hidden} not sent: the receiver takes no hidden names")).into()),
        (count, _) => Err(Incomplete(left_out(count, progress.files_total, can_follow)).into()),
    }
}

/// Whether the ticket is of no more use to this sender.
fn is_over(sent: &Result<Sent, SendError>) -> bool {
    let of_no_use = |refusal: &Refusal| matches!(refusal, Refusal::Used | Refusal::WrongSecret | Refusal::WrongPurpose);
    match sent {
        Ok(_) | Err(SendError::OtherFiles) => true,
        Err(SendError::Refused { refusal, .. }) => of_no_use(refusal),
        Err(_) => false,
    }
}

/// That not everything was sent; the receiver waits for what it was promised.
fn left_out(count: usize, sent: u64, can_follow: bool) -> String {
    let files = if count == 1 { "1 file was" } else { &format!("{count} files were") };
    let next = if can_follow { "; the receiver waits, and the same command sends what is missing" } else { "" };
    let in_place = if sent == 1 { "1 is in place" } else { &format!("{sent} are in place") };
    format!("{files} not sent, {in_place}{next}")
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

/// The observers of a transfer: output, trace and accounting.
struct Watch {
    /// The connection that the transfer runs over now.
    connection: Connection,
    view: View,
    history: History,
    trace: Option<TraceFile>,
    events: mpsc::UnboundedReceiver<DeliveryEvent>,
    books: Books,
}

impl Watch {
    /// Shows progress and notices until something ends it: only interruption and a trace that cannot be
    /// written do.
    async fn run(&mut self, interruption: &Interruption, give_up_after: Duration) -> anyhow::Error {
        let mut happened = self.connection.notices();
        let mut tick = tokio::time::interval(TICK);
        let mut sample = tokio::time::interval(TICK / 2);
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    let paths = self.connection.paths();
                    self.view.tick(&paths);
                    self.view.sharing(&self.connection);
                    let all = self.history.with(paths);
                    if let Err(error) = self.books.enforce(&all, |line| self.view.line(line)) {
                        self.connection.close(1, "the sender may not use its interfaces any longer");
                        return error;
                    }
                }
                _ = sample.tick(), if self.trace.is_some() => {
                    if let Some(trace) = &mut self.trace
                        && let Err(error) = trace.write(&records(&self.connection, None, None))
                    {
                        self.connection.close(1, "the sender cannot write its trace");
                        return error;
                    }
                }
                Some(event) = self.events.recv() => {
                    if let Some(connection) = self.on_event(event, give_up_after) {
                        happened = connection.notices();
                    }
                }
                // Where its manager has ended with the connection, another connection may follow.
                Some(notice) = next_notice(&mut happened) => self.view.notice(notice),
                () = interruption.asked() => {
                    self.connection.close(INTERRUPTED_CODE, "interrupted by the sender's user");
                    return Interrupted("interrupted; the same command resumes while the receiver waits".into()).into();
                }
            }
        }
    }

    /// Tells what happened to the connection, and takes over another one.
    fn on_event(&mut self, event: DeliveryEvent, give_up_after: Duration) -> Option<Connection> {
        match event {
            DeliveryEvent::Lost { why } => {
                self.view.pause();
                let patience = clock(give_up_after);
                self.view.line(&format!("connection lost ({why}); trying again, giving up in {patience}"));
                None
            }
            DeliveryEvent::Busy => {
                self.view.line("the receiver serves another sender: waiting for the turn");
                None
            }
            DeliveryEvent::Connected(connection) => {
                self.history.keep(self.connection.paths());
                self.view.connected_again();
                self.connection = connection.clone();
                Some(connection)
            }
        }
    }
}

/// The next notice of a connection; `None` once, where some were missed, and never after its end.
async fn next_notice(notices: &mut broadcast::Receiver<PathNotice>) -> Option<PathNotice> {
    match notices.recv().await {
        Ok(notice) => Some(notice),
        Err(RecvError::Lagged(_)) => None,
        Err(RecvError::Closed) => std::future::pending().await,
    }
}
