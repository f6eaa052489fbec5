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
//! 1. Add `src/papers/<key>/<name>.rs`. The list, the report and the page are made from its head
//!    alone. The head has a title in its first paragraph, and these sections:
//!    - `# Claim`: one sentence;
//!    - `# Topology`: a drawing in a `text` block;
//!    - `# Parameters`: a table `| parameter | value | from |`, where `from` is `paper` or `assumed`,
//!      with an explanation if needed;
//!    - `# Deviations`: a list, or `None.`.
//! 2. Write `pub(super) const EXPERIMENT: Experiment = Experiment::new("<key>/<name>",
//!    include_str!("<name>.rs"), run);` and `fn run(context: &Context) -> Result<Report, Failure>`.
//! 3. In `run`, build a [`Scenario`](fairpath_scenario::Scenario) with [`Net`]. Choose lengths with
//!    [`Context::pick`] and seeds with [`Context::seeds`].
//!    - Run every point with every seed through [`Context::sweep`]. Its results are ordered like the
//!      points and then the seeds. They can be serialised, since they may come from other machines.
//!    - Put an [`Estimate`] of each quantity beside the paper's number in a [`Table`], and draw a
//!      [`Figure`].
//!    - End with a [`Verdict`] for each claim, or [`Verdict::ours`] if no paper makes it. If it may
//!      miss, give the reason with [`Verdict::because`]. Compare [`Estimate`]s ([`Table::estimate`]),
//!      so that the verdict knows their intervals; a closed form is a number.
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
