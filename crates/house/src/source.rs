//! Rust source, split into code and comments.

/// A block of comment lines that stand together, without their slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The line it begins on, counted from 1.
    pub line: usize,
    /// Its text, one line for each line of the source.
    pub text: String,
}

/// A source file, split.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// The line comments, in order.
    pub comments: Vec<Comment>,
    /// The code: comments and literals are blank, lines stay where they were.
    pub code: String,
}

enum Token {
    LineComment,
    /// A string, a character or a block comment.
    Literal,
    Code,
}

/// Splits `source`.
pub fn split(source: &str) -> Split {
    let mut split = Split::default();
    let mut rest = source;
    let mut line = 1;
    while !rest.is_empty() {
        let (token, length) = next_token(rest);
        let text = &rest[..length];
        match token {
            Token::LineComment => push_comment(&mut split.comments, line, text.trim_start_matches(['/', '!'])),
            Token::Literal => split.code.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
            Token::Code => split.code.push_str(text),
        }
        line += text.matches('\n').count();
        rest = &rest[length..];
    }
    split
}

/// Adds a comment line to the block that ends on the line before, or begins a block.
fn push_comment(comments: &mut Vec<Comment>, line: usize, text: &str) {
    match comments.last_mut() {
        Some(last) if last.line + last.text.matches('\n').count() + 1 == line => {
            last.text.push('\n');
            last.text.push_str(text);
        }
        _ => comments.push(Comment { line, text: text.to_owned() }),
    }
}

/// The token with which `rest`, which is not empty, begins, and its length in bytes.
fn next_token(rest: &str) -> (Token, usize) {
    if rest.starts_with("//") {
        return (Token::LineComment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Token::Literal, block_comment_length(rest));
    }
    if let Some(length) = raw_string_length(rest) {
        return (Token::Literal, length);
    }
    let first = rest.chars().next().expect("not empty");
    match first {
        '"' => (Token::Literal, quoted_length(rest, '"')),
        '\'' if is_character(rest) => (Token::Literal, quoted_length(rest, '\'')),
        c if is_word(c) => (Token::Code, rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
        c => (Token::Code, c.len_utf8()),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the quote opens a character and not a lifetime.
fn is_character(rest: &str) -> bool {
    rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'')
}

fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `r"…"`, `br#"…"#` and so on.
fn raw_string_length(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].chars().take_while(|c| *c == '#').count();
    let open = prefix.len() + hashes;
    if !rest[open..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let end = rest[open + 1..].find(&close).map(|at| open + 1 + at + close.len());
    Some(end.unwrap_or(rest.len()))
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0;
    for (at, pair) in rest.as_bytes().windows(2).enumerate() {
        match pair {
            b"/*" => depth += 1,
            b"*/" if depth == 1 => return at + 2,
            b"*/" => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

/// How many lines stand before the tests that a file ends with.
pub fn lines_before_tests(source: &str) -> usize {
    let lines: Vec<&str> = source.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        let is_module = pair[1].starts_with("mod ") || (pair[1].starts_with("pub(") && pair[1].contains(") mod "));
        pair[0].trim_end() == "#[cfg(test)]" && is_module && pair[1].trim_end().ends_with('{')
    });
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_code_part_and_lines_stay_where_they_were() {
        let source = "//! One.\n//! Two.\nlet url = \"https://a\"; // three\n\
                      let c = '\"'; /* four\n */ let r = r#\"// \"no\" \"#;\n/// five\n";
        let split = split(source);
        let found: Vec<_> = split.comments.iter().map(|c| (c.line, c.text.as_str())).collect();
        assert_eq!(found, [(1, " One.\n Two.\n three"), (6, " five")]);
        let code: Vec<String> = split.code.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(code, ["", "", "leturl=;", "letc=;", "letr=;", ""]);
    }

    #[test]
    fn a_lifetime_opens_no_literal() {
        let split = split("fn f<'a>(x: &'a str) -> &'a str { x } // end\nlet q = '\\''; // quote\n");
        assert_eq!(split.comments, [Comment { line: 1, text: " end\n quote".into() }]);
        assert!(split.code.contains("fn f<'a>(x: &'a str)"));
    }

    #[test]
    fn tests_at_the_end_are_not_counted() {
        assert_eq!(lines_before_tests("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        assert_eq!(lines_before_tests("a\n#[cfg(test)]\npub(super) mod tests {\n}\n"), 1);
        assert_eq!(lines_before_tests("a\n#[cfg(test)]\nmod tests;\nb\n"), 4);
    }
}
