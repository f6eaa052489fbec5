//! The tests of ends in virtual time, as one program: it is linked once.

mod agreement;
mod appetite;
#[path = "../bonds/mod.rs"]
mod bonds;
#[path = "../bulk/mod.rs"]
mod bulk;
mod busy;
#[path = "../cells/mod.rs"]
mod cells;
mod delays;
mod fair;
mod files;
mod flows;
mod hosts;
mod keys;
mod lies;
#[path = "../models/mod.rs"]
mod models;
mod named;
mod null;
#[path = "../pairs/mod.rs"]
mod pairs;
mod pauses;
mod pictures;
mod ports;
mod profiles;
mod repeats;
mod schedulers;
mod seeds;
mod short_queues;
mod streams;
#[path = "../trial/mod.rs"]
mod trial;
