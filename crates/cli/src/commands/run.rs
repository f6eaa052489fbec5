//! `fairpath run`: one program through the port of `fairpath proxy`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::anyhow;
use fairpath_proxy::NearState;

use crate::error::UsageError;
use crate::far_state::NearStateArgs;

/// The variables that programs look for. Some know only the small letters, and some only the capitals.
const VARIABLES: [&str; 6] = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// Hosts that are on this machine.
const NOT_FOR: &str = "localhost,127.0.0.1,::1";

/// Run a program with the proxy variables that lead it to `fairpath proxy`
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath run -- curl -O https://example.com/file\n  \
    fairpath run -- git clone https://example.com/project\n  \
    fairpath run --proxy 127.0.0.1:1081 -- wget https://example.com/file",
    after_help = "It sets ALL_PROXY, HTTPS_PROXY and HTTP_PROXY, in capitals and small letters. A program that heeds none of \
    them is not led anywhere."
)]
pub(crate) struct Args {
    /// The port of `fairpath proxy`; by default the one that it opened last
    #[arg(long, value_name = "ADDRESS:PORT")]
    proxy: Option<SocketAddr>,
    #[command(flatten)]
    state: NearStateArgs,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Becomes the program. Returns only where that fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let proxy = match args.proxy {
        Some(proxy) => proxy,
        None => NearState::open(&args.state.directory()?)?.listening()?.ok_or_else(|| {
            UsageError("`fairpath proxy` has not run yet: start it, or name its port with --proxy".to_owned())
        })?,
    };
    if let Err(error) = std::net::TcpStream::connect_timeout(&proxy, std::time::Duration::from_secs(2)) {
        return Err(anyhow!(
            "no `fairpath proxy` answers at {proxy}: {error}; start it, or name its port with --proxy"
        ));
    }
    let (name, arguments) = args.program.split_first().ok_or_else(|| UsageError("no program is given".to_owned()))?;
    let mut command = Command::new(name);
    command.args(arguments).env("NO_PROXY", NOT_FOR).env("no_proxy", NOT_FOR);
    for variable in VARIABLES {
        // Programs that know no SOCKS know HTTP's CONNECT. Curl and many others take the first for what the others are.
        let scheme = if variable.to_ascii_lowercase().starts_with("all") { "socks5h" } else { "http" };
        command.env(variable, format!("{scheme}://{proxy}"));
    }
    let error = command.exec();
    Err(anyhow!("cannot run {}: {error}", name.to_string_lossy()))
}
