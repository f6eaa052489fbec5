//! Bulk data over paths of very unequal delay.

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_emu::{Emulator, LinkConfig, LossConfig};
use fairpath_quic::EngineConfig;

use crate::common::{Pair, receive, send};

/// 10 ms against 300 ms, 100 Mbit/s each, 2 % loss: much is out of order, and much is sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_over_10_and_300_ms_with_losses_runs_to_its_end() {
    let mut emulator = None;
    // Uncoupled CUBIC: what fills both paths, and the gaps with them, most.
    let engine =
        EngineConfig { congestion: "cubic".into(), coupling: "never".parse().unwrap(), ..EngineConfig::default() };
    let pair = Pair::with(engine, &["127.0.0.1"], |addresses| {
        let mut builder = Emulator::builder(7);
        for (path, delay_ms) in [(0, 5), (1, 150)] {
            let link = LinkConfig::new(Bitrate::from_mbps(100))
                .delay(Duration::from_millis(delay_ms))
                .loss(LossConfig::Random { probability: 0.02 });
            let there = builder.link(&format!("there {path}"), &link).unwrap();
            let back = builder.link(&format!("back {path}"), &link.loss(LossConfig::None)).unwrap();
            builder.path(&[there], &[back], addresses[0]).unwrap();
        }
        let started = builder.start().unwrap();
        let relays = started.relays().to_vec();
        emulator = Some(started);
        relays
    })
    .await;
    assert!(pair.client.paths_open(2, Duration::from_secs(5)).await);
    let total = 16 << 20;
    let receiving = tokio::spawn(receive(pair.server.clone(), total));
    send(&pair.client, total).await.expect("the data leaves");
    receiving.await.unwrap().expect("the data arrives, byte for byte");
    let used = pair.client.paths().iter().filter(|path| path.acked.get() > 100_000).count();
    assert_eq!(used, 2, "both paths carried data: {:#?}", pair.client.paths());
}
