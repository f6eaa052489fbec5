//! Captured packets, pcap.

use core::time::Duration;
use std::borrow::Cow;

use etherparse::{PacketBuilder, TcpOptionElement};
use pcap_file::pcap::{PcapHeader, PcapReader, PcapWriter, RawPcapPacket};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

use super::{Seed, Target, rtt};

pub(crate) static TARGET: Target =
    Target { name: "pcap", about: "captured packets: pcap", check, seeds, words: &[], also: &[] };

fn check(input: &[u8]) {
    let found = rtt::read(input);
    if let Some(pcapng) = as_pcapng(input) {
        // Words about a damaged end are in the notes, which are not compared.
        assert_eq!(rtt::said(rtt::read(&pcapng)), rtt::said(found), "pcapng of the same packets says the same");
    }
}

/// The same packets as pcapng; `None`: it is no pcap that is whole and has a packet.
fn as_pcapng(input: &[u8]) -> Option<Vec<u8>> {
    let mut reader = PcapReader::new(input).ok()?;
    let header = reader.header();
    let (resolution, per_second) = match header.ts_resolution {
        TsResolution::MicroSecond => (6, 1_000_000),
        TsResolution::NanoSecond => (9, 1_000_000_000),
    };
    let mut interface = InterfaceDescriptionBlock::new(header.datalink, header.snaplen);
    interface.options.push(InterfaceDescriptionOption::IfTsResol(resolution));
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).ok()?;
    writer.write_block(&Block::InterfaceDescription(interface)).ok()?;
    let mut packets = 0;
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.ok()?;
        packets += 1;
        // The writer takes a count of ticks for nanoseconds, as the reader does.
        let ticks = u64::from(packet.ts_sec) * per_second + u64::from(packet.ts_frac);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(ticks),
            original_len: packet.orig_len,
            data: packet.data,
            options: Vec::new(),
        };
        writer.write_block(&Block::EnhancedPacket(block)).ok()?;
    }
    (packets > 0).then(|| writer.into_inner())
}

/// Packets by the microsecond: one from A to B every 10 ms, whose answer comes 30 ms later.
pub(crate) fn exchange(count: u32, stamps: bool) -> Vec<(u64, Vec<u8>)> {
    let mut packets = Vec::new();
    for n in 0..count {
        let at_us = 1_000_000 + u64::from(n) * 10_000;
        let option = |own, echo| stamps.then_some(TcpOptionElement::Timestamp(own, echo));
        packets.push((at_us, frame(true, n * 10, 0, option(n + 1, n), 10)));
        packets.push((at_us + 30_000, frame(false, 0, (n + 1) * 10, option(n + 500, n + 1), 0)));
    }
    packets.sort();
    packets
}

/// A frame between 10.0.0.1:4000 and 10.0.0.2:5000.
fn frame(forward: bool, sequence: u32, ack: u32, option: Option<TcpOptionElement>, payload: usize) -> Vec<u8> {
    let (source, target, ports) = if forward { (1, 2, (4000, 5000)) } else { (2, 1, (5000, 4000)) };
    let options: Vec<_> = option.into_iter().collect();
    let tcp = PacketBuilder::ethernet2([0; 6], [1; 6])
        .ipv4([10, 0, 0, source], [10, 0, 0, target], 64)
        .tcp(ports.0, ports.1, sequence, 1000)
        .ack(ack)
        .options(&options)
        .expect("a timestamp fits");
    let mut bytes = Vec::new();
    tcp.write(&mut bytes, &vec![0; payload]).expect("memory");
    bytes
}

/// A capture of which only the first `kept` bytes of every packet are left.
fn pcap(header: PcapHeader, packets: &[(u64, Vec<u8>)], kept: usize) -> Vec<u8> {
    let header = PcapHeader { snaplen: kept as u32, ..header };
    let mut writer = PcapWriter::with_header(Vec::new(), header).expect("memory");
    for (at_us, bytes) in packets {
        let data = &bytes[..bytes.len().min(kept)];
        let packet = RawPcapPacket {
            ts_sec: (at_us / 1_000_000) as u32,
            ts_frac: (at_us % 1_000_000) as u32,
            incl_len: data.len() as u32,
            orig_len: bytes.len() as u32,
            data: Cow::Borrowed(data),
        };
        writer.write_raw_packet(&packet).expect("memory");
    }
    writer.into_writer()
}

fn seeds() -> Vec<Seed> {
    let plain = PcapHeader { endianness: Endianness::Little, ..PcapHeader::default() };
    let nanoseconds = PcapHeader { ts_resolution: TsResolution::NanoSecond, endianness: Endianness::Big, ..plain };
    let raw = PcapHeader { datalink: DataLink::RAW, ..plain };
    let without_ethernet: Vec<_> = exchange(3, true).into_iter().map(|(at, data)| (at, data[14..].to_vec())).collect();
    let whole = pcap(plain, &exchange(25, true), 65_535);
    vec![
        Seed::new("with_stamps", whole.clone()),
        Seed::new("without_stamps", pcap(plain, &exchange(25, false), 65_535)),
        Seed::new("cut_packets", pcap(plain, &exchange(25, true), 66)),
        Seed::new("nanoseconds", pcap(nanoseconds, &exchange(25, true), 65_535)),
        Seed::new("raw", pcap(raw, &without_ethernet, 65_535)),
        Seed::new("cut", &whole[..whole.len() / 2]),
    ]
}
