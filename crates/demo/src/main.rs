//! The demo alone. `fairpath demo` is the same.

use std::process::ExitCode;

use clap::Parser;
use fairpath_report::text::{safe, tell};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "fairpath-demo", version)]
struct Cli {
    #[command(flatten)]
    args: fairpath_demo::Args,
}

#[tokio::main]
async fn main() -> ExitCode {
    match fairpath_demo::run(Cli::parse().args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(format_args!("error: {}", safe(&format!("{error:#}"))));
            ExitCode::FAILURE
        }
    }
}
