//! The socket below the endpoint's: one of the kernel, or of a simulated machine.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
#[cfg(feature = "simulation")]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use noq_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::Socket;
use tokio::io::Interest;

#[cfg(feature = "simulation")]
use crate::machine::SimulatedSocket;

/// How many datagrams a simulated machine takes at once, where kernels take up to 64.
#[cfg(feature = "simulation")]
const TRAIN: usize = 10;

/// A socket.
#[derive(Debug)]
pub(super) enum Medium {
    Kernel {
        /// Everything that is sent leaves through it.
        own: Kernel,
        /// Takes what comes on other interfaces.
        elsewhere: Option<Kernel>,
    },
    #[cfg(feature = "simulation")]
    Simulated(Arc<dyn SimulatedSocket>),
}

/// A socket of the kernel's.
#[derive(Debug)]
pub(super) struct Kernel {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
    /// Whether reading fails, in a test.
    #[cfg(test)]
    pub(super) is_faulty: AtomicBool,
}

impl Kernel {
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        let io = tokio::net::UdpSocket::from_std(socket.into())?;
        let state = UdpSocketState::new((&io).into())?;
        Ok(Self {
            io,
            state,
            #[cfg(test)]
            is_faulty: AtomicBool::new(false),
        })
    }

    fn receive(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        #[cfg(test)]
        if self.is_faulty.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::NetworkDown));
        }
        self.state.recv((&self.io).into(), bufs, meta)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        match self.io.poll_recv_ready(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(self.io.try_io(Interest::READABLE, || self.receive(bufs, meta))),
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }

    /// Has the kernel note from now on when a datagram came.
    fn stamp_arrivals(&self) {
        #[cfg(target_os = "linux")]
        let _ = nix::sys::socket::setsockopt(&self.io, nix::sys::socket::sockopt::ReceiveTimestampns, &true);
    }
}

impl Medium {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel { own, .. } => own.io.local_addr(),
            #[cfg(feature = "simulation")]
            Self::Simulated(socket) => Ok(socket.local_addr()),
        }
    }

    /// Has the kernel note from now on when a datagram came.
    pub(super) fn stamp_arrivals(&self) {
        match self {
            Self::Kernel { own, elsewhere } => {
                own.stamp_arrivals();
                elsewhere.iter().for_each(Kernel::stamp_arrivals);
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => {}
        }
    }

    /// How many datagrams it takes at once.
    pub(super) fn train_datagrams(&self) -> usize {
        match self {
            Self::Kernel { own, .. } => own.state.max_gso_segments().get(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => TRAIN,
        }
    }

    pub(super) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self {
            Self::Kernel { own, .. } => {
                own.io.try_io(Interest::WRITABLE, || own.state.try_send((&own.io).into(), transmit))
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(socket) => {
                let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
                transmit.contents.chunks(size).for_each(|datagram| socket.send(transmit.destination, datagram));
                Ok(())
            }
        }
    }

    pub(super) fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Kernel { own, .. } => own.io.poll_send_ready(cx),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Poll::Ready(Ok(())),
        }
    }

    /// Reads datagrams, or trains of them, into `bufs`; says how many.
    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Kernel { own, elsewhere } => {
                let of_own = own.poll_recv(cx, bufs, meta);
                let has_nothing = |poll: &Poll<io::Result<usize>>| match poll {
                    Poll::Ready(Err(error)) => error.kind() == io::ErrorKind::WouldBlock,
                    other => other.is_pending(),
                };
                let Some(elsewhere) = elsewhere.as_ref().filter(|_| has_nothing(&of_own)) else { return of_own };
                match elsewhere.poll_recv(cx, bufs, meta) {
                    Poll::Pending => of_own,
                    // The interface's own socket tells of errors, and is there without this one.
                    Poll::Ready(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => of_own,
                    ready => ready,
                }
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(socket) => socket.poll_recv(cx, &mut bufs[0]).map_ok(|(len, addr)| {
                (meta[0].addr, meta[0].len, meta[0].stride) = (addr, len, len);
                1
            }),
        }
    }
}
