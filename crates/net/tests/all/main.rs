//! The tests of the network model, as one program: it is linked once.

mod impair;
mod link;
mod managed_queues;
mod network;
