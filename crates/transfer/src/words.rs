//! A peer's words, as a person may be shown them.

/// The most bytes of a peer's words.
const MAX_TEXT: usize = 1000;

/// A peer's words, cut and without control characters.
pub fn printable(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        safe.extend(escaped(character));
        if safe.len() >= MAX_TEXT {
            break;
        }
    }
    safe
}

/// A character as it may be shown.
pub(crate) fn escaped(character: char) -> impl Iterator<Item = char> {
    let escape = is_deceptive(character).then(|| character.escape_unicode());
    let plain = escape.is_none().then_some(character);
    plain.into_iter().chain(escape.into_iter().flatten())
}

/// Whether this character makes a name look like another one: control characters of ASCII and C1, the ends
/// of lines and paragraphs, and those that embed, override and isolate the
/// direction of text in Unicode.
pub(crate) fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
