//! The nearest name to a misspelt one.

/// The known name that is most like `name`; `None` where none is like it.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // About one letter in three may be wrong.
    let wrong_max = name.chars().count().div_ceil(3).max(1);
    let measured = known.into_iter().map(|other| (strsim::osa_distance(name, other), other));
    let (wrong, other) = measured.min_by_key(|(wrong, _)| *wrong)?;
    (wrong <= wrong_max).then(|| other.to_owned())
}

/// The question whether that was meant, to be put behind a message.
pub(crate) fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (is {name:?} meant?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["delay", "queue", "rate", "jitter"];
        assert_eq!(nearest("dealy", known).as_deref(), Some("delay"));
        assert_eq!(nearest("que", known).as_deref(), None);
        assert_eq!(nearest("queu", known).as_deref(), Some("queue"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
