//! What happened to a path, in words.

use std::fmt;

use super::slot::Slot;

/// Something that happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathNotice {
    /// A path carries data for the first time.
    Opened {
        /// The interface.
        interface: String,
    },
    /// A path carries data again.
    Reopened {
        /// The interface.
        interface: String,
    },
    /// A path was closed.
    Closed {
        /// The interface.
        interface: String,
        /// Why.
        reason: String,
        /// The interfaces that carry its data now.
        carriers: Vec<String>,
    },
    /// No address of the peer can be reached over an interface.
    NoWay {
        /// The interface.
        interface: String,
        /// The addresses that were tried, with the reasons.
        tried: String,
    },
}

impl PathNotice {
    pub(super) fn opened(slot: &Slot) -> Self {
        Self::Opened { interface: slot.name().to_owned() }
    }

    pub(super) fn reopened(slot: &Slot) -> Self {
        Self::Reopened { interface: slot.name().to_owned() }
    }

    pub(super) fn no_way(slot: &Slot, tried: String) -> Self {
        Self::NoWay { interface: slot.name().to_owned(), tried }
    }

    pub(super) fn closed(slot: &Slot, reason: &str, carriers: &[String]) -> Self {
        Self::Closed { interface: slot.name().to_owned(), reason: reason.to_owned(), carriers: carriers.to_vec() }
    }
}

impl fmt::Display for PathNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { interface } => write!(f, "{interface}: path open"),
            Self::Reopened { interface } => write!(f, "{interface}: path open again"),
            Self::NoWay { interface, tried } => write!(f, "{interface}: no way to the peer: {tried}"),
            Self::Closed { interface, reason, carriers } if carriers.is_empty() => {
                write!(f, "{interface}: path closed, {reason}")
            }
            Self::Closed { interface, reason, carriers } => {
                write!(f, "{interface}: path closed, {reason}; its data goes over {}", carriers.join(" and "))
            }
        }
    }
}
