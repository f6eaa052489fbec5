//! Packets that rules of the system lead here (TPROXY), of this machine or of those behind an interface: each comes with the
//! address to which it was going, and its answer leaves from that address.
//!
//! Each socket of a program has one association, whomever it sends to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::hosts::{self, Host, STILL, Waiting};
use crate::near::link::Link;
use crate::packets::{Association, Packet};
use crate::reach::Reach;
use crate::snapshot::Kind;
use crate::still::Stillness;
use crate::target::{self, Target};
use crate::udp::{Burst, Ecn, RawUdp, Udp};

/// The gate for packets of this machine, or of one interface.
#[derive(Debug)]
pub(super) struct Gate {
    socket: Udp,
    answers: Arc<RawUdp>,
}

impl Gate {
    pub(super) fn new(socket: Udp, answers: RawUdp) -> Self {
        Self { socket, answers: Arc::new(answers) }
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Carries packets until it is dropped.
    pub(super) async fn serve(self, link: Arc<Link>) {
        let Self { socket, answers } = self;
        hosts::serve(socket, move |host| carry(host, link.clone(), answers.clone())).await;
    }
}

/// Carries the packets of one socket of a program.
async fn carry(mut host: Host, link: Arc<Link>, answers: Arc<RawUdp>) {
    let (association, (_send, mut recv)) = match link.associate(None).await {
        Ok(associated) => associated,
        Err(refusal) => {
            tracing::debug!(%refusal, "packets that were led here were refused");
            return;
        }
    };
    let entry = link.enter(&Target::from(host.address), Kind::Udp);
    let mut stillness = Stillness::new();
    loop {
        tokio::select! {
            waiting = host.packets.recv() => match waiting {
                Some(waiting) => {
                    entry.count(waiting.packets.bytes(), 0);
                    send(&association, &waiting);
                }
                None => return,
            },
            packet = association.recv() => match packet {
                Some(Packet { target: Target { host: target::Host::Address(from), port }, data, ecn, held: _held }) => {
                    host.note_answer();
                    entry.count(0, data.bytes());
                    answer(&answers, SocketAddr::new(from, port), &data, host.address, ecn).await;
                }
                Some(_) => {}
                None => return,
            },
            more = recv.read_chunk(64) => if !matches!(more, Ok(Some(_))) { return },
            () = stillness.lasts(STILL) => return,
        }
        stillness.note();
    }
}

fn send(association: &Association, waiting: &Waiting) {
    // Packets to the gate itself would be led in a circle.
    if let Some(to) = waiting.to.filter(|to| is_public(*to)) {
        association.send(&to.into(), waiting.packets.packets(), waiting.ecn);
    }
}

/// Sends what came from an address outside, from that address.
async fn answer(answers: &RawUdp, from: SocketAddr, packets: &Burst, to: SocketAddr, ecn: Ecn) {
    if is_public(from) {
        for packet in packets.packets() {
            answers.send(from, packet, to, ecn).await;
        }
    }
}

/// Whether an address is one that rules lead here, and from which answers may seem to come: no other's business is behind it.
fn is_public(address: SocketAddr) -> bool {
    Reach::default().objection(address, &[]).is_none()
}
