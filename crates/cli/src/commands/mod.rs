//! One file per subcommand.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod detect;
pub(crate) mod emu;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod paths;
pub(crate) mod perf;
pub(crate) mod recv;
pub(crate) mod send;
pub(crate) mod sim;
pub(crate) mod stream;
