//! Citations in comments: `[KEY]`, `[KEY §4.1]`, `[KEY §3 eq. 2; OTHER]`.

use std::collections::BTreeMap;

use crate::source::Comment;

/// A source that a comment names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// Its key in `references.toml`.
    pub key: String,
    /// The line of the source file, counted from 1.
    pub line: usize,
}

/// A table of `references.toml`, as far as it is checked.
pub type References = BTreeMap<String, toml::Table>;

/// Reads `references.toml`.
pub fn references(text: &str) -> References {
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("references.toml: {error}"));
    let entry = |(key, value)| match value {
        toml::Value::Table(table) => (key, table),
        other => panic!("references.toml: {key} is not a table but {other:?}"),
    };
    table.into_iter().map(entry).collect()
}

/// The citations in a comment, in order.
///
/// A bracket is a citation where one of its parts, parted by `;`, is a key that cannot be mistaken
/// for prose: one with `§` or `eq.` behind it, one of capitals and digits with at least a capital
/// and a digit, or one of at least three capitals only. Then all its parts are keys. Code between
/// backticks, indices and Markdown links are none.
pub fn find(comment: &Comment) -> Vec<Citation> {
    let text = without_code(&comment.text);
    let mut citations = Vec::new();
    for (open, _) in text.match_indices('[') {
        let inside = &text[open + 1..];
        let Some(close) = inside.find([']', '[']).filter(|at| inside[*at..].starts_with(']')) else { continue };
        let before = text[..open].chars().next_back();
        let after = inside[close + 1..].chars().next();
        let index = before.is_some_and(|c| c.is_alphanumeric() || "_)]#!".contains(c));
        if index || after.is_some_and(|c| "([:".contains(c)) {
            continue;
        }
        let line = comment.line + text[..open].matches('\n').count();
        citations.extend(keys(&inside[..close]).into_iter().map(|key| Citation { key, line }));
    }
    citations
}

/// The keys in a bracket; none where it is no citation.
fn keys(inside: &str) -> Vec<String> {
    let parts: Vec<(&str, &str)> = inside.split(';').map(part).collect();
    let well_formed = parts.iter().all(|(key, _)| key.starts_with(|c: char| c.is_ascii_alphabetic()));
    let certain = parts.iter().any(|(key, place)| is_place(place) || (place.is_empty() && is_unmistakable(key)));
    if !well_formed || !certain {
        return Vec::new();
    }
    parts.into_iter().map(|(key, _)| key.to_owned()).collect()
}

/// A part of a bracket: its first word, and what is behind it.
fn part(part: &str) -> (&str, &str) {
    // Rustdoc would take a bare key for a link; a backslash before each bracket says that it is none.
    let part = part.trim().trim_end_matches('\\');
    let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
    (&part[..end], &part[end..])
}

fn is_place(place: &str) -> bool {
    let place = place.trim_start();
    place.starts_with('§') || place.starts_with("eq.")
}

/// Whether a word alone in a bracket can only be a key. Primitive types such as `u8` begin in
/// lower case and are not.
fn is_unmistakable(key: &str) -> bool {
    let capital = key.starts_with(|c: char| c.is_ascii_uppercase());
    let digit = key.contains(|c: char| c.is_ascii_digit());
    let capitals_only = key.chars().all(|c| c.is_ascii_uppercase());
    key.len() >= 3 && capital && (digit || capitals_only)
}

/// The text with what stands in backticks or in a fenced block blanked out.
fn without_code(text: &str) -> String {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let fence = line.trim_start().starts_with("```");
        if fence || fenced {
            lines.push(String::new());
            fenced ^= fence;
            continue;
        }
        let parts = line.split('`').enumerate();
        // The parts between a pair of backticks have odd numbers; they leave one mark behind, so
        // that the brackets around an intra-doc link hold no key.
        lines.push(parts.map(|(at, part)| if at % 2 == 0 { part } else { "`" }).collect());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize)> {
        let comment = Comment { line: 10, text: text.to_owned() };
        find(&comment).into_iter().map(|citation| (citation.key, citation.line)).collect()
    }

    fn keys_of(text: &str) -> Vec<String> {
        found(text).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_key_is_found_with_and_without_a_place() {
        assert_eq!(keys_of("as in [RFC9002 §5.3], [OLIA] and [Nichols2012]."), ["RFC9002", "OLIA", "Nichols2012"]);
        assert_eq!(keys_of(r"as in \[OLIA\] and \[RFC9002; Mahimahi\]"), ["OLIA", "RFC9002", "Mahimahi"]);
        assert_eq!(keys_of("[RFC6356 §3 eq. 2] [TR2018 eq. 14] [Mahimahi §2]"), ["RFC6356", "TR2018", "Mahimahi"]);
    }

    #[test]
    fn one_bracket_may_hold_several_also_over_a_line_break() {
        assert_eq!(keys_of("[BBRv3 §4.1; DeliveryRate]"), ["BBRv3", "DeliveryRate"]);
        assert_eq!(found("one\nso [BBRv3 §4.1;\n DeliveryRate]"), [("BBRv3".into(), 11), ("DeliveryRate".into(), 11)]);
    }

    #[test]
    fn links_code_arrays_and_indices_are_no_citations() {
        for text in [
            "[`Groups`] and [`ByteCount::MAX`] and [`RFC9002`]",
            "[RFC9002](https://example.org), [RFC9002][1], [RFC9002]: there",
            "[u8; 4], [f64; 3], `[T; MAX]`, cwnd[RTT2], #[ABC1], #![ABC1]",
            "[Groups], [x], [ ], [0, 1], [i], [a; b], [1; OLIA]",
            "```\n[RFC9002 §5]\n```",
            "an open [ bracket",
        ] {
            assert_eq!(keys_of(text), Vec::<String>::new(), "{text}");
        }
    }
}
