//! The output that both ends of a transfer share.

mod dry_run;
mod history;
mod offer;
mod summary;
mod view;

pub(crate) use dry_run::dry_run;
pub(crate) use history::History;
pub(crate) use offer::consent;
pub(crate) use summary::Summary;
pub(crate) use view::{TICK, View};

/// The options on what is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Shown {
    /// Print the summary as one line of JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Show neither progress nor summary
    #[arg(long)]
    pub(crate) quiet: bool,
}
