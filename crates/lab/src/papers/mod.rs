//! One folder per paper, one file per table or figure.

mod cellular;
pub(crate) mod daimd;
pub(crate) mod default;
pub(crate) mod odd_couple;
pub(crate) mod olia;
pub(crate) mod tfrc_multipath;
pub(crate) mod tr;
