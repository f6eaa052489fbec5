//! One file per subcommand.

pub(crate) mod demo;
pub(crate) mod paths;
pub(crate) mod perf;
pub(crate) mod recv;
pub(crate) mod send;
