//! One file per subcommand.

pub(crate) mod completions;
#[cfg(feature = "research")]
pub(crate) mod detect;
#[cfg(feature = "research")]
pub(crate) mod emu;
#[cfg(feature = "research")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod paths;
pub(crate) mod perf;
pub(crate) mod recv;
pub(crate) mod send;
#[cfg(feature = "research")]
pub(crate) mod sim;
pub(crate) mod stream;
