//! The readers of round-trip times as a whole: gzip, and anything that a file may hold.

#![cfg(feature = "rtt")]

use std::io::Write as _;

use fairpath_core::ByteCount;
use fairpath_trace::rtt::{Format, Limits, RttError, TooMuch, read, read_within};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

const TABLE: &[u8] = b"time_s,rtt_ms\n0.5,20\n0.6,21\n";

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn a_packed_file_is_read_like_the_file_itself() {
    let plain = read(TABLE).unwrap();
    assert_eq!(read(packed(TABLE).as_slice()).unwrap(), plain);
    // gzip puts files one behind the other.
    let (first, second) = TABLE.split_at(20);
    assert_eq!(read([packed(first), packed(second)].concat().as_slice()).unwrap(), plain);
}

#[test]
fn a_packed_file_that_is_cut_off_cannot_be_read() {
    let packed = packed(&TABLE.repeat(1000));
    let error = read(&packed[..packed.len() - 9]).unwrap_err();
    assert!(matches!(error, RttError::Io(_)), "{error}");
}

#[test]
fn a_file_of_no_known_kind_is_told_by_its_first_bytes() {
    let error = read(&b"PAR1\x15\x00\x15"[..]).unwrap_err();
    assert!(error.to_string().contains("begins with 'PAR1\\x15\\x00\\x15'"), "{error}");
    assert!(matches!(read(&b"{\"a\":1}"[..]), Err(RttError::Unknown { .. })));
    assert!(matches!(read(&b" \n"[..]), Err(RttError::Empty)));
    assert_eq!(read(TABLE).unwrap().format, Format::Table);
}

/// How files of each kind begin.
fn begins() -> Vec<Vec<u8>> {
    let pcap = [[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0], [0; 8], [0xff, 0xff, 0, 0, 1, 0, 0, 0]].concat();
    let section = [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    let pcapng = [&section[..], &[0xff; 8], &[28, 0, 0, 0]].concat();
    let interface = [&[1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0][..], &[0; 4], &[20, 0, 0, 0, 6, 0, 0, 0]].concat();
    let texts = [
        "",
        "{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\n",
        "{\"qlog_version\":\"0.3\",\"traces\":[{\"events\":[",
        "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",\"trace\":{}}\n\u{1e}",
        "time_s,rtt_ms\n1,2\n",
        "1 2\n",
    ];
    let mut begins: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).to_vec();
    begins.extend([pcap, [pcapng.clone(), interface].concat(), pcapng, vec![0x1f, 0x8b, 8, 0]]);
    begins
}

proptest! {
    #[test]
    fn whatever_a_file_holds_reading_it_ends(
        begin in proptest::sample::select(begins()),
        rest in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let file = [begin, rest].concat();
        let _ = read(file.as_slice());
        let _ = read(packed(&file).as_slice());
    }

    #[test]
    fn whatever_text_a_table_holds_every_sample_has_a_line(text in "[0-9,.eE \\n\"a-]{0,200}") {
        if let Ok(traces) = read(text.as_bytes()) {
            let samples: usize = traces.series.iter().map(|series| series.samples.len()).sum();
            prop_assert!(samples as u64 + traces.bad_count <= text.lines().count() as u64);
        }
    }
}

/// Limits that a small file exceeds.
fn small() -> Limits {
    Limits {
        unpacked: ByteCount::new(100_000),
        samples: 100,
        series: 10,
        connections: 10,
        waiting: ByteCount::new(50_000),
    }
}

fn excess(file: &[u8], limits: &Limits) -> Option<TooMuch> {
    match read_within(file, limits) {
        Err(RttError::TooMuch(excess)) => Some(excess),
        _ => None,
    }
}

#[test]
fn a_small_packed_file_does_not_become_a_large_one_in_memory() {
    // Blank lines keep nothing: only the count of what is unpacked ends this.
    let blank = [TABLE, &b"\n".repeat(200_000)].concat();
    assert_eq!(excess(&packed(&blank), &small()), Some(TooMuch::Unpacked(ByteCount::new(100_000))));
    assert!(packed(&blank).len() < 2000 && read_within(blank.as_slice(), &small()).is_ok());
    let capture = [begins()[6].clone(), vec![0; 200_000]].concat();
    assert_eq!(excess(&packed(&capture), &small()), Some(TooMuch::Unpacked(ByteCount::new(100_000))));
    let said = TooMuch::Unpacked(Limits::default().unpacked).to_string();
    assert_eq!(said, "unpacks to more than 4.00 GB; unpack it and give what comes out, if so much is meant");
}

/// A record of a path of a flow.
fn record(flow: usize, path: usize) -> String {
    format!(
        r#"{{"time_ns":1,"flow":"f{flow}","path":{path},"cwnd_bytes":1,"srtt_ns":1,"rtt_min_ns":1,"in_flight_bytes":0,"rate_bps":null,"lost":0,"group":0,"state":"recovery"}}"#
    ) + "\n"
}

#[test]
fn no_more_round_trip_times_are_kept_than_allowed_whatever_the_kind_of_file() {
    let many = |begin: &str, one: &str, end: &str| [begin, &one.repeat(101), end].concat();
    let event = r#"{"time":1,"name":"recovery:metrics_updated","data":{"latest_rtt":5}}"#;
    let row = r#"[1,"recovery","metrics_updated",{"latest_rtt":5}]"#;
    let document = |one: &str| {
        many("{\"qlog_version\":\"0.3\",\"traces\":[{\"events\":[", &format!("{one},"), &format!("{one}]}}]}}"))
    };
    for file in [
        many("time_s,rtt_ms\n", "1,2\n", ""),
        many("{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\n", &record(0, 0), ""),
        many(
            "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",\"trace\":{}}\n",
            &format!("\u{1e}{event}\n"),
            "",
        ),
        document(event),
        document(row),
    ] {
        assert_eq!(excess(file.as_bytes(), &small()), Some(TooMuch::Samples(100)), "{file:.80}");
        let enough = Limits { samples: 200, ..small() };
        let samples: usize =
            read_within(file.as_bytes(), &enough).unwrap().series.iter().map(|one| one.samples.len()).sum();
        assert!(samples > 100, "{file:.80}");
    }
}

#[test]
fn no_more_paths_are_told_apart_than_allowed() {
    let header = "{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\n";
    let records: String = (0..11).map(|flow| record(flow, 1)).collect();
    assert_eq!(excess((header.to_owned() + &records).as_bytes(), &small()), Some(TooMuch::Series(10)));
    let event = |path| format!(r#"{{"time":1,"name":"metrics_updated","data":{{"path_id":{path},"latest_rtt":5}}}}"#);
    let events: Vec<String> = (0..11).map(event).collect();
    let document = format!("{{\"qlog_version\":\"0.3\",\"traces\":[{{\"events\":[{}]}}]}}", events.join(","));
    assert_eq!(excess(document.as_bytes(), &small()), Some(TooMuch::Series(10)));
    let traces: Vec<String> = (0..11).map(|_| format!("{{\"events\":[{}]}}", event(0))).collect();
    let document = format!("{{\"qlog_version\":\"0.3\",\"traces\":[{}]}}", traces.join(","));
    assert_eq!(excess(document.as_bytes(), &small()), Some(TooMuch::Series(10)));
}

#[test]
fn what_waits_for_the_end_of_a_document_is_bounded() {
    let document = |events: &str| format!("{{\"qlog_version\":\"0.3\",\"traces\":[{{\"events\":[{events}]}}]}}");
    // Neither says a round-trip time.
    for event in ["{\"time\":1}", "[1,2,3,4]"] {
        let many = document(&vec![event; 10_000].join(","));
        assert_eq!(excess(many.as_bytes(), &small()), Some(TooMuch::Waiting(ByteCount::new(50_000))));
    }
    let long = "x".repeat(2 << 20);
    let nested = "[".repeat(2 << 20);
    for one in [format!("{{\"name\":\"{long}\"}}"), nested, format!("[{}0]", "0,".repeat(1 << 20)), " ".repeat(2 << 20)]
    {
        let error = read(document(&one).as_bytes()).unwrap_err();
        let deep = matches!(&error, RttError::Json { reason, .. } if reason.contains("recursion limit"));
        assert!(deep || matches!(error, RttError::TooMuch(TooMuch::Value(_))), "{error}");
    }
    // A part that is not looked at may be longer, and is not kept.
    let skipped = format!("{{\"qlog_version\":\"0.3\",\"summary\":\"{long}\",\"traces\":[]}}");
    assert!(matches!(read(skipped.as_bytes()), Err(RttError::NoSamples(_))));
}

/// A capture of Ethernet frames.
fn capture(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let header = pcap_file::pcap::PcapHeader::default();
    let mut writer = pcap_file::pcap::PcapWriter::with_header(Vec::new(), header).unwrap();
    for (at, frame) in (0..).zip(frames) {
        let at = core::time::Duration::from_millis(at);
        writer.write_packet(&pcap_file::pcap::PcapPacket::new(at, frame.len() as u32, &frame)).unwrap();
    }
    writer.into_writer()
}

fn segment(port: u16, sequence: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = etherparse::PacketBuilder::ethernet2([0; 6], [1; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    builder.tcp(port, 443, sequence, 1000).write(&mut frame, &[0; 10]).unwrap();
    frame
}

#[test]
fn connections_and_packets_of_a_capture_are_bounded() {
    let scan = capture((1..=11).map(|port| segment(port, 0)));
    assert_eq!(excess(&scan, &small()), Some(TooMuch::Connections(10)));
    // Nobody answers these.
    let one_way = capture((0..101).map(|number| segment(1, number * 10)));
    assert_eq!(excess(&one_way, &small()), Some(TooMuch::Packets(100)));
}

#[test]
fn what_a_file_says_is_quoted_short_and_cannot_control_a_terminal() {
    let escape = "\u{1b}[2J".repeat(200_000);
    for file in [
        format!("time_s,rtt_ms\n{escape},1\n"),
        format!("time_s,rtt_ms\n1\n{escape}\n"),
        format!("time_s,rtt_ms\n-{},1\n", "1".repeat(900_000)),
        format!("{escape},rtt_ms\n1,1\n"),
        format!("{{\"fairpath_trace\":1,\"version\":\"0.1.0\"}}\n{{\"time_ns\":\"{}\"}}\n", &escape[..60_000]),
        format!("\u{1e}{{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\"}}\n\u{1e}{{\"a\":{escape}\n"),
        format!("{{\"qlog_version\":\"0.3\",\"traces\":\"{escape}\"}}"),
        format!("{{\"qlog_version\":\"0.3\",\"traces\":\"{}\"}}", "x".repeat(900_000)),
    ] {
        let said = read(file.as_bytes()).unwrap_err().to_string();
        assert!(said.len() < 1_000 && !said.contains(char::is_control), "{} bytes: {said:.2000}", said.len());
    }
    let binary = [b"time_s,rtt_ms\n1,1\n".as_slice(), &vec![0xff; 1 << 20][..(1 << 20) - 2]].concat();
    let bad = read(binary.as_slice()).unwrap().bad;
    assert!(bad.len() == 1 && bad[0].to_string().len() < 200, "{} bytes", bad[0].to_string().len());
    let named = "{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\n".to_owned()
        + &record(0, 0)
        + &record(0, 0).replace("\"f0\"", "\"\\u001b[2J\"");
    let labels: Vec<_> = read(named.as_bytes()).unwrap().series.into_iter().filter_map(|one| one.label).collect();
    assert_eq!(labels, ["f0/path0", "\\u{1b}[2J/path0"]);
}
