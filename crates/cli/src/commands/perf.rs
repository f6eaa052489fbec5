//! `fairpath perf`: measures what several paths carry together, and each of them.

mod protocol;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fairpath_core::ByteCount;
use fairpath_quic::Connection;
use fairpath_quic::bulk::{Sink, Source};
use fairpath_report::text::{print_line, tell};
use fairpath_transfer::{Admission, AdmissionError, Purpose, Secret};
use tokio::task::JoinSet;

use crate::attempts::AttemptReporter;
use crate::ends::{ConnectArgs, Host, ListenArgs, connect, say_goodbye};
use crate::error::{Interrupted, UsageError, describe};
use crate::later::PRINTED;
use crate::path_facts::Books;
use crate::signals::Interruption;
use crate::ticket_args::TicketArgs;
use crate::transfer::TICK;
use protocol::{Control, Direction, Total};
use report::Report;

/// Measure goodput per path between two machines
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath perf server                        on one machine: prints a ticket\n  \
    fairpath perf client TICKET                 on another: sends for 10 s\n  \
    fairpath perf client TICKET --reverse       the other way\n  \
    fairpath perf client TICKET --seconds 60 --via wlan0     one interface, for a minute\n  \
    fairpath perf client TICKET --json          for programs: the figures as JSON"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    end: End,
}

#[derive(Debug, clap::Subcommand)]
enum End {
    Server(ServerArgs),
    Client(ClientArgs),
}

/// Print a ticket and answer measurements until interrupted
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath perf server --listen 0.0.0.0:4433")]
struct ServerArgs {
    /// End after one measurement
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    listen: ListenArgs,
}

/// Measure against a server
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "fairpath perf client [OPTIONS] [TICKET]",
    before_help = "Example:\n  fairpath perf client TICKET --via wlan0 --via wwan0 --seconds 30"
)]
struct ClientArgs {
    /// The ticket that `fairpath perf server` printed, or `-` to read it from standard input, unless it comes with
    /// `--ticket-file` or in FAIRPATH_TICKET
    #[arg(value_name = "TICKET")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    ticket: TicketArgs,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Let the server send, not the client
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    connect: ConnectArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs one end.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    match args.end {
        End::Server(args) => serve(args).await,
        End::Client(args) => measure(args).await,
    }
}

/// How long a client may take over each step that needs no measuring.
const PATIENCE: Duration = Duration::from_secs(10);

async fn serve(args: ServerArgs) -> anyhow::Result<()> {
    let mut books = Books::open(args.listen.paths().all())?;
    books.announce(|line| tell(line));
    let Host { listener, ticket, mut later } = args.listen.open(&books).await?;
    print_line(&ticket.to_string())?;
    let interruption = Interruption::listen()?;
    let mut clients = JoinSet::new();
    let admission = Arc::new(Admission::new(ticket.secret, Purpose::Measurement));
    let mut attempts = AttemptReporter::default();
    let mut tick = tokio::time::interval(TICK);
    let result = loop {
        tokio::select! {
            connection = listener.accept() => {
                clients.spawn(answer(connection.context("the network sockets are gone")?, admission.clone()));
            }
            Some(ended) = clients.join_next() => match ended.context("a measurement ended in a fault of this program")? {
                Ok(measured) if args.once => break measured,
                Ok(Ok(())) => {}
                Ok(Err(error)) => tell(format!("a measurement failed: {}; still waiting", describe(&error))),
                Err(refused) => attempts.rang(&refused),
            },
            ticket = later.ticket() => {
                print_line(&ticket.to_string())?;
                tell(PRINTED);
            }
            _ = tick.tick() => {
                books.enforce(&[], |line| tell(line))?;
                if let Some(line) = attempts.news(listener.accept_stats(), Instant::now()) {
                    tell(line);
                }
            }
            () = interruption.asked() => break Ok(()),
        }
    };
    listener.close(0, "the server has ended").await;
    if let Some(sentence) = attempts.total(listener.accept_stats()).sentence() {
        tell(sentence);
    }
    result
}

/// Answers one client. The outer error: it was not let in; the inner one: its measurement failed.
async fn answer(connection: Connection, admission: Arc<Admission>) -> Result<anyhow::Result<()>, AdmissionError> {
    admission.hear(&connection).await?.welcome().await?;
    let control = Control::new(&connection);
    let asked = tokio::time::timeout(PATIENCE, control.asked()).await.context("the client asked for nothing in time");
    Ok(match asked {
        Ok(Ok(direction)) => carry_out(&connection, control, direction).await,
        Ok(Err(error)) | Err(error) => Err(error),
    })
}

async fn carry_out(connection: &Connection, control: Control, direction: Direction) -> anyhow::Result<()> {
    match direction {
        Direction::Upload => {
            let sink = Sink::start(connection);
            let begun = Instant::now();
            control.stopped().await?;
            control.tell(Total { bytes: sink.received(), elapsed: begun.elapsed() }).await?;
        }
        Direction::Download => {
            let source = Source::start(connection);
            control.stopped().await?;
            drop(source);
            control.tell(Total { bytes: ByteCount::ZERO, elapsed: Duration::ZERO }).await?;
        }
    }
    // The client closes once it has read the total.
    let _ = tokio::time::timeout(PATIENCE, connection.closed()).await;
    Ok(())
}

async fn measure(args: ClientArgs) -> anyhow::Result<()> {
    let (more, ticket) = args.ticket.take(args.words.clone())?;
    if !more.is_empty() {
        return Err(UsageError("one word is expected, the ticket, and several are given".into()).into());
    }
    if args.reverse {
        args.connect.check_receiving()?;
    }
    let mut books = Books::open(args.connect.paths().all())?;
    books.announce(|line| tell(line));
    let config = args.connect.config(&ticket, &books)?;
    let interruption = Interruption::listen()?;
    let connection = tokio::select! {
        connection = connect(&config) => connection?,
        () = interruption.asked() => bail!(Interrupted("interrupted before the server had answered".into())),
    };
    let measured = measure_over(&connection, &ticket.secret, &args, &mut books, &interruption).await;
    say_goodbye(&connection).await;
    measured
}

async fn measure_over(
    connection: &Connection,
    secret: &Secret,
    args: &ClientArgs,
    books: &mut Books,
    interruption: &Interruption,
) -> anyhow::Result<()> {
    let mut notices = connection.notices();
    let direction = if args.reverse { Direction::Download } else { Direction::Upload };
    let control = protocol::ask(connection, secret, direction).await?;
    let mut report = Report::new(direction, args.json);
    let begun = Instant::now();
    let (sink, source) = match direction {
        Direction::Upload => (None, Some(Source::start(connection))),
        Direction::Download => (Some(Sink::start(connection)), None),
    };
    let end = begun + Duration::from_secs(args.seconds.into());
    let mut tick = tokio::time::interval(TICK);
    let mut second = tokio::time::interval_at((begun + Duration::from_secs(1)).into(), Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = second.tick() => {
                report.sharing(connection);
                report.interval(begun.elapsed(), &connection.paths());
                if Instant::now() >= end {
                    break;
                }
            }
            _ = tick.tick() => books.enforce(&connection.paths(), |line| tell(line))?,
            Ok(notice) = notices.recv() => report.notice(&notice),
            closed = connection.closed() => bail!("the server is gone: {closed}"),
            () = interruption.asked() => break,
        }
    }
    let elapsed = begun.elapsed();
    let received = sink.as_ref().map(Sink::received);
    drop(source);
    let told = control.stop().await?;
    let total = received.map_or(told, |bytes| Total { bytes, elapsed });
    let paths = connection.paths_now().await;
    books.meters.count()?;
    report.finish(total, (&paths, books), &connection.tried())
}
