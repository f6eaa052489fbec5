//! An address translator between the ends, while the end that was connected to sends: over a link of
//! 100 Mbit/s, with real sockets. How little is lost meanwhile is seen in virtual time (`faults`, `named`): on a busy machine
//! the emulator itself stands still at times, and what comes meanwhile overflows its queue.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, ByteCount};
use fairpath_emu::{Emulator, LinkConfig, QueueConfig};
use fairpath_quic::EngineConfig;
use fairpath_quic::bulk::{Sink, Source};

use crate::common::Pair;
use crate::common::translator::Translator;

/// Within this time more data must come. It takes a validation, one or two round trips; the rest is for busy machines.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the address changes: what follows depends on when the policy looks next.
const CHANGES: usize = 5;

/// The links' queue: 10 ms at their rate, so that a window that grows anew loses little.
const QUEUE: ByteCount = ByteCount::new(125_000);

struct Scene {
    pair: Pair,
    translator: Translator,
    sink: Sink,
    _source: Source,
    _emulator: Emulator,
}

impl Scene {
    /// The server sends, and what it sends flows.
    async fn start() -> Self {
        let mut between = None;
        let pair = Pair::with(EngineConfig::default(), &["127.0.0.1"], |addresses| {
            let translator = Translator::start(addresses[0]);
            let mut builder = Emulator::builder(1);
            let queue = QueueConfig::bytes(QUEUE);
            let link = LinkConfig::new(Bitrate::from_mbps(100)).delay(Duration::from_millis(10)).queue(queue);
            let there = builder.link("there", &link).unwrap();
            let back = builder.link("back", &link).unwrap();
            builder.path(&[there], &[back], translator.address()).unwrap();
            let emulator = builder.start().unwrap();
            let relays = emulator.relays().to_vec();
            between = Some((translator, emulator));
            relays
        })
        .await;
        let (translator, emulator) = between.unwrap();
        let sink = Sink::start(&pair.client);
        let source = Source::start(&pair.server);
        let scene = Self { pair, translator, sink, _source: source, _emulator: emulator };
        scene.flows("at first").await;
        assert_eq!(scene.remotes().await, [scene.translator.outside()]);
        scene
    }

    /// Waits until five megabytes more have arrived: what was on its way is less.
    async fn flows(&self, when: &str) {
        let from = self.sink.received().get();
        let (mut last, mut since) = (from, Instant::now());
        while last < from + 5_000_000 {
            // A busy machine may take longer than that for all of it.
            let now = self.sink.received().get();
            if now > last {
                (last, since) = (now, Instant::now());
            }
            for end in [&self.pair.client, &self.pair.server] {
                let reason = end.close_reason();
                assert!(reason.is_none(), "{when}: the connection died: {reason:?}");
            }
            let paths = || (self.pair.client.paths(), self.pair.server.paths());
            assert!(since.elapsed() < PATIENCE, "{when}: nothing flowed for {PATIENCE:?}: {:#?}", paths());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The addresses that the server has its paths to.
    async fn remotes(&self) -> Vec<SocketAddr> {
        self.pair.server.paths_now().await.into_iter().map(|path| path.remote).collect()
    }

    /// Data flows soon after each change, to what `change` returns.
    async fn assert_unharmed(&self, change: impl Fn(&Translator) -> SocketAddr) {
        for count in 1..=CHANGES {
            let begun = Instant::now();
            let remote = change(&self.translator);
            self.flows(&format!("after change {count}")).await;
            let flowed_after = begun.elapsed();
            self.flows(&format!("long after change {count}")).await;
            println!("change {count}: 5 MB more after {flowed_after:.2?}");
            assert_eq!(self.remotes().await, [remote], "change {count}: {:#?}", self.pair.server.paths());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_translator_that_gives_the_client_another_port_is_followed() {
    let scene = Scene::start().await;
    scene.assert_unharmed(Translator::rebind).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_datagram_copied_to_another_address_leads_nobody_astray() {
    let scene = Scene::start().await;
    let copy = |translator: &Translator| {
        assert!(!translator.is_copying(), "what was to be copied last has been");
        translator.copy_next_from_elsewhere();
        translator.outside()
    };
    scene.assert_unharmed(copy).await;
    assert!(!scene.translator.is_copying());
}
