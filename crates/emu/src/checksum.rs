//! Checksums that a host leaves to its device, and that a cable between two hosts never had computed.

use std::ops::Range;

const TCP: u8 = 6;
const UDP: u8 = 17;

const V6_HEADER: usize = 40;

/// The headers of IPv6 that may stand before that of TCP or UDP, and have their length in them (RFC 8200, section 4.1).
const OPTIONS: [u8; 3] = [0, 43, 60];

/// The parts of a packet that its checksum covers.
struct Segment {
    protocol: u8,
    /// The source and the destination in the header.
    addresses: Range<usize>,
    data: Range<usize>,
}

/// Fills in the checksum of a TCP segment or UDP datagram in a whole packet of IP; leaves other packets as they are.
pub(crate) fn complete(packet: &mut [u8]) {
    let segment = match packet.first().map(|first| first >> 4) {
        Some(4) => of_v4(packet),
        Some(6) => of_v6(packet),
        _ => None,
    };
    let Some(Segment { protocol, addresses, data }) = segment else { return };
    let at = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return,
    };
    if packet.len() < data.end || data.len() < at + 2 {
        return;
    }
    let addresses = sum(&packet[addresses]);
    let data = &mut packet[data];
    data[at..at + 2].fill(0);
    let pseudo = addresses + u64::from(protocol) + data.len() as u64;
    let mut folded = pseudo + sum(data);
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    let checksum = match !(folded as u16) {
        // For UDP zero means that there is none.
        0 if protocol == UDP => 0xffff,
        checksum => checksum,
    };
    data[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

fn of_v4(packet: &[u8]) -> Option<Segment> {
    let &[version, _, high, low, _, _, fragment, rest, _, protocol] = packet.first_chunk()?;
    let (header, length) = (usize::from(version & 0xf) * 4, usize::from(u16::from_be_bytes([high, low])));
    // Fragments have one only when they are together again.
    let is_whole = u16::from_be_bytes([fragment & 0x3f, rest]) == 0;
    (is_whole && header >= 20 && length >= header).then_some(Segment {
        protocol,
        addresses: 12..20,
        data: header..length,
    })
}

/// The header of a fragment is none of the options, so that fragments stay as they are.
fn of_v6(packet: &[u8]) -> Option<Segment> {
    let &[_, _, _, _, high, low, next, _] = packet.first_chunk()?;
    let end = V6_HEADER + usize::from(u16::from_be_bytes([high, low]));
    let (mut protocol, mut at) = (next, V6_HEADER);
    while OPTIONS.contains(&protocol) {
        let &[next, eighths] = packet.get(at..)?.first_chunk()?;
        (protocol, at) = (next, at + 8 * (usize::from(eighths) + 1));
    }
    (at <= end).then_some(Segment { protocol, addresses: 8..V6_HEADER, data: at..end })
}

/// The sum of the words of 16 bits; half a word at the end is filled up with zero.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    words + rest.first().map_or(0, |last| u64::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10.0.0.1:1 to 10.0.0.2:2, "ab" and a third byte: 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 0x0011 + 0x000b
    /// + 0x0001 + 0x0002 + 0x000b + 0x6162 + 0x6300 = 0xd88f, whose complement is 0x2770.
    #[test]
    fn a_datagram_gets_its_checksum_whatever_stood_there() {
        let mut packet = vec![0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 1, 0, 2, 0, 11, 0xde, 0xad, b'a', b'b', b'c']);
        // Ethernet fills short frames up.
        packet.extend([0xff; 9]);
        let before = packet.clone();
        complete(&mut packet);
        assert_eq!(packet[26..28], 0x2770_u16.to_be_bytes());
        packet[26..28].copy_from_slice(&before[26..28]);
        assert_eq!(packet, before, "nothing else has changed");
    }

    /// fd77:1::1 port 1 to fd77:1::2 port 2, with "ab" and a third byte.
    /// The addresses: 2 * 0xfd77 + 2 * 0x0001 + 0x0001 + 0x0002 = 0x1faf3.
    /// Protocol, length, ports and length: 0x0011 + 0x000b + 0x0001 + 0x0002 + 0x000b = 0x002a.
    /// The data: 0x6162 + 0x6300 = 0xc462. Together 0x2bf7f, folded 0xbf81, whose complement is 0x407e.
    #[test]
    fn a_datagram_of_ipv6_gets_its_checksum_behind_options_too() {
        let addresses = [1, 2].map(|host| [0xfd, 0x77, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]).concat();
        let datagram = [0, 1, 0, 2, 0, 11, 0xde, 0xad, b'a', b'b', b'c'];
        let options = [60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UDP, 0, 0, 0, 0, 0, 0, 0];
        for (next, options) in [(UDP, &[][..]), (0, &options)] {
            let length = (options.len() + datagram.len()) as u8;
            let head = [&[0x60, 0, 0, 0, 0, length, next, 64][..], &addresses, options].concat();
            let mut packet = [&head[..], &datagram, &[0xff; 9]].concat();
            let before = packet.clone();
            complete(&mut packet);
            let at = head.len() + 6;
            assert_eq!(packet[at..at + 2], 0x407e_u16.to_be_bytes());
            packet[at..at + 2].copy_from_slice(&before[at..at + 2]);
            assert_eq!(packet, before, "nothing else has changed");
        }
    }

    #[test]
    fn fragments_and_other_packets_stay_as_they_are() {
        let fragment = [&[0x45, 0, 0, 28, 0, 0, 0x20, 0, 64, UDP][..], &[7; 18]].concat();
        let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat();
        let fragment6 = [&[0x60, 0, 0, 0, 0, 16, 44, 64][..], &[7; 32], &[UDP, 0, 0, 1, 0, 0, 0, 1], &[7; 8]].concat();
        let cut = [&[0x60, 0, 0, 0, 0, 1, 0, 64][..], &[7; 32], &[0]].concat();
        for packet in [
            fragment,
            fragment6,
            cut,
            arp,
            vec![0x45; 3],
            vec![0x60; 3],
            Vec::new(),
            vec![0x45, 0, 0, 200, 0, 0, 0, 0, 1, TCP, 0, 0],
        ] {
            let mut completed = packet.clone();
            complete(&mut completed);
            assert_eq!(completed, packet);
        }
    }
}
