//! Packets that carry no proof of the server, and that the stack takes too seriously.
//!
//! A client of noq ignores the server's Retry once it has seen any other, and ends its handshake at
//! a Version Negotiation packet. Anybody who knows an id of the connection can forge these, so they
//! are checked first.

use noq_proto::ConnectionId;

/// The only version that is spoken [RFC9000 §15].
const VERSION: [u8; 4] = [0, 0, 0, 1];

/// A packet that says what a client should do before it knows anything of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    /// Another version is to be spoken. There is no other, so nobody who should be heard says that.
    VersionNegotiation,
    /// The handshake is to begin again with a token. It has a check sequence, over the id that the client's first packet
    /// was addressed to as well.
    Retry,
}

/// The kind of early packet that a datagram is, if it is one [RFC9000 §17.2].
pub(crate) fn early(datagram: &[u8]) -> Option<Early> {
    let [first, a, b, c, d, ..] = *datagram else { return None };
    match [a, b, c, d] {
        _ if first & 0x80 == 0 => None,
        [0, 0, 0, 0] => Some(Early::VersionNegotiation),
        VERSION if first & 0x30 == 0x30 => Some(Early::Retry),
        _ => None,
    }
}

/// Whether this Retry comes from the server, or from somebody who has seen the first packet to it.
pub(crate) fn is_of_server(session: &dyn noq_proto::crypto::Session, first_id: ConnectionId, retry: &[u8]) -> bool {
    // The check sequence is over all of it, wherever the header ends.
    session.is_valid_retry(first_id, &[], retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_packets_are_told_from_others() {
        assert_eq!(early(&[0xf0, 0, 0, 0, 1, 8]), Some(Early::Retry));
        assert_eq!(early(&[0x80, 0, 0, 0, 0, 8]), Some(Early::VersionNegotiation));
        for other in
            [&[0xc0, 0, 0, 0, 1, 8][..], &[0xe0, 0, 0, 0, 1], &[0x70, 0, 0, 0, 1], &[0xf0, 0, 0, 0, 2], &[0xf0, 0], &[]]
        {
            assert_eq!(early(other), None, "{other:?}");
        }
    }
}
