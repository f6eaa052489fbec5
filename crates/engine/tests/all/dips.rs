//! Dips happen only while delays of at least two paths are heard.

use std::collections::VecDeque;
use std::time::Duration;

use fairpath_engine::{ByteCount, CongestionSignal, EngineConfig, PathId, PathUse, Timestamp};

const MTU: ByteCount = ByteCount::new(1200);
const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

/// Two paths with a queue. The first always uses its window; the second sends a packet every so
/// many ms, or likewise uses its window. Returns in how many 2 ms steps from 5 to 15 s either had
/// less than its window.
fn dipped(second_every_ms: Option<u64>) -> usize {
    let config = EngineConfig::live();
    let mut engine = config.build().unwrap().unpaced();
    for path in PATHS {
        engine.on_path_opened(path, MTU, Timestamp::ZERO);
        engine.set_use(path, PathUse::Open);
    }
    let mut on_the_way: [VecDeque<(u64, u64)>; 2] = Default::default();
    let (mut next, mut dipped) = ([0; 2], 0);
    for at_ms in (0..15_000).step_by(2) {
        let now = Timestamp::from_millis(at_ms);
        for (index, path) in PATHS.into_iter().enumerate() {
            // A queue that fills in a second, and loses what is too much.
            let rtt_ms = 50 + at_ms % 1_000 / 20;
            if at_ms % 1_000 == 0
                && let Some((number, sent_ms)) = on_the_way[index].pop_front()
            {
                engine.on_lost(path, number, now);
                engine.on_congestion(path, CongestionSignal::Loss, Timestamp::from_millis(sent_ms), false, now);
            }
            while let Some((number, _)) = on_the_way[index].front().filter(|(_, sent_ms)| *sent_ms + rtt_ms <= at_ms) {
                engine.on_ack(path, *number, now);
                on_the_way[index].pop_front();
            }
            engine.on_ack_end(path, Duration::ZERO, now);
            let most = match second_every_ms.filter(|_| index == 1) {
                Some(every_ms) => u64::from(at_ms % every_ms == 0),
                None => u64::MAX,
            };
            let room = engine.verdict(path, now).room() / MTU;
            for _ in 0..room.min(most) {
                engine.on_sent(path, next[index], MTU, now);
                on_the_way[index].push_back((next[index], at_ms));
                next[index] += 1;
            }
        }
        let is_dipped = |path| engine.verdict(path, now).window < engine.snapshot(path, now).unwrap().window;
        dipped += usize::from(at_ms >= 5_000 && PATHS.into_iter().any(is_dipped));
    }
    dipped
}

#[test]
fn no_path_dips_while_only_one_of_two_is_heard() {
    assert!(dipped(None) > 100, "{}", dipped(None));
    assert_eq!(dipped(Some(200)), 0);
}
