//! Changes of paths, in words.

use std::fmt;

/// Something that happened to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathNotice {
    /// A path carries data for the first time.
    Opened {
        /// The interface, with an address where several paths start there.
        interface: String,
    },
    /// A path carries data again.
    Reopened {
        /// The interface, with an address where several paths start there.
        interface: String,
    },
    /// A path was closed.
    Closed {
        /// The interface, with an address where several paths start there.
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
    pub(super) fn no_way(interface: &str, tried: String) -> Self {
        Self::NoWay { interface: interface.to_owned(), tried }
    }

    pub(super) fn closed(interface: String, reason: &str, carriers: Vec<String>) -> Self {
        Self::Closed { interface, reason: reason.to_owned(), carriers }
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
