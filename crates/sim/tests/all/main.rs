//! The tests of the simulator, as one program: it is linked once.

mod behaviour;
#[path = "../common/mod.rs"]
mod common;
mod coupling;
mod daimd;
mod drive;
#[path = "../drives/mod.rs"]
mod drives;
#[path = "../grid/mod.rs"]
mod grid;
mod harm;
mod live;
mod losses;
mod own_queues;
mod parallel;
mod profiles;
mod remedies;
#[path = "../reordering/mod.rs"]
mod reordering;
#[path = "../rivals/mod.rs"]
mod rivals;
mod schedulers;
mod unruly;
mod validation;
