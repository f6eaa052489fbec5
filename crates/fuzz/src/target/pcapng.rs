//! Captured packets, pcapng.

use core::time::Duration;
use std::borrow::Cow;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use super::pcap::exchange;
use super::{Seed, Target, rtt};

pub(crate) static TARGET: Target =
    Target { name: "pcapng", about: "captured packets: pcapng", check, seeds, words: &["\n\r\r\n"], also: &[] };

fn check(input: &[u8]) {
    let _ = rtt::read(input);
}

fn pcapng(endianness: Endianness, options: Vec<InterfaceDescriptionOption<'static>>, count: u32) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).expect("memory");
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 65_535);
    interface.options = options;
    writer.write_block(&Block::InterfaceDescription(interface)).expect("memory");
    for (at_us, bytes) in exchange(count, true) {
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(at_us),
            original_len: bytes.len() as u32,
            data: Cow::Owned(bytes),
            options: Vec::new(),
        };
        writer.write_block(&Block::EnhancedPacket(packet)).expect("memory");
    }
    writer.into_inner()
}

fn seeds() -> Vec<Seed> {
    let offset = vec![InterfaceDescriptionOption::IfTsResol(0x94), InterfaceDescriptionOption::IfTsOffset(1 << 40)];
    let plain = pcapng(Endianness::Little, Vec::new(), 25);
    vec![
        Seed::new("plain", plain.clone()),
        Seed::new("big_endian", pcapng(Endianness::Big, Vec::new(), 25)),
        Seed::new("offset", pcapng(Endianness::Little, offset, 3)),
        Seed::new("two_sections", plain.repeat(2)),
        Seed::new("cut", &plain[..plain.len() / 2]),
    ]
}
