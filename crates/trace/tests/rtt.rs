//! The readers of round-trip times as a whole: gzip, and anything that a file may hold.

#![cfg(feature = "rtt")]

use std::io::Write as _;

use fairpath_trace::rtt::{Format, RttError, read};
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
