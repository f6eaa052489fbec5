//! Every table and figure of the papers, run again in the simulator, with the paper's numbers
//! beside ours and a verdict for each claim.
//!
//! ```
//! use fairpath_lab::{Estimate, Outcome, Verdict};
//!
//! // The share of a link over three seeds. A claim holds when its 95 % interval does.
//! let share = Estimate::of([1.02, 0.97, 1.05]).expect("samples");
//! let fair = Verdict::ours("fair", "Two paths take what one flow would.").between("share", share.clone(), 0.8, 1.25);
//! assert_eq!(fair.outcome, Outcome::Holds);
//! let exact = Verdict::ours("exact", "They take it to a hundredth.").between("share", share, 0.99, 1.01);
//! assert_ne!(exact.outcome, Outcome::Holds);
//! ```
//!
//! # How to add an experiment
//!
//! 1. Add `src/papers/<key>/<name>.rs`. Its head is all that is ever said about it, and the list,
//!    the report and the page are made from it: a title in the first paragraph, then `# Claim`
//!    (one sentence), `# Topology` (a drawing in a `text` block), `# Parameters` (a table
//!    `| parameter | value | from |`, where `from` is `paper`, or `assumed`, with words behind it
//!    where needed), `# Deviations` (a list; `None.` where there are none).
//! 2. Write `pub(super) const EXPERIMENT: Experiment = Experiment::new("<key>/<name>",
//!    include_str!("<name>.rs"), run);` and `fn run(context: &Context) -> Result<Report, Failure>`.
//! 3. In `run`: build a [`Scenario`](fairpath_scenario::Scenario) with [`Net`]; choose lengths with
//!    [`Context::pick`] and seeds with [`Context::seeds`]; run every point with every seed through
//!    [`Context::sweep`], whose results are ordered like the points and then the seeds, and can be
//!    written, since they may come from other machines; put an
//!    [`Estimate`] of each quantity beside the paper's number in a [`Table`]; draw a [`Figure`]; end
//!    with a [`Verdict`] for each claim, [`Verdict::ours`] where no paper makes it, and where it may
//!    miss, say why with [`Verdict::because`]. What is compared are [`Estimate`]s ([`Table::estimate`]),
//!    so that the verdict knows their intervals; a closed form is a number.
//! 4. Name it in `src/papers/<key>/mod.rs` (`EXPERIMENTS`) and in `paper.toml` beside it: an `[[item]]`
//!    for each table and figure of the paper, reproduced or not, an `[[own]]` for a question of
//!    ours. A new paper also gets a line in `src/catalogue.rs`.
//! 5. `fairpath lab run <key>/<name> --quick`, then without `--quick`. In `tests/quick.rs`, under the
//!    paper's name, give it a line with the verdicts that hold in the quick form for any seeds. A claim
//!    that the quick form cannot tell is left to the full one: [`Experiment::left_to_full`].
//!
//! The quick forms of all experiments run in the tests: make yours take some seconds.
//!
//! # Rules
//!
//! The same seeds give the same bytes: no clock, no order of threads and no hashing gets into a
//! [`Report`]. A verdict that misses is a finding and stays as it is.

mod bench;
mod catalogue;
#[cfg(feature = "cells")]
mod cells;
mod context;
#[cfg(feature = "cells")]
mod cut;
mod evidence;
mod experiment;
mod figures;
mod fluid;
mod head;
mod made;
mod page;
mod paper;
mod papers;
mod report;
mod store;
mod store_error;
mod stored_report;
mod table;
mod text;
mod verdict;

pub use bench::{bench_names, bench_reports};
pub use catalogue::{NoSuchExperiment, experiments, papers, select};
#[cfg(feature = "cells")]
pub use cells::CellBytes;
pub use context::{Context, Effort, FailedRun, Failure, Progress, Seeds};
#[cfg(feature = "cells")]
pub use cut::{Cut, CutError, Step};
pub use evidence::{Pages, write_pages};
pub use experiment::Experiment;
pub use fairpath_core::Estimate;
pub use fairpath_figure::{Axis, Bar, BarSeries, Bars, Figure, Lines, Panel, Series, ranked};
pub use fairpath_scenario::build::{Net, bdp_packets, engine, ms};
pub use head::{Description, Parameter};
pub use made::{Made, Maker, WITH_CHANGES};
pub use paper::{Item, Own, Paper, State};
pub use report::Report;
pub use store::Store;
pub use store_error::StoreError;
pub use stored_report::StoredReport;
pub use table::{Cell, Column, Source, Table};
pub use text::{significant, table_text, verdict_text};
pub use verdict::{Check, Claimant, Outcome, Relation, Standing, Verdict};
