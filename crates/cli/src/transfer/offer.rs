//! The words for an offer, and the question whether to take it.

use std::io::IsTerminal as _;

use fairpath_core::ByteCount;
use fairpath_report::text::tell;
use fairpath_transfer::{Consent, LeftOut};

use crate::question;

/// Names and sizes on one line, and how many more there are.
pub(crate) fn contents(shown: impl IntoIterator<Item = (String, Option<ByteCount>)>, more: u64) -> String {
    let one = |(name, size): (String, Option<ByteCount>)| match size {
        Some(size) => format!("{name} ({size})"),
        None => format!("{name} (a stream of unknown length)"),
    };
    let shown: Vec<String> = shown.into_iter().map(one).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

/// The hidden names that were not taken, if any.
pub(crate) fn omissions(left_out: &LeftOut) -> Option<String> {
    let LeftOut { count, names } = left_out;
    let more = match count.saturating_sub(names.len() as u64) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (*count > 0).then(|| {
        format!("{count} hidden not taken (`fairpath recv --allow-hidden` takes them): {}{more}", names.join(", "))
    })
}

/// Asks where there is a terminal to ask on; takes everything otherwise.
pub(crate) fn consent(is_yes: bool) -> Consent {
    if is_yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Consent::always();
    }
    Consent::ask(|offer| {
        let files = if offer.files == 1 { "1 file".to_owned() } else { format!("{} files", offer.files) };
        tell(format!("The sender offers {files}, {}: {}", offer.bytes, contents(offer.shown.clone(), offer.more())));
        match offer.links {
            0 => {}
            1 => tell("  and 1 symbolic link inside".to_owned()),
            links => tell(format!("  and {links} symbolic links inside")),
        }
        omissions(&offer.left_out).iter().for_each(|line| tell(format!("  {line}")));
        question::ask("Take this? [y/N] ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_offer_is_cut_and_counted() {
        let shown = [("a b".to_owned(), Some(ByteCount::new(5))), ("c".to_owned(), None)];
        assert_eq!(contents(shown, 10), "a b (5 B), c (a stream of unknown length), and 10 more");
    }

    #[test]
    fn omissions_are_told_where_there_are_any() {
        assert_eq!(omissions(&LeftOut::default()), None);
        let two = LeftOut { count: 3, names: vec![".a".into(), "d/.b".into()] };
        let expected = "3 hidden not taken (`fairpath recv --allow-hidden` takes them): .a, d/.b, and 1 more";
        assert_eq!(omissions(&two).as_deref(), Some(expected));
    }
}
