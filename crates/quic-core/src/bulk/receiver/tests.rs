use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::bulk::record::MAX_RECORD;

fn body(object: u32, data: &[u8]) -> Vec<u8> {
    let record = Record { object, offset: 77, data: Bytes::copy_from_slice(data) };
    [&record.head()[..], data].concat()
}

fn header(record: u32, length: u32, offset: u32) -> FragmentHeader {
    FragmentHeader { record, length, offset }
}

/// A receiver of the smallest window, with room for four records.
fn receiver() -> Receiver {
    Receiver::new(0, 4)
}

/// Delivers all of a record of `length` bytes at once.
fn deliver(receiver: &mut Receiver, record: u32, length: u32) -> Result<(), Violation> {
    receiver.on_fragment(header(record, length, 0), &vec![0; length as usize])
}

#[test]
fn a_record_is_put_together_from_fragments_in_any_order() {
    let data: Vec<u8> = (0..=255).collect();
    let (body, length) = (body(9, &data), 268);
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]];
    for order in orders {
        let mut receiver = receiver();
        for piece in order {
            assert_eq!(receiver.take(), None);
            let range = piece * 67..(piece + 1) * 67;
            receiver.on_fragment(header(0, length, range.start as u32), &body[range]).unwrap();
        }
        assert_eq!(receiver.take(), Some(Record { object: 9, offset: 77, data: Bytes::copy_from_slice(&data) }));
        assert_eq!((receiver.received_bytes(), receiver.duplicate_bytes()), (268, 0));
    }
}

#[test]
fn the_empty_record_is_a_record() {
    let mut receiver = receiver();
    receiver.on_fragment(header(0, HEAD, 0), &body(3, &[])).unwrap();
    assert_eq!(receiver.take(), Some(Record { object: 3, offset: 77, data: Bytes::new() }));
}

#[test]
fn duplicates_of_parts_and_of_complete_records_change_nothing() {
    let (mut receiver, body) = (receiver(), body(1, &[8; 88]));
    receiver.on_fragment(header(0, 100, 20), &body[20..60]).unwrap();
    receiver.on_fragment(header(0, 100, 20), &[0xee; 40]).unwrap();
    receiver.on_fragment(header(0, 100, 30), &[0xee; 30]).unwrap();
    assert_eq!((receiver.received_bytes(), receiver.duplicate_bytes()), (40, 70));
    receiver.on_fragment(header(0, 100, 50), &body[50..]).unwrap();
    receiver.on_fragment(header(0, 100, 0), &body[..30]).unwrap();
    assert_eq!((receiver.received_bytes(), receiver.duplicate_bytes()), (100, 90));
    for _ in 0..2 {
        receiver.on_fragment(header(0, 100, 0), &body).unwrap();
        assert_eq!(receiver.complete.len() + receiver.incomplete.len(), 1);
    }
    assert_eq!(receiver.take().unwrap().data, &[8; 88][..]);
    receiver.on_fragment(header(0, 100, 0), &body).unwrap();
    assert_eq!((receiver.take(), receiver.held_bytes()), (None, 0));
    assert_eq!((receiver.received_bytes(), receiver.duplicate_bytes()), (100, 390));
}

#[test]
fn records_are_taken_in_the_order_in_which_they_became_complete() {
    let mut receiver = receiver();
    receiver.on_fragment(header(0, 20, 0), &[0; 10]).unwrap();
    for record in [2, 1] {
        receiver.on_fragment(header(record, HEAD, 0), &body(record, &[])).unwrap();
    }
    receiver.on_fragment(header(0, 20, 10), &[0; 10]).unwrap();
    let order: Vec<_> = core::iter::from_fn(|| receiver.take()).map(|record| record.object).collect();
    assert_eq!(order, [2, 1, 0]);
}

#[test]
fn a_peer_that_breaks_a_rule_is_told_which_and_nothing_changes() {
    let mut receiver = receiver();
    receiver.on_fragment(header(1, 50, 0), &[0; 20]).unwrap();
    let cases = [
        (header(0, HEAD - 1, 0), 1, Violation::RecordLength { record: 0, length: HEAD - 1 }),
        (header(0, MAX_BODY + 1, 0), 1, Violation::RecordLength { record: 0, length: MAX_BODY + 1 }),
        (header(1, 51, 20), 20, Violation::LengthChanged { record: 1, before: 50, length: 51 }),
        (header(1, 50, 40), 11, Violation::FragmentRange { record: 1, offset: 40, data: 11, length: 50 }),
        (header(1, 50, 90), 1, Violation::FragmentRange { record: 1, offset: 90, data: 1, length: 50 }),
        (header(1, 50, 10), 0, Violation::FragmentRange { record: 1, offset: 10, data: 0, length: 50 }),
        (header(4, 50, 0), 50, Violation::RecordsBeyondCredit { record: 4, limit: 4 }),
        (header(u32::MAX, 50, 0), 50, Violation::RecordsBeyondCredit { record: u32::MAX.into(), limit: 4 }),
    ];
    for (header, bytes, violation) in cases {
        assert_eq!(receiver.on_fragment(header, &vec![0; bytes]), Err(violation));
        assert_eq!((receiver.held_bytes(), receiver.received_bytes(), receiver.incomplete.len()), (50, 20, 1));
    }
}

#[test]
fn a_record_counts_as_a_whole_from_its_first_byte_until_it_is_taken() {
    let mut receiver = receiver();
    receiver.on_fragment(header(0, MAX_BODY, 0), &[0]).unwrap();
    deliver(&mut receiver, 1, MAX_BODY - 20).unwrap();
    assert_eq!(receiver.held_bytes(), WINDOW_BYTES_MIN - 20);
    let limit = WINDOW_BYTES_MIN;
    let refused = Violation::BytesBeyondCredit { record: 2, begun: limit + 1, limit };
    assert_eq!(receiver.on_fragment(header(2, 21, 0), &[0]), Err(refused));
    receiver.on_fragment(header(2, 20, 0), &[0]).unwrap();
    assert_eq!(receiver.take().map(|record| record.data.len()), Some(MAX_RECORD - 20));
    deliver(&mut receiver, 3, MAX_BODY - 20).unwrap();
    assert_eq!(receiver.held_bytes(), WINDOW_BYTES_MIN);
}

#[test]
fn credit_is_told_at_the_beginning_by_the_quarter_and_where_it_was_lost() {
    let mut receiver = Receiver::new(4 * WINDOW_BYTES_MIN, 8);
    let first = Credit { bytes: 4 * WINDOW_BYTES_MIN, records: 8 };
    assert_eq!(receiver.credit_due(), Some(first));
    assert_eq!(receiver.credit_due(), None);
    receiver.credit_lost();
    assert_eq!(receiver.credit_due(), Some(first));
    assert_eq!(receiver.credit_due(), None);

    deliver(&mut receiver, 0, 20).unwrap();
    assert_eq!(receiver.credit_due(), None, "what is not taken gives no credit");
    assert!(receiver.take().is_some());
    assert_eq!(receiver.credit_due(), None, "one record of eight is not a quarter");
    deliver(&mut receiver, 1, 20).unwrap();
    assert!(receiver.take().is_some());
    assert_eq!(receiver.credit_due(), Some(Credit { bytes: first.bytes + 40, records: 10 }));

    receiver.set_window(4 * WINDOW_BYTES_MIN, 1000);
    receiver.credit();
    for record in [2, 3] {
        assert_eq!(receiver.credit_due(), None);
        deliver(&mut receiver, record, MAX_BODY).unwrap();
        assert!(receiver.take().is_some());
    }
    assert_eq!(receiver.credit_due().map(|credit| credit.bytes), Some(first.bytes + 40 + WINDOW_BYTES_MIN));
}

#[test]
fn a_larger_window_counts_at_once_and_a_smaller_one_takes_nothing_back() {
    let mut receiver = receiver();
    let first = receiver.credit();
    receiver.set_window(2 * WINDOW_BYTES_MIN, 8);
    assert_eq!(receiver.credit_due(), Some(Credit { bytes: 2 * WINDOW_BYTES_MIN, records: 8 }));
    receiver.set_window(0, 0);
    assert_eq!(receiver.credit(), Credit { bytes: 2 * first.bytes, records: 8 });
    for record in 0..8 {
        deliver(&mut receiver, record, 20).unwrap();
        assert!(receiver.take().is_some());
    }
    assert_eq!(receiver.credit(), Credit { bytes: 2 * first.bytes, records: 9 });
}

#[test]
fn numbers_are_understood_beyond_32_bits() {
    let mut receiver = receiver();
    receiver.limit.records = (1 << 32) + 2;
    // Each is nearer to what came before it than half of the numbers that 32 bits have; the last two are 0 and 1 in these.
    for record in [1 << 31, u32::MAX, 0, 1] {
        deliver(&mut receiver, record, HEAD).unwrap();
        deliver(&mut receiver, record, HEAD).unwrap();
    }
    assert_eq!(receiver.completed.last(), Some(&((1 << 32) - 1..(1 << 32) + 2)));
    assert_eq!(receiver.duplicate_bytes(), 4 * u64::from(HEAD));
}

#[test]
fn what_is_remembered_of_complete_records_is_bounded_by_the_window_of_records() {
    let mut receiver = Receiver::new(0, 8);
    // Every second one of the first eight stays open for good; of the later ones all become complete.
    for record in 0..1000 {
        let open = record < 8 && record % 2 == 0;
        let length = if open { 1 } else { 20 };
        receiver.on_fragment(header(record, 20, 0), &vec![0; length]).unwrap();
        assert_eq!(receiver.take().is_some(), !open);
        assert!(receiver.completed.len() + receiver.incomplete.len() <= 9);
    }
}

proptest! {
    #[test]
    fn whatever_comes_the_window_is_kept(
        window_records in 1u64..6,
        fragments in proptest::collection::vec(
            (0u32..8, prop_oneof![10u32..40, MAX_BODY - 2..MAX_BODY + 2], 0u32..45, 0usize..45, any::<bool>()), 0..60,
        ),
    ) {
        let mut receiver = Receiver::new(0, window_records);
        let mut taken = 0;
        for (record, length, offset, data, take) in fragments {
            let before = (receiver.held_bytes(), receiver.received_bytes(), receiver.duplicate_bytes());
            if receiver.on_fragment(header(record, length, offset), &vec![1; data]).is_err() {
                let after = (receiver.held_bytes(), receiver.received_bytes(), receiver.duplicate_bytes());
                prop_assert_eq!(after, before);
            }
            if take && let Some(record) = receiver.take() {
                taken += u64::from(record.body());
            }
            let buffers = receiver.incomplete.values().map(|assembly| assembly.capacity() as u64);
            let complete = receiver.complete.iter().map(|record| u64::from(record.body()));
            prop_assert_eq!(buffers.sum::<u64>() + complete.sum::<u64>(), receiver.held_bytes());
            prop_assert!(receiver.held_bytes() <= WINDOW_BYTES_MIN);
            prop_assert!(receiver.incomplete.len() + receiver.complete.len() <= window_records as usize);
            prop_assert!(taken + receiver.held_bytes() >= receiver.received_bytes());
        }
    }
}
