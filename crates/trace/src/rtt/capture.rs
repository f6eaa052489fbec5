//! Captured packets, pcap and pcapng: the round-trip times of their TCP connections.
//!
//! Each connection gives one series, of the direction in which the round trip is the longer one.
//! Captured beside the sender, that is the path to the receiver and back, and not the sender's own
//! delay. Captured beside the receiver it is the same path, seen from there.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::Read;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
use fairpath_core::Timestamp;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};

use super::tcp::{Direction, Packet};
use super::{Format, Limits, RttError, RttSample, Series, TooMuch, Traces};

/// A connection with fewer round trips is left out.
const SAMPLES_MIN: usize = 20;

/// A section of pcapng names one for each interface that was captured on; hosts of many containers have
/// hundreds.
const INTERFACES_MAX: usize = 10_000;

/// Packets between two counts of the connections' memory.
const COUNTED_EVERY: u64 = 1 << 16;

/// Whether a file begins as pcap does: in either order of bytes, in micro- or nanoseconds.
pub(super) fn is_pcap(begin: &[u8]) -> bool {
    [0xa1b2_c3d4_u32, 0xa1b2_3c4d]
        .iter()
        .any(|magic| begin.starts_with(&magic.to_be_bytes()) || begin.starts_with(&magic.to_le_bytes()))
}

/// Whether a file begins as pcapng does.
pub(super) fn is_pcapng(begin: &[u8]) -> bool {
    begin.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])
}

/// Reads a pcap file.
pub(super) fn read_pcap(input: impl Read, limits: &Limits) -> Result<Traces, RttError> {
    let mut reader = PcapReader::new(input).map_err(not_a_capture)?;
    let header = reader.header();
    let link = kind(header.datalink);
    let tick_ns = if header.ts_resolution == TsResolution::NanoSecond { 1 } else { 1000 };
    let mut flows = Flows::default();
    // Raw packets: the others are refused where a packet was longer than what is kept of each.
    while let Some(packet) = reader.next_raw_packet() {
        match packet {
            Ok(packet) => {
                let fraction = Duration::from_nanos(u64::from(packet.ts_frac) * tick_ns);
                let at = Timestamp::ZERO + Duration::from_secs(packet.ts_sec.into()) + fraction;
                flows.add(link, at, &packet.data, packet.orig_len);
                flows.check(limits)?;
            }
            Err(error) => {
                flows.damaged = Some(error);
                break;
            }
        }
    }
    flows.finish(limits)
}

/// Reads a pcapng file.
pub(super) fn read_pcapng(input: impl Read, limits: &Limits) -> Result<Traces, RttError> {
    let mut reader = PcapNgReader::new(input).map_err(not_a_capture)?;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut flows = Flows::default();
    while let Some(block) = reader.next_block() {
        match block {
            Ok(Block::SectionHeader(_)) => interfaces.clear(),
            Ok(Block::InterfaceDescription(block)) => {
                interfaces.push(Interface::new(&block));
                if interfaces.len() > INTERFACES_MAX {
                    let reason = format!("it has more than {INTERFACES_MAX} interfaces");
                    return Err(RttError::Capture(reason));
                }
            }
            Ok(Block::EnhancedPacket(packet)) => {
                if let Some(interface) = interfaces.get(packet.interface_id as usize) {
                    // The reader takes every count of ticks for nanoseconds.
                    let at = interface.time(packet.timestamp.as_nanos());
                    flows.add(interface.link, at, &packet.data, packet.original_len);
                    flows.check(limits)?;
                }
            }
            Ok(_) => {}
            Err(error) => {
                flows.damaged = Some(error);
                break;
            }
        }
    }
    flows.finish(limits)
}

/// The kind of link that pcap's field names: above its 16 bits stands how long the check sequence of each frame is
/// [Pcap §4]. That sequence comes after the packet, whose length IP says.
fn kind(field: DataLink) -> DataLink {
    DataLink::from(u32::from(field) & 0xffff)
}

fn not_a_capture(error: PcapError) -> RttError {
    match error {
        PcapError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => RttError::Io(error),
        other => RttError::Capture(words(&other)),
    }
}

fn words(error: &PcapError) -> String {
    match error {
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
        PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// The description of an interface in a pcapng file.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: DataLink,
    /// Ticks in a second; microseconds unless said otherwise.
    ticks: u128,
    /// The time that is added to every time.
    offset: Duration,
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>) -> Self {
        let mut interface = Self { link: block.linktype, ticks: 1_000_000, offset: Duration::ZERO };
        for option in &block.options {
            match *option {
                InterfaceDescriptionOption::IfTsResol(power) if power & 0x80 == 0 => {
                    interface.ticks = 10u128.pow(u32::from(power.min(30)));
                }
                InterfaceDescriptionOption::IfTsResol(power) => interface.ticks = 1 << (power & 0x7f).min(90),
                InterfaceDescriptionOption::IfTsOffset(seconds) => interface.offset = Duration::from_secs(seconds),
                _ => {}
            }
        }
        interface
    }

    fn time(&self, ticks: u128) -> Timestamp {
        // A count has 64 bits, and 10^9 has 30.
        let nanos = u64::try_from(ticks * 1_000_000_000 / self.ticks).unwrap_or(u64::MAX);
        let since = Duration::from_nanos(nanos).saturating_add(self.offset);
        Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The connections, by their two ends.
#[derive(Debug, Default)]
struct Flows {
    /// The packets from the first end to the second, and back.
    connections: BTreeMap<(SocketAddr, SocketAddr), [Direction; 2]>,
    packets: u64,
    /// The first kind of link that is not read, and how many packets are of such links.
    unread: Option<(DataLink, u64)>,
    damaged: Option<PcapError>,
}

impl Flows {
    /// Takes a packet of which `original` bytes were on the link and `data` are left.
    fn add(&mut self, link: DataLink, at: Timestamp, data: &[u8], original: u32) {
        self.packets += 1;
        let Some(slicer) = slicer(link) else {
            self.unread.get_or_insert((link, 0)).1 += 1;
            return;
        };
        let missing = original.saturating_sub(u32::try_from(data.len()).unwrap_or(u32::MAX));
        let Some((source, target, packet)) = tcp(slicer, at, data, missing) else { return };
        let forward = source <= target;
        let ends = if forward { (source, target) } else { (target, source) };
        let [there, back] = self.connections.entry(ends).or_default();
        let (own, other) = if forward { (there, back) } else { (back, there) };
        own.on_sent(&packet);
        other.on_answer(&packet);
    }

    /// Refuses more than is kept. To count what is kept takes long where there are many connections.
    fn check(&self, limits: &Limits) -> Result<(), TooMuch> {
        if self.connections.len() > limits.connections {
            return Err(TooMuch::Connections(limits.connections));
        }
        if self.packets.is_multiple_of(COUNTED_EVERY) { self.count(limits) } else { Ok(()) }
    }

    fn count(&self, limits: &Limits) -> Result<(), TooMuch> {
        let kept: usize = self.connections.values().flatten().map(Direction::kept).sum();
        if kept > limits.samples { Err(TooMuch::Packets(limits.samples)) } else { Ok(()) }
    }

    fn finish(self, limits: &Limits) -> Result<Traces, RttError> {
        self.count(limits)?;
        let mut traces = Traces::new(Format::Capture);
        if let Some(error) = self.damaged {
            if self.packets == 0 {
                return Err(not_a_capture(error));
            }
            let (packets, why) = (self.packets, words(&error));
            traces.notes.push(format!("after packet {packets}: {why}; what follows is left out"));
        }
        if let Some((link, packets)) = self.unread {
            let of = format!("of a link of type {}; {READ} are read", u32::from(link));
            if packets == self.packets {
                return Err(RttError::Capture(format!("its packets are {of}")));
            }
            traces.notes.push(format!("packets {of}, left out: {packets}"));
        }
        let mut short = 0;
        for ((first, second), directions) in self.connections {
            match longer(directions.map(Direction::samples)) {
                Some((0, samples)) => traces.series.push(series(first, second, samples)),
                Some((_, samples)) => traces.series.push(series(second, first, samples)),
                None => short += 1,
            }
        }
        limits.check_series(traces.series.len())?;
        if short > 0 {
            traces.notes.push(format!("TCP connections with fewer than {SAMPLES_MIN} round trips, left out: {short}"));
        }
        Ok(traces)
    }
}

fn series(source: SocketAddr, target: SocketAddr, samples: Vec<RttSample>) -> Series {
    Series { label: Some(format!("{source}->{target}")), samples }
}

/// The direction with the longer round trip, of those with enough samples.
fn longer(directions: [Vec<RttSample>; 2]) -> Option<(usize, Vec<RttSample>)> {
    let least = |samples: &[RttSample]| samples.iter().map(|sample| sample.rtt).min();
    let enough = directions.into_iter().enumerate().filter(|(_, samples)| samples.len() >= SAMPLES_MIN);
    enough.max_by_key(|(at, samples)| (least(samples), core::cmp::Reverse(*at)))
}

/// The ends of a TCP packet, and what matters of it; `None`: it is something else.
fn tcp(slicer: Slicer, at: Timestamp, data: &[u8], missing: u32) -> Option<(SocketAddr, SocketAddr, Packet)> {
    let sliced = slicer(data)?;
    let (source, target) = match sliced.net? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
    let stamps = tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::Timestamp(own, echo)) => Some((own, echo)),
        _ => None,
    });
    let selective = tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::SelectiveAcknowledgement((_, end), _)) => Some(end),
        _ => None,
    });
    let payload = u32::try_from(tcp.payload().len()).unwrap_or(u32::MAX).saturating_add(missing);
    let packet = Packet {
        at,
        sequence: tcp.sequence_number(),
        length: payload.saturating_add(u32::from(tcp.syn())).saturating_add(u32::from(tcp.fin())),
        acknowledges: tcp.ack().then(|| tcp.acknowledgment_number()),
        selective,
        stamps,
        syn: tcp.syn(),
    };
    Some((SocketAddr::new(source, tcp.source_port()), SocketAddr::new(target, tcp.destination_port()), packet))
}

/// The kinds of links on which people capture, in words.
const READ: &str = "Ethernet (1), raw IP (101, 228, 229), loopback (0, 108) and Linux' \"any\" (113, 276)";

/// How the layers of a packet are told apart.
type Slicer = for<'a> fn(&'a [u8]) -> Option<LaxSlicedPacket<'a>>;

/// That of packets of such a link; `None`: it is not read.
fn slicer(link: DataLink) -> Option<Slicer> {
    Some(match link {
        DataLink::ETHERNET => |data| LaxSlicedPacket::from_ethernet(data).ok(),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => |data| LaxSlicedPacket::from_ip(data).ok(),
        DataLink::NULL | DataLink::LOOP => |data| LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        DataLink::LINUX_SLL => |data| cooked::<14, 16>(data),
        DataLink::LINUX_SLL2 => |data| cooked::<0, 20>(data),
        _ => return None,
    })
}

/// A header of Linux, in which the type of what is inside stands at `KIND`.
fn cooked<const KIND: usize, const LENGTH: usize>(data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    let kind = [*data.get(KIND)?, *data.get(KIND + 1)?];
    Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(kind)), data.get(LENGTH..)?))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use etherparse::PacketBuilder;
    use pcap_file::pcap::{PcapHeader, PcapWriter, RawPcapPacket};
    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;

    use super::*;

    /// Packets by the microsecond: one from A to B every 10 ms, whose answer comes 30 ms later, and
    /// which A takes 1 ms to answer.
    fn exchange(count: u32, stamps: bool) -> Vec<(u64, Vec<u8>)> {
        let mut packets = Vec::new();
        for n in 0..count {
            let at_us = 1_000_000 + u64::from(n) * 10_000;
            let option = |own, echo| stamps.then_some(TcpOptionElement::Timestamp(own, echo));
            packets.push((at_us, frame(true, n * 1000, 0, option(n + 1, n), 1000)));
            packets.push((at_us + 30_000, frame(false, 0, (n + 1) * 1000, option(n + 500, n + 1), 0)));
            packets.push((at_us + 31_000, frame(true, (n + 1) * 1000, 0, option(n + 2, n + 500), 0)));
        }
        packets.sort();
        packets
    }

    /// A frame between 10.0.0.1:4000 and 10.0.0.2:5000.
    fn frame(forward: bool, sequence: u32, ack: u32, option: Option<TcpOptionElement>, payload: usize) -> Vec<u8> {
        let (source, target, ports) = if forward { (1, 2, (4000, 5000)) } else { (2, 1, (5000, 4000)) };
        let tcp = PacketBuilder::ethernet2([0; 6], [1; 6])
            .ipv4([10, 0, 0, source], [10, 0, 0, target], 64)
            .tcp(ports.0, ports.1, sequence, 1000)
            .ack(ack)
            .options(&option.into_iter().collect::<Vec<_>>())
            .unwrap();
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, &vec![0; payload]).unwrap();
        bytes
    }

    /// A capture of which only the first `kept` bytes of every packet are left.
    fn pcap(packets: &[(u64, Vec<u8>)], kept: usize) -> Vec<u8> {
        let header = PcapHeader { snaplen: kept as u32, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for (at_us, bytes) in packets {
            let data = &bytes[..bytes.len().min(kept)];
            let (ts_sec, ts_frac) = ((at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32);
            let (incl_len, orig_len) = (data.len() as u32, bytes.len() as u32);
            let packet = RawPcapPacket { ts_sec, ts_frac, incl_len, orig_len, data: Cow::Borrowed(data) };
            writer.write_raw_packet(&packet).unwrap();
        }
        writer.into_writer()
    }

    /// The samples of the only connection, which is that from A to B, in µs.
    fn samples(file: &[u8]) -> Vec<(u64, u128)> {
        let traces = super::super::read(file).unwrap();
        assert_eq!((traces.format, traces.series.len()), (Format::Capture, 1), "{:?}", traces.notes);
        let samples = traces.series[0].samples.iter();
        samples.map(|sample| (sample.at.as_nanos() / 1000, sample.rtt.as_micros())).collect()
    }

    #[test]
    fn the_round_trip_beyond_the_observer_is_found_by_timestamps_and_without_them() {
        let expected: Vec<(u64, u128)> = (0..40).map(|n| (1_030_000 + n * 10_000, 30_000)).collect();
        for stamps in [true, false] {
            assert_eq!(samples(&pcap(&exchange(40, stamps), 65_535)), expected, "timestamps: {stamps}");
            // Ethernet, IP and TCP with timestamps are 14 + 20 + 32 bytes.
            assert_eq!(samples(&pcap(&exchange(40, stamps), 66)), expected, "cut, timestamps: {stamps}");
        }
    }

    #[test]
    fn the_series_is_named_by_the_ends() {
        let mut packets = exchange(40, true);
        let other = frame(true, 0, 0, None, 10);
        packets.push((5_000_000, [&other[..34], &[0x23, 0x28], &other[36..]].concat()));
        let traces = super::super::read(pcap(&packets, 65_535).as_slice()).unwrap();
        assert_eq!(traces.notes, ["TCP connections with fewer than 20 round trips, left out: 1"]);
        let flows = {
            let mut flows = Flows::default();
            packets.iter().for_each(|(at, data)| {
                flows.add(DataLink::ETHERNET, Timestamp::from_micros(*at), data, data.len() as u32);
            });
            flows.finish(&Limits::default()).unwrap()
        };
        assert_eq!(flows.series[0].label.as_deref(), Some("10.0.0.1:4000->10.0.0.2:5000"));
    }

    #[test]
    fn pcapng_has_the_resolution_of_its_interface() {
        for (resolution, per_us) in [(None, 1), (Some(9), 1000), (Some(0x80 | 20), 0)] {
            let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
            let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 65_535);
            interface.options.extend(resolution.map(InterfaceDescriptionOption::IfTsResol));
            writer.write_block(&Block::InterfaceDescription(interface)).unwrap();
            for (at_us, bytes) in exchange(40, true) {
                // 2^20 ticks to a second.
                let ticks = if per_us == 0 { (at_us << 20) / 1_000_000 } else { at_us * per_us };
                let packet = EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp: Duration::from_nanos(ticks),
                    original_len: bytes.len() as u32,
                    data: Cow::Owned(bytes),
                    options: Vec::new(),
                };
                writer.write_block(&Block::EnhancedPacket(packet)).unwrap();
            }
            let found = samples(&writer.into_inner());
            assert_eq!(found.len(), 40);
            // A tick of 2^-20 s is a microsecond.
            let near = |(n, (at, rtt)): (u64, &(u64, u128))| {
                at.abs_diff(1_030_000 + n * 10_000) <= 1 && rtt.abs_diff(30_000) <= 1
            };
            assert!((0..).zip(&found).all(near), "{resolution:?}: {found:?}");
        }
    }

    #[test]
    fn a_capture_that_is_cut_off_gives_what_is_there_and_says_so() {
        let whole = pcap(&exchange(40, true), 65_535);
        let traces = super::super::read(&whole[..whole.len() - 10]).unwrap();
        assert_eq!(traces.notes, ["after packet 119: it is cut off; what follows is left out"]);
        let error = super::super::read(&whole[..20]).unwrap_err();
        assert!(matches!(error, RttError::Capture(_)), "{error}");
        let error = super::super::read(&whole[..24]).unwrap_err();
        assert!(matches!(error, RttError::NoSamples(_)), "{error}");
    }

    /// The field for the kind of link has more in it: how long the check sequence of each frame is.
    #[test]
    fn what_a_capture_says_of_check_sequences_is_not_taken_for_another_link() {
        let header = PcapHeader { datalink: DataLink::Unknown(0x1400_0001), ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        let whole = pcap(&exchange(40, true), 65_535);
        let mut packets = PcapReader::new(whole.as_slice()).unwrap();
        while let Some(packet) = packets.next_raw_packet() {
            writer.write_raw_packet(&packet.unwrap()).unwrap();
        }
        assert_eq!(samples(&writer.into_writer()), samples(&whole));
    }

    #[test]
    fn packets_of_a_link_that_is_not_read_are_told_by_its_number() {
        let radio = DataLink::IEEE802_11_RADIOTAP;
        let mut flows = Flows::default();
        flows.add(radio, Timestamp::ZERO, &frame(true, 0, 0, None, 10), 64);
        let error = flows.finish(&Limits::default()).unwrap_err().to_string();
        assert!(error.contains("type 127"), "{error}");
        // Beside others they are left out, and that is said.
        let mut flows = Flows::default();
        for (at, data) in exchange(40, true) {
            flows.add(DataLink::ETHERNET, Timestamp::from_micros(at), &data, data.len() as u32);
            flows.add(radio, Timestamp::from_micros(at), &data, data.len() as u32);
        }
        let traces = flows.finish(&Limits::default()).unwrap();
        assert_eq!(traces.series.len(), 1);
        assert!(traces.notes[0].contains("type 127") && traces.notes[0].contains("120"), "{:?}", traces.notes);
    }

    #[test]
    fn headers_of_all_links_are_skipped() {
        let ethernet = frame(true, 0, 0, None, 10);
        let ip = &ethernet[14..];
        let with = |header: &[u8]| [header, ip].concat();
        let mut cooked = [0; 16];
        cooked[14] = 8;
        let mut cooked2 = [0; 20];
        cooked2[0] = 8;
        for (link, data) in [
            (DataLink::ETHERNET, ethernet.clone()),
            (DataLink::RAW, ip.to_vec()),
            (DataLink::NULL, with(&[2, 0, 0, 0])),
            (DataLink::LINUX_SLL, with(&cooked)),
            (DataLink::LINUX_SLL2, with(&cooked2)),
        ] {
            let found = tcp(slicer(link).unwrap(), Timestamp::ZERO, &data, 0);
            assert!(found.is_some_and(|(_, target, packet)| target.port() == 5000 && packet.length == 10), "{link:?}");
        }
    }
}
