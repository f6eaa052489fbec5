use core::ops::Range;

use super::*;
use crate::bulk::record::HEAD;

const A: PathId = PathId::new(0);
const B: PathId = PathId::new(1);

/// A room in which 100 bytes of a body go.
const ROOM: usize = 100 + FragmentHeader::LEN;

fn record(object: u32, bytes: usize) -> Record {
    let data = (0..bytes).map(|at| (at as u8) ^ (object as u8)).collect();
    Record { object, offset: u64::from(object) << 33, data }
}

/// A sender with credit and records whose bodies have these lengths.
fn sender(bodies: &[usize]) -> Sender {
    let mut sender = Sender::new();
    sender.on_credit(Credit { bytes: u64::MAX, records: u64::MAX });
    for (object, body) in bodies.iter().enumerate() {
        sender.queue(record(object as u32, body - HEAD as usize)).unwrap();
    }
    sender
}

/// Sends all there is on `path`, in packets from `first` on; says what they carried.
fn send_all(sender: &mut Sender, path: PathId, first: u64) -> Vec<(u64, Range<u32>)> {
    let mut sent = Vec::new();
    while let Some(Fragment { part, .. }) = sender.next(ROOM) {
        sender.on_sent(part, path, first + sent.len() as u64);
        sent.push((part.record, part.range()));
    }
    sender.assert_each_byte_is_answered_for_once();
    sent
}

#[test]
fn a_record_is_cut_to_the_room_and_carries_its_head_once() {
    let mut sender = sender(&[250]);
    let mut body = Vec::new();
    for (room, length) in [(FragmentHeader::LEN + 5, 5), (ROOM, 100), (ROOM + 20, 120), (ROOM, 25)] {
        let fragment = sender.next(room).unwrap();
        let (header, data) = FragmentHeader::parse(&fragment.datagram).unwrap();
        assert_eq!(header, FragmentHeader { record: 0, length: 250, offset: body.len() as u32 });
        assert_eq!(data.len(), length);
        body.extend_from_slice(data);
        assert_eq!(sender.unsent(), 250 - body.len());
        sender.on_sent(fragment.part, A, body.len() as u64);
    }
    assert!(sender.next(ROOM).is_none());
    assert_eq!(Record::from_body(body.into()), Some(record(0, 238)));
}

#[test]
fn a_room_that_takes_no_data_takes_nothing() {
    let mut sender = sender(&[50]);
    for room in 0..=FragmentHeader::LEN {
        assert!(sender.next(room).is_none());
    }
    assert!(sender.has_next());
    assert_eq!(sender.next(FragmentHeader::LEN + 1).unwrap().part.range(), 0..1);
}

#[test]
fn a_record_beyond_the_largest_is_refused_and_the_largest_is_not() {
    let mut sender = Sender::new();
    let zeros = |bytes| Record { object: 0, offset: 0, data: Bytes::from(vec![0; bytes]) };
    assert_eq!(sender.queue(zeros(MAX_RECORD + 1)), Err(RecordTooLarge(MAX_RECORD + 1)));
    assert!(sender.is_idle() && sender.has_room());
    assert_eq!(sender.queue(zeros(MAX_RECORD)), Ok(()));
    assert!(!sender.has_room() && !sender.is_idle());
    assert_eq!(sender.unsent(), MAX_RECORD + HEAD as usize);
}

#[test]
fn nothing_is_begun_beyond_the_credit_in_bytes_or_in_records() {
    let mut sender = Sender::new();
    for object in 0..4 {
        sender.queue(record(object, 138)).unwrap();
    }
    assert!(!sender.has_next() && sender.next(ROOM).is_none());
    sender.on_credit(Credit { bytes: 299, records: 2 });
    assert_eq!(send_all(&mut sender, A, 0), [(0, 0..100), (0, 100..150)], "149 bytes are no credit for 150");
    sender.on_credit(Credit { bytes: 300, records: 0 });
    assert_eq!(send_all(&mut sender, A, 2), [(1, 0..100), (1, 100..150)], "a limit is not lowered");
    sender.on_credit(Credit { bytes: 1000, records: 2 });
    assert!(!sender.has_next(), "only two records may be begun");
    sender.on_credit(Credit { bytes: 0, records: 3 });
    assert_eq!(send_all(&mut sender, A, 4), [(2, 0..100), (2, 100..150)]);
    assert!(!sender.is_idle());
}

#[test]
fn a_record_is_let_go_when_all_of_it_is_acknowledged() {
    let data = Bytes::from(vec![1; 238]);
    let mut sender = sender(&[]);
    sender.queue(Record { object: 0, offset: 0, data: data.clone() }).unwrap();
    assert_eq!(send_all(&mut sender, A, 5).len(), 3);
    for number in [6, 7, 7, 4, 8] {
        sender.on_acked(A, number);
        assert!(!sender.is_idle() && !data.is_unique());
    }
    sender.on_acked(B, 5);
    assert!(!sender.is_idle(), "the packet of another path with this number is another");
    sender.on_acked(A, 5);
    assert!(sender.is_idle() && data.is_unique() && sender.is_nothing_in_flight());
}

#[test]
fn what_was_lost_goes_before_new_data_and_in_the_order_of_the_records() {
    let mut sender = sender(&[100, 100, 100]);
    for number in 0..2 {
        let part = sender.next(ROOM).unwrap().part;
        sender.on_sent(part, A, number);
    }
    sender.on_lost(A, 1);
    sender.on_lost(A, 0);
    sender.on_lost(A, 0);
    sender.on_lost(A, 9);
    assert_eq!(send_all(&mut sender, B, 0), [(0, 0..100), (1, 0..100), (2, 0..100)]);
    assert_eq!(sender.resent_bytes(), 200);
}

#[test]
fn what_was_lost_in_pieces_is_cut_anew_for_the_room_there_is() {
    let mut sender = sender(&[300]);
    send_all(&mut sender, A, 0);
    for number in 0..3 {
        sender.on_lost(A, number);
    }
    let cuts: Vec<_> = [60, 150, 90].map(|bytes| sender.next(FragmentHeader::LEN + bytes).unwrap().part.range()).into();
    assert_eq!(cuts, [0..60, 60..210, 210..300]);
}

#[test]
fn an_acknowledgement_after_a_loss_is_ignored_and_the_copy_completes_the_record() {
    let mut sender = sender(&[100]);
    send_all(&mut sender, A, 0);
    sender.on_lost(A, 0);
    sender.on_acked(A, 0);
    assert_eq!(send_all(&mut sender, A, 1), [(0, 0..100)]);
    sender.on_acked(A, 1);
    assert!(sender.is_idle());
}

#[test]
fn several_fragments_of_one_packet_share_its_fate() {
    let mut sender = sender(&[50, 50, 50]);
    for number in [7, 7, 8] {
        let part = sender.next(ROOM).unwrap().part;
        sender.on_sent(part, A, number);
    }
    sender.on_lost(A, 7);
    assert_eq!(send_all(&mut sender, A, 9), [(0, 0..50), (1, 0..50)]);
    sender.on_acked(A, 8);
    sender.on_acked(A, 9);
    sender.on_acked(A, 10);
    assert!(sender.is_idle());
}

#[test]
fn what_was_given_back_is_sent() {
    let mut sender = sender(&[150]);
    let part = sender.next(ROOM).unwrap().part;
    sender.give_back(part);
    assert_eq!(send_all(&mut sender, A, 0), [(0, 0..100), (0, 100..150)]);
}

#[test]
fn a_late_acknowledgement_of_a_sick_path_cancels_what_waits_to_be_sent_again() {
    let mut sender = sender(&[300]);
    send_all(&mut sender, A, 0);
    sender.resend(A);
    sender.on_acked(A, 1);
    assert_eq!(send_all(&mut sender, B, 0), [(0, 0..100), (0, 200..300)]);
    sender.on_acked(A, 0);
    sender.on_acked(A, 2);
    assert!(sender.is_idle(), "the copies are not needed any more");
    sender.on_lost(B, 0);
    sender.on_lost(B, 1);
    assert!(sender.is_idle() && !sender.has_next() && sender.is_nothing_in_flight());
}

#[test]
fn a_sick_path_is_copied_once_and_its_losses_order_no_second_copy() {
    let mut sender = sender(&[200]);
    send_all(&mut sender, A, 0);
    sender.resend(A);
    sender.resend(A);
    assert_eq!(send_all(&mut sender, B, 0).len(), 2);
    sender.resend(A);
    sender.on_lost(A, 0);
    sender.on_path_gone(A);
    assert!(!sender.has_next());
    sender.on_lost(B, 1);
    assert_eq!(send_all(&mut sender, B, 2), [(0, 100..200)], "the copy answers for what it carries");
}

#[test]
fn a_path_that_is_gone_leaves_nothing_behind() {
    let mut sender = sender(&[200]);
    send_all(&mut sender, A, 0);
    sender.on_acked(A, 0);
    sender.on_path_gone(A);
    sender.on_path_gone(A);
    assert!(sender.is_nothing_in_flight());
    assert_eq!(send_all(&mut sender, B, 0), [(0, 100..200)]);
    sender.on_acked(A, 1);
    assert!(!sender.is_idle(), "a path that is gone is heard of no more");
    sender.on_acked(B, 0);
    assert!(sender.is_idle());
}

#[test]
fn the_tail_is_copied_from_slower_paths_once_and_the_newest_first() {
    let mut sender = sender(&[300]);
    send_all(&mut sender, A, 0);
    assert!(sender.reinject(A, ROOM, |_| true).is_none(), "nothing is copied onto its own path");
    assert!(sender.reinject(B, ROOM, |_| false).is_none(), "nothing is copied from a faster path");
    sender.on_acked(A, 1);
    let mut copied = Vec::new();
    while let Some(Fragment { part, .. }) = sender.reinject(B, ROOM, |other| other == A) {
        sender.on_sent(part, B, copied.len() as u64);
        copied.push(part.range());
        sender.assert_each_byte_is_answered_for_once();
    }
    assert_eq!(copied, [200..300, 0..100]);
    assert!(sender.reinject(A, ROOM, |_| true).is_none(), "a copy is not copied back");
    sender.on_lost(A, 0);
    sender.on_lost(A, 2);
    assert!(!sender.has_next());
    sender.on_lost(B, 1);
    assert_eq!(send_all(&mut sender, A, 3), [(0, 0..100)]);
    assert_eq!(
        sender.reinject(B, ROOM, |_| true).map(|copy| copy.part.range()),
        Some(0..100),
        "sent anew, copied anew"
    );
}

#[test]
fn the_tail_is_copied_in_the_order_of_sending_over_all_slower_paths() {
    let mut sender = sender(&[400]);
    for (path, number) in [(A, 0), (B, 0), (A, 1), (B, 1)] {
        let part = sender.next(ROOM).unwrap().part;
        sender.on_sent(part, path, number);
    }
    let fast = PathId::new(2);
    let mut copied = Vec::new();
    while let Some(Fragment { part, .. }) = sender.reinject(fast, ROOM, |_| true) {
        sender.on_sent(part, fast, copied.len() as u64);
        copied.push(part.start);
    }
    assert_eq!(copied, [300, 200, 100, 0]);
    // Data sent later on a path whose fragments were all copied is copied too.
    sender.queue(record(1, 50)).unwrap();
    assert_eq!(send_all(&mut sender, A, 2), [(1, 0..62)]);
    assert_eq!(sender.reinject(fast, ROOM, |_| true).map(|copy| copy.part.record), Some(1));
}

#[test]
fn nothing_is_copied_while_something_can_be_sent() {
    let mut sender = sender(&[100]);
    send_all(&mut sender, A, 0);
    sender.queue(record(1, 50)).unwrap();
    assert!(sender.reinject(B, ROOM, |_| true).is_none());
    sender.limit.records = 1;
    assert!(sender.reinject(B, ROOM, |_| true).is_some(), "what has no credit cannot be sent");
}

#[test]
fn a_copy_onto_a_path_of_smaller_datagrams_leaves_the_rest_to_be_sent_next() {
    let mut sender = sender(&[100]);
    send_all(&mut sender, A, 0);
    let copy = sender.reinject(B, ROOM - 30, |_| true).unwrap().part;
    assert_eq!(copy.range(), 0..70);
    sender.on_sent(copy, B, 0);
    assert!(sender.has_next());
    sender.assert_each_byte_is_answered_for_once();
    assert_eq!(sender.next(ROOM - 30).unwrap().part.range(), 70..100);
}

#[test]
fn a_packet_number_out_of_order_is_found_again() {
    let mut sender = sender(&[300]);
    for number in [5, 2, 9] {
        let part = sender.next(ROOM).unwrap().part;
        sender.on_sent(part, A, number);
    }
    for number in [9, 2, 5] {
        sender.on_acked(A, number);
    }
    assert!(sender.is_idle() && sender.is_nothing_in_flight());
}

#[test]
fn a_record_whose_number_could_be_mistaken_waits() {
    let mut sender = sender(&[50, 50]);
    let part = sender.next(ROOM).unwrap().part;
    sender.on_sent(part, A, 0);
    sender.begun.records = SPAN_MAX;
    assert!(!sender.has_next());
    sender.on_acked(A, 0);
    assert!(sender.has_next());
}
