//! The terms of paths, told to the peer: the end that receives data may be the one that pays for a
//! path.
//!
//! A user marks a modem as a backup, or gives it a cost or a cap. The other end sends the data that
//! arrives over it, so it is told, and applies the terms as its own. It is never asked for more
//! than it would send by itself.
//!
//! In a QUIC datagram: the kind (1 byte), then an entry for each path. An entry has four fields, numbers big-endian:
//!
//! - the id of the path [RFC9000 §16],
//! - 1 where it is a backup, otherwise 0 (1 byte),
//! - its cost (4 bytes),
//! - its cap in bit/s, 0 for none (8 bytes).

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use fairpath_engine::{Bitrate, Terms};
use noq_proto::PathId;
use noq_proto::coding::{Decodable as _, Encodable as _};

use crate::transport::PATH_IDS;

/// The first byte of such a datagram.
pub(crate) const KIND: u8 = 10;

/// The datagram that tells of these.
pub(crate) fn write(terms: &[(PathId, Terms)]) -> Bytes {
    let mut datagram = BytesMut::new();
    datagram.put_u8(KIND);
    for (path, Terms { backup, cost, cap, .. }) in terms.iter().take(PATH_IDS as usize) {
        path.encode(&mut datagram);
        datagram.put_u8(u8::from(*backup));
        datagram.put_u32(*cost);
        datagram.put_u64(cap.map_or(0, Bitrate::as_bps));
    }
    datagram.freeze()
}

/// The terms in a datagram without its first byte, as far as it is whole.
pub(crate) fn read(mut entries: &[u8]) -> Vec<(PathId, Terms)> {
    let mut terms = Vec::new();
    while terms.len() < PATH_IDS as usize {
        let Ok(path) = PathId::decode(&mut entries) else { break };
        let (Ok(backup), Ok(cost), Ok(cap)) = (entries.try_get_u8(), entries.try_get_u32(), entries.try_get_u64())
        else {
            break;
        };
        let cap = (cap > 0).then(|| Bitrate::from_bps(cap));
        terms.push((path, Terms { backup: backup == 1, cost, cap, ..Terms::default() }));
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_survive_and_what_is_cut_or_too_long_is_left_out() {
        let modem = Terms { backup: true, cost: 7, cap: Some(Bitrate::from_mbps(5)), ..Terms::default() };
        let all = [(PathId::ZERO, Terms::default()), (PathId::from(300_u32), modem)];
        let datagram = write(&all);
        assert_eq!((datagram[0], read(&datagram[1..])), (KIND, all.to_vec()));
        for length in 1..datagram.len() {
            assert!(read(&datagram[1..length]).len() < 2, "{length}");
        }
        assert_eq!(read(&write(&[all[1]; 100])[1..]).len(), PATH_IDS as usize);
        assert!(read(&[]).is_empty());
    }
}
