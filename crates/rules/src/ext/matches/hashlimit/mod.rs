//! `-m hashlimit`: a token bucket for each address or port.
//!
//! Rates of packets are held as the time between two packets, rates of bytes as the cost of 16 bytes;
//! what prints is read back from them. The tool prints the expiry only when it is not the one that the
//! printed rate implies. Source: iptables-extensions(8); kernel `net/netfilter/xt_hashlimit.c`.

mod bytes;

use crate::error::What;
use crate::ext::kit::rate::{Rate, rate_text};
use crate::ext::kit::{number, words};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::value;

const SCALE: u64 = 1_000_000;
const DEFAULT_BURST: u64 = 5;
const DEFAULT_GC: u32 = 1000;
const MAX_BURST: u64 = 1_000_000;
const MAX_NAME: usize = 254;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "hashlimit",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("hashlimit-upto").alias(&["hashlimit"]).invertible(),
        Opt::value("hashlimit-above").invertible(),
        Opt::value("hashlimit-srcmask"),
        Opt::value("hashlimit-dstmask"),
        Opt::value("hashlimit-burst"),
        Opt::value("hashlimit-htable-size"),
        Opt::value("hashlimit-htable-max"),
        Opt::value("hashlimit-htable-gcinterval"),
        Opt::value("hashlimit-htable-expire"),
        Opt::value("hashlimit-mode"),
        Opt::value("hashlimit-name"),
        Opt::flag("hashlimit-rate-match"),
        Opt::value("hashlimit-rate-interval"),
    ],
    support: Support::Parsed,
    parse,
};

/// What the buckets are keyed by, in printing order.
const MODES: [(&str, u8); 4] = [("srcip", 1), ("srcport", 2), ("dstip", 4), ("dstport", 8)];

#[derive(Debug)]
struct Hashlimit {
    above: bool,
    speed: Speed,
    mode: u8,
    name: Box<str>,
    /// Buckets and entries of the table; 0 lets the kernel choose.
    size: u32,
    max: u32,
    /// Milliseconds.
    gc_interval: u32,
    /// Milliseconds.
    expire: u32,
    /// Prefix lengths; `None` for whole addresses.
    source_bits: Option<u8>,
    destination_bits: Option<u8>,
    /// `--hashlimit-rate-match`, with its interval in seconds.
    rate_match: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Speed {
    /// Time between two packets in microseconds, and the burst in packets.
    Packets { period: u64, burst: u64 },
    /// Cost of 16 bytes, and the burst in units of the rate; 0 without a burst.
    Bytes { cost: u32, burst: u32 },
}

/// A rate and what follows from it.
struct Limit {
    speed: Speed,
    expire: u32,
    rate_match: Option<u32>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let rates = ["hashlimit-upto", "hashlimit-above"];
    args.any_of(&rates)?;
    args.one_of(&rates)?;
    let given = args.get(rates[0]).map_or_else(|| args.required(rates[1]), Ok)?;
    let above = (given.name == "hashlimit-above") != given.invert;
    let Limit { speed, expire, rate_match } = match bytes::cost(given.text()) {
        Some(cost) => byte_limit(args, cost)?,
        None => packet_limit(args, given)?,
    };
    let count =
        |name: &str, least| args.get(name).map(|given| number::u32_from(given, least)).transpose();
    let prefix = |name: &str| args.get(name).map(|given| parse_prefix(given, args)).transpose();
    Ok(Box::new(Hashlimit {
        above,
        speed,
        mode: args.get("hashlimit-mode").map_or(Ok(0), parse_mode)?,
        name: parse_name(args.required("hashlimit-name")?)?,
        size: count("hashlimit-htable-size", 0)?.unwrap_or(0),
        max: count("hashlimit-htable-max", 0)?.unwrap_or(0),
        gc_interval: count("hashlimit-htable-gcinterval", 1)?.unwrap_or(DEFAULT_GC),
        expire: count("hashlimit-htable-expire", 1)?.unwrap_or(expire),
        source_bits: prefix("hashlimit-srcmask")?.flatten(),
        destination_bits: prefix("hashlimit-dstmask")?.flatten(),
        rate_match,
    }))
}

fn packet_limit(args: &Args<'_>, given: &Given<'_>) -> Result<Limit, What> {
    let rate = Rate::parse(given.text(), SCALE)
        .ok_or_else(|| given.expected("a rate such as 10/sec, 1/day or 512kb/s"))?;
    let burst = args.get("hashlimit-burst").map_or(Ok(DEFAULT_BURST), parse_burst)?;
    if burst > MAX_BURST {
        return Err(args.expected(format!("a burst of 1-{MAX_BURST} packets")));
    }
    let matching = args.has("hashlimit-rate-match");
    let period = if matching { rate.period / rate.unit } else { rate.period };
    if period == 0 {
        return Err(given.expected("a slower rate"));
    }
    Ok(Limit {
        speed: Speed::Packets { period, burst },
        expire: rate.unit as u32 * 1000,
        rate_match: rate_interval(args, rate.unit as u32)?,
    })
}

fn byte_limit(args: &Args<'_>, cost: u32) -> Result<Limit, What> {
    let (mut burst, mut expire) = (0, bytes::EXPIRE);
    if let Some(given) = args.get("hashlimit-burst") {
        let unit = bytes::rate(cost);
        burst = parse_burst(given)?;
        if burst < unit {
            return Err(given.expected(format!("at least {unit}b")));
        }
        burst = burst.div_ceil(unit);
        expire = bytes::EXPIRE_BURST;
    }
    let burst = u32::try_from(burst).map_err(|_| args.expected("a smaller burst"))?;
    Ok(Limit { speed: Speed::Bytes { cost, burst }, expire, rate_match: rate_interval(args, 1)? })
}

/// The interval of `--hashlimit-rate-match`; alone it is accepted and forgotten.
fn rate_interval(args: &Args<'_>, default: u32) -> Result<Option<u32>, What> {
    let interval = match args.get("hashlimit-rate-interval") {
        Some(given) => number::between(given, 1, i32::MAX as u64)? as u32,
        None => default,
    };
    Ok(args.has("hashlimit-rate-match").then_some(interval))
}

/// `number`, or `number` of `k` or `m` bytes with whatever follows that letter.
fn parse_burst(given: &Given<'_>) -> Result<u64, What> {
    let text = given.text();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = bytes::factor(text[digits..].chars().next());
    value::number(&text[..digits], u64::MAX)
        .filter(|burst| *burst > 0 && (digits < text.len() || *burst <= MAX_BURST))
        .and_then(|burst| burst.checked_mul(factor))
        .ok_or_else(|| given.expected(format!("a burst 1-{MAX_BURST}, or of bytes such as 10kb")))
}

fn parse_mode(given: &Given<'_>) -> Result<u8, What> {
    given.text().split([',', '|']).try_fold(0, |bits, word| {
        match MODES.iter().find(|(name, _)| *name == word) {
            Some((_, bit)) => Ok(bits | bit),
            None => Err(given.expected("a comma list of srcip srcport dstip dstport")),
        }
    })
}

/// The table is a file in `/proc/net/ipt_hashlimit`.
fn parse_name(given: &Given<'_>) -> Result<Box<str>, What> {
    let name = given.text();
    if name.is_empty() || name.len() > MAX_NAME || name.contains('/') || matches!(name, "." | "..")
    {
        return Err(given.expected(format!("a file name of at most {MAX_NAME} bytes")));
    }
    Ok(name.into())
}

/// A prefix length, or `None` for the whole address.
fn parse_prefix(given: &Given<'_>, args: &Args<'_>) -> Result<Option<u8>, What> {
    let len = args.family.addr_len();
    let bits = value::mask(given.text(), len).and_then(|mask| value::prefix_len(&mask, len));
    let bits = bits.ok_or_else(|| given.expected(format!("a prefix length 0-{}", len * 8)))?;
    Ok((bits < len * 8).then_some(bits as u8))
}

impl Hashlimit {
    /// Prints rate and burst; returns the expiry that they imply, in milliseconds.
    fn print_speed(&self, to: &mut Printer) -> u32 {
        to.flag(false, if self.above { "hashlimit-above" } else { "hashlimit-upto" });
        match self.speed {
            Speed::Packets { period, burst } => {
                let (text, unit) = rate_text(period, SCALE);
                to.word(text).option(false, "hashlimit-burst", burst);
                unit as u32 * 1000
            }
            Speed::Bytes { cost, burst } => {
                to.word(bytes::rate_text(cost));
                if burst == 0 {
                    return bytes::EXPIRE;
                }
                to.option(false, "hashlimit-burst", bytes::burst_text(cost, burst));
                bytes::EXPIRE_BURST
            }
        }
    }
}

impl Match for Hashlimit {
    fn print(&self, to: &mut Printer) {
        let implied = self.print_speed(to);
        if self.mode != 0 {
            to.option(false, "hashlimit-mode", words::text(self.mode, &MODES));
        }
        to.flag(false, "hashlimit-name").plain(&self.name);
        let numbers = [
            ("hashlimit-htable-size", self.size, 0),
            ("hashlimit-htable-max", self.max, 0),
            ("hashlimit-htable-gcinterval", self.gc_interval, DEFAULT_GC),
            ("hashlimit-htable-expire", self.expire, implied),
        ];
        for (name, number, silent) in numbers {
            if number != silent {
                to.option(false, name, number);
            }
        }
        let masks =
            [("hashlimit-srcmask", self.source_bits), ("hashlimit-dstmask", self.destination_bits)];
        for (name, bits) in masks {
            if let Some(bits) = bits {
                to.option(false, name, bits);
            }
        }
        if let Some(interval) = self.rate_match {
            to.flag(false, "hashlimit-rate-match");
            if interval != 1 {
                to.option(false, "hashlimit-rate-interval", interval);
            }
        }
    }
}
