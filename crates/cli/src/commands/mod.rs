//! One file per subcommand.

pub(crate) mod completions;
pub(crate) mod control;
#[cfg(feature = "research")]
pub(crate) mod detect;
pub(crate) mod devices;
pub(crate) mod doctor;
#[cfg(feature = "research")]
pub(crate) mod emu;
pub(crate) mod join;
#[cfg(feature = "research")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod paths;
pub(crate) mod perf;
pub(crate) mod proxy;
pub(crate) mod recv;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod serve;
#[cfg(feature = "research")]
pub(crate) mod sim;
pub(crate) mod stream;
pub(crate) mod top;
