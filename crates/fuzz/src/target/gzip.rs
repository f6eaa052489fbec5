//! Files packed with gzip. The input is taken as what is packed, and as a packed file.

use std::io::Write as _;

use fairpath_trace::rtt::{RttError, TooMuch};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Seed, Target, rtt};

pub(crate) static TARGET: Target = Target {
    name: "gzip",
    about: "files packed with gzip, of every kind",
    check,
    seeds,
    words: &["\u{1f}"],
    also: &[],
};

fn check(input: &[u8]) {
    let plain = rtt::read(input);
    let _ = rtt::read(&[&rtt::GZIP, input].concat());
    // The reader unpacks one layer of gzip, not two.
    if input.starts_with(&rtt::GZIP) {
        return;
    }
    let (first, second) = input.split_at(input.len() / 2);
    for file in [
        packed(input, Compression::fast()),
        [packed(first, Compression::none()), packed(second, Compression::none())].concat(),
    ] {
        match (rtt::read(&file), &plain) {
            (Ok(unpacked), Ok(plain)) => assert_eq!(&unpacked, plain),
            (Err(unpacked), Err(plain)) => assert_eq!(unpacked.to_string(), plain.to_string()),
            (Err(RttError::TooMuch(TooMuch::Unpacked(most))), _) => assert!(most.get() < input.len() as u64),
            (unpacked, plain) => panic!("packed it is {unpacked:?}, and not {plain:?}"),
        }
    }
}

fn packed(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), level);
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

fn seeds() -> Vec<Seed> {
    let table = b"time_s,rtt_ms\n0.5,20\n0.6,21\n";
    // Without compression, whose bytes another version of the packer may choose differently.
    let whole = packed(table, Compression::none());
    vec![
        Seed::new("plain", *table),
        Seed::new("packed", whole.clone()),
        Seed::new("packed_twice", packed(&whole, Compression::none())),
        Seed::new("cut", &whole[..whole.len() - 9]),
        Seed::new("without_magic", &whole[2..]),
    ]
}
