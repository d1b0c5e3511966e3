//! Marks of an axis at values that people read easily, and how they are written.

use conntrack::SECOND;

use super::markup::day;
use crate::report::timeline::Axis;
use crate::time_text::time_text;

/// Steps of a clock in seconds; below they go as decimal numbers do, above they double.
const CLOCK: [u64; 18] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

/// The narrowest step of 1, 2 or 5 times a power of ten that takes at most `most` steps to `span`.
pub(super) fn decimal_step(span: u64, most: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if span / step <= most || step == u64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The same for an axis: times go by the clock.
fn step(axis: Axis, span: u64, most: u64) -> u64 {
    let decimal = decimal_step(span, most);
    if axis == Axis::Order || decimal < SECOND {
        return decimal;
    }
    let fits = |step: &u64| span / step <= most;
    if let Some(step) = CLOCK.iter().map(|seconds| seconds * SECOND).find(fits) {
        return step;
    }
    let mut days = 2 * 86_400 * SECOND;
    while !fits(&days) {
        days = days.saturating_mul(2);
    }
    days
}

/// Marks within `from..to`, at most `most` and one, and the step between them.
pub(super) fn ticks(axis: Axis, from: u64, to: u64, most: u64) -> (Vec<u64>, u64) {
    let step = step(axis, to.saturating_sub(from), most);
    let mut ticks = Vec::new();
    let mut at = from.div_ceil(step).saturating_mul(step);
    while at < to {
        ticks.push(at);
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    (ticks, step)
}

/// A position on an axis as words, as exact as `width` needs; days are named where they differ.
pub(super) fn words(axis: Axis, at: u64, width: u64, dated: bool) -> String {
    if axis == Axis::Order {
        return crate::report::text::number(at);
    }
    let full = time_text(at);
    let end = match width {
        ..1_000_000 => 26,
        1_000_000..SECOND => 23,
        SECOND..60_000_000_000 => 19,
        _ => 16,
    };
    let clock = full.get(11..end).unwrap_or(&full);
    match (dated, width >= 86_400 * SECOND) {
        (false, _) => clock.to_owned(),
        (true, true) => day(&full).to_owned(),
        (true, false) => format!("{} {clock}", full.get(5..10).unwrap_or_default()),
    }
}

/// A number in at most four characters and a letter.
pub(super) fn compact(value: u64) -> String {
    let (scaled, letter) = match value {
        ..10_000 => return value.to_string(),
        10_000..1_000_000 => (value as f64 / 1e3, 'k'),
        1_000_000..1_000_000_000 => (value as f64 / 1e6, 'M'),
        _ => (value as f64 / 1e9, 'G'),
    };
    format!("{}{letter}", format!("{scaled:.1}").trim_end_matches(".0"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_are_few_and_inside(from: u64, span: u64, most in 1_u64..10, time: bool) {
            let axis = if time { Axis::Time } else { Axis::Order };
            let to = from.saturating_add(span);
            let (ticks, _) = ticks(axis, from, to, most);
            prop_assert!(ticks.len() as u64 <= most + 1);
            prop_assert!(ticks.iter().all(|at| (from..to).contains(at)));
        }
    }

    #[test]
    fn marks_go_by_the_clock() {
        let minutes = |list: &[u64]| list.iter().map(|at| at / (60 * SECOND)).collect::<Vec<_>>();
        let (ticks, step) = ticks(Axis::Time, 7 * 60 * SECOND, 80 * 60 * SECOND, 5);
        assert_eq!(step, 15 * 60 * SECOND);
        assert_eq!(minutes(&ticks), [15, 30, 45, 60, 75]);
    }

    #[test]
    fn words_are_as_exact_as_needed() {
        let at = 1_700_000_000 * SECOND + 123_456_789;
        assert_eq!(words(Axis::Time, at, SECOND / 100, false), "22:13:20.123");
        assert_eq!(words(Axis::Time, at, 60 * SECOND, true), "11-14 22:13");
        assert_eq!(words(Axis::Time, at, 86_400 * SECOND, true), "2023-11-14");
        assert_eq!(words(Axis::Order, 1000, 1, false), "1,000");
        assert_eq!((compact(9999), compact(1_200_000)), ("9999".to_owned(), "1.2M".to_owned()));
    }
}
