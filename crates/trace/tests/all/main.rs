//! The tests of traces, as one program: it is linked once.

mod format;
mod rtt;
