//! The arithmetic of units saturates, whatever the numbers are, in every build.

use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use proptest::prelude::*;

/// The result as it would be without a limit, brought into the range of 64 bits.
fn clamped(exact: i128) -> u64 {
    u64::try_from(exact.max(0)).unwrap_or(u64::MAX)
}

/// Numbers near both ends of the range are as likely as all others together.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..10u64, u64::MAX - 10..=u64::MAX, any::<u32>().prop_map(u64::from)]
}

fn duration() -> impl Strategy<Value = Duration> {
    let parts = (number(), 0..1_000_000_000u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos));
    prop_oneof![parts, number().prop_map(Duration::from_nanos), Just(Duration::MAX)]
}

fn float() -> impl Strategy<Value = f64> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, -0.0, f64::MIN_POSITIVE];
    prop_oneof![proptest::sample::select(odd.to_vec()), any::<f64>()]
}

proptest! {
    #[test]
    fn amounts_saturate(a in number(), b in number()) {
        let (x, y) = (ByteCount::new(a), ByteCount::new(b));
        let (wide_a, wide_b) = (i128::from(a), i128::from(b));
        prop_assert_eq!((x + y).get(), clamped(wide_a + wide_b));
        prop_assert_eq!((x - y).get(), clamped(wide_a - wide_b));
        prop_assert_eq!((x * b).get(), clamped((u128::from(a) * u128::from(b)).min(u64::MAX.into()) as i128));
        prop_assert_eq!(x / y, a.checked_div(b).unwrap_or(u64::MAX));
        prop_assert_eq!([x, y, y].into_iter().sum::<ByteCount>().get(), clamped(wide_a + 2 * wide_b));
        let (mut more, mut less) = (x, x);
        more += y;
        less -= y;
        prop_assert_eq!((more, less), (x + y, x - y));
        prop_assert_eq!(ByteCount::from_kilobytes(a).get(), clamped(wide_a * 1_000));
    }

    #[test]
    fn rates_saturate(a in number(), b in number(), factor in float()) {
        let (x, y) = (Bitrate::from_bps(a), Bitrate::from_bps(b));
        prop_assert_eq!((x + y).as_bps(), clamped(i128::from(a) + i128::from(b)));
        prop_assert_eq!([x, y].into_iter().sum::<Bitrate>(), x + y);
        prop_assert_eq!(Bitrate::from_kbps(a).as_bps(), clamped(i128::from(a) * 1_000));
        prop_assert_eq!(Bitrate::from_mbps(a).as_bps(), clamped(i128::from(a) * 1_000_000));
        let scaled = x.scaled(factor);
        prop_assert!(factor > 0.0 || scaled == Bitrate::ZERO, "{} times {} is {}", x, factor, scaled);
    }

    #[test]
    fn amounts_rates_and_times_saturate_together(amount in number(), rate in number(), time in duration()) {
        let (amount, rate) = (ByteCount::new(amount), Bitrate::from_bps(rate));
        // Rounded down twice, to bits and to bytes; 2^64 bits a second for 2^64 seconds do not fit 128 bits.
        let bits = u128::from(rate.as_bps()).checked_mul(time.as_nanos()).map(|bits| bits / 1_000_000_000);
        let exact = bits.and_then(|bits| u64::try_from(bits / 8).ok()).unwrap_or(u64::MAX);
        prop_assert_eq!((rate * time).get(), exact);
        let took = amount / rate;
        prop_assert!(rate > Bitrate::ZERO || took == Duration::MAX);
        prop_assert_eq!(amount.per(time).is_none(), time.is_zero());
    }

    #[test]
    fn points_in_time_saturate(at in number(), other in number(), time in duration()) {
        let (point, nanos) = (Timestamp::from_nanos(at), i128::try_from(time.as_nanos()).unwrap());
        prop_assert_eq!((point + time).as_nanos(), clamped(i128::from(at) + nanos));
        prop_assert_eq!((point - time).as_nanos(), clamped(i128::from(at) - nanos));
        let since = point.since(Timestamp::from_nanos(other));
        prop_assert_eq!(since.as_nanos(), u128::from(clamped(i128::from(at) - i128::from(other))));
        prop_assert_eq!(Timestamp::from_micros(at).as_nanos(), clamped(i128::from(at) * 1_000));
        prop_assert_eq!(Timestamp::from_millis(at).as_nanos(), clamped(i128::from(at) * 1_000_000));
        prop_assert_eq!(Timestamp::from_secs(at).as_nanos(), clamped(i128::from(at) * 1_000_000_000));
    }

    #[test]
    fn no_float_makes_an_amount_out_of_range(value in float()) {
        let amount = ByteCount::from_f64(value).get();
        prop_assert!(value > 0.0 || amount == 0, "{} became {}", value, amount);
        prop_assert!(value.is_nan() || value < 2f64.powi(64) || amount == u64::MAX, "{} became {}", value, amount);
    }
}
