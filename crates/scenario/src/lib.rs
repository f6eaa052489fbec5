//! The description of a run: links, routes over them, and the flows that use them.
//!
//! A [`Scenario`] is complete: it lists every link, every route and every flow, and nothing is left
//! to be drawn except by its elements while it runs. The simulator and the emulator take it as it
//! is.
//!
//! One source is a [`ScenarioFile`], which a person writes in TOML, or a [`Sweep`] if its
//! parameters have several values. The other is a program that takes a network from [`topology`]
//! and finds its routes, or puts one together with [`build`]. This crate reads no files itself: the
//! caller gives it their text.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_scenario::ScenarioFile;
//!
//! let text = r#"
//!     duration = "30s"
//!
//!     [[link]]
//!     name = "line"
//!     from = "home"
//!     to = "server"
//!     rate = "10Mbit/s"
//!     delay = "20ms"
//!
//!     [[flow]]
//!     name = "tcp"
//!     count = 3
//!     from = "home"
//!     to = "server"
//!     congestion = "cubic"
//! "#;
//! let scenario = ScenarioFile::parse(text, "example.toml")?.expand(None)?;
//! assert_eq!(scenario.duration, Duration::from_secs(30));
//! // A link has two directions, and each flow both of them.
//! assert_eq!((scenario.links.len(), scenario.flows.len()), (2, 3));
//! # Ok::<(), fairpath_scenario::ScenarioError>(())
//! ```

pub mod build;
mod error;
mod file;
mod keys;
pub mod matrix;
mod model;
mod nearest;
mod route;
pub mod schema;
pub mod topology;
pub mod units;

pub use error::{Problem, ScenarioError, SweepError};
pub use fairpath_live::{BudgetParameters, Config as StreamConfig, Copies, LiveParameters, Playout, Sharing};
pub use file::{ParameterValue, ScenarioFile, Sweep};
pub use model::{
    Change, ChangeKind, Distribution, Flow, LinkIndex, Live, PathRoute, Remedies, Scenario, ScenarioLink, Traffic,
    Transport,
};
pub use route::RouteError;
