//! Two ends on loopback, and programs between them.

mod devices;
mod ends;
mod links;
mod ports;
mod programs;
