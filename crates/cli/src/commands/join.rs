//! `fairpath join`: makes this device one of a far end.

use std::path::PathBuf;

use anyhow::bail;
use fairpath_report::text::tell;

use crate::ends::Via;
use crate::error::{Interrupted, UsageError};
use crate::far_state::NearStateArgs;
use crate::signals::Interruption;
use crate::ticket_args::TicketArgs;

/// Join the far end of an invitation: afterwards `fairpath proxy` needs no argument
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "fairpath join [OPTIONS] [INVITATION]",
    before_help = "Common use:\n  fairpath join INVITATION                    the word that `fairpath invite` printed\n  \
    fairpath join -                             reads it from standard input\n  \
    fairpath proxy                              then: a port for programs",
    after_help = "A key is made on this device and never leaves it. An invitation is good once: other users who read it in \
    the list of processes can use it only before this command has."
)]
pub(crate) struct Args {
    /// The invitation, or `-` to read it from standard input, unless it comes with `--ticket-file` or in FAIRPATH_TICKET
    #[arg(value_name = "INVITATION")]
    words: Vec<PathBuf>,
    #[command(flatten)]
    ticket: TicketArgs,
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    state: NearStateArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    // Without a word it is asked for, or read from a pipe: nothing of it stands on the command line then.
    let is_given = !args.words.is_empty() || args.ticket.is_given();
    let words = if is_given { args.words } else { vec![PathBuf::from(crate::ticket_args::DASH)] };
    let (more, invitation) = args.ticket.take(words)?;
    if !more.is_empty() {
        return Err(UsageError("one word is expected, the invitation, and several are given".into()).into());
    }
    let interruption = Interruption::listen()?;
    let directory = args.state.directory()?;
    let name = tokio::select! {
        joined = fairpath_proxy::join(&directory, &invitation, &args.via.via) => joined?,
        () = interruption.asked() => bail!(Interrupted("interrupted before the far end had answered".into())),
    };
    tell(format!("joined as {name}: `fairpath proxy` opens the port for programs"));
    Ok(())
}
