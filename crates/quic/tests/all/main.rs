//! The tests of connections over sockets, as one program: it is linked once.

#[path = "../common/mod.rs"]
mod common;
mod dialing;
mod loopback;
mod one_way;
mod path_control;
mod paths;
mod rebinding;
mod records;
mod strangers;
mod streams;
mod ways;
