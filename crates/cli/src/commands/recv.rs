//! `fairpath recv`: prints a ticket and receives what its holder sends.

use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use fairpath_core::ByteCount;
use fairpath_proxy::End;
use fairpath_quic::{Connection, EngineConfig, Listener, PathNotice};
use fairpath_report::text::{clock, print_line, tell, tell_part};
use fairpath_transfer::{
    Admitted, COMES_BACK, GIVE_UP_AFTER, ReceiveConfig, ReceiveError, Received, Receiver, SenderId,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::attempts::AttemptReporter;
use crate::ends::{Host, ListenArgs};
use crate::error::{Incomplete, Interrupted, UsageError};
use crate::file_args::ReceivedFiles;
use crate::lasting::{Being, Lasting};
use crate::later::{Later, PRINTED};
use crate::leftovers;
use crate::path_facts::Books;
use crate::qr;
use crate::role::Role;
use crate::signals::Interruption;
use crate::transfer::{History, Shown, Summary, TICK, View, consent};

const COMMON: &str = "\
Common use:
  fairpath recv --dir inbox                     prints a ticket; one transfer, then it ends
  fairpath recv --dir inbox --yes               takes what is offered without asking
  fairpath recv --dir inbox --force             overwrites what is there
  fairpath recv --dir inbox --qr                draws the ticket, too, for a camera
  fairpath recv --dir inbox --keep              stays; the ticket is good again and again
  fairpath recv --dir inbox --keep --state DIR              and after a restart, too
  fairpath recv --dir inbox --via eth0 --via wlan0          over these interfaces only
  fairpath recv --listen 0.0.0.0:4433 --advertise 203.0.113.7:4433    behind a NAT
  fairpath recv --to - | tar x                  one file or stream, passed on as it comes
  fairpath recv --dir inbox --json              for programs: the summary as JSON";

const NOTES: &str = "\
It prints one ticket, alone on a line; give that to the sender, who runs
  fairpath send photos/ TICKET

The ticket is good for one complete transfer; an interrupted one may be resumed with it. It belongs to
the first sender that comes with it, until that is gone. With --keep it is good for any number of them.

The sender must be able to send UDP packets to one of the addresses in the ticket, which are those of this
machine's interfaces. Behind a NAT or a firewall, have a UDP port passed on to this machine, and name the
address by which others know it:
  fairpath recv --listen 0.0.0.0:4433 --advertise 203.0.113.7:4433";

/// Receive files: print a ticket and wait for its holder
#[derive(Debug, clap::Args)]
#[command(before_help = COMMON, after_help = NOTES)]
pub(crate) struct Args {
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// `-`: pass on to standard output the one file or stream that is sent; the ticket and all else go to standard
    /// error. It is whole only if the exit code is 0
    #[arg(long, value_name = "OUTPUT", value_parser = to_output,
          conflicts_with_all = ["dir", "keep", "force", "existing", "keep_modes", "archive"])]
    to: Option<ToOutput>,
    /// Go on after a transfer: the ticket stays good, for many senders, which have their turn one after another
    #[arg(long)]
    keep: bool,
    /// Keep key, secret and port in this directory, open to this user alone: the ticket is then the same after a
    /// restart. It stands there in the file `ticket`, too
    #[arg(long, value_name = "DIR", requires = "keep")]
    state: Option<PathBuf>,
    /// Make a new secret: tickets that were given away before are of no more use
    #[arg(long, requires = "state")]
    new_ticket: bool,
    /// Take what is offered without asking; where there is no terminal nobody is asked
    #[arg(long)]
    yes: bool,
    /// Draw the ticket as a QR code too, on standard error: for a sender with a camera
    #[arg(long)]
    qr: bool,
    #[command(flatten)]
    files: ReceivedFiles,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    shown: Shown,
}

/// The place of what is received: standard output.
#[derive(Clone, Copy, Debug)]
struct ToOutput;

fn to_output(word: &str) -> Result<ToOutput, &'static str> {
    match word {
        "-" => Ok(ToOutput),
        _ => Err("only `-` is known here, standard output; into a directory files go by --dir"),
    }
}

/// Standard output, without a buffer.
fn standard_output() -> anyhow::Result<File> {
    let output = std::io::stdout();
    if output.is_terminal() {
        return Err(UsageError(
            "standard output is a terminal, which what is received could control: pass it on to a program or a file, \
             `fairpath recv --to - | less`, `fairpath recv --to - > FILE`"
                .into(),
        )
        .into());
    }
    Ok(File::from(output.as_fd().try_clone_to_owned().context("standard output cannot be used")?))
}

/// Receives, and shows how it goes.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let output = args.to.map(|ToOutput| standard_output()).transpose()?;
    if output.is_none() {
        fairpath_transfer::check_destination(&args.dir)?;
        if !args.shown.quiet {
            leftovers::tell_leftovers(&args.dir);
        }
    }
    args.listen.paths().check_receiving()?;
    let mut books = Books::open(args.listen.paths().all())?;
    books.announce(|line| tell(line));
    let mut lasting = args.state.as_deref().map(|state| Lasting::open(state, args.new_ticket)).transpose()?;
    let being = match &lasting {
        Some(lasting) => lasting.being()?,
        None => Being::new()?,
    };
    let Host { listener, ticket, later } = args.listen.open_as(being, &books).await?;
    // The sender heeds costs that are said here, and only it knows its scheduler.
    books.running.listen(End::Recv, "recv", "sender", &EngineConfig::live().scheduler);
    if let Some(lasting) = &mut lasting {
        lasting.found_at(listener.port(), &ticket)?;
    }
    // A signal may come as soon as the ticket is there.
    let interruption = Interruption::listen()?;
    print_line(&ticket.to_string())?;
    if args.qr {
        tell_part(qr::drawn(&ticket.to_string())?);
    }
    let receiver = Receiver::new(ReceiveConfig {
        directory: args.dir.clone(),
        existing: args.files.existing(),
        keep: args.keep,
        secret: ticket.secret,
        limits: args.files.limits(),
        consent: consent(args.yes),
    });
    let place = match args.to {
        Some(ToOutput) => "what comes goes to standard output".to_owned(),
        None => format!("files go to {}", args.dir.display()),
    };
    let receiver = Arc::new(match output {
        Some(output) => receiver.into_pipe(output),
        None => receiver,
    });
    let view = View::new(Role::Receive, receiver.progress(), args.shown.quiet);
    let addresses: Vec<_> = listener.addresses().iter().map(ToString::to_string).collect();
    view.line(&format!("waiting on {}; {place}", addresses.join(", ")));
    let (notice_sender, notices) = mpsc::channel(64);
    let desk = Desk {
        args: &args,
        listener: &listener,
        receiver,
        view,
        attempts: AttemptReporter::default(),
        arriving: JoinSet::new(),
        live: vec![],
        tasks: JoinSet::new(),
        notice_sender,
        notices,
        history: None,
        lingers_until: None,
        gives_up_at: None,
        unsent: 0,
        books,
        later,
        lasting,
    };
    let result = desk.run(interruption).await;
    let (code, reason) = if result.is_ok() { (0, "done") } else { (1, "the receiver ended") };
    listener.close(code, reason).await;
    match result? {
        0 => Ok(()),
        1 => Err(Incomplete("1 thing was not sent, and cannot be: it is named above".into()).into()),
        unsent => Err(Incomplete(format!("{unsent} things were not sent, and cannot be: they are named above")).into()),
    }
}

/// Waits for a time, which may never come.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// The connections of a receiver, and the state that they share.
struct Desk<'a> {
    args: &'a Args,
    listener: &'a Listener,
    receiver: Arc<Receiver>,
    view: View,
    attempts: AttemptReporter,
    /// Peers that have not proved the secret yet. They may not disturb those that have.
    arriving: JoinSet<(Connection, Result<Admitted, ReceiveError>)>,
    live: Vec<Connection>,
    tasks: JoinSet<Served>,
    notice_sender: mpsc::Sender<PathNotice>,
    notices: mpsc::Receiver<PathNotice>,
    /// The sender of the transfer, and what its earlier connections carried.
    history: Option<(SenderId, History)>,
    /// Until when a sender that may not know that all is in place is waited for.
    lingers_until: Option<Instant>,
    /// Until when a sender is waited for of which a part was passed on.
    gives_up_at: Option<Instant>,
    /// How much of the last transfer the sender could not offer.
    unsent: usize,
    books: Books,
    later: Later,
    /// The place where this receiver keeps what it is.
    lasting: Option<Lasting>,
}

/// The outcome of a connection, with its sender.
type Served = (Connection, SenderId, Result<Received, ReceiveError>);

impl Desk<'_> {
    /// Receives until that is done; answers how much the sender could not offer.
    async fn run(mut self, interruption: Interruption) -> anyhow::Result<usize> {
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                connection = self.listener.accept() => match connection {
                    Some(connection) => self.hear(connection),
                    None => bail!("the network sockets are gone"),
                },
                Some(heard) = self.arriving.join_next() => {
                    match heard.context("an admission ended in a fault of this program")? {
                        (connection, Ok(admitted)) => self.serve(connection, admitted),
                        (_, Err(ReceiveError::Admission(why))) => self.attempts.rang(&why),
                        (_, Err(_)) => {}
                    }
                }
                Some(ended) = self.tasks.join_next() => {
                    let ended = ended.context("a transfer ended in a fault of this program")?;
                    if self.ended(ended)? {
                        return Ok(self.unsent);
                    }
                }
                () = until(self.lingers_until) => return Ok(self.unsent),
                () = until(self.gives_up_at) => {
                    let written = self.receiver.half_passed_on().unwrap_or_default();
                    return Err(ReceiveError::BrokeOff { written }.into());
                }
                Some(notice) = self.notices.recv() => self.view.notice(notice),
                ticket = self.later.ticket() => {
                    if let Some(lasting) = &self.lasting {
                        lasting.note_ticket(&ticket)?;
                    }
                    print_line(&ticket.to_string())?;
                    self.view.line(PRINTED);
                }
                _ = tick.tick() => {
                    let paths = self.main_connection().map(|connection| connection.paths()).unwrap_or_default();
                    self.view.tick(&paths);
                    self.enforce()?;
                    if let Some(line) = self.attempts.news(self.listener.accept_stats(), Instant::now()) {
                        self.view.line(&line);
                    }
                }
                () = interruption.asked() => return self.interrupted().await,
            }
        }
    }

    /// Keeps to the quotas of metered interfaces.
    fn enforce(&mut self) -> anyhow::Result<()> {
        let Some(connection) = self.main_connection().cloned() else { return Ok(()) };
        let paths = match &self.history {
            Some((_, history)) => history.with(connection.paths()),
            None => connection.paths(),
        };
        self.books.enforce(&paths, |line| self.view.line(line))
    }

    fn hear(&mut self, connection: Connection) {
        let receiver = self.receiver.clone();
        self.arriving.spawn(async move {
            let admitted = receiver.admit(&connection).await;
            (connection, admitted)
        });
    }

    fn serve(&mut self, connection: Connection, admitted: Admitted) {
        self.gives_up_at = None;
        self.live.push(connection.clone());
        let mut happened = connection.notices();
        let notices = self.notice_sender.clone();
        tokio::spawn(async move {
            while let Ok(notice) = happened.recv().await {
                if notices.send(notice).await.is_err() {
                    return;
                }
            }
        });
        let receiver = self.receiver.clone();
        self.tasks.spawn(async move {
            let sender = admitted.sender();
            let result = receiver.serve(admitted).await;
            // For the summary.
            connection.paths_now().await;
            (connection, sender, result)
        });
    }

    /// Handles the end of one connection; true ends the command in success.
    fn ended(&mut self, (connection, sender, result): Served) -> anyhow::Result<bool> {
        // Each sender was told by now how its transfer ended.
        self.live.retain(|other| other.close_reason().is_none());
        match result {
            Ok(received) => {
                if !received.is_repeat {
                    self.sum_up(&connection, sender, &received)?;
                    if !received.is_complete() {
                        self.view.line("still waiting: the same ticket is good for what was not sent");
                    }
                }
                let is_last = received.is_complete() && !self.args.keep;
                if !received.is_confirmed && is_last {
                    self.linger();
                }
                Ok(received.is_confirmed && is_last)
            }
            Err(ReceiveError::Superseded) => {
                self.keep_paths(&connection, sender);
                self.view.connected_again();
                Ok(false)
            }
            Err(error) if error.is_retryable() || self.args.keep => {
                self.keep_paths(&connection, sender);
                self.view.pause();
                if !self.receiver.is_open() && self.tasks.is_empty() && self.lingers_until.is_none() {
                    return Err(error.into());
                }
                let is_half = self.receiver.half_passed_on().is_some();
                self.gives_up_at = is_half.then(|| Instant::now() + GIVE_UP_AFTER);
                let patience = if is_half { format!(", {} at most", clock(GIVE_UP_AFTER)) } else { String::new() };
                self.view.line(&format!("{error}; still waiting{patience}"));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps what a connection carried that is gone, while its sender may come back.
    fn keep_paths(&mut self, connection: &Connection, sender: SenderId) {
        let history = match self.history.take() {
            Some((whose, history)) if whose == sender => self.history.insert((whose, history)),
            _ => self.history.insert((sender, History::default())),
        };
        history.1.keep(connection.paths());
    }

    /// The summary of a transfer, over all its connections.
    fn sum_up(&mut self, connection: &Connection, sender: SenderId, received: &Received) -> anyhow::Result<()> {
        self.unsent = received.unsent.len();
        let happened = self.view.end();
        let paths = match self.history.take() {
            Some((whose, history)) if whose == sender => history.with(connection.paths()),
            _ => connection.paths(),
        };
        let progress = self.receiver.progress().snapshot();
        self.books.meters.count()?;
        let summary = Summary::new(Role::Receive, &progress, received.elapsed, (&paths, &self.books), happened);
        summary
            .after(received.reconnections)
            .without(received.skipped.iter().chain(&received.unsent))
            .with_arrived(self.receiver.offer(), &received.arrived)
            .with_failed_attempts(self.attempts.total(self.listener.accept_stats()))
            .show(self.args.shown)
    }

    /// Everything is in place, and nothing tells that the sender knows: it may come back to ask.
    fn linger(&mut self) {
        let patience = clock(GIVE_UP_AFTER);
        self.view.line(&format!(
            "the sender may not know that everything is in place: waiting up to {patience} to tell it; \
             Ctrl-C ends this, and loses nothing"
        ));
        self.lingers_until.get_or_insert(Instant::now() + GIVE_UP_AFTER);
    }

    /// The connection that has brought the most: the others have not proved themselves, or are dead.
    fn main_connection(&self) -> Option<&Connection> {
        let brought = |connection: &&Connection| connection.paths().iter().map(|path| path.received).sum::<ByteCount>();
        self.live.iter().max_by_key(brought)
    }

    /// Ends every connection and waits until what arrived is saved.
    async fn interrupted(mut self) -> anyhow::Result<usize> {
        self.view.pause();
        let was_idle = self.tasks.is_empty();
        match &self.lasting {
            // Those at admission, too: all may come back.
            Some(_) => self.listener.close(COMES_BACK, "the receiver is being restarted").await,
            None => self.live.iter().for_each(|one| one.close(2, "interrupted by the receiver's user")),
        }
        if let Some(written) = self.receiver.half_passed_on() {
            // The reader of the pipe may take nothing for ever.
            return Err(ReceiveError::BrokeOff { written }.into());
        }
        let mut is_complete = self.lingers_until.is_some();
        while let Some(ended) = self.tasks.join_next().await {
            // A complete transfer counts: its sender was told before the interruption.
            if let Ok((connection, sender, Ok(received))) = ended {
                is_complete = true;
                if !received.is_repeat {
                    self.sum_up(&connection, sender, &received)?;
                }
            }
        }
        // One that stays has no other end.
        if is_complete && !self.args.keep || was_idle && self.args.keep {
            return Ok(self.unsent);
        }
        bail!(Interrupted("interrupted; what arrived is kept and used when the same files are sent again".into()))
    }
}
