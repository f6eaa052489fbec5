//! Ways for the fuzz targets into what is private here: how a connection takes what a peer says in DATAGRAM
//! frames. No part of the interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use web_time::{Duration, Instant};

use bytes::Bytes;
use fairpath_engine::{EngineConfig, PathId, PathUse, Timestamp};

use crate::adapter::ConnectionEngine;
use crate::channel::ChannelId;
use crate::connection::Connection;
use crate::datagram::{DATAGRAM_ETHERNET, search, take_up_to};
use crate::one_way::OneWay;
use crate::one_way::report::Message;
use crate::origin::{Origin as _, System};
use crate::streams::{Streams, StreamsConfig, StreamsToken};
use crate::tls::{self, Application, Fingerprint, Verify};
use crate::transport::{Trust, transport};

/// A connection without a peer, which takes whatever it is given for a peer's.
pub fn listening(trust: Trust, now: Instant) -> Connection {
    let engine = EngineConfig::default().build().map(ConnectionEngine::new).expect("the names of the defaults");
    let mut client = System.client(Verify::Fingerprint(Fingerprint([0; 32])), Application::Fairpath).expect("TLS");
    client.transport_config(transport(&engine, search([], DATAGRAM_ETHERNET), trust, Application::Fairpath));
    let mut config = System.endpoint();
    take_up_to(DATAGRAM_ETHERNET, &mut config);
    config.rng_seed(Some([0; 32]));
    let mut endpoint = noq_proto::Endpoint::new(Arc::new(config), None, true);
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (_, quic) = endpoint.connect(now, client, nobody, tls::SERVER_NAME).expect("an address");
    Connection::new(quic, engine, trust, Arc::new([]), None, now)
}

/// The peer says this in a DATAGRAM frame.
pub fn hear(connection: &mut Connection, datagram: &[u8], now: Instant) {
    connection.on_datagram(Bytes::copy_from_slice(datagram), now);
}

/// How much of a channel may be held that the application has not taken: bytes, and records.
pub fn window(trust: Trust, channel: ChannelId) -> (u64, u64) {
    let window = trust.window(channel);
    (window.bytes, window.records)
}

/// Reads what an end says of delays, and writes it again.
pub fn delay_message(datagram: &[u8]) -> Option<Bytes> {
    Message::read(datagram).map(|message| message.write())
}

/// An end that sent datagrams on two paths, one a millisecond, whose marks are the multiples of four up to this
/// one, hears these reports. Says what its engine then shows of delays and paths.
pub fn reported(reports: &[&[u8]], last_mark: u64, now: Instant) -> String {
    let mut engine = EngineConfig::default().build().expect("the names of the defaults");
    let paths = [PathId::new(0), PathId::new(1)];
    for path in paths {
        engine.on_path_opened(path, fairpath_engine::ByteCount::new(1_200), Timestamp::ZERO);
        engine.set_use(path, PathUse::Open);
    }
    let mut delays = OneWay::new(true, now);
    for (at, mark) in (0..=last_mark).step_by(4).enumerate() {
        let left = now + Duration::from_millis(at as u64);
        delays.on_departure(&mark.to_be_bytes(), paths[at % 2], left);
    }
    for (at, report) in reports.iter().enumerate() {
        let after = Duration::from_millis(1_000 + 50 * at as u64);
        let heard = Timestamp::ZERO + after;
        if let Some(Message::Report(report)) = Message::read(report) {
            delays.on_report(&report, &mut engine, heard, now + after);
        }
        engine.poll(heard);
    }
    let end = Timestamp::from_millis(1_000 + 50 * reports.len() as u64);
    format!("{:?} {:?}", engine.groups(), engine.snapshots(end).collect::<Vec<_>>())
}

/// The streams of a server, which hears frames without a connection.
#[derive(Debug)]
pub struct StreamsHeard(Streams);

impl StreamsHeard {
    /// Streams that may hold `most` bytes together.
    pub fn new(most: u64) -> Self {
        let config =
            StreamsConfig { connection_max: fairpath_engine::ByteCount::new(most), ..StreamsConfig::default() };
        let mut streams = Streams::new(true, StreamsConfig::default());
        streams.on_connected(StreamsToken([7; StreamsToken::LEN]));
        streams.admit_with(config);
        Self(streams)
    }

    /// The client says this in a DATAGRAM frame.
    ///
    /// # Errors
    ///
    /// With which the connection would be closed.
    pub fn hear(&mut self, frame: &[u8]) -> Result<(), String> {
        self.0.on_datagram(frame).map_err(|error| error.to_string())
    }

    /// The application's side.
    pub fn streams(&mut self) -> &mut Streams {
        &mut self.0
    }

    /// All leaves that may, and all arrives.
    pub fn say_all(&mut self) {
        let path = PathId::new(0);
        for number in 0.. {
            let Some((_, part)) = self.0.next_due().or_else(|| self.0.next_data(1_200)) else { break };
            self.0.on_sent(part, path, number);
            self.0.on_acked(path, number);
        }
    }

    /// Another connection goes on with them.
    pub fn replace_connection(&mut self) {
        self.0.on_connection_gone();
        self.0.go_on(StreamsToken([8; StreamsToken::LEN]));
    }
}
