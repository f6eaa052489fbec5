//! The ticket: everything a sender needs, in one printable word.
//!
//! `fp1` followed by base32 (RFC 4648, lower case, no padding) of
//!
//! ```text
//! length   2 bytes   of everything that follows it up to the checksum
//! count    1 byte    of addresses
//! address  1 + 4 + 2 or 1 + 16 + 2 bytes: 4 or 6, the IP address, the port; big-endian
//! fingerprint 32 bytes
//! secret   16 bytes
//! checksum 4 bytes   of BLAKE3 over all before it
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use data_encoding::{DecodeKind, Encoding, Specification};
use fairpath_quic::AdmissionKey;

const PREFIX: &str = "fp1";
const FINGERPRINT: usize = 32;
const SECRET: usize = 16;
const CHECKSUM: usize = 4;

/// The most addresses one ticket carries.
pub const MAX_ADDRESSES: usize = 32;

/// A secret that is shown once, in a ticket. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(crate) [u8; SECRET]);

impl Secret {
    /// A new secret from the system's randomness.
    pub fn generate() -> std::io::Result<Self> {
        let mut secret = [0; SECRET];
        getrandom::fill(&mut secret)?;
        Ok(Self(secret))
    }

    /// The mark of a ticket's holder on its first packets: it says nothing about the secret, and
    /// admits nobody.
    pub fn admission_key(&self) -> AdmissionKey {
        AdmissionKey::from_bytes(blake3::derive_key(
            "fairpath 2026 mark on the first packet of who holds a ticket 1",
            &self.0,
        ))
    }

    /// A name for what is kept about this secret, from which nobody can learn it.
    pub fn label(&self) -> String {
        let hash = blake3::derive_key("fairpath 2026 name of what is kept about a ticket 1", &self.0);
        hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Its content, to be kept where nobody else can read it.
    pub const fn to_bytes(&self) -> [u8; SECRET] {
        self.0
    }

    /// A secret with this content, for tests and for callers with a store of their own.
    pub const fn from_bytes(secret: [u8; SECRET]) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// Where a receiver can be reached, how to know it, and how to prove that one was invited.
///
/// `Display` gives the printable word, with the secret in it; `Debug` hides the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The receiver's addresses; IPv6 scopes do not travel.
    pub addresses: Vec<SocketAddr>,
    /// The digest of the receiver's certificate.
    pub fingerprint: [u8; FINGERPRINT],
    /// The one-time secret.
    pub secret: Secret,
}

/// Why a text is no ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// The word does not begin as tickets do.
    #[error("this is not a ticket: a ticket begins with \"fp1\", as `fairpath recv` prints it")]
    NotATicket,
    /// The ticket is of another version.
    #[error("the ticket is of version {0}, this program knows version 1: update the older of the two ends")]
    Version(String),
    /// A character that no ticket contains.
    #[error("the ticket has a wrong character, {character:?}, at position {position}: copy it again")]
    Character {
        /// Counted from 1.
        position: usize,
        /// The character.
        character: char,
    },
    /// The end is missing.
    #[error("the ticket is truncated: it has {length} characters{}, copy the whole line", match .expected { Some(all) => format!(" of {all}"), None => String::new() })]
    Truncated {
        /// Characters of the word.
        length: usize,
        /// Characters that it should have, where its beginning tells.
        expected: Option<usize>,
    },
    /// Something follows the end.
    #[error("the ticket is too long: it has {length} characters, {expected} belong to it")]
    TooLong {
        /// Characters of the word.
        length: usize,
        /// Characters that it should have.
        expected: usize,
    },
    /// The checksum does not fit: a character was mistyped.
    #[error("the ticket was mistyped (its checksum is wrong): copy it again")]
    Checksum,
    /// The checksum fits and the content does not: made by a faulty program.
    #[error("the ticket's content is malformed: {0}")]
    Malformed(&'static str),
}

fn base32() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification.encoding().expect("thirty-two different symbols")
}

fn checksum(payload: &[u8]) -> [u8; CHECKSUM] {
    let digest = blake3::derive_key("fairpath 2025 ticket checksum 1", payload);
    [digest[0], digest[1], digest[2], digest[3]]
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        let mut payload = vec![0, 0, addresses.len() as u8];
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    payload.push(4);
                    payload.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    payload.push(6);
                    payload.extend(ip.octets());
                }
            }
            payload.extend(address.port().to_be_bytes());
        }
        payload.extend(self.fingerprint);
        payload.extend(self.secret.0);
        f.write_str(&word(payload))
    }
}

/// The word of a payload that begins with two bytes for its length and lacks its checksum.
pub(crate) fn word(mut payload: Vec<u8>) -> String {
    let length = (payload.len() - 2) as u16;
    payload[..2].copy_from_slice(&length.to_be_bytes());
    payload.extend(checksum(&payload));
    format!("{PREFIX}{}", base32().encode(&payload))
}

impl FromStr for Ticket {
    type Err = TicketError;

    /// Space around the word does not count: it comes from copying, or is the end of a line.
    fn from_str(word: &str) -> Result<Self, TicketError> {
        let word = word.trim();
        let body = strip_prefix(word)?;
        let payload = decode(body)?;
        let Some(content) = payload.strip_suffix(&checksum(&payload[..payload.len() - CHECKSUM])) else {
            return Err(TicketError::Checksum);
        };
        parse(&content[2..])
    }
}

fn strip_prefix(word: &str) -> Result<&str, TicketError> {
    if PREFIX.starts_with(word) {
        return Err(TicketError::Truncated { length: word.len(), expected: None });
    }
    if let Some(body) = word.strip_prefix(PREFIX) {
        return Ok(body);
    }
    let rest = word.strip_prefix("fp").ok_or(TicketError::NotATicket)?;
    match rest.chars().next() {
        Some(version) if version.is_ascii_digit() => Err(TicketError::Version(version.to_string())),
        _ => Err(TicketError::NotATicket),
    }
}

/// The payload, of the length that its first bytes announce, checksum included.
fn decode(body: &str) -> Result<Vec<u8>, TicketError> {
    let allowed = |c: char| c.is_ascii_lowercase() || ('2'..='7').contains(&c);
    if let Some((index, character)) = body.chars().enumerate().find(|&(_, c)| !allowed(c)) {
        return Err(TicketError::Character { position: PREFIX.len() + index + 1, character });
    }
    let length = PREFIX.len() + body.len();
    // Four characters carry the two bytes of the length and four bits more.
    let head = body.get(..8).and_then(|head| base32().decode(head.as_bytes()).ok());
    let Some(head) = head else {
        return Err(TicketError::Truncated { length, expected: None });
    };
    let bytes = 2 + usize::from(u16::from_be_bytes([head[0], head[1]])) + CHECKSUM;
    let expected = PREFIX.len() + base32().encode_len(bytes);
    if length < expected {
        return Err(TicketError::Truncated { length, expected: Some(expected) });
    }
    if length > expected {
        return Err(TicketError::TooLong { length, expected });
    }
    base32().decode(body.as_bytes()).map_err(|error| match error.kind {
        DecodeKind::Symbol => TicketError::Character { position: PREFIX.len() + error.position + 1, character: '?' },
        _ => TicketError::Checksum,
    })
}

fn parse(content: &[u8]) -> Result<Ticket, TicketError> {
    let mut rest = Cursor(content);
    let count = usize::from(rest.take::<1>()?[0]);
    if count > MAX_ADDRESSES {
        return Err(TicketError::Malformed("more than 32 addresses"));
    }
    let mut addresses = Vec::with_capacity(count);
    for _ in 0..count {
        let ip = match rest.take::<1>()?[0] {
            4 => IpAddr::V4(Ipv4Addr::from(rest.take::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(rest.take::<16>()?)),
            _ => return Err(TicketError::Malformed("an address is neither IPv4 nor IPv6")),
        };
        addresses.push(SocketAddr::new(ip, u16::from_be_bytes(rest.take()?)));
    }
    let (fingerprint, secret) = (rest.take()?, Secret(rest.take()?));
    if !rest.0.is_empty() {
        return Err(TicketError::Malformed("bytes are left over"));
    }
    Ok(Ticket { addresses, fingerprint, secret })
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], TicketError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(TicketError::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*head)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            addresses: vec!["192.0.2.7:4433".parse().unwrap(), "[2001:db8::1]:4433".parse().unwrap()],
            fingerprint: [7; 32],
            secret: Secret([9; 16]),
        }
    }

    #[test]
    fn debug_never_shows_the_secret() {
        let text = format!("{:?}", ticket());
        assert!(text.contains("hidden") && !text.contains("9, 9"), "{text}");
    }

    #[test]
    fn each_fault_has_its_own_error() {
        let word = ticket().to_string();
        let cut = &word[..word.len() - 5];
        let expected = TicketError::Truncated { length: cut.len(), expected: Some(word.len()) };
        assert_eq!(cut.parse::<Ticket>(), Err(expected));
        assert!(format!("{word}aaaaaaaa").parse::<Ticket>().unwrap_err().to_string().contains("too long"));
        assert_eq!(word.replacen("fp1", "fp2", 1).parse::<Ticket>(), Err(TicketError::Version("2".into())));
        assert_eq!("README.md".parse::<Ticket>(), Err(TicketError::NotATicket));
        let mut wrong = word.clone();
        wrong.replace_range(10..11, "!");
        assert_eq!(wrong.parse::<Ticket>(), Err(TicketError::Character { position: 11, character: '!' }));
        let other = if &word[20..21] == "a" { "b" } else { "a" };
        let mut mistyped = word.clone();
        mistyped.replace_range(20..21, other);
        assert_eq!(mistyped.parse::<Ticket>(), Err(TicketError::Checksum));
    }

    #[test]
    fn space_around_a_ticket_does_not_count() {
        for (before, after) in [("", "\n"), ("", "\r\n"), (" ", " "), ("\n\t", "\u{a0}")] {
            assert_eq!(format!("{before}{}{after}", ticket()).parse(), Ok(ticket()));
        }
    }

    fn any_ticket() -> impl Strategy<Value = Ticket> {
        let address = prop_oneof![
            (any::<[u8; 4]>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(Ipv4Addr::from(ip).into(), port)),
            (any::<[u8; 16]>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(Ipv6Addr::from(ip).into(), port)),
        ];
        (prop::collection::vec(address, 0..6), any::<[u8; 32]>(), any::<[u8; 16]>())
            .prop_map(|(addresses, fingerprint, secret)| Ticket { addresses, fingerprint, secret: Secret(secret) })
    }

    proptest! {
        #[test]
        fn a_ticket_survives_printing_and_reading(ticket in any_ticket()) {
            prop_assert_eq!(ticket.to_string().parse::<Ticket>(), Ok(ticket));
        }

        #[test]
        fn every_truncation_is_called_a_truncation(ticket in any_ticket()) {
            let word = ticket.to_string();
            for length in 0..word.len() {
                let error = word[..length].parse::<Ticket>().unwrap_err();
                prop_assert!(matches!(error, TicketError::Truncated { .. }), "{} of {}: {}", length, word.len(), error);
            }
        }

        #[test]
        fn every_change_of_one_character_is_refused(ticket in any_ticket(), replacement in "[a-zA-Z0-9!é]") {
            let word = ticket.to_string();
            for at in 0..word.len() {
                if word[at..=at] != replacement {
                    let changed = format!("{}{}{}", &word[..at], replacement, &word[at + 1..]);
                    prop_assert!(changed.parse::<Ticket>().is_err(), "{} at {}", changed, at);
                }
            }
        }

        #[test]
        fn arbitrary_words_never_panic(word in any::<String>(), tail in "fp1[a-z2-7]{0,200}") {
            let _ = word.parse::<Ticket>();
            let _ = tail.parse::<Ticket>();
        }

        #[test]
        fn arbitrary_content_never_panics(content in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&content);
        }
    }
}
