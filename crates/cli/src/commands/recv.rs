//! `fairpath recv`: prints a ticket and receives what its holder sends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use fairpath_core::Bytes;
use fairpath_quic::{Connection, Listener, PathNotice};
use fairpath_transfer::{Limits, Phase, ReceiveConfig, ReceiveError, Received, Receiver};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::ends::{Host, ListenArgs};
use crate::signals::Interruption;
use crate::text::print_line;
use crate::transfer::{Role, Shown, Summary, TICK, View};

const EXAMPLE: &str = "\
Example:
  fairpath recv --dir inbox

It prints one ticket, alone on a line; give that to the sender, who runs
  fairpath send photos/ TICKET

The ticket is good for one complete transfer; an interrupted one may be resumed with it.";

/// Receive files: print a ticket and wait for its holder
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    /// Where the files go
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Go on after a transfer; the ticket stays good
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    shown: Shown,
}

/// Receives, and shows how it goes.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    check_directory(&args.dir)?;
    let Host { listener, ticket } = args.listen.open().await?;
    print_line(&ticket.to_string())?;
    let receiver = Arc::new(Receiver::new(ReceiveConfig {
        directory: args.dir.clone(),
        force: args.force,
        keep: args.keep,
        secret: ticket.secret,
        limits: Limits::default(),
    }));
    let view = View::new(Role::Receive, receiver.progress(), args.shown.quiet);
    let addresses: Vec<_> = listener.addresses().iter().map(ToString::to_string).collect();
    view.line(&format!("waiting on {}; files go to {}", addresses.join(", "), args.dir.display()));
    let (notice_sender, notices) = mpsc::channel(64);
    let desk = Desk { args: &args, receiver, view, live: vec![], tasks: JoinSet::new(), notice_sender, notices };
    let result = desk.run(&listener).await;
    let (code, reason) = if result.is_ok() { (0, "done") } else { (1, "the receiver ended") };
    listener.close(code, reason).await;
    result
}

/// Whether files can go to `directory`, before anybody is invited. It is created only for a sender
/// that has proved itself.
fn check_directory(directory: &Path) -> anyhow::Result<()> {
    // Above a relative path stands the empty one, which has no metadata: it is where we are.
    let existing = directory.ancestors().find_map(|one| Some((one, one.metadata().ok()?)));
    match existing {
        Some((there, metadata)) if !metadata.is_dir() => {
            bail!("cannot receive into {}: {} is not a directory", directory.display(), there.display())
        }
        _ => Ok(()),
    }
}

/// Who is connected, and what they have caused.
struct Desk<'a> {
    args: &'a Args,
    receiver: Arc<Receiver>,
    view: View,
    live: Vec<Arc<Connection>>,
    tasks: JoinSet<(Arc<Connection>, Result<Received, ReceiveError>)>,
    notice_sender: mpsc::Sender<PathNotice>,
    notices: mpsc::Receiver<PathNotice>,
}

impl Desk<'_> {
    async fn run(mut self, listener: &Listener) -> anyhow::Result<()> {
        let mut tick = tokio::time::interval(TICK);
        let interruption = Interruption::listen()?;
        loop {
            tokio::select! {
                connection = listener.accept() => match connection {
                    Some(connection) => self.serve(connection),
                    None => bail!("the network sockets are gone"),
                },
                Some(ended) = self.tasks.join_next() => {
                    let (connection, result) = ended.context("a transfer ended in a fault of this program")?;
                    if self.ended(&connection, result)? {
                        return Ok(());
                    }
                }
                Some(notice) = self.notices.recv() => self.view.notice(notice),
                _ = tick.tick() => {
                    let paths = self.main_connection().map(|connection| connection.paths()).unwrap_or_default();
                    self.view.tick(&paths);
                }
                () = interruption.asked() => return self.interrupted().await,
            }
        }
    }

    fn serve(&mut self, connection: Connection) {
        let connection = Arc::new(connection);
        self.live.push(connection.clone());
        let mut happened = connection.notices();
        let (receiver, notices) = (self.receiver.clone(), self.notice_sender.clone());
        tokio::spawn(async move {
            while let Ok(notice) = happened.recv().await {
                // Who has not proved the secret is not worth a line.
                if receiver.progress().snapshot().phase != Phase::Waiting && notices.send(notice).await.is_err() {
                    return;
                }
            }
        });
        let receiver = self.receiver.clone();
        self.tasks.spawn(async move {
            let result = async { receiver.serve(receiver.admit(connection.quic()).await?).await }.await;
            // For the summary.
            connection.paths_now().await;
            (connection, result)
        });
    }

    /// What the end of one connection means; true ends the command in success.
    fn ended(&mut self, connection: &Arc<Connection>, result: Result<Received, ReceiveError>) -> anyhow::Result<bool> {
        self.live.retain(|other| !Arc::ptr_eq(other, connection));
        let happened = self.view.end();
        match result {
            Ok(received) => {
                let progress = self.receiver.progress().snapshot();
                let summary = Summary::new(Role::Receive, &progress, received.elapsed, &connection.paths(), happened);
                summary.without(&received.skipped).show(self.args.shown)?;
                let is_complete = received.skipped.is_empty();
                if !is_complete {
                    self.view.line("still waiting: the same ticket is good for what was not sent");
                }
                Ok(is_complete && !self.args.keep)
            }
            Err(error) if error.is_retryable() || self.args.keep => {
                if !self.receiver.is_open() && self.tasks.is_empty() {
                    return Err(error.into());
                }
                self.view.line(&format!("{error}; still waiting"));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The connection that has brought the most: the others have not proved themselves, or are dead.
    fn main_connection(&self) -> Option<&Arc<Connection>> {
        let brought =
            |connection: &&Arc<Connection>| connection.paths().iter().map(|path| path.received).sum::<Bytes>();
        self.live.iter().max_by_key(brought)
    }

    /// Ends every connection and waits until what arrived is saved.
    async fn interrupted(mut self) -> anyhow::Result<()> {
        self.view.end();
        for connection in &self.live {
            connection.close(2, "interrupted by the receiver's user");
        }
        while self.tasks.join_next().await.is_some() {}
        bail!("interrupted; what arrived is kept and used when the same files are sent again")
    }
}
