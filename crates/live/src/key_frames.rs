//! Packets of an MPEG-TS stream that belong to a key picture, so that they may leave twice.

/// The length of a packet of MPEG-TS in bytes, and its sync byte (ISO/IEC 13818-1, section
/// 2.4.3.2).
const PACKET: usize = 188;
const SYNC: u8 = 0x47;

/// The header of RTP without anything that is optional (RFC 3550, section 5.1).
const RTP: usize = 12;

/// Follows one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyFrames {
    /// The stream within the flow in which such a picture has begun and not ended.
    inside: Option<u16>,
}

impl KeyFrames {
    /// Whether a packet has anything of such a picture. One that is no MPEG-TS, bare or in RTP, has not.
    pub fn has_any(&mut self, packet: &[u8]) -> bool {
        let bare = |packet: &[u8]| !packet.is_empty() && packet.len().is_multiple_of(PACKET) && packet[0] == SYNC;
        let in_rtp = packet.get(RTP..).filter(|payload| bare(payload));
        let Some(packets) = Some(packet).filter(|packet| bare(packet)).or(in_rtp) else { return false };
        // The state that one packet sets applies to those behind it, so all are read.
        packets.chunks_exact(PACKET).filter(|packet| self.is_part(packet)).count() > 0
    }

    fn is_part(&mut self, packet: &[u8]) -> bool {
        let stream = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let begins = packet[1] & 0x40 != 0;
        let (has_field, length) = (packet[3] & 0x20 != 0, packet[4]);
        // The random access indicator (section 2.4.3.5).
        let is_random_access = has_field && length > 0 && packet[5] & 0x40 != 0;
        if is_random_access {
            self.inside = Some(stream);
        } else if begins && self.inside == Some(stream) {
            self.inside = None;
        }
        self.inside == Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet of a stream, with which a picture begins, maybe one that needs no other.
    fn packet(stream: u16, begins: bool, random_access: bool) -> Vec<u8> {
        let mut packet = vec![0; PACKET];
        packet[0] = SYNC;
        packet[1..3].copy_from_slice(&(stream | u16::from(begins) << 14).to_be_bytes());
        packet[3] = if random_access { 0x30 } else { 0x10 };
        packet[4..6].copy_from_slice(&[7, u8::from(random_access) * 0x40]);
        packet
    }

    #[test]
    fn a_picture_that_needs_no_other_lasts_until_the_next_of_its_stream_begins() {
        let mut frames = KeyFrames::default();
        for (stream, begins, random_access, expected) in [
            (256, true, false, false),
            (256, true, true, true),
            (256, false, false, true),
            (257, true, false, false),
            (256, false, false, true),
            (256, true, false, false),
            (256, false, false, false),
        ] {
            assert_eq!(frames.has_any(&packet(stream, begins, random_access)), expected);
        }
        let seven = [packet(257, false, false), packet(256, true, true)].concat();
        assert!(frames.has_any(&[vec![0x80; RTP], seven].concat()), "in RTP, and not the first");
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..600), ts in any::<bool>()) {
            let mut bytes = bytes;
            if ts && bytes.len() >= PACKET {
                bytes.truncate(bytes.len() / PACKET * PACKET);
                bytes[0] = SYNC;
            }
            KeyFrames::default().has_any(&bytes);
        }
    }
}
