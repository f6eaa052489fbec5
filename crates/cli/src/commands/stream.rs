//! `fairpath stream`: live UDP flows over several paths, with a deadline.

mod carry;
mod control;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(test, feature = "metrics"))]
pub(crate) use metrics::exposed as exposed_metrics;
mod place;
mod port;
mod protocol;
mod recv;
mod send;
mod view;

#[cfg(feature = "metrics")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fairpath_quic::flows::{Copies, DEADLINE_MAX, DEADLINE_MIN, Playout};
use fairpath_report::text::duration;

use crate::ends::{ConnectArgs, ListenArgs};
#[cfg(feature = "metrics")]
use crate::metrics::local_address;
use crate::ticket_args::TicketArgs;
use place::Place;

const COMMON: &str = "\
Common use:
  fairpath stream recv --to udp://127.0.0.1:6000              on one machine: prints a ticket
  fairpath stream send --from udp://127.0.0.1:5000 TICKET     on another: what comes to its port 5000
                                                              leaves for port 6000 of the first
  fairpath stream recv --to udp://127.0.0.1:6000 --playout steady         for players of bare MPEG-TS
  fairpath stream send --from udp://127.0.0.1:5000 TICKET --deadline 1s   fewer losses, later pictures
  fairpath stream send --from udp://127.0.0.1:5000 TICKET --budget /run/user/1000/budget
                                                              tells the encoder what it may send";

const NOTES: &str = "\
Packets arrive unchanged, in order, and by their deadline or not at all; answers go back the same way. So
SRT, RTP and MPEG-TS pass through, and both ends of SRT take each other for neighbours.";

/// Carry live UDP flows over all networks at once, with a deadline
#[derive(Debug, clap::Args)]
#[command(before_help = COMMON, after_help = NOTES)]
pub(crate) struct Args {
    #[command(subcommand)]
    end: End,
}

#[derive(Debug, clap::Subcommand)]
enum End {
    Send(SendArgs),
    Recv(RecvArgs),
}

/// The packets that leave twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CopiesArg {
    /// None
    None,
    /// Those of pictures that need no other, where the flow is MPEG-TS
    Key,
    /// All, as long as the paths have room
    All,
}

/// When packets are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PlayoutArg {
    /// As soon as all before them were: for SRT, RTP and players with a buffer of their own
    InOrder,
    /// At their deadline, with the gaps they were sent with: for decoders of bare MPEG-TS
    Steady,
}

/// Options of both ends.
#[derive(Clone, Copy, Debug, clap::Args)]
struct FlowArgs {
    /// Packets that leave twice, on two paths
    #[arg(long, value_enum, default_value_t = CopiesArg::Key)]
    copies: CopiesArg,
    /// When packets that come in time are handed out
    #[arg(long, value_enum, default_value_t = PlayoutArg::InOrder)]
    playout: PlayoutArg,
    /// Protect nothing by repair; what is lost is then only sent again, where there is time
    #[arg(long)]
    no_repair: bool,
    /// Print JSON on standard output, one object a second, and not a line for people on standard error
    #[arg(long)]
    json: bool,
    /// Say nothing while it runs
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Show rates, delays, repair, budget and counts to Prometheus at this loopback address, as /metrics
    #[cfg(feature = "metrics")]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = local_address)]
    metrics: Option<SocketAddr>,
}

/// Send what comes to UDP ports here to whoever printed the ticket
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "fairpath stream send [OPTIONS] --from <UDP> [TICKET]",
    before_help = "Example:\n  \
    fairpath stream send --from udp://127.0.0.1:5000 TICKET --deadline 300ms --via wwan0 --via wwan1\n  \
    ffmpeg -re -i film.ts -c copy -f mpegts udp://127.0.0.1:5000?pkt_size=1316"
)]
struct SendArgs {
    /// The ticket that `fairpath stream recv` printed, or `-` to read it from standard input, unless it comes with
    /// `--ticket-file` or in FAIRPATH_TICKET
    #[arg(value_name = "TICKET")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    ticket: TicketArgs,
    /// Take packets at this address, udp://ADDRESS:PORT, or of this group, udp://239.0.0.1:PORT; udp://@:PORT takes them
    /// at every address of this machine; for several flows, again
    #[arg(long, value_name = "UDP", required = true, value_parser = place::source)]
    from: Vec<Place>,
    /// How long a packet may take from here to there, such as 300ms: later ones are dropped
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = deadline)]
    deadline: Duration,
    /// Tell encoders on this Unix socket what they may send, as newline-delimited JSON, and take a new
    /// deadline there, as {"deadline_ms":500}
    #[arg(long, value_name = "SOCKET")]
    budget: Option<PathBuf>,
    /// Where the connection is lost, try again for so long; 0: not at all
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    give_up_after: Duration,
    #[command(flatten)]
    flow: FlowArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Print a ticket and pass on what its holder sends to UDP ports
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  \
    fairpath stream recv --to udp://127.0.0.1:6000 --playout steady\n  \
    ffplay -fflags nobuffer udp://127.0.0.1:6000")]
struct RecvArgs {
    /// Pass packets on to this address or group, udp://ADDRESS:PORT; one for each --from of the sender, in that order
    #[arg(long, value_name = "UDP", required = true, value_parser = place::destination)]
    to: Vec<Place>,
    /// Wait for the next sender when one has ended; the ticket stays good
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    flow: FlowArgs,
    #[command(flatten)]
    listen: ListenArgs,
}

/// Runs one end.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    match args.end {
        End::Send(args) => send::run(args).await,
        End::Recv(args) => recv::run(args).await,
    }
}

impl FlowArgs {
    fn copies(self) -> Copies {
        match self.copies {
            CopiesArg::None => Copies::None,
            CopiesArg::Key => Copies::Marked,
            CopiesArg::All => Copies::All,
        }
    }

    fn playout(self) -> Playout {
        match self.playout {
            PlayoutArg::InOrder => Playout::InOrder,
            PlayoutArg::Steady => Playout::Steady,
        }
    }
}

/// A deadline as a person gives it.
fn deadline(text: &str) -> Result<Duration, String> {
    let right = || format!("a time between {DEADLINE_MIN:?} and {DEADLINE_MAX:?} is needed, such as 300ms or 1s");
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|one: char| !one.is_ascii_digit()).ok_or_else(right)?);
    let number: u64 = number.parse().map_err(|_| right())?;
    let time = match unit.trim() {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_millis(number.saturating_mul(1_000)),
        _ => return Err(right()),
    };
    (DEADLINE_MIN..=DEADLINE_MAX).contains(&time).then_some(time).ok_or_else(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_time_that_a_live_stream_can_have() {
        assert_eq!(deadline("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(deadline("1 s"), Ok(Duration::from_secs(1)));
        for wrong in ["", "300", "ms", "5ms", "11s", "1min", "0.3s", "99999999999999999999ms"] {
            assert!(deadline(wrong).unwrap_err().contains("such as 300ms"), "{wrong}");
        }
    }
}
