//! A session without cryptography: everybody can read, and make, what is sent. What it leaves of a session is the
//! order of a handshake, keys that differ by connection, direction and stage, and a checksum, so that damaged
//! packets are found.
//!
//! It is for long simulations: what is left of the time is that of the stack and of the engine. The product cannot
//! choose it: the program is built without the feature that brings it.

use std::any::Any;
use std::io::Cursor;

use bytes::BytesMut;
use noq_proto::coding::Encodable as _;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError, TransportErrorCode};

/// The only version there is [RFC9000 §15].
const VERSION: u32 = 1;

/// Length of a checksum, in bytes: that of AES-GCM's tag, so that packets have the same size.
const TAG: usize = 16;

/// The configuration of either end: what its sessions say first.
#[derive(Debug)]
pub(crate) struct Null {
    /// A number unique to this end.
    pub(crate) nonce: u64,
}

impl ClientConfig for Null {
    fn start_session(
        &self,
        version: u32,
        _server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        match version {
            VERSION => Ok(Box::new(NullSession::new(Side::Client, self.nonce, parameters))),
            _ => Err(ConnectError::UnsupportedVersion),
        }
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, version: u32, to: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        if version == VERSION { Ok(keys(Side::Server, of_id(&to))) } else { Err(UnsupportedVersion) }
    }

    fn retry_tag(&self, _version: u32, to: ConnectionId, packet: &[u8]) -> [u8; TAG] {
        checksum([of_id(&to), 0, 0], &[packet])
    }

    fn start_session(&self, _version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession::new(Side::Server, self.nonce, parameters))
    }
}

/// How far a handshake has come: the client's nonce and parameters, the server's nonce, the server's parameters,
/// the client's last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has been said.
    Begin,
    /// The client has said its part.
    Hello,
    /// The peer's nonce has come, and both ends know the keys of the rest.
    Heard,
    /// They use them.
    Keys,
    /// The server's parameters have come.
    Parameters,
    /// The server has sent them.
    Last,
    /// The client has said its last word, or it has come.
    Done,
}

struct NullSession {
    side: Side,
    nonce: u64,
    /// 0 until it has come.
    peer_nonce: u64,
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    stage: Stage,
    /// The beginning of a message whose end has not come.
    unread: Vec<u8>,
    /// How often keys were renewed.
    renewed: u64,
}

impl NullSession {
    fn new(side: Side, nonce: u64, parameters: &TransportParameters) -> Self {
        let mut own = Vec::new();
        parameters.write(&mut own);
        let (stage, unread) = (Stage::Begin, Vec::new());
        Self { side, nonce, peer_nonce: 0, own, peer: None, stage, unread, renewed: 0 }
    }

    /// The secret that both ends know.
    fn secret(&self) -> u64 {
        let (client, server) = match self.side {
            Side::Client => (self.nonce, self.peer_nonce),
            Side::Server => (self.peer_nonce, self.nonce),
        };
        mix(mix(client) ^ server)
    }

    fn keys(&self, stage: u64) -> Keys {
        keys(self.side, mix(self.secret() ^ stage))
    }

    fn take_in(&mut self, nonce: u64, parameters: &[u8]) -> Result<(), TransportError> {
        self.stage = match (self.side, self.stage) {
            (Side::Server, Stage::Begin) | (Side::Client, Stage::Hello) => Stage::Heard,
            (Side::Client, Stage::Keys) => Stage::Parameters,
            (Side::Server, Stage::Last) => Stage::Done,
            _ => return Err(violation("a message that nobody waits for")),
        };
        if !parameters.is_empty() {
            let read = TransportParameters::read(self.side, &mut Cursor::new(parameters))?;
            self.peer = Some(read);
        }
        self.peer_nonce = nonce;
        Ok(())
    }
}

/// A message: how long the parameters are, the nonce, the parameters.
fn write(nonce: u64, parameters: &[u8], buffer: &mut Vec<u8>) {
    buffer.extend((parameters.len() as u16).to_be_bytes());
    buffer.extend(nonce.to_be_bytes());
    buffer.extend(parameters);
}

fn violation(reason: &str) -> TransportError {
    TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason.to_owned())
}

impl Session for NullSession {
    fn initial_keys(&self, to: ConnectionId, side: Side) -> Keys {
        keys(side, of_id(&to))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.stage != Stage::Done
    }

    fn read_handshake(&mut self, data: &[u8]) -> Result<bool, TransportError> {
        self.unread.extend(data);
        while let Some((head, rest)) = self.unread.split_first_chunk::<10>() {
            let length = usize::from(u16::from_be_bytes([head[0], head[1]]));
            let Some(parameters) = rest.get(..length) else { break };
            let (nonce, parameters) = (u64::from_be_bytes(head[2..].try_into().expect("eight")), parameters.to_vec());
            self.unread.drain(..10 + length);
            self.take_in(nonce, &parameters)?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buffer: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.stage) {
            (Side::Client, Stage::Begin) => {
                write(self.nonce, &self.own, buffer);
                self.stage = Stage::Hello;
                None
            }
            (side, Stage::Heard) => {
                if side.is_server() {
                    write(self.nonce, &[], buffer);
                }
                self.stage = Stage::Keys;
                Some(self.keys(1))
            }
            (Side::Server, Stage::Keys) => {
                write(self.nonce, &self.own, buffer);
                self.stage = Stage::Last;
                Some(self.keys(2))
            }
            (Side::Client, Stage::Parameters) => {
                write(self.nonce, &[], buffer);
                self.stage = Stage::Done;
                Some(self.keys(2))
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.renewed += 1;
        Some(self.keys(2 + self.renewed).packet)
    }

    fn is_valid_retry(&self, to: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((token, tag)) = payload.split_last_chunk::<TAG>() else { return false };
        checksum([of_id(&to), 0, 0], &[&[header, token].concat()]) == *tag
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.secret().to_be_bytes()).update(&(label.len() as u64).to_be_bytes());
        hasher.update(label).update(context).finalize_xof().fill(output);
        Ok(())
    }
}

/// Leaves headers as they are.
struct Plain;

impl HeaderKey for Plain {
    fn decrypt(&self, _number_at: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _number_at: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        // As that of AES, so that packets are as large.
        16
    }
}

/// Puts a checksum behind packets.
struct Checked(u64);

impl PacketKey for Checked {
    fn encrypt(&self, path: PathId, packet: u64, buffer: &mut [u8], header: usize) {
        let (contents, tag) = buffer.split_last_chunk_mut::<TAG>().expect("there is room for the tag");
        let (header, payload) = contents.split_at(header);
        *tag = checksum([self.0, number(path), packet], &[header, payload]);
    }

    fn decrypt(&self, path: PathId, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let (contents, tag) = payload.split_last_chunk::<TAG>().ok_or(CryptoError)?;
        if checksum([self.0, number(path), packet], &[header, contents]) != *tag {
            return Err(CryptoError);
        }
        payload.truncate(payload.len() - TAG);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// The stack shows the number of a path only as it is written on the wire.
fn number(path: PathId) -> u64 {
    let mut bytes = [0; 8];
    path.encode(&mut &mut bytes[..]);
    u64::from_be_bytes(bytes)
}

/// The keys of one stage of a connection, which differ by direction.
fn keys(side: Side, key: u64) -> Keys {
    let [to_server, to_client] = [key, mix(key)].map(|key| Box::new(Checked(key)) as Box<dyn PacketKey>);
    let packet = match side {
        Side::Client => KeyPair { local: to_server, remote: to_client },
        Side::Server => KeyPair { local: to_client, remote: to_server },
    };
    Keys { header: KeyPair { local: Box::new(Plain), remote: Box::new(Plain) }, packet }
}

fn of_id(id: &[u8]) -> u64 {
    let digest = checksum([0; 3], &[id]);
    u64::from_be_bytes(*digest.first_chunk().expect("sixteen bytes"))
}

/// An odd number without a pattern: 2⁶⁴ over the golden ratio.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// One word from another: every bit of one changes half of the other's. The steps can be undone, so different
/// words stay different.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 32)).wrapping_mul(ODD);
    let word = (word ^ (word >> 29)).wrapping_mul(ODD);
    word ^ (word >> 32)
}

/// Four lanes, which a processor computes at once. Each step can be undone, so whatever is wrong in one word
/// only is always found.
fn checksum(seed: [u64; 3], parts: &[&[u8]]) -> [u8; TAG] {
    let mut lanes = [seed[0], mix(seed[1]), mix(seed[2] ^ ODD), 0];
    for part in parts {
        let (blocks, rest) = part.as_chunks::<32>();
        blocks.iter().for_each(|block| absorb(&mut lanes, block));
        let mut last = [0; 32];
        last[..rest.len()].copy_from_slice(rest);
        absorb(&mut lanes, &last);
        lanes[3] ^= part.len() as u64;
    }
    let first = lanes.into_iter().fold(0, |sum, lane| mix(sum ^ lane).wrapping_add(ODD));
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&first.to_be_bytes());
    tag[8..].copy_from_slice(&mix(first).to_be_bytes());
    tag
}

fn absorb(lanes: &mut [u64; 4], block: &[u8; 32]) {
    for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(key: u64, path: u32, number: u64) -> (Vec<u8>, BytesMut) {
        let mut packet: Vec<u8> = (0..100).collect();
        packet.extend([0; TAG]);
        Checked(key).encrypt(PathId::from(path), number, &mut packet, 11);
        (packet[..11].to_vec(), BytesMut::from(&packet[11..]))
    }

    fn opens(key: u64, path: u32, number: u64, header: &[u8], mut payload: BytesMut) -> bool {
        Checked(key).decrypt(PathId::from(path), number, header, &mut payload).is_ok()
    }

    #[test]
    fn a_packet_is_taken_in_as_it_was_sent_and_not_otherwise() {
        let (header, payload) = sealed(1, 2, 3);
        assert!(opens(1, 2, 3, &header, payload.clone()));
        assert!(!opens(2, 2, 3, &header, payload.clone()));
        assert!(!opens(1, 1, 3, &header, payload.clone()));
        assert!(!opens(1, 2, 4, &header, payload.clone()));
        for length in 0..payload.len() {
            assert!(!opens(1, 2, 3, &header, BytesMut::from(&payload[..length])), "cut to {length}");
        }
        for bit in 0..8 * (header.len() + payload.len()) {
            let (mut header, mut payload) = (header.clone(), payload.clone());
            let (byte, flip) = (bit / 8, 1 << (bit % 8));
            match byte.checked_sub(header.len()) {
                None => header[byte] ^= flip,
                Some(at) => payload[at] ^= flip,
            }
            assert!(!opens(1, 2, 3, &header, payload), "bit {bit}");
        }
    }
}
