use std::io::IoSliceMut;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use noq_udp::{RecvMeta, UdpSocketState};

use super::*;
use crate::allowance::Allowances;
use crate::interfaces::Interface;

/// A socket that takes whole trains.
struct Receiver(UdpSocket, UdpSocketState);

impl Receiver {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let state = UdpSocketState::new((&socket).into()).unwrap();
        Self(socket, state)
    }

    /// The trains that have come: their contents and the size of their datagrams.
    fn trains(&self) -> Vec<(Vec<u8>, usize)> {
        let mut trains = Vec::new();
        loop {
            let (mut buffer, mut meta) = (vec![0; 1 << 16], [RecvMeta::default()]);
            match self.1.recv((&self.0).into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta) {
                Ok(_) => trains.push((buffer[..meta[0].len].to_vec(), meta[0].stride)),
                Err(_) => return trains,
            }
        }
    }
}

/// An outbox, and a socket it sends from.
struct Scene {
    outbox: Outbox,
    sockets: Sockets,
}

impl Scene {
    async fn new() -> Self {
        let address = Ipv4Addr::LOCALHOST.into();
        let interface = Interface { name: "lo".into(), address, twin: 0, prefix_bits: 8, unusable: None };
        let sockets = Sockets::bind(crate::Machine::default(), Allowances::default(), &[interface], 0).unwrap();
        let mut outbox = Outbox::new();
        let socket = sockets.all()[0].clone();
        outbox.begin(socket.train_datagrams());
        Self { outbox, sockets }
    }

    fn add(&mut self, to: &Receiver, datagram: &[u8]) {
        self.outbox.space().clone_from(&datagram.to_vec());
        let destination = fairpath_quic_core::mapped(to.0.local_addr().unwrap());
        let src_ip = Some(Ipv4Addr::LOCALHOST.into());
        self.outbox.add(&Transmit { destination, ecn: None, size: datagram.len(), segment_size: None, src_ip });
    }

    /// Sends it all: before the runtime has seen that there is room, everything is kept back.
    async fn leave(&mut self) {
        self.outbox.leave(&self.sockets);
        let socket = self.sockets.all()[0].clone();
        let flushed = std::future::poll_fn(|cx| socket.poll_flush(cx));
        tokio::time::timeout(Duration::from_secs(5), flushed).await.expect("a socket that has room");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_goes_one_way_leaves_together_and_in_order_whatever_goes_other_ways_meanwhile() {
    let (mut scene, one, other) = (Scene::new().await, Receiver::new(), Receiver::new());
    let sent: Vec<u8> = (0..24_500).map(|at| (at / 100) as u8).collect();
    let sizes = [(1, 1_200), (2, 1_300), (3, 1_400)];
    for (at, datagram) in sent.chunks(1_200).enumerate() {
        scene.add(&one, datagram);
        if let Some((byte, size)) = sizes.get(at) {
            scene.add(&other, &vec![*byte; *size]);
        }
    }
    assert!(one.trains().is_empty(), "the turn is not over");
    scene.leave().await;
    assert_eq!(one.trains(), [(sent, 1_200)], "the smaller one comes last");
    let alone = sizes.map(|(byte, size)| (vec![byte; size], size));
    assert_eq!(other.trains(), alone, "each larger than the one before");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_train_is_as_long_as_the_kernel_takes() {
    let (mut scene, receiver) = (Scene::new().await, Receiver::new());
    for _ in 0..9 {
        scene.add(&receiver, &[0; 8_952]);
    }
    scene.add(&receiver, &[0; 8_852]);
    scene.add(&receiver, &[0; 8_952]);
    scene.leave().await;
    let lengths: Vec<usize> = receiver.trains().iter().map(|(contents, _)| contents.len()).collect();
    assert_eq!(lengths, [7 * 8_952, 3 * 8_952 - 100, 8_952]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_rides_behind_a_single_datagram_that_may_be_too_large() {
    let (mut scene, receiver) = (Scene::new().await, Receiver::new());
    scene.add(&receiver, &[1; 8_952]);
    scene.add(&receiver, &[2; 1_200]);
    scene.add(&receiver, &[3; 1_200]);
    scene.leave().await;
    let lengths: Vec<_> = receiver.trains().iter().map(|(contents, size)| (contents.len(), *size)).collect();
    assert_eq!(lengths, [(8_952, 8_952), (2_400, 1_200)]);
}

/// A transmit: its target, the size and number of its datagrams, and the shortfall of the last.
/// `is_begun` says whether another one was begun before and given up.
#[derive(Clone, Debug)]
struct Made {
    to: u16,
    datagram: usize,
    count: usize,
    lacks: usize,
    is_begun: bool,
}

fn made() -> impl proptest::strategy::Strategy<Value = Made> {
    use proptest::prelude::*;
    // Few sizes, so that trains are joined.
    let datagram = prop_oneof![Just(1_200_usize), Just(1_452), 1..2_000_usize];
    let fields = (0..3_u16, datagram, prop_oneof![Just(1), 1..20_usize], any::<prop::sample::Index>(), any::<bool>());
    fields.prop_map(|(to, datagram, count, lacks, is_begun)| {
        let lacks = if is_begun { lacks.index(datagram) } else { 0 };
        Made { to, datagram, count, lacks, is_begun }
    })
}

#[test]
fn whatever_is_added_is_in_the_trains_as_it_was_and_in_order() {
    use proptest::prelude::*;
    proptest!(|(all in prop::collection::vec(made(), 1..100), datagrams_max in 20..64_usize)| {
        let mut outbox = Outbox::new();
        outbox.begin(datagrams_max);
        let mut sent = vec![Vec::new(); 3];
        for (number, Made { to, datagram, count, lacks, is_begun }) in all.into_iter().enumerate() {
            if is_begun {
                outbox.space().extend_from_slice(b"given up");
            }
            let size = datagram * count - lacks;
            let contents = vec![number as u8; size];
            outbox.space().clone_from(&contents);
            let destination = SocketAddr::from((Ipv4Addr::LOCALHOST, to));
            let segment_size = (count > 1).then_some(datagram);
            outbox.add(&Transmit { destination, ecn: None, size, segment_size, src_ip: None });
            sent[usize::from(to)].extend(contents.chunks(datagram).map(<[u8]>::to_vec));
        }
        let mut found = vec![Vec::new(); 3];
        for train in &outbox.trains[..outbox.used] {
            // Ethernet, IPv6 and UDP.
            prop_assert!(train.contents.len() + 14 + 40 + 8 < 65_536);
            prop_assert!(train.contents.len().div_ceil(train.datagram) <= datagrams_max);
            let to = usize::from(train.way.expect("a way").remote.port());
            found[to].extend(train.contents.chunks(train.datagram).map(<[u8]>::to_vec));
        }
        prop_assert_eq!(found, sent);
    });
}
