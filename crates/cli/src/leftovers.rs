//! Files that were begun long ago and never finished, told to who may delete them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use fairpath_report::text::{safe, tell};
use fairpath_transfer::{Leftover, leftovers};

/// How many are named.
const NAMED_MAX: usize = 10;

/// Names the leftovers in a directory, and says how to delete them.
pub(crate) fn tell_leftovers(directory: &Path) {
    if let Some(text) = told(&leftovers(directory, SystemTime::now())) {
        tell(safe(&text));
    }
}

fn told(found: &[Leftover]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let mut lines =
        vec!["begun more than a month ago, and never finished; the same files sent again go on from there:".to_owned()];
    for one in found.iter().take(NAMED_MAX) {
        let data = shell_word(&one.files[0].with_extension("").to_string_lossy());
        lines.push(format!("  {}, {} here, {}; to delete: rm {data}.*", one.name, one.bytes, days(one.age)));
    }
    if found.len() > NAMED_MAX {
        lines.push(format!("  and {} more", found.len() - NAMED_MAX));
    }
    Some(lines.join("\n"))
}

fn days(age: Duration) -> String {
    format!("{} days old", age.as_secs() / 86_400)
}

/// A path as a shell takes it.
fn shell_word(path: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-+,@%=:".contains(one);
    match path.chars().all(is_plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use fairpath_core::ByteCount;

    use super::*;

    #[test]
    fn leftovers_are_named_with_the_command_that_deletes_them() {
        assert_eq!(told(&[]), None);
        let files = ["in box/.fairpath-partial/ab.part", "in box/.fairpath-partial/ab.journal"].map(Into::into);
        let age = Duration::from_secs(45 * 86_400);
        let one = Leftover { name: "photos/x".into(), age, bytes: ByteCount::new(5), files };
        let text = told(&vec![one; 12]).unwrap();
        let line = "\n  photos/x, 5 B here, 45 days old; to delete: rm 'in box/.fairpath-partial/ab'.*\n";
        assert!(text.contains(line) && text.ends_with("\n  and 2 more"), "{text}");
    }

    #[test]
    fn a_path_is_one_word_for_the_shell() {
        assert_eq!(shell_word("a/b.part"), "a/b.part");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
    }
}
