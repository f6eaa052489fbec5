//! The algorithms by name.

use crate::aimd::{Aimd, AimdConfig};
use crate::algorithm::{Cubic, Lia, Olia, Reno};
use crate::controller::Controller;

/// The names that [`by_name`] knows, the default first.
pub const NAMES: &[&str] = &["lia", "olia", "reno", "cubic"];

/// The controller called `name` with its default parameters; `None`: no such name.
pub fn by_name(name: &str) -> Option<Box<dyn Controller>> {
    by_name_with(name, AimdConfig::default())
}

/// The controller called `name` with these parameters; `None`: no such name.
///
/// There is no name for "uncoupled": it is `reno` or `cubic`, or any rule with each path a group of
/// its own.
pub fn by_name_with(name: &str, config: AimdConfig) -> Option<Box<dyn Controller>> {
    match name {
        "lia" => Some(Box::new(Aimd::new(Lia, config))),
        "olia" => Some(Box::new(Aimd::new(Olia::default(), config))),
        "reno" => Some(Box::new(Aimd::new(Reno, config))),
        "cubic" => Some(Box::new(Aimd::new(Cubic::default(), config))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_controller_and_no_other_does() {
        assert!(NAMES.iter().all(|name| by_name(name).is_some()));
        assert!(by_name("vegas-but-misspelt").is_none());
    }
}
