//! Both ends of a connection in virtual time: the stack without its driver, the adapter and the path
//! policy as they are, over the links of `fairpath-net`. Hours pass in seconds, and faults come when
//! a test says so.
//!
//! What is random in the stack comes from the seed of the world, but for the contents of keys and
//! connection ids, on which no time depends.

mod delays;
mod end;
mod faults;
mod seeded;
mod world;

use end::{End, Paced};
use world::{Wire, World};
