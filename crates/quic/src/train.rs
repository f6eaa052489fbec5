//! Trains: what a connection sends in one go leaves with one call to the kernel, and without holding up
//! the connection.
//!
//! noq's driver of a connection gives away ten datagrams at a time, twice in a row, while it holds the
//! lock that everybody who reads or writes waits for. A call to the kernel for each ten, within that
//! lock, is a good part of what sending costs. So the datagrams are gathered while the driver runs and
//! leave when it pauses, which is after tens of microseconds. The kernel takes a train of datagrams of
//! one size to one destination as a whole, and gives it as a whole to a receiver on this machine.
//!
//! noq has its drivers run by a [`noq::Runtime`], and [`Trains`] is one that knows when they pause.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use noq::udp::{EcnCodepoint, Transmit};
use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};

use crate::socket::BoundSocket;

/// The kernel takes no more bytes than this at once.
const TRAIN_MAX: usize = 65_507;

thread_local! {
    /// What the driver that runs on this thread has sent. Outside drivers nothing is gathered.
    static GATHERED: RefCell<Gathered> = RefCell::default();
}

/// Sends `transmit`, whose destination is that of the packets themselves, through `socket`: at once, or
/// when the driver that calls this pauses.
pub(crate) fn send(socket: &Arc<BoundSocket>, transmit: &Transmit<'_>) {
    GATHERED.with_borrow_mut(|gathered| {
        gathered.add(socket, transmit);
        if !gathered.is_open {
            gathered.leave();
        }
    });
}

/// The train of a thread.
#[derive(Debug, Default)]
struct Gathered {
    is_open: bool,
    train: Option<Train>,
    /// The datagrams of the train, one after the other.
    contents: Vec<u8>,
}

/// What all datagrams of a train have in common.
#[derive(Debug)]
struct Train {
    socket: Arc<BoundSocket>,
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    /// The size of each, but for the last, which may be smaller.
    datagram: usize,
}

impl Train {
    /// How many bytes of datagrams like this one may follow `length` bytes.
    fn room(&self, length: usize, socket: &Arc<BoundSocket>, transmit: &Transmit<'_>, datagram: usize) -> usize {
        let alike = Arc::ptr_eq(&self.socket, socket)
            && self.destination == transmit.destination
            && self.ecn == transmit.ecn
            // One that is smaller may come last.
            && (self.datagram == datagram || (transmit.segment_size.is_none() && datagram < self.datagram));
        if !alike || !length.is_multiple_of(self.datagram) {
            return 0;
        }
        // The kernel may refuse trains from now on; those that are being made are then too long already.
        let datagrams_max = (TRAIN_MAX / self.datagram).min(socket.train_datagrams()).max(1);
        (datagrams_max * self.datagram).saturating_sub(length)
    }
}

impl Gathered {
    fn add(&mut self, socket: &Arc<BoundSocket>, transmit: &Transmit<'_>) {
        let datagram = transmit.segment_size.unwrap_or(transmit.contents.len());
        let mut rest = transmit.contents;
        while !rest.is_empty() {
            let room =
                self.train.as_ref().map_or(0, |train| train.room(self.contents.len(), socket, transmit, datagram));
            if room == 0 {
                self.leave();
                let Transmit { destination, ecn, .. } = *transmit;
                self.train = Some(Train { socket: socket.clone(), destination, ecn, datagram });
                continue;
            }
            let fitting;
            (fitting, rest) = rest.split_at(room.min(rest.len()));
            self.contents.extend_from_slice(fitting);
        }
    }

    fn leave(&mut self) {
        let Some(Train { socket, destination, ecn, datagram }) = self.train.take() else { return };
        let segment_size = (self.contents.len() > datagram).then_some(datagram);
        // The socket is bound to its address: naming the source again would only cost.
        socket.send(&Transmit { destination, ecn, contents: &self.contents, segment_size, src_ip: None });
        self.contents.clear();
    }
}

/// Tokio, as noq uses it, with drivers whose datagrams leave in trains.
#[derive(Debug)]
pub(crate) struct Trains;

impl Runtime for Trains {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, driver: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(Box::pin(Driver(driver)));
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> std::io::Result<Box<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

/// A driver of noq's.
struct Driver(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let _gathering = Gathering::begin();
        self.0.as_mut().poll(cx)
    }
}

/// The time in which a driver runs; what it sent leaves when this is dropped.
struct Gathering;

impl Gathering {
    fn begin() -> Self {
        GATHERED.with_borrow_mut(|gathered| gathered.is_open = true);
        Self
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        GATHERED.with_borrow_mut(|gathered| {
            gathered.is_open = false;
            gathered.leave();
        });
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::interfaces::Interface;
    use noq::udp::{RecvMeta, UdpSocketState};
    use std::io::IoSliceMut;
    use std::net::{Ipv4Addr, UdpSocket};

    async fn sender() -> Arc<BoundSocket> {
        let address = Ipv4Addr::LOCALHOST.into();
        let interface = Interface { name: "lo".into(), address, prefix_bits: 8, unusable: None };
        let socket = BoundSocket::bind(&interface, 0).unwrap();
        socket.writable().await;
        socket
    }

    /// A socket that takes whole trains.
    struct Receiver(UdpSocket, UdpSocketState);

    impl Receiver {
        fn new() -> Self {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let state = UdpSocketState::new((&socket).into()).unwrap();
            Self(socket, state)
        }

        fn transmit<'a>(&self, contents: &'a [u8], segment_size: Option<usize>) -> Transmit<'a> {
            let destination = self.0.local_addr().unwrap();
            Transmit { destination, ecn: None, contents, segment_size, src_ip: None }
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

    /// Runs `act` as noq's driver of a connection.
    async fn drive(act: impl Fn() + Send + 'static) {
        Driver(Box::pin(std::future::poll_fn(move |_| {
            act();
            Poll::Ready(())
        })))
        .await;
    }

    #[tokio::test]
    async fn what_a_driver_sends_leaves_when_it_pauses_and_in_order() {
        let (socket, one, other) = (sender().await, Arc::new(Receiver::new()), Arc::new(Receiver::new()));
        let sent: Vec<u8> = (0..24_500).map(|at| (at / 100) as u8).collect();
        let (contents, to, also_to) = (sent.clone(), one.clone(), other.clone());
        drive(move || {
            send(&socket, &to.transmit(&contents[..12_000], Some(1_200)));
            send(&socket, &to.transmit(&contents[12_000..24_000], Some(1_200)));
            send(&socket, &to.transmit(&contents[24_000..], None));
            assert!(to.trains().is_empty(), "the driver still runs");
            send(&socket, &also_to.transmit(&[1; 1_200], None));
            send(&socket, &also_to.transmit(&[2; 1_300], None));
            send(&socket, &also_to.transmit(&[3; 1_400], None));
        })
        .await;
        assert_eq!(one.trains(), [(sent, 1_200)], "the smaller one comes last");
        let alone = [(1, 1_200), (2, 1_300), (3, 1_400)];
        assert_eq!(
            other.trains(),
            alone.map(|(byte, length)| (vec![byte; length], length)),
            "each larger than the one before"
        );
    }

    #[tokio::test]
    async fn outside_a_driver_nothing_is_kept() {
        let (socket, receiver) = (sender().await, Receiver::new());
        for count in 1..=2 {
            send(&socket, &receiver.transmit(&[7; 1_200], None));
            assert_eq!(receiver.trains().len(), 1, "{count}");
        }
    }

    #[tokio::test]
    async fn a_train_is_as_long_as_the_kernel_takes() {
        let (socket, receiver) = (sender().await, Arc::new(Receiver::new()));
        let to = receiver.clone();
        drive(move || {
            send(&socket, &to.transmit(&vec![0; 10 * 8_952 - 100], Some(8_952)));
            send(&socket, &to.transmit(&vec![0; 2 * 8_952], Some(8_952)));
        })
        .await;
        let lengths: Vec<usize> = receiver.trains().iter().map(|(contents, _)| contents.len()).collect();
        assert_eq!(lengths, [7 * 8_952, 3 * 8_952 - 100, 2 * 8_952]);
    }
}
