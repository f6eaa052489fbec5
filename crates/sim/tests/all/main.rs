//! The tests of the simulator, as one program: it is linked once.

mod behaviour;
#[path = "../common/mod.rs"]
mod common;
mod coupling;
mod daimd;
mod drive;
mod harm;
mod live;
mod losses;
mod own_queues;
mod parallel;
mod profiles;
mod remedies;
mod schedulers;
mod unruly;
mod validation;
