//! Fairpath: multipath transport that is fast on separate paths and fair on a shared bottleneck.

mod commands;
mod ends;
mod engine_args;
mod error;
mod knocks;
mod metrics;
mod path_args;
mod path_facts;
mod quota;
mod recording;
#[cfg(test)]
mod reference;
mod role;
mod sharing;
mod signals;
mod text;
mod ticket_args;
mod transfer;
mod ways;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Move data over several network paths at once: fast where they are separate, fair where they share
/// a bottleneck
#[derive(Debug, Parser)]
#[command(name = "fairpath", version, propagate_version = true)]
#[command(after_help = "Example:\n  fairpath demo                 see it work, without network or root\n  \
    fairpath recv --dir inbox     on one machine: prints a ticket\n  \
    fairpath send photos TICKET   on another: sends over every interface it has")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Recv(commands::recv::Args),
    Send(commands::send::Args),
    Paths(commands::paths::Args),
    Stream(commands::stream::Args),
    Perf(commands::perf::Args),
    Sim(commands::sim::Args),
    Emu(commands::emu::Args),
    Lab(commands::lab::Args),
    Detect(commands::detect::Args),
}

fn main() -> ExitCode {
    // clap prints usage errors itself and ends with exit code 2.
    let cli = Cli::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("FAIRPATH_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::from(error::FAILURE);
        }
    };
    let result = runtime.block_on(run(cli.command));
    // Nothing that still runs, such as a blocked read, may hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error::describe(&error));
            ExitCode::from(error::exit_code(&error))
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Recv(args) => commands::recv::run(args).await,
        Command::Send(args) => commands::send::run(args).await,
        Command::Paths(args) => commands::paths::run(&args),
        Command::Stream(args) => commands::stream::run(args).await,
        Command::Perf(args) => commands::perf::run(args).await,
        Command::Sim(args) => commands::sim::run(&args),
        Command::Emu(args) => commands::emu::run(args).await,
        Command::Lab(args) => commands::lab::run(args),
        Command::Detect(args) => commands::detect::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
