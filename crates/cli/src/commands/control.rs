//! `fairpath control`: what the paths of an end carry, changed while it runs.

use std::io::{ErrorKind, Write as _};

use anyhow::anyhow;
use fairpath_core::Bitrate;
use fairpath_proxy::{Answer, PathNow, Request, Snapshot, change, snapshot};
use fairpath_report::text::{output, print_line, safe, table};

use crate::error::UsageError;
use crate::running::EndArgs;

/// Change what the paths of `proxy`, `serve`, `send`, `recv` or `stream` carry while it runs
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath control list                       the paths of the end that runs here\n  \
    fairpath control cap wwan0 5Mbit/s          no more on the modem, each way; none: as much as it carries\n  \
    fairpath control park wlan0                 nothing on it while another path works\n  \
    fairpath control unpark wlan0               used again\n  \
    fairpath control prefer eth0                first here, on others what it has no room for; none: no path goes first\n  \
    fairpath control cost wwan0 2               after all that cost less\n  \
    fairpath control --end send park wlan0      where several ends run here",
    after_help = "A path is named by the interface or the address where it begins. The other end is told, and heeds it for what it \
    sends here. What is changed holds until the end is stopped, over all its connections. It is asked at a socket that only \
    the user who runs the end can open."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    end: EndArgs,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show the paths
    #[command(before_help = "Example:\n  fairpath control list --json")]
    List,
    /// Send no more than this on a path in a second, each way
    #[command(before_help = "Example:\n  fairpath control cap wwan0 5Mbit/s")]
    Cap {
        /// The interface or address where the path begins
        #[arg(value_name = "IF")]
        path: String,
        /// Such as 5Mbit/s, or none
        rate: String,
    },
    /// Let a path carry only what those have no room for that cost less
    #[command(before_help = "Example:\n  fairpath control cost wwan0 2")]
    Cost {
        /// The interface or address where the path begins
        #[arg(value_name = "IF")]
        path: String,
        /// A whole number from 0 to 1000
        cost: u32,
    },
    /// Let a path carry nothing while another works; it stays open
    #[command(before_help = "Example:\n  fairpath control park wlan0")]
    Park {
        /// The interface or address where the path begins
        #[arg(value_name = "IF")]
        path: String,
    },
    /// Use a path again that was parked
    #[command(before_help = "Example:\n  fairpath control unpark wlan0")]
    Unpark {
        /// The interface or address where the path begins
        #[arg(value_name = "IF")]
        path: String,
    },
    /// Let data go first over a path, and over others what it has no room for
    #[command(before_help = "Example:\n  fairpath control prefer eth0")]
    Prefer {
        /// The interface or address where the path begins, or none
        #[arg(value_name = "IF")]
        path: String,
    },
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let directory = args.end.only().await?;
    let gone = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!("no end runs with the state directory {}", directory.display())
        }
        _ => anyhow::Error::from(error).context(format!("cannot ask the end at {}", directory.display())),
    };
    let request = match args.what {
        What::List => {
            let now = snapshot(&directory).await.map_err(gone)?;
            return if args.json { Ok(print_line(&serde_json::to_string(&now)?)?) } else { show(&now) };
        }
        What::Cap { path, rate } => Request::Cap { path, rate },
        What::Cost { path, cost } => Request::Cost { path, cost },
        What::Park { path } => Request::Park { path },
        What::Unpark { path } => Request::Unpark { path },
        What::Prefer { path } => Request::Prefer { path: Some(path).filter(|path| path != "none") },
    };
    match change(&directory, &request).await.map_err(gone)? {
        Answer::Error(error) => Err(UsageError(error).into()),
        done if args.json => Ok(print_line(&serde_json::to_string(&done)?)?),
        Answer::Done(words) => Ok(print_line(&words)?),
    }
}

fn show(now: &Snapshot) -> anyhow::Result<()> {
    let mut out = output();
    for peer in &now.peers {
        writeln!(out, "{}: {}", safe(&peer.name), safe(&peer.state))?;
        let rows: Vec<Vec<String>> = peer.paths.iter().map(|path| row(path, now.preferred.as_deref())).collect();
        if !rows.is_empty() {
            write!(out, "{}", table(&["path", "from", "out", "in", "terms", "state"], &rows))?;
        }
    }
    Ok(())
}

fn row(path: &PathNow, preferred: Option<&str>) -> Vec<String> {
    vec![
        safe(&path.name),
        path.local.clone().unwrap_or_default(),
        Bitrate::from_bps(path.send_rate_bps).to_string(),
        Bitrate::from_bps(path.receive_rate_bps).to_string(),
        terms(path, preferred),
        safe(&path.state),
    ]
}

/// The terms of a path, as far as there are any.
pub(crate) fn terms(path: &PathNow, preferred: Option<&str>) -> String {
    let cap = path.cap_bps.map(|cap| format!("cap {}", Bitrate::from_bps(cap)));
    let is_first = preferred.is_some_and(|preferred| path.begins_at(preferred));
    let first = is_first.then(|| "first".to_owned());
    // Where one path goes first, the others cost one more than they were given.
    let cost = path.cost.saturating_sub(u32::from(preferred.is_some() && !is_first));
    let cost = (cost > 0).then(|| format!("cost {cost}"));
    let kept = match (path.is_parked, path.is_backup) {
        (true, _) => Some("parked".to_owned()),
        (false, true) => Some("backup".to_owned()),
        (false, false) => None,
    };
    [first, kept, cost, cap].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_shown_as_they_were_given_where_a_path_goes_first() {
        let path =
            |name: &str, cost: u32| PathNow { name: name.into(), interface: name.into(), cost, ..PathNow::default() };
        let (modem, cable) = (path("wwan0", 3), path("wlan0", 1));
        assert_eq!(terms(&modem, Some("eth0")), "cost 2");
        assert_eq!(terms(&cable, Some("eth0")), "");
        assert_eq!(terms(&path("eth0", 0), Some("eth0")), "first");
        assert_eq!(terms(&modem, None), "cost 3");
    }
}
