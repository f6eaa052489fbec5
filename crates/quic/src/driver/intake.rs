//! Datagrams that wait until the task of their connection has time for them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairpath_quic_core::Arrival;

/// How much may wait, in bytes: as much as a socket holds. A task that is so far behind loses what comes, as a socket does.
const WAITING: usize = 4 << 20;

/// The same limit for a guest, which may hold little.
const WAITING_OF_GUEST: usize = 128 << 10;

/// Limits on a turn of intake, in bytes and in datagrams; meanwhile nothing else can use the
/// connection.
const TURN: usize = 512 << 10;
const TURN_DATAGRAMS: usize = 1_024;

/// Beyond this number of datagrams memory for them is given back when they are gone: there is an intake for each
/// connection.
const KEPT: usize = 256;

/// Between the task that reads the sockets and that of one connection.
#[derive(Debug, Default)]
pub(super) struct Intake(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    datagrams: VecDeque<Arrival>,
    bytes: usize,
    /// Nobody takes anything any more.
    is_shut: bool,
}

impl Intake {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands datagrams over, those for which there is room.
    pub(super) fn put(&self, datagrams: impl Iterator<Item = Arrival>, is_guest: bool) {
        let most = if is_guest { WAITING_OF_GUEST } else { WAITING };
        let mut waiting = self.lock();
        for datagram in datagrams {
            let bytes = datagram.bytes();
            if !waiting.is_shut && waiting.bytes + bytes <= most {
                waiting.bytes += bytes;
                waiting.datagrams.push_back(datagram);
            }
        }
    }

    /// Takes as many as may be handled in one turn. Whether there are more.
    pub(super) fn take(&self, into: &mut Vec<Arrival>) -> bool {
        let (mut waiting, mut bytes) = (self.lock(), 0);
        while bytes < TURN
            && into.len() < TURN_DATAGRAMS
            && let Some(datagram) = waiting.datagrams.pop_front()
        {
            bytes += datagram.bytes();
            into.push(datagram);
        }
        waiting.bytes -= bytes;
        if waiting.datagrams.is_empty() && waiting.datagrams.capacity() > 4 * KEPT {
            waiting.datagrams.shrink_to(KEPT);
        }
        !waiting.datagrams.is_empty()
    }

    /// From now on whatever comes is dropped.
    pub(super) fn shut(&self) {
        let mut waiting = self.lock();
        *waiting = Waiting { is_shut: true, ..Waiting::default() };
    }
}
