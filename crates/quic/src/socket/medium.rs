//! What a socket is to who reads and writes it: the kernel's, or a simulated machine's.

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
    Kernel(Kernel),
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
}

impl Medium {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(kernel) => kernel.io.local_addr(),
            #[cfg(feature = "simulation")]
            Self::Simulated(socket) => Ok(socket.local_addr()),
        }
    }

    /// Has the kernel note from now on when a datagram came.
    pub(super) fn stamp_arrivals(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kernel(kernel) => {
                let option = nix::sys::socket::sockopt::ReceiveTimestampns;
                let _ = nix::sys::socket::setsockopt(&kernel.io, option, &true);
            }
            #[cfg(not(target_os = "linux"))]
            Self::Kernel(_) => {}
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => {}
        }
    }

    /// How many datagrams it takes at once.
    pub(super) fn train_datagrams(&self) -> usize {
        match self {
            Self::Kernel(kernel) => kernel.state.max_gso_segments().get(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => TRAIN,
        }
    }

    pub(super) fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self {
            Self::Kernel(kernel) => {
                kernel.io.try_io(Interest::WRITABLE, || kernel.state.try_send((&kernel.io).into(), transmit))
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
            Self::Kernel(kernel) => kernel.io.poll_send_ready(cx),
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
            Self::Kernel(kernel) => match kernel.io.poll_recv_ready(cx) {
                Poll::Ready(Ok(())) => Poll::Ready(kernel.io.try_io(Interest::READABLE, || kernel.receive(bufs, meta))),
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            #[cfg(feature = "simulation")]
            Self::Simulated(socket) => socket.poll_recv(cx, &mut bufs[0]).map_ok(|(len, addr)| {
                (meta[0].addr, meta[0].len, meta[0].stride) = (addr, len, len);
                1
            }),
        }
    }
}
