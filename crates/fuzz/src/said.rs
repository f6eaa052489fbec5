//! Checks of error messages.

use core::fmt::Display;

/// The words of an error that may quote what somebody else wrote.
///
/// # Panics
///
/// Where they would flood a terminal, or control it.
pub(crate) fn words(error: &impl Display, chars_max: usize) -> String {
    let said = error.to_string();
    let shown = || said.chars().take(500).collect::<String>().escape_debug().to_string();
    assert!(!said.is_empty(), "an error says nothing");
    assert!(said.chars().count() <= chars_max, "{} characters are said: {}", said.chars().count(), shown());
    assert!(!said.contains(char::is_control), "what is said controls a terminal: {}", shown());
    said
}
