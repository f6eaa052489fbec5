//! Plain English: long sentences, and comments that begin with a relative word.

/// A sentence has at most this many words.
pub const WORDS_MAX: usize = 35;

/// Words that begin a riddle where a subject should stand.
const RELATIVE: &[&str] =
    &["What", "Who", "Whoever", "Whom", "Whose", "Which", "Of", "So many", "So much", "So long", "So few"];

/// One place that wants plainer words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line where the sentence or the comment's line stands, counted from 1.
    pub line: usize,
    /// Why it was found.
    pub fault: Fault,
    /// How it begins.
    pub text: String,
}

/// Why a place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A sentence of more than [`WORDS_MAX`] words.
    Long,
    /// A line of a comment that begins with a relative word.
    Relative,
}

/// The faults in the comments of Rust source.
pub fn in_source(source: &str) -> Vec<Finding> {
    let comments = crate::source::split(source).comments;
    let mut found = Vec::new();
    for comment in &comments {
        found.extend(long_sentences(&comment.text, comment.line));
        for (at, line) in comment.text.lines().enumerate() {
            let line_text = line.trim_start_matches(['!', '/']).trim_start();
            if begins_with_relative(line_text) {
                found.push(finding(comment.line + at, Fault::Relative, line_text));
            }
        }
    }
    found
}

/// The faults in a document in Markdown.
pub fn in_markdown(text: &str) -> Vec<Finding> {
    long_sentences(text, 1)
}

fn begins_with_relative(line: &str) -> bool {
    let is_whole_word = |rest: &str| rest.starts_with(|c: char| c.is_whitespace());
    RELATIVE.iter().any(|word| line.strip_prefix(word).is_some_and(is_whole_word))
}

/// Sentences that are too long, in text whose first line is number `first`. Code, tables and headings are left out.
fn long_sentences(text: &str, first: usize) -> Vec<Finding> {
    let (mut found, mut sentence, mut begun, mut is_code) = (Vec::new(), Vec::new(), first, false);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_prose = !is_code && !is_fence && !line.starts_with(['|', '#', '<']);
        let begins_anew = line.is_empty() || !is_prose || begins_item(line);
        if begins_anew {
            end_sentence(&mut sentence, begun, &mut found);
        }
        if !is_prose {
            continue;
        }
        for word in line.split_whitespace() {
            if sentence.is_empty() {
                begun = first + at;
            }
            sentence.push(word);
            if ends_sentence(word) {
                end_sentence(&mut sentence, begun, &mut found);
            }
        }
    }
    end_sentence(&mut sentence, begun, &mut found);
    found
}

fn begins_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || line.starts_with("* ") || (number.len() < line.len() && number.starts_with(". "))
}

fn ends_sentence(word: &str) -> bool {
    word.trim_end_matches([')', '"', '*', '_', '`']).ends_with(['.', '!', '?'])
}

fn end_sentence(sentence: &mut Vec<&str>, line: usize, found: &mut Vec<Finding>) {
    if sentence.len() > WORDS_MAX {
        found.push(finding(line, Fault::Long, &sentence.join(" ")));
    }
    sentence.clear();
}

fn finding(line: usize, fault: Fault, text: &str) -> Finding {
    Finding { line, fault, text: text.chars().take(90).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(found: &[Finding]) -> Vec<(usize, Fault)> {
        found.iter().map(|finding| (finding.line, finding.fault)).collect()
    }

    #[test]
    fn a_comment_that_begins_with_a_relative_word_is_found_and_a_plain_one_is_not() {
        let source =
            "/// What is left.\n/// Whatever the order.\n// Of these, two.\nlet x = \"\n// Who\";\n// The rest.\n";
        assert_eq!(faults(&in_source(source)), [(1, Fault::Relative), (3, Fault::Relative)]);
    }

    #[test]
    fn a_sentence_is_long_from_its_thirty_sixth_word_on_and_begins_anew_in_each_item() {
        let words = |count: usize| vec!["word"; count].join(" ");
        let text = format!("Short. {}.\n\n- {}\n- {}\n\n```\n{}\n```\n", words(36), words(20), words(20), words(50));
        assert_eq!(faults(&in_markdown(&text)), [(1, Fault::Long)]);
        assert_eq!(in_markdown(&format!("{}.\n", words(35))), []);
        let source = format!("// {}\n// {}.\n", words(20), words(20));
        assert_eq!(faults(&in_source(&source)), [(1, Fault::Long)]);
    }
}
