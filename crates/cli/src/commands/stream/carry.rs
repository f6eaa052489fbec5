//! Between the ports of programs and a connection, both ways, until one of the ends has enough.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use fairpath_quic::flows::{Delivered, FlowId, KeyFrames, PACKET_MAX};
use fairpath_quic::{Connection, ConnectionError};
use tokio::task::JoinSet;

use super::control::Control;
use super::port::Port;
use super::protocol;
use super::view::View;
use crate::path_facts::Books;
use crate::signals::Interruption;

/// How often the statistics are shown.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// How often encoders are told of their budget: it changes with the rates, ten times a second at most.
const TOLD_EVERY: Duration = Duration::from_millis(200);

/// Why nothing is carried any more.
#[derive(Debug)]
pub(super) enum Ended {
    /// Somebody here asked for it.
    Asked,
    /// The peer is done.
    ByPeer,
    /// The connection was lost.
    Lost(ConnectionError),
}

/// Carries packets until something ends it.
pub(super) async fn carry(
    connection: &Connection,
    ports: &Arc<[Port]>,
    view: &mut View,
    control: &mut Option<Control>,
    books: &mut Books,
    interruption: &Interruption,
) -> anyhow::Result<Ended> {
    view.connected();
    ports.iter().for_each(Port::forget_waiting);
    let mut tasks = JoinSet::new();
    for at in 0..ports.len() {
        tasks.spawn(take_in(connection.clone(), ports.clone(), at));
    }
    tasks.spawn(hand_out(connection.clone(), ports.clone()));
    let mut shown = tokio::time::interval_at((Instant::now() + SHOWN_EVERY).into(), SHOWN_EVERY);
    let mut told = tokio::time::interval(TOLD_EVERY);
    let mut notices = connection.notices();
    // Only the receiver is told anything.
    let is_sender = control.is_some();
    let ended = loop {
        tokio::select! {
            _ = shown.tick() => view.second(connection)?,
            _ = told.tick() => {
                books.enforce(&connection.paths(), |line| view.say(line))?;
                if let Some((status, _)) = connection.flows() && let Some(control) = control {
                    control.tell(&status);
                }
            }
            deadline = Control::asked(control) => {
                connection.set_flows_deadline(deadline);
                protocol::tell(connection, deadline).await;
            }
            Some(deadline) = protocol::told(connection), if !is_sender => connection.set_flows_deadline(deadline),
            Ok(notice) = notices.recv() => view.notice(&notice),
            closed = connection.closed() => break match closed {
                ConnectionError::ApplicationClosed(close) if close.error_code == 0_u32.into() => Ended::ByPeer,
                ConnectionError::LocallyClosed => Ended::Asked,
                lost => Ended::Lost(lost),
            },
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    bail!("carrying packets ended in a fault of this program");
                }
            }
            () = interruption.asked() => break Ended::Asked,
        }
    };
    view.second(connection)?;
    view.gone();
    Ok(ended)
}

/// Sends packets from a port over the connection.
async fn take_in(connection: Connection, ports: Arc<[Port]>, at: usize) {
    let mut buffer = vec![0; PACKET_MAX + 1];
    let mut key_frames = KeyFrames::default();
    loop {
        let packet = ports[at].recv(&mut buffer).await;
        let is_key = key_frames.has_any(packet);
        // A packet that is refused is counted as not sent in time.
        let _ = connection.send_packet(FlowId(at as u8), packet, is_key);
    }
}

/// Hands packets from the connection to their ports, until the connection ends.
async fn hand_out(connection: Connection, ports: Arc<[Port]>) {
    while let Ok(Delivered { flow, packet }) = connection.recv_packet().await {
        if let Some(port) = ports.get(usize::from(flow.0)) {
            port.send(&packet).await;
        }
    }
}
