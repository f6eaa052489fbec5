//! Credit of the peer, and room for those that write.

use super::*;

#[test]
fn a_reader_that_does_not_read_stalls_its_own_stream_only() {
    let mut net = pair(&StreamsConfig::default());
    let ids: Vec<StreamId> = (0..50).map(|_| net.ends[0].open(StreamKind(0)).expect("allowed")).collect();
    let (slow, quick) = ids.split_first().expect("some");
    let data = Bytes::from(vec![1; 100_000]);
    let mut left = vec![1_000_000_usize; ids.len()];
    let mut read = vec![0; ids.len()];
    for _ in 0..9_000 {
        for (id, left) in ids.iter().zip(&mut left) {
            *left -= net.ends[0].write(*id, data.slice(..(*left).min(data.len()))).expect("open");
        }
        (0..20).for_each(|turn| _ = net.send(turn % 2) | net.deliver() | net.tell_fate());
        while net.ends[1].accept().is_some() {}
        for (at, id) in ids.iter().enumerate().skip(1) {
            while let Ok(Read::Data(data)) = net.ends[1].read(*id, usize::MAX) {
                read[at] += data.len();
            }
        }
    }
    assert_eq!(read[1..], vec![1_000_000; quick.len()]);
    let recv = &net.ends[1].streams[&slow.0].recv;
    assert_eq!(recv.unread(), config::WINDOW - 1, "its window, of which its kind was read");
}

#[test]
fn streams_that_nobody_reads_fill_the_bound_of_the_connection_and_no_more() {
    let most = 2 << 20;
    let config = StreamsConfig { connection_max: fairpath_engine::ByteCount::new(most), ..StreamsConfig::default() };
    let mut net = pair(&config);
    for _ in 0..100 {
        let id = net.ends[0].open(StreamKind(0)).expect("allowed");
        net.ends[0].write(id, Bytes::from(vec![1; 100_000])).expect("open");
    }
    for _ in 0..3_000 {
        (0..20).for_each(|turn| _ = net.send(turn % 2) | net.deliver() | net.tell_fate());
    }
    let held = net.ends[1].held_bytes();
    assert!(held <= most && held > most - 100_000, "{held}");
    assert!(net.ends[0].is_blocked() && net.ends[0].unsent_bytes() > 0);
}

/// Streams wait for the credit of all again and again, and meanwhile some are to send again what was lost.
#[test]
fn streams_that_wait_for_credit_keep_their_turns() {
    let none = Budget::new(fairpath_engine::ByteCount::ZERO);
    let mut net = pair(&StreamsConfig { budget: none, ..StreamsConfig::default() });
    net.loss = 0.05;
    let ids: Vec<StreamId> = (0..100).map(|_| net.ends[0].open(StreamKind(0)).expect("allowed")).collect();
    let data = Bytes::from(vec![1; 64 << 10]);
    for _ in 0..50 {
        for id in &ids {
            net.ends[0].write(*id, data.clone()).expect("open");
        }
        while net.send(0) || net.deliver() || net.tell_fate() {}
        while net.ends[1].accept().is_some() {}
        for id in &ids {
            while let Ok(Read::Data(_)) = net.ends[1].read(*id, usize::MAX) {}
        }
        while net.send(1) || net.deliver() || net.tell_fate() {}
    }
    let sent: Vec<u64> = ids.iter().map(|id| net.ends[0].streams[&id.0].send.sent()).collect();
    let half = |half: &[u64]| half.iter().sum::<u64>() as f64;
    let (first, last) = sent.split_at(50);
    let share = half(first) / half(last);
    assert!((0.99..=1.01).contains(&share), "the first half has {share} of the other: {sent:?}");
}

/// To wake a writer costs a turn of a thread: each is woken where it may write much, and none in vain.
#[test]
fn writers_are_woken_seldom_and_for_much() {
    for (count, least) in [(1, 512 << 10), (16, 128 << 10), (200, 32 << 10)] {
        let mut end = pair(&StreamsConfig::default()).ends.into_iter().next().expect("one");
        end.limits = wire::Limits { streams: count, bytes: u64::MAX, window: u64::MAX };
        let data = Bytes::from(vec![1; 2 << 20]);
        let ids: Vec<StreamId> = (0..count).map(|_| end.open(StreamKind(0)).expect("allowed")).collect();
        for id in ids {
            while end.write(id, data.clone()).expect("open") > 0 {}
        }
        let (mut woken, mut written) = (0, 0);
        // A turn of a connection sends half a megabyte before writers have theirs.
        for turn in 0..200 {
            (0..60).for_each(|_| _ = end.next_data(8_900));
            let events: Vec<_> = std::iter::from_fn(|| end.poll_event()).collect();
            for event in events {
                let StreamEvent::Writable(id) = event else { continue };
                let mut bytes = 0;
                while let more @ 1.. = end.write(id, data.clone()).expect("open") {
                    bytes += more;
                }
                // They did not begin with even shares.
                if turn >= 50 {
                    assert!(bytes >= least, "{count} streams: woken for {bytes} bytes");
                    (woken, written) = (woken + 1, written + bytes);
                }
            }
        }
        assert!(woken > 0 && written / woken >= least, "{count} streams: {woken} times for {written} bytes");
        assert!(end.unsent_bytes() <= (4 << 20) + 200 * (64 << 10), "{}", end.unsent_bytes());
    }
}
