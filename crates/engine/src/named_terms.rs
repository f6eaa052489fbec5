//! The user's terms for paths, by the names that hosts give them, and later changes.

use fairpath_core::Bitrate;
use fairpath_sched::Terms;

/// The user's terms for the paths that begin at an interface or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTerms {
    /// The host's name for it: see [`Engine::name_path`](crate::Engine::name_path).
    pub of: String,
    /// The terms.
    pub terms: Terms,
}

/// Changes of terms since the connections began. They override the earlier terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermsChanges {
    changes: Vec<(String, TermsChange)>,
    preferred: Option<String>,
}

/// A change of the terms of paths; a `None` leaves the earlier term in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermsChange {
    /// The cost of using them.
    pub cost: Option<u32>,
    /// How much may be sent on each in a second; the inner `None`: as much as the network takes.
    pub cap: Option<Option<Bitrate>>,
    /// Whether they are used only where no other can be.
    pub backup: Option<bool>,
}

impl TermsChanges {
    /// The change of the paths of `of`, to be changed further.
    pub fn of(&mut self, of: &str) -> &mut TermsChange {
        let at = self.changes.iter().position(|(known, _)| known == of).unwrap_or_else(|| {
            self.changes.push((of.to_owned(), TermsChange::default()));
            self.changes.len() - 1
        });
        &mut self.changes[at].1
    }

    /// Prefers the paths of `of`; other paths get only data for which these have no room. `None`:
    /// no preference.
    pub fn prefer(&mut self, of: Option<&str>) {
        self.preferred = of.map(str::to_owned);
    }

    /// The interface or address whose paths go first.
    pub fn preferred(&self) -> Option<&str> {
        self.preferred.as_deref()
    }

    /// The terms of a path with these names, whose earlier terms are `said`.
    pub fn apply(&self, names: &[&str], said: Terms) -> Terms {
        let mut terms = said;
        for (_, change) in self.changes.iter().filter(|(of, _)| names.contains(&of.as_str())) {
            terms.cost = change.cost.unwrap_or(terms.cost);
            terms.cap = change.cap.unwrap_or(terms.cap);
            terms.backup = change.backup.unwrap_or(terms.backup);
        }
        match &self.preferred {
            Some(preferred) if names.contains(&preferred.as_str()) => terms.cost = 0,
            // A path without a cost then comes second, and paths with costs keep their order behind
            // it.
            Some(_) => terms.cost = terms.cost.saturating_add(1),
            None => {}
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_above_what_was_said_and_leaves_the_rest() {
        let said = Terms { cost: 2, cap: Some(Bitrate::from_mbps(5)), weight: 3, ..Terms::default() };
        let mut changes = TermsChanges::default();
        assert_eq!(changes.apply(&["wwan0"], said), said);
        changes.of("wwan0").backup = Some(true);
        assert_eq!(changes.apply(&["wwan0", "10.0.0.1"], said), Terms { backup: true, ..said });
        assert_eq!(changes.apply(&["eth0"], said), said, "it is of another interface");
        changes.of("wwan0").backup = Some(false);
        changes.of("wwan0").cap = Some(None);
        changes.of("10.0.0.1").cost = Some(7);
        assert_eq!(changes.apply(&["wwan0", "10.0.0.1"], said), Terms { cost: 7, cap: None, ..said });
    }

    #[test]
    fn what_is_preferred_costs_least_and_the_others_keep_their_order() {
        let mut changes = TermsChanges::default();
        changes.prefer(Some("wlan0"));
        let cost = |changes: &TermsChanges, name, cost| changes.apply(&[name], Terms { cost, ..Terms::default() }).cost;
        assert_eq!(["wlan0", "eth0", "wwan0"].map(|name| cost(&changes, name, u32::from(name != "eth0"))), [0, 1, 2]);
        changes.prefer(None);
        assert_eq!(cost(&changes, "eth0", 0), 0);
    }
}
