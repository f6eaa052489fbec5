//! The checks of the house, as one program: it is linked once.

mod citations;
mod constants;
mod english;
mod figures;
mod imports;
mod layout;
mod licences;
mod links;
mod origin;
mod side_by_side;
mod threat_model;
