//! One file for each detector.

mod always;
mod concordance;
mod never;
mod oracle;
mod summary;
mod trendline;
mod wavelet;

pub use always::{Always, Together};
pub use concordance::{Concordance, ConcordanceConfig, OrderParameters};
pub use never::{Apart, Never};
pub use oracle::Oracle;
pub use summary::{Congested, LossSplit, Oscillation, Persistence, Split, Summary, SummaryConfig, Variability};
pub use trendline::{BuildUp, Nearness, Trendline, TrendlineConfig};
pub use wavelet::{Wavelet, WaveletConfig};
