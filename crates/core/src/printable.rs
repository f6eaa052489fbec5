//! Text of others, made fit to be shown.

/// `text` as a terminal may show it: what controls one is escaped, and of a longer text only the first
/// `chars_max` characters are kept, with an ellipsis behind them.
///
/// Text of a file or a peer is quoted in messages; it must neither flood the screen nor move its
/// cursor. Escaped are control characters and whatever else cannot be seen, as marks that turn the
/// direction of writing.
///
/// ```
/// use fairpath_core::printable;
///
/// assert_eq!(printable("a\u{1b}[2Jb", 40), "a\\u{1b}[2Jb");
/// assert_eq!(printable("abcdef", 3), "abc…");
/// ```
pub fn printable(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == chars_max {
            shown.push('…');
            break;
        }
        match c {
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        let text = r#"päth "lte" of C:\x, it's 5 µs …"#;
        assert_eq!(printable(text, 100), text);
    }

    #[test]
    fn what_would_move_the_cursor_or_turn_the_writing_is_escaped() {
        assert_eq!(printable("a\nb\t\r\u{7f}\u{9b}", 100), r"a\nb\t\r\u{7f}\u{9b}");
        assert_eq!(printable("\u{202e}gpj.exe", 100), r"\u{202e}gpj.exe");
    }

    proptest! {
        #[test]
        fn whatever_the_text_it_is_short_and_has_no_control(text in any::<String>(), most in 0..50usize) {
            let shown = printable(&text, most);
            // The longest escape is that of six digits, with ten characters.
            prop_assert!(shown.chars().count() <= most * 10 + 1);
            prop_assert!(!shown.chars().any(char::is_control));
        }
    }
}
