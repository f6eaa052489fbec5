//! The tests of rates, as one program: it is linked once.

mod optimum;
mod paper;
