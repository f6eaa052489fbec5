//! One colour for each algorithm, in all figures; readable without seeing red or green.

use plotters::style::RGBColor;

/// Those of Okabe and Ito's palette for what is compared most, and others far from them.
const COLOURS: &[(&str, RGBColor)] = &[
    ("reno", RGBColor(0x6E, 0x77, 0x81)),
    ("lia", RGBColor(0x00, 0x72, 0xB2)),
    ("olia", RGBColor(0xE6, 0x9F, 0x00)),
    ("balia", RGBColor(0x00, 0x9E, 0x73)),
    ("daimd", RGBColor(0xD5, 0x5E, 0x00)),
    ("wvegas", RGBColor(0xCC, 0x79, 0xA7)),
    ("ewtcp", RGBColor(0x56, 0xB4, 0xE9)),
    ("coupled", RGBColor(0xA8, 0x96, 0x00)),
    ("epsilon", RGBColor(0x7A, 0x51, 0x95)),
    ("cubic", RGBColor(0x8C, 0x56, 0x4B)),
    ("uncoupled", RGBColor(0xB2, 0x2A, 0x5B)),
    ("bbr", RGBColor(0x4B, 0x6C, 0xB7)),
    ("bbr3", RGBColor(0x2F, 0x9A, 0xA0)),
    ("coupled_bbr", RGBColor(0x9A, 0x60, 0xB4)),
    ("coupled_bbr3", RGBColor(0x5B, 0x1E, 0x4F)),
    ("coupled_cubic", RGBColor(0x3D, 0x9B, 0x35)),
    ("hybrid_cubic", RGBColor(0x1E, 0x6B, 0x52)),
    ("theory", RGBColor(0x24, 0x29, 0x2F)),
    ("concordance", RGBColor(0x1A, 0x6F, 0xB8)),
    ("trendline", RGBColor(0xD8, 0x66, 0x10)),
    ("trendline_srtt", RGBColor(0x1F, 0x8A, 0x70)),
    ("trendline_overlapping", RGBColor(0x7D, 0x5A, 0x9C)),
    ("ssc_rfc8382", RGBColor(0xC4, 0x62, 0x8F)),
    ("ssc_lcn14", RGBColor(0xB0, 0x8C, 0x00)),
    ("ssc_mptcp_sbd", RGBColor(0x3A, 0x7E, 0x3A)),
    ("ssc_author_variant", RGBColor(0x5C, 0x66, 0xC4)),
    ("wavelet", RGBColor(0x86, 0x52, 0x46)),
];

/// For names without a colour of their own: one of these, by the letters of the name.
const OTHERS: [RGBColor; 4] =
    [RGBColor(0x1B, 0x7F, 0x4D), RGBColor(0xC2, 0x5B, 0x8F), RGBColor(0x80, 0x70, 0x20), RGBColor(0x5A, 0x5F, 0xC0)];

/// The colour of an algorithm.
pub(super) fn colour(algorithm: &str) -> RGBColor {
    let known = COLOURS.iter().find(|(name, _)| *name == algorithm).map(|(_, colour)| *colour);
    let sum: usize = algorithm.bytes().map(usize::from).sum();
    known.unwrap_or(OTHERS[sum % OTHERS.len()])
}

#[cfg(test)]
pub(super) fn hex(algorithm: &str) -> String {
    let RGBColor(r, g, b) = colour(algorithm);
    format!("#{r:02X}{g:02X}{b:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_algorithms_have_the_same_colour() {
        for (at, (name, one)) in COLOURS.iter().enumerate() {
            assert!(COLOURS[..at].iter().all(|(_, other)| other != one), "{name}");
        }
    }
}
