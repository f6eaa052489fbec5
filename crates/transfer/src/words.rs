//! A peer's words, as a person may be shown them.

use crate::manifest::is_deceptive;

/// The most bytes of a peer's words.
const MAX_TEXT: usize = 1000;

/// A peer's words, cut and without control characters.
pub fn printable(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            c if is_deceptive(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
        if safe.len() >= MAX_TEXT {
            break;
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_words_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
        assert!(printable(&"x".repeat(9999)).len() <= MAX_TEXT);
    }
}
