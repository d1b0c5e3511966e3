//! `-j RATEEST`: counts the packet in a rate estimator, which `-m rateest` reads, and goes on.
//!
//! The kernel keeps the interval and the averaging constant as powers of two; the canonical text is
//! worked out from these, so it may differ from what was given.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_RATEEST.c`, `net/core/gen_estimator.c`.

use crate::error::What;
use crate::ext::{Args, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "RATEEST",
    families: IP,
    options: &[
        Opt::value("rateest-name"),
        Opt::value("rateest-interval"),
        Opt::value("rateest-ewmalog"),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_NAME: usize = 15;
/// The shortest interval; the others are 2, 4, … 32 times as long. Microseconds.
const QUARTER_SECOND: u64 = 250_000;
const MAX_INTERVAL_LOG: u32 = 5;
const MAX_EWMA_LOG: u32 = 30;

#[derive(Debug)]
struct Rateest {
    name: Box<str>,
    /// Power of two quarter seconds.
    interval_log: u32,
    /// Power of two intervals.
    ewma_log: u32,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let name = args.required("rateest-name")?;
    let interval_given = args.required("rateest-interval")?;
    let ewma_given = args.required("rateest-ewmalog")?;
    let (interval, ewma) = (microseconds(interval_given)?, microseconds(ewma_given)?);
    let interval_log = (0..=MAX_INTERVAL_LOG)
        .find(|log| interval <= (QUARTER_SECOND << log) as f64)
        .ok_or_else(|| interval_given.expected("at most 8s"))?;
    let ewma_log = ewma_log(interval, ewma)
        .ok_or_else(|| ewma_given.expected("a time that suits the interval"))?;
    let name = value::cut(name.text(), MAX_NAME).into();
    Ok(Box::new(Rateest { name, interval_log, ewma_log }))
}

/// A time with unit s, ms or us; without one, microseconds.
fn microseconds(given: &Given<'_>) -> Result<f64, What> {
    let text = given.text();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1e6,
        "ms" | "msec" | "msecs" => 1e3,
        "us" | "usec" | "usecs" | "" => 1.0,
        _ => return Err(given.expected("a time in s, ms or us")),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits
        .parse::<f64>()
        .ok()
        .filter(|_| plain)
        .map(|number| (number * unit).trunc())
        .ok_or_else(|| given.expected("a time in s, ms or us"))
}

/// The largest power whose averaging time does not exceed `ewma`; 0 and what the kernel has no room for
/// are refused.
fn ewma_log(interval: f64, ewma: f64) -> Option<u32> {
    let exceeds = |log: &u32| {
        let weight = 1.0 - 1.0 / f64::from(1_u32 << log);
        interval / -weight.ln() > ewma
    };
    let log = (1..32).find(exceeds)? - 1;
    (1..=MAX_EWMA_LOG).contains(&log).then_some(log)
}

/// A time of microseconds in its largest unit.
fn time_text(microseconds: u64) -> String {
    match microseconds as f64 {
        time if time >= 1e6 => format!("{:.1}s", time / 1e6),
        time if time >= 1e3 => format!("{:.1}ms", time / 1e3),
        _ => format!("{microseconds}us"),
    }
}

impl Target for Rateest {
    fn print(&self, to: &mut Printer) {
        let interval = QUARTER_SECOND << self.interval_log;
        to.name("rateest-name", &self.name)
            .option(false, "rateest-interval", time_text(interval))
            .option(false, "rateest-ewmalog", time_text(interval << self.ewma_log));
    }

    fn apply(&self, _transit: &mut Transit<'_, '_>) -> Effect {
        Effect::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_times_read_back_as_the_same_powers() {
        for interval_log in 0..=MAX_INTERVAL_LOG {
            for power in 1..=MAX_EWMA_LOG {
                let interval = (QUARTER_SECOND << interval_log) as f64;
                assert_eq!(ewma_log(interval, interval * 2_f64.powi(power as i32)), Some(power));
            }
        }
    }

    #[test]
    fn a_time_shorter_than_the_interval_has_no_power() {
        assert_eq!(ewma_log(250_000.0, 250_000.0), None);
        assert_eq!(ewma_log(1.0, 1e18), None);
    }

    #[test]
    fn times_print_in_their_largest_unit() {
        assert_eq!(time_text(250_000), "250.0ms");
        assert_eq!(time_text(1_000_000), "1.0s");
        assert_eq!(time_text(999), "999us");
    }
}
