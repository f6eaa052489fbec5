//! Figures of what was measured: lines and bars with their intervals, as SVG.
//!
//! ```
//! use fairpath_figure::{Axis, Figure, Series};
//!
//! let line = Series::new("OLIA", "olia", vec![(0.0, 1.0), (1.0, 4.0)]);
//! let (time, rate) = (Axis::new("time", "s"), Axis::new("goodput", "Mbit/s"));
//! let figure = Figure::new("rates", "Rates over time").lines("one flow", time, rate, vec![line]);
//! assert!(figure.svg()?.contains("goodput [Mbit/s]"));
//! # Ok::<(), fairpath_figure::DrawError>(())
//! ```

mod draw;
mod figure;
mod mesh;

pub use draw::DrawError;
pub use figure::{Axis, Bar, BarSeries, Bars, Figure, Lines, Panel, Series, ranked};
pub use mesh::{Chart, GRID, INK, Labels, mesh};
