//! `-m rateest`: compares a rate estimator with a rate or with another estimator.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_rateest.c`.

use crate::error::What;
use crate::ext::kit::number;
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};

const MAX_NAME: usize = 15;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "rateest",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("rateest1").alias(&["rateest"]),
        Opt::value("rateest2"),
        Opt::value("rateest-bps1").optional(),
        Opt::value("rateest-pps1").optional(),
        Opt::value("rateest-bps2").alias(&["rateest-bps"]).optional(),
        Opt::value("rateest-pps2").alias(&["rateest-pps"]).optional(),
        Opt::flag("rateest-delta"),
        Opt::flag("rateest-lt").invertible(),
        Opt::flag("rateest-gt").invertible(),
        Opt::flag("rateest-eq").invertible(),
    ],
    support: Support::Parsed,
    parse,
};

/// Bits of a unit, by its name in any case.
const UNITS: &[(&str, f64)] = &[
    ("", 8.0),
    ("bit", 1.0),
    ("kibit", 1024.0),
    ("kbit", 1e3),
    ("mibit", 1_048_576.0),
    ("mbit", 1e6),
    ("gibit", 1_073_741_824.0),
    ("gbit", 1e9),
    ("tibit", 1_099_511_627_776.0),
    ("tbit", 1e12),
    ("bps", 8.0),
    ("kibps", 8192.0),
    ("kbps", 8e3),
    ("mibps", 8_388_608.0),
    ("mbps", 8e6),
    ("gibps", 8_589_934_592.0),
    ("gbps", 8e9),
    ("tibps", 8_796_093_022_208.0),
    ("tbps", 8e12),
];

/// Most whole megabits a second that 32 bits of bytes hold.
const MOST_MEGABITS: f64 = 34_359.0;

#[derive(Debug)]
struct Rateest {
    first: Box<str>,
    /// The estimator to compare with, instead of a rate.
    second: Option<Box<str>>,
    delta: bool,
    /// Name of the comparison option.
    comparison: &'static str,
    invert: bool,
    /// Bytes a second on either side.
    bytes: Option<[u32; 2]>,
    /// Packets a second on either side.
    packets: Option<[u32; 2]>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let comparisons = ["rateest-lt", "rateest-gt", "rateest-eq"];
    args.any_of(&comparisons)?;
    args.one_of(&comparisons)?;
    args.any_of(&["rateest-bps1", "rateest-bps2", "rateest-pps1", "rateest-pps2"])?;
    let comparison = comparisons.iter().find_map(|name| args.get(name));
    let comparison = comparison.ok_or_else(|| args.expected("a comparison"))?;
    Ok(Box::new(Rateest {
        first: parse_name(args.required("rateest1")?)?,
        second: args.get("rateest2").map(parse_name).transpose()?,
        delta: args.has("rateest-delta"),
        comparison: comparison.name,
        invert: comparison.invert,
        bytes: parse_pair(args, ["rateest-bps1", "rateest-bps2"], bytes_per_second)?,
        packets: parse_pair(args, ["rateest-pps1", "rateest-pps2"], number::u32)?,
    }))
}

fn parse_name(given: &Given<'_>) -> Result<Box<str>, What> {
    if given.text().is_empty() || given.text().len() > MAX_NAME {
        return Err(given.expected(format!("a name of 1-{MAX_NAME} bytes")));
    }
    Ok(given.text().into())
}

/// The rates of two options, if either is given; what is not given is 0.
fn parse_pair(
    args: &Args<'_>,
    names: [&str; 2],
    parse: impl Fn(&Given<'_>) -> Result<u32, What>,
) -> Result<Option<[u32; 2]>, What> {
    let rate = |name| match args.get(name) {
        Some(given) if !given.values.is_empty() => parse(given),
        _ => Ok(0),
    };
    let rates = [rate(names[0])?, rate(names[1])?];
    Ok(names.iter().any(|name| args.has(name)).then_some(rates))
}

/// A rate with a unit as bytes a second; fractions of a byte are cut off.
fn bytes_per_second(given: &Given<'_>) -> Result<u32, What> {
    let text = given.text();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (count, unit) = text.split_at(end);
    let bits =
        UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, bits)| *bits);
    count
        .parse::<f64>()
        .ok()
        .zip(bits)
        .map(|(count, bits)| count * bits / 8.0)
        .filter(|bytes| *bytes <= f64::from(u32::MAX))
        .map(|bytes| bytes as u32)
        .ok_or_else(|| given.expected("a rate such as 64kbit, 1Mbit or 10MBps"))
}

/// The rate in the unit that its size asks for, rounded as the tool does; but the text must read back as
/// what prints the same, so that rounding goes neither over what is read nor stays in the smaller unit.
fn bits_text(bytes: u32) -> String {
    let bits = f64::from(bytes) * 8.0;
    let kilobits = (bits / 1e3).round();
    if kilobits >= 1e6 {
        format!("{:.0}Mbit", (bits / 1e6).round().min(MOST_MEGABITS))
    } else if bits >= 1e6 {
        format!("{kilobits:.0}Kbit")
    } else {
        format!("{bits:.0}bit")
    }
}

impl Rateest {
    fn print_rates(&self, to: &mut Printer, what: &str, rates: [String; 2], compare: bool) {
        let [first, second] = rates;
        if self.delta {
            to.option(false, &format!("rateest-{what}1"), first);
        }
        if compare {
            to.flag(self.invert, self.comparison);
        }
        if self.delta {
            to.option(false, &format!("rateest-{what}2"), second);
            return;
        }
        to.flag(false, &format!("rateest-{what}"));
        if self.second.is_none() {
            to.word(second);
        }
    }
}

impl Match for Rateest {
    fn asks_for(&self) -> Option<&'static str> {
        Some("the estimator ticks by a timer of the kernel, whose start no capture shows")
    }

    fn print(&self, to: &mut Printer) {
        if self.delta {
            to.flag(false, "rateest-delta");
        }
        to.flag(false, if self.second.is_some() { "rateest1" } else { "rateest" });
        to.plain(&self.first);
        if let Some(rates) = self.bytes {
            self.print_rates(to, "bps", rates.map(bits_text), true);
        }
        if let Some(rates) = self.packets {
            // The tool says the comparison twice, and takes it only once.
            let compare = self.bytes.is_none();
            self.print_rates(to, "pps", rates.map(|rate| rate.to_string()), compare);
        }
        if let Some(second) = &self.second {
            to.flag(false, "rateest2").plain(second);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ext::kit::probe::print;
    use crate::family::Family;

    #[test]
    fn the_comparison_stands_once() {
        for rule in [
            "-m rateest --rateest R --rateest-lt --rateest-bps 72bit --rateest-pps 8",
            "-m rateest --rateest-delta --rateest R --rateest-bps1 8bit ! --rateest-gt --rateest-bps2 72bit --rateest-pps1 8 --rateest-pps2 0",
        ] {
            assert_eq!(print(Family::Ipv4, rule).as_deref(), Ok(rule));
        }
    }

    #[test]
    fn rates_print_rounded_to_what_prints_the_same() {
        for (rate, printed) in [
            ("124999", "999992bit"),
            ("125001", "1000Kbit"),
            ("124999900", "999999Kbit"),
            ("124999999", "1000Mbit"),
            ("4294967295", "34359Mbit"),
        ] {
            let rule = |rate| format!("-m rateest --rateest RE1 --rateest-gt --rateest-bps {rate}");
            let first = print(Family::Ipv4, &rule(rate)).unwrap();
            assert_eq!(first, rule(printed));
            assert_eq!(print(Family::Ipv4, &rule(printed)).unwrap(), first);
        }
    }
}
