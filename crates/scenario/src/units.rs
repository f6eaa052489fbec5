//! Quantities as people write them: `30Mbit/s`, `20ms`, `70kB`, `3000 packets`, `1%`.
//!
//! Numbers are read exactly: `0.1ms` is 100,000 ns and not nearly so. A number without a unit is
//! refused, since nobody could say what was meant.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, printable};

/// Why a text is not the quantity that it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It does not begin with a number.
    #[error("{value:?} does not begin with a number; write {what} like {example}")]
    NoNumber {
        /// The text.
        value: String,
        /// The expected quantity.
        what: &'static str,
        /// How that looks.
        example: &'static str,
    },
    /// It is a number alone.
    #[error("{value:?} has no unit; write {what} like {example}")]
    NoUnit {
        /// The text.
        value: String,
        /// The expected quantity.
        what: &'static str,
        /// How that looks.
        example: &'static str,
    },
    /// The unit is not one for this quantity.
    #[error("{unit:?} in {value:?} is no unit of {what}; the units are {}, as in {example}", known.join(", "))]
    UnknownUnit {
        /// The text.
        value: String,
        /// The part of it that is no unit.
        unit: String,
        /// The expected quantity.
        what: &'static str,
        /// The units there are.
        known: Vec<&'static str>,
        /// How a right one looks.
        example: &'static str,
    },
    /// The number does not fit.
    #[error("{value:?} is too large for {what}; the largest is {most}")]
    TooLarge {
        /// The text.
        value: String,
        /// The expected quantity.
        what: &'static str,
        /// The largest that still fits.
        most: &'static str,
    },
    /// A share is not between nothing and everything.
    #[error("{value:?} is no share; write one from 0 to 1, or from \"0%\" to \"100%\"")]
    NoShare {
        /// The text.
        value: String,
    },
}

/// The units of one quantity, and how much of the base unit each is.
struct Quantity {
    what: &'static str,
    example: &'static str,
    units: &'static [(&'static str, u64)],
    /// The largest that is read, in the base unit, and how to say it.
    most: (u64, &'static str),
}

impl Quantity {
    fn names(&self) -> Vec<&'static str> {
        self.units.iter().map(|(name, _)| *name).collect()
    }
}

/// In bits per second.
const RATE: Quantity = Quantity {
    what: "a rate",
    example: "\"30Mbit/s\"",
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    most: (10_000_000_000_000, "10000Gbit/s"),
};

/// In nanoseconds.
const TIME: Quantity = Quantity {
    what: "a time",
    example: "\"20ms\"",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    // A year, far from where nanoseconds overflow.
    most: (31_536_000_000_000_000, "8760h"),
};

/// In bytes.
const SIZE: Quantity = Quantity {
    what: "a size",
    example: "\"70kB\"",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    most: (1_000_000_000_000_000, "1000TB"),
};

const PACKETS: Quantity = Quantity {
    what: "a number of packets",
    example: "\"300 packets\"",
    units: &[("packets", 1), ("packet", 1)],
    most: (1_000_000_000, "1000000000 packets"),
};

/// In thousandths of a bandwidth-delay product.
const BDP: Quantity = Quantity {
    what: "a multiple of the bandwidth-delay product",
    example: "\"1 bdp\"",
    units: &[("bdp", 1_000)],
    most: (1_000_000, "1000 bdp"),
};

/// Reads a rate: `30Mbit/s`, `0.5 Gbit/s`.
///
/// # Errors
///
/// The reason why the text is refused, and what would be right.
///
/// ```
/// use fairpath_core::Bitrate;
/// use fairpath_scenario::units;
///
/// assert_eq!(units::rate("30Mbit/s"), Ok(Bitrate::from_mbps(30)));
/// let error = units::rate("30 MB/s").unwrap_err().to_string();
/// assert_eq!(error, "\"MB/s\" in \"30 MB/s\" is no unit of a rate; \
///     the units are bit/s, kbit/s, Mbit/s, Gbit/s, as in \"30Mbit/s\"");
/// ```
pub fn rate(text: &str) -> Result<Bitrate, UnitError> {
    quantity(text, &RATE).map(Bitrate::from_bps)
}

/// Reads a time: `20ms`, `1.5 s`.
///
/// # Errors
///
/// The reason why the text is refused, and what would be right.
pub fn time(text: &str) -> Result<Duration, UnitError> {
    quantity(text, &TIME).map(Duration::from_nanos)
}

/// Reads a size: `70kB`, `1500B`, `2MiB`.
///
/// # Errors
///
/// The reason why the text is refused, and what would be right.
pub fn size(text: &str) -> Result<ByteCount, UnitError> {
    quantity(text, &SIZE).map(ByteCount::new)
}

/// Reads a share: `1%`, `0.01`, `1/3`.
///
/// # Errors
///
/// Where it is no number from 0 to 1.
pub fn share(text: &str) -> Result<f64, UnitError> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let value = match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percent), _) => number(percent).map(|percent| percent / 100.0),
        (None, Some((part, whole))) => number(part).zip(number(whole)).map(|(part, whole)| part / whole),
        (None, None) => number(text),
    };
    value.filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| UnitError::NoShare { value: quoted(text) })
}

/// The room of a queue, in one of its units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Room {
    Unlimited,
    Time(Duration),
    Bytes(ByteCount),
    Packets(u64),
    /// This many bandwidth-delay products.
    Bdp(f64),
}

/// Reads the room of a queue: a time, a size, a number of packets, `1 bdp` or `unlimited`.
pub(crate) fn room(text: &str) -> Result<Room, UnitError> {
    if text.trim() == "unlimited" {
        return Ok(Room::Unlimited);
    }
    let what = "the room of a queue";
    let example = "\"100ms\", \"64kB\", \"300 packets\", \"1 bdp\" or \"unlimited\"";
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(UnitError::NoNumber { value: quoted(text), what, example });
    }
    let belongs = |quantity: &Quantity| quantity.units.iter().any(|(name, _)| *name == unit);
    if belongs(&TIME) {
        time(text).map(Room::Time)
    } else if belongs(&SIZE) {
        size(text).map(Room::Bytes)
    } else if belongs(&PACKETS) {
        quantity(text, &PACKETS).map(Room::Packets)
    } else if belongs(&BDP) {
        quantity(text, &BDP).map(|thousandths| Room::Bdp(thousandths as f64 / 1_000.0))
    } else if unit.is_empty() {
        Err(UnitError::NoUnit { value: quoted(text), what, example })
    } else {
        let known = room_units();
        Err(UnitError::UnknownUnit { value: quoted(text), unit: quoted(unit), what, known, example })
    }
}

/// The units of rates, for the schema; and so on.
pub(crate) fn rate_units() -> Vec<&'static str> {
    RATE.names()
}

pub(crate) fn time_units() -> Vec<&'static str> {
    TIME.names()
}

pub(crate) fn size_units() -> Vec<&'static str> {
    SIZE.names()
}

pub(crate) fn room_units() -> Vec<&'static str> {
    [TIME, SIZE, PACKETS, BDP].iter().flat_map(Quantity::names).collect()
}

/// Enough of a text to say why it is refused.
fn quoted(text: &str) -> String {
    printable(text, 80)
}

/// The number at the beginning of a text, and the unit behind it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// The text in the base unit of `quantity`, to the nearest whole number.
fn quantity(text: &str, quantity: &Quantity) -> Result<u64, UnitError> {
    let Quantity { what, example, units, most } = *quantity;
    let value = || quoted(text);
    let (number, unit) = split(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(UnitError::NoNumber { value: value(), what, example });
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit { value: value(), what, example });
    }
    let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        let known = quantity.names();
        return Err(UnitError::UnknownUnit { value: value(), unit: quoted(unit), what, known, example });
    };
    let amount = scaled(whole, fraction, *scale).filter(|amount| *amount <= u128::from(most.0));
    amount.map(|amount| amount as u64).ok_or_else(|| UnitError::TooLarge { value: value(), what, most: most.1 })
}

/// `whole.fraction · scale`, rounded; `None` where the digits are more than fit.
fn scaled(whole: &str, fraction: &str, scale: u64) -> Option<u128> {
    // Digits beyond the 15th after the point are below what any unit resolves.
    let fraction = &fraction[..fraction.len().min(15)];
    let divisor = 10_u128.pow(fraction.len() as u32);
    let digits: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let parts = u128::from(whole.parse::<u64>().ok()?) * divisor + digits;
    Some((parts.checked_mul(u128::from(scale))? + divisor / 2) / divisor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_is_read() {
        assert_eq!(rate("7bit/s"), Ok(Bitrate::from_bps(7)));
        assert_eq!(rate("250 kbit/s"), Ok(Bitrate::from_kbps(250)));
        assert_eq!(rate("2.5Gbit/s"), Ok(Bitrate::from_mbps(2_500)));
        assert_eq!(time("5ns"), Ok(Duration::from_nanos(5)));
        assert_eq!(time("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(time(" 1.5 min "), Ok(Duration::from_secs(90)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7_200)));
        assert_eq!(size("1500B"), Ok(ByteCount::new(1_500)));
        assert_eq!(size("3MB"), Ok(ByteCount::new(3_000_000)));
        assert_eq!(size("64KiB"), Ok(ByteCount::new(65_536)));
    }

    #[test]
    fn decimal_fractions_are_exact() {
        assert_eq!(time("0.1ms"), Ok(Duration::from_micros(100)));
        assert_eq!(time("0.3s"), Ok(Duration::from_millis(300)));
        // 33.3333 Mbit/s
        assert_eq!(rate("33.3333Mbit/s"), Ok(Bitrate::from_bps(33_333_300)));
        // Half a nanosecond rounds up.
        assert_eq!(time("0.5ns"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn a_room_has_many_units() {
        assert_eq!(room("unlimited"), Ok(Room::Unlimited));
        assert_eq!(room("100ms"), Ok(Room::Time(Duration::from_millis(100))));
        assert_eq!(room("64kB"), Ok(Room::Bytes(ByteCount::new(64_000))));
        assert_eq!(room("3000 packets"), Ok(Room::Packets(3_000)));
        assert_eq!(room("1 packet"), Ok(Room::Packets(1)));
        assert_eq!(room("0.5 bdp"), Ok(Room::Bdp(0.5)));
        assert!(room("100").unwrap_err().to_string().contains("300 packets"));
        assert!(room("5 parsecs").unwrap_err().to_string().contains("\"parsecs\""));
        assert!(room("-5ms").unwrap_err().to_string().contains("does not begin with a number"));
    }

    #[test]
    fn shares_are_numbers_percentages_or_fractions() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("1/4"), Ok(0.25));
        for wrong in ["101%", "-1%", "2", "1/0", "0/0", "NaN", "a lot", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let message = |error: UnitError| error.to_string();
        assert!(message(time("20").unwrap_err()).contains("no unit; write a time like \"20ms\""));
        assert!(message(time("-20ms").unwrap_err()).contains("does not begin with a number"));
        assert!(message(size("1.2.3kB").unwrap_err()).contains("does not begin with a number"));
        assert!(message(size("99999999TB").unwrap_err()).contains("the largest is 1000TB"));
        assert!(message(rate("99999999999999999999999999bit/s").unwrap_err()).contains("too large"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,24}") {
            let _ = (rate(&text), time(&text), size(&text), share(&text), room(&text));
        }

        #[test]
        fn numbers_with_a_unit_behind_them_never_panic(number in "[0-9.]{0,40}", unit in "(ms|kB|Gbit/s|bdp|packets|%|)") {
            let text = number + &unit;
            let _ = (rate(&text), time(&text), size(&text), share(&text), room(&text));
        }
    }
}
