//! Fairpath: multipath transport that is fast on separate paths and fair on a shared bottleneck.

mod attempts;
mod closed;
mod commands;
mod ends;
mod engine_args;
mod error;
mod failure;
mod far_state;
mod file_args;
#[cfg(all(test, feature = "metrics", feature = "research"))]
mod guide;
mod host_port;
mod kernel_mptcp;
mod lasting;
mod later;
mod leading;
mod leftovers;
#[cfg(feature = "metrics")]
mod metrics;
mod open_files;
mod path_args;
mod path_facts;
#[cfg(feature = "metrics")]
mod proxy_metrics;
mod qr;
mod question;
mod quota;
#[cfg(all(test, feature = "metrics", feature = "research"))]
mod reference;
mod role;
mod running;
mod sender_seat;
mod signals;
mod state;
mod ticket_args;
mod transfer;
mod ways;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use fairpath_report::text::{self, print_line, safe, tell};

use failure::Failure;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

const COMMON: &str = "\
Common use:
  fairpath recv --dir inbox                      on one machine: prints a ticket
  fairpath send photos/ TICKET                   on another: sends over every interface it has
  fairpath send photos/ TICKET --path wwan0:cost=1      the modem only for what the others cannot carry
  fairpath recv --dir inbox --keep               stays; the ticket is good again and again
  fairpath paths                                 which interfaces there are, and which are used
  fairpath stream recv --to udp://127.0.0.1:6000           live video: what comes to a port there
  fairpath stream send --from udp://127.0.0.1:5000 TICKET  leaves at a port here, in time
  fairpath proxy                                 any program over every link: SOCKS5 and HTTP
  fairpath perf server, fairpath perf client TICKET        how fast the paths are
  fairpath demo                                  see it work, without network or root
  fairpath completions bash                      what the shell needs to complete commands";

/// Move data over several network paths at once: fast where they are separate, fair where they share
/// a bottleneck
#[derive(Debug, Parser)]
#[command(name = "fairpath", version, propagate_version = true, before_help = COMMON)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Common use comes first, research last.
#[derive(Debug, Subcommand)]
enum Command {
    Send(commands::send::Args),
    Recv(commands::recv::Args),
    Paths(commands::paths::Args),
    Proxy(commands::proxy::Args),
    Run(commands::run::Args),
    Doctor(commands::doctor::Args),
    Top(commands::top::Args),
    Control(commands::control::Args),
    Join(commands::join::Args),
    Serve(commands::serve::Args),
    Invite(commands::devices::InviteArgs),
    Devices(commands::devices::DevicesArgs),
    Revoke(commands::devices::RevokeArgs),
    Stream(commands::stream::Args),
    Perf(commands::perf::Args),
    Demo(fairpath_demo::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
    #[cfg(feature = "research")]
    Sim(commands::sim::Args),
    #[cfg(feature = "research")]
    Emu(commands::emu::Args),
    #[cfg(feature = "research")]
    Lab(commands::lab::Args),
    #[cfg(feature = "research")]
    Detect(commands::detect::Args),
}

/// Common use comes before the options: whoever asks for help mostly looks for that.
const HELP: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The whole command line.
pub(crate) fn command() -> clap::Command {
    fn arranged(command: clap::Command) -> clap::Command {
        command.help_template(HELP).mut_subcommands(arranged)
    }
    // Live flows have no scheduler: it is taken only to be refused in words.
    let without_scheduler = |end: clap::Command| end.mut_arg("scheduler", |option| option.hide(true));
    arranged(Cli::command()).mut_subcommand("stream", |stream| stream.mut_subcommands(without_scheduler))
}

fn main() -> ExitCode {
    if passes_on() {
        text::keep_output_for_data();
    }
    let cli = match command().try_get_matches().and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => cli,
        Err(error) => return told_by_clap(&error),
    };
    // Colours are for terminals: in a file their codes are noise.
    let is_coloured = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_ansi(is_coloured).with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(log_filter()).init();
    let result = match runtime(&cli.command) {
        Ok(runtime) => {
            let result = runtime.block_on(run(cli.command));
            // Nothing that still runs, such as a blocked read, may hold the process.
            runtime.shutdown_timeout(std::time::Duration::from_millis(200));
            result
        }
        Err(error) => Err(anyhow::anyhow!("cannot start: {error}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format!("error: {}", error::describe(&error)));
            if wants_json() {
                // Where even that cannot be written, nothing is left to be done.
                let _ = print_line(&Failure::of(&error).line());
            }
            ExitCode::from(error::exit_code(&error))
        }
    }
}

/// One thread carries a connection, as more of them hand its packets to each other. `serve` has many connections, and
/// takes half of the cores (docs/design/threads.md). The main thread prints, and files have threads of their own.
fn runtime(command: &Command) -> std::io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if matches!(command, Command::Serve(_)) { (cores / 2).max(1) } else { 1 };
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// The lines that `FAIRPATH_LOG` asks for, but none of rustls below a warning: its debug log shows the token by which
/// anybody could end the connection [RFC9000 §10.3].
fn log_filter() -> Targets {
    let Ok(asked) = std::env::var("FAIRPATH_LOG") else { return Targets::new() };
    match asked.parse::<Targets>() {
        Ok(targets) => targets.with_target("rustls", LevelFilter::WARN),
        Err(error) => {
            let right = "right are debug, or fairpath_quic=trace,info";
            tell(format_args!("FAIRPATH_LOG={} is left aside: {error}; {right}", safe(&asked)));
            Targets::new()
        }
    }
}

/// Help and versions are asked for; everything else is a command line that cannot be read.
fn told_by_clap(error: &clap::Error) -> ExitCode {
    // Nobody may be there to read it.
    let _ = error.print();
    if error.use_stderr() && wants_json() {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ");
        let _ = print_line(&Failure::usage(text.split("\n\n").next().unwrap_or(text)).line());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(error::FAILURE))
}

/// Whether what is received goes to standard output, also where the words cannot all be read.
fn passes_on() -> bool {
    let words: Vec<_> = std::env::args_os().take_while(|word| word != "--").collect();
    words.iter().any(|word| word == "--to=-") || words.windows(2).any(|two| two[0] == "--to" && two[1] == "-")
}

/// Whether a program reads what this one says. The words say so also where they could not all be read.
fn wants_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

async fn run(command: Command) -> anyhow::Result<()> {
    signals::outlive_file_limits();
    match command {
        Command::Recv(args) => commands::recv::run(args).await,
        Command::Send(args) => commands::send::run(args).await,
        Command::Paths(args) => commands::paths::run(&args),
        Command::Proxy(args) => commands::proxy::run(args).await,
        Command::Run(args) => commands::run::run(&args),
        Command::Doctor(args) => commands::doctor::run(args).await,
        Command::Top(args) => commands::top::run(args).await,
        Command::Control(args) => commands::control::run(args).await,
        Command::Join(args) => commands::join::run(args).await,
        Command::Serve(args) => commands::serve::run(args).await,
        Command::Invite(args) => commands::devices::invite(args).await,
        Command::Devices(args) => commands::devices::devices(&args),
        Command::Revoke(args) => commands::devices::revoke(&args),
        Command::Stream(args) => commands::stream::run(args).await,
        Command::Perf(args) => commands::perf::run(args).await,
        Command::Demo(args) => fairpath_demo::run(args).await,
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
        #[cfg(feature = "research")]
        Command::Sim(args) => commands::sim::run(&args),
        #[cfg(feature = "research")]
        Command::Emu(args) => commands::emu::run(args).await,
        #[cfg(feature = "research")]
        Command::Lab(args) => commands::lab::run(args),
        #[cfg(feature = "research")]
        Command::Detect(args) => commands::detect::run(&args),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
