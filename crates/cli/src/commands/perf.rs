//! `fairpath perf`: measures what several paths carry together, and each of them.

mod protocol;
mod report;

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fairpath_core::Bytes;
use fairpath_quic::bulk::{Sink, Source};
use fairpath_quic::{ConnectConfig, Connection, Fingerprint, Identity, ListenConfig, Listener, connect};
use fairpath_transfer::{Secret, Ticket};

use crate::commands::send::view::{EngineArgs, transport_error};
use crate::error::UsageError;
use protocol::{Direction, Request, Total};
use report::Report;

/// Measure goodput per path between two machines
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  fairpath perf server                        on one machine: prints a ticket\n  \
    fairpath perf client TICKET                 on another: sends for 10 s\n  \
    fairpath perf client TICKET --reverse --json")]
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
#[command(after_help = "Example:\n  fairpath perf server --listen 0.0.0.0:4433")]
struct ServerArgs {
    /// Listen on this address only; 0.0.0.0 with a port: on all, on that port
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Use only this interface or address; may be given several times
    #[arg(long, value_name = "IF")]
    via: Vec<String>,
    /// End after one measurement
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Measure against a server
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  fairpath perf client TICKET --via wlan0 --via wwan0 --seconds 30")]
struct ClientArgs {
    /// What the server printed
    ticket: String,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// The server sends, not the client
    #[arg(long)]
    reverse: bool,
    /// Use only this interface or address; may be given several times
    #[arg(long, value_name = "IF")]
    via: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    match args.end {
        End::Server(args) => serve(args).await,
        End::Client(args) => measure(args).await,
    }
}

async fn serve(args: ServerArgs) -> anyhow::Result<()> {
    let identity = Identity::generate().map_err(fairpath_quic::Error::from)?;
    let config = ListenConfig {
        listen: args.listen,
        via: args.via,
        identity,
        engine: args.engine.config()?,
        ..ListenConfig::new()?
    };
    let listener = Listener::bind(config).map_err(transport_error)?;
    let secret = Secret::generate().context("the system gives no randomness")?;
    let ticket =
        Ticket { addresses: listener.addresses(), fingerprint: listener.fingerprint().0, secret: secret.clone() };
    println!("{ticket}");
    std::io::stdout().flush()?;
    loop {
        let connection = tokio::select! {
            connection = listener.accept() => connection.context("the listener ended")?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let answering = answer(connection, secret.clone());
        if args.once {
            let result = answering.await;
            listener.close(0, "done").await;
            return result;
        }
        tokio::spawn(async move {
            if let Err(error) = answering.await {
                eprintln!("a measurement failed: {error:#}");
            }
        });
    }
}

/// Answers one measurement.
async fn answer(connection: Connection, secret: Secret) -> anyhow::Result<()> {
    let deadline = Duration::from_secs(10);
    let asked = tokio::time::timeout(deadline, protocol::accept(connection.quic(), &secret)).await;
    let (mut control, request) = asked.context("a client asked for nothing within 10 s")??;
    match request.direction {
        Direction::Upload => {
            let sink = Sink::start(&connection);
            let begun = Instant::now();
            control.stopped().await?;
            control.tell(Total { bytes: sink.received(), elapsed: begun.elapsed() }).await?;
        }
        Direction::Download => {
            let source = Source::start(&connection).await?;
            control.stopped().await?;
            drop(source);
            control.tell(Total { bytes: Bytes::ZERO, elapsed: Duration::ZERO }).await?;
        }
    }
    // The client closes once it has read the total.
    let _ = tokio::time::timeout(deadline, connection.quic().closed()).await;
    Ok(())
}

async fn measure(args: ClientArgs) -> anyhow::Result<()> {
    let ticket: Ticket = args.ticket.parse().map_err(|error| UsageError(format!("{error}")))?;
    let config = ConnectConfig {
        via: args.via,
        engine: args.engine.config()?,
        ..ConnectConfig::new(ticket.addresses, Fingerprint(ticket.fingerprint))
    };
    let connection = connect(config).await.map_err(transport_error)?;
    let mut notices = connection.notices();
    let direction = if args.reverse { Direction::Download } else { Direction::Upload };
    let request = Request { direction };
    let mut control = protocol::ask(connection.quic(), &ticket.secret, request).await?;
    let mut report = Report::new(direction, args.json);
    let begun = Instant::now();
    let (sink, source) = match direction {
        Direction::Upload => (None, Some(Source::start(&connection).await?)),
        Direction::Download => (Some(Sink::start(&connection)), None),
    };
    let end = begun + Duration::from_secs(args.seconds.into());
    let mut second = tokio::time::interval_at((begun + Duration::from_secs(1)).into(), Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = second.tick() => {
                report.interval(begun.elapsed(), &connection.paths());
                if Instant::now() >= end {
                    break;
                }
            }
            Ok(notice) = notices.recv() => report.notice(&notice),
            closed = connection.quic().closed() => bail!("the server is gone: {closed}"),
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    let elapsed = begun.elapsed();
    let received = sink.as_ref().map(Sink::received);
    drop(source);
    let told = control.stop().await?;
    let total = received.map_or(told, |bytes| Total { bytes, elapsed });
    report.finish(total, &connection.paths())?;
    connection.close(0, "done");
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok(())
}
