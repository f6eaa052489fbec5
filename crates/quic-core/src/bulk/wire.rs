//! The wire format of bulk data in DATAGRAM frames. The first byte is the kind.
//!
//! ```text
//! FRAGMENT = 0x20 | record, low 32 bits | length of the body, 24 bits | offset in the body, 24 bits | data ...
//! CREDIT   = 0x21 | limit of bytes, 64 bits | limit of records, 64 bits
//! body of a record = object, 32 bits | offset in the object, 64 bits | data
//! ```
//!
//! All numbers are big-endian. The length stands in each fragment because any of them may be the first to arrive.

use bytes::BufMut;

use super::record::Credit;

/// The first byte of a DATAGRAM that carries a fragment of a record.
pub const FRAGMENT: u8 = 0x20;

/// The first byte of a DATAGRAM that carries a credit.
pub const CREDIT: u8 = 0x21;

/// The header before the data of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// The low 32 bits of the record's number: the receiver expands them to the number nearest to what it expects.
    pub record: u32,
    /// How long the record's body is, in bytes; below 2^24.
    pub length: u32,
    /// Where in the body the data begins, in bytes; below 2^24.
    pub offset: u32,
}

/// Why a DATAGRAM is none that this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is of another kind, or empty.
    #[error("a bulk datagram begins with {found:?} where {expected:#04x} is expected")]
    Kind {
        /// Its first byte.
        found: Option<u8>,
        /// The kind it was taken for.
        expected: u8,
    },
    /// It ends inside the header of a fragment.
    #[error("a fragment of {0} bytes is shorter than its header of {len}", len = FragmentHeader::LEN)]
    FragmentLength(usize),
    /// It is longer or shorter than a credit.
    #[error("a credit has {0} bytes, not {len}", len = Credit::LEN)]
    CreditLength(usize),
}

impl FragmentHeader {
    /// How long it is on the wire, in bytes.
    pub const LEN: usize = 11;

    /// Takes the header off a DATAGRAM; what remains is the data.
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        expect_kind(datagram, FRAGMENT)?;
        let Some((header, data)) = datagram.split_first_chunk::<{ Self::LEN }>() else {
            return Err(Malformed::FragmentLength(datagram.len()));
        };
        let &[_, n0, n1, n2, n3, l0, l1, l2, o0, o1, o2] = header;
        let record = u32::from_be_bytes([n0, n1, n2, n3]);
        let (length, offset) = (u32::from_be_bytes([0, l0, l1, l2]), u32::from_be_bytes([0, o0, o1, o2]));
        Ok((Self { record, length, offset }, data))
    }

    /// Writes the header, kind included.
    pub(super) fn put(self, to: &mut impl BufMut) {
        debug_assert!(self.length < 1 << 24 && self.offset < 1 << 24, "{self:?}");
        to.put_u8(FRAGMENT);
        to.put_u32(self.record);
        to.put_uint(self.length.into(), 3);
        to.put_uint(self.offset.into(), 3);
    }
}

impl Credit {
    /// How long it is on the wire, in bytes.
    pub const LEN: usize = 17;

    /// The whole DATAGRAM.
    pub fn to_datagram(self) -> [u8; Self::LEN] {
        let mut datagram = [CREDIT; Self::LEN];
        datagram[1..9].copy_from_slice(&self.bytes.to_be_bytes());
        datagram[9..].copy_from_slice(&self.records.to_be_bytes());
        datagram
    }

    /// Parses a DATAGRAM.
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        expect_kind(datagram, CREDIT)?;
        let limits = datagram[1..].split_first_chunk::<8>().and_then(|(bytes, records)| {
            let records = records.try_into().ok()?;
            Some(Self { bytes: u64::from_be_bytes(*bytes), records: u64::from_be_bytes(records) })
        });
        limits.ok_or(Malformed::CreditLength(datagram.len()))
    }
}

fn expect_kind(datagram: &[u8], expected: u8) -> Result<(), Malformed> {
    match datagram.first().copied() {
        Some(kind) if kind == expected => Ok(()),
        found => Err(Malformed::Kind { found, expected }),
    }
}

/// The number nearest to `expected` that ends in the 32 bits `truncated` [RFC9000 §A.3].
pub(super) fn expand(truncated: u32, expected: u64) -> u64 {
    const WINDOW: u64 = 1 << 32;
    const HALF: u64 = WINDOW / 2;
    let candidate = (expected & !(WINDOW - 1)) | u64::from(truncated);
    if candidate.checked_add(HALF).is_some_and(|above| above <= expected) {
        candidate.checked_add(WINDOW).unwrap_or(candidate)
    } else if candidate > expected.saturating_add(HALF) && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_fragment_header_has_eleven_bytes_in_network_order() {
        let mut wire = Vec::new();
        FragmentHeader { record: 0x0102_0304, length: 0x0a_0b0c, offset: 0x05_0607 }.put(&mut wire);
        assert_eq!(wire, [0x20, 1, 2, 3, 4, 10, 11, 12, 5, 6, 7]);
        assert_eq!(wire.len(), FragmentHeader::LEN);
    }

    #[test]
    fn what_is_no_bulk_datagram_is_named() {
        assert_eq!(FragmentHeader::parse(&[]), Err(Malformed::Kind { found: None, expected: FRAGMENT }));
        assert_eq!(FragmentHeader::parse(&[7; 20]), Err(Malformed::Kind { found: Some(7), expected: FRAGMENT }));
        assert_eq!(FragmentHeader::parse(&[FRAGMENT; 10]), Err(Malformed::FragmentLength(10)));
        assert_eq!(Credit::parse(&[FRAGMENT]), Err(Malformed::Kind { found: Some(FRAGMENT), expected: CREDIT }));
        assert_eq!(Credit::parse(&[CREDIT; 16]), Err(Malformed::CreditLength(16)));
        assert_eq!(Credit::parse(&[CREDIT; 18]), Err(Malformed::CreditLength(18)));
        assert_eq!(Malformed::FragmentLength(3).to_string(), "a fragment of 3 bytes is shorter than its header of 11");
    }

    proptest! {
        #[test]
        fn a_fragment_comes_back_as_it_was_written(
            record: u32, length in 0u32..1 << 24, offset in 0u32..1 << 24, data: Vec<u8>,
        ) {
            let header = FragmentHeader { record, length, offset };
            let mut wire = Vec::new();
            header.put(&mut wire);
            wire.extend_from_slice(&data);
            prop_assert_eq!(FragmentHeader::parse(&wire), Ok((header, &data[..])));
        }

        #[test]
        fn a_credit_comes_back_as_it_was_written(bytes: u64, records: u64) {
            let credit = Credit { bytes, records };
            prop_assert_eq!(Credit::parse(&credit.to_datagram()), Ok(credit));
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind in 0x1f_u8..0x23, mut datagram: Vec<u8>) {
            if let Some(first) = datagram.first_mut() {
                *first = kind;
            }
            if let Ok((header, data)) = FragmentHeader::parse(&datagram) {
                let mut wire = Vec::new();
                header.put(&mut wire);
                wire.extend_from_slice(data);
                prop_assert_eq!(&wire, &datagram);
            }
            if let Ok(credit) = Credit::parse(&datagram) {
                prop_assert_eq!(&credit.to_datagram()[..], &datagram[..]);
            }
        }

        #[test]
        fn a_number_within_half_the_range_of_what_is_expected_is_expanded_to_itself(
            expected: u64, ahead in -(1_i64 << 31) + 1..1 << 31,
        ) {
            if let Some(number) = expected.checked_add_signed(ahead) {
                prop_assert_eq!(expand(number as u32, expected), number);
            }
        }
    }
}
