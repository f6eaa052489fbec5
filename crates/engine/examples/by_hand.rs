//! The engine driven by hand: `cargo run -p fairpath-engine --example by_hand`.
//!
//! A host of forty lines: two paths of 20 and 60 ms without queues, which lose every 500th packet.
//! LIA couples the two.

use std::collections::BTreeSet;
use std::time::Duration;

use fairpath_engine::{
    ByteCount, CongestionSignal, ConnectionView, EngineConfig, PathId, PathUse, Timestamp, UnknownName,
};

const DATAGRAM: ByteCount = ByteCount::new(1_200);
const ROUND_TRIPS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(60)];
const END: Timestamp = Timestamp::from_millis(30_000);

fn main() -> Result<(), UnknownName> {
    let mut engine = EngineConfig { congestion: "lia".into(), ..EngineConfig::default() }.build()?;
    let mut now = Timestamp::ZERO;
    for path in 0..2 {
        engine.on_path_opened(PathId::new(path), DATAGRAM, now);
        engine.set_use(PathId::new(path), PathUse::Open);
    }
    // Packets in flight: time of the answer, path, and packet number on that path.
    let mut on_its_way: BTreeSet<(Timestamp, u32, u64)> = BTreeSet::new();
    let mut sent = [0_u64; 2];
    while now < END {
        while let Some(path) = engine.pick(&ConnectionView::default(), now).path() {
            let at = path.get() as usize;
            engine.on_sent(path, sent[at], DATAGRAM, now);
            on_its_way.insert((now + ROUND_TRIPS[at], path.get(), sent[at]));
            sent[at] += 1;
        }
        // The next event: an answer arrives, or a pacer releases a packet.
        let answer = on_its_way.first().map_or(END, |(at, ..)| *at);
        now = engine.paced_until(now).map_or(answer, |paced| paced.min(answer));
        while let Some(&(at, path, number)) = on_its_way.first().filter(|(at, ..)| *at <= now) {
            on_its_way.remove(&(at, path, number));
            let sent_at = now - ROUND_TRIPS[path as usize];
            let path = PathId::new(path);
            if number % 500 == 499 {
                engine.on_lost(path, number, now);
                engine.on_congestion(path, CongestionSignal::Loss, sent_at, false, now);
            } else {
                engine.on_ack(path, number, now);
                engine.on_ack_end(path, Duration::ZERO, now);
            }
        }
    }
    for path in engine.snapshots(now) {
        let rate = path.delivered.per(now.since(Timestamp::ZERO)).unwrap_or_default();
        println!("path {}: window {}, {} delivered, {rate}", path.path.get(), path.window, path.delivered);
    }
    Ok(())
}
