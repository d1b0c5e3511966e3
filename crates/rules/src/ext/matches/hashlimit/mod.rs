//! `-m hashlimit`: a token bucket for each address or port.
//!
//! Rules of one name share a table ([`Buckets`]), which is as the first of them says; each says for itself whether it is
//! about what is within the limit or above it. What depends on the kernel's clock tick is open.
//!
//! Rates of packets are held as the time between two packets, rates of bytes as the cost of 16 bytes; what prints is
//! read back from them. The tool prints the expiry only when the printed rate implies another. Source:
//! iptables-extensions(8); Linux 6.18 `net/netfilter/xt_hashlimit.c`.

mod bytes;
mod key;

use crate::error::What;
use crate::ext::kit::buckets::{Buckets, Speed, Visit, by};
use crate::ext::kit::named_lists::Named;
use crate::ext::kit::rate::{Rate, rate_text};
use crate::ext::kit::{number, words};
use crate::ext::{
    Args, Given, IP, ListSort, ListUse, Match, MatchKind, Memory, NamedLists, Opt, Printer,
    Support, TableConfig,
};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;
use key::Found;

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
    support: Support::Evaluated,
    parse,
};

/// What the buckets are keyed by, in printing order.
const MODES: [(&str, u8); 4] = [
    ("srcip", by::SOURCE),
    ("srcport", by::SOURCE_PORT),
    ("dstip", by::DESTINATION),
    ("dstport", by::DESTINATION_PORT),
];

#[derive(Debug)]
struct Hashlimit {
    above: bool,
    name: Box<str>,
    table: TableConfig,
    /// Prefix length of a whole address.
    whole: u8,
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
    let whole = (args.family.addr_len() * 8) as u8;
    let prefix = |name: &str| args.get(name).map_or(Ok(whole), |given| parse_prefix(given, args));
    if rate_match.is_none() && speed.is_refused() {
        return Err(args.expected("a smaller burst, or another rate,"));
    }
    let name = parse_name(args.required("hashlimit-name")?)?;
    let table = TableConfig {
        speed,
        mode: args.get("hashlimit-mode").map_or(Ok(0), parse_mode)?,
        size: count("hashlimit-htable-size", 0)?.unwrap_or(0),
        max: count("hashlimit-htable-max", 0)?.unwrap_or(0),
        gc_interval: count("hashlimit-htable-gcinterval", 1)?.unwrap_or(DEFAULT_GC),
        expire: count("hashlimit-htable-expire", 1)?.unwrap_or(expire),
        source_bits: prefix("hashlimit-srcmask")?,
        destination_bits: prefix("hashlimit-dstmask")?,
        rate_match,
    };
    Ok(Box::new(Hashlimit { above, name, table, whole }))
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

fn parse_prefix(given: &Given<'_>, args: &Args<'_>) -> Result<u8, What> {
    let len = args.family.addr_len();
    let bits = value::mask(given.text(), len).and_then(|mask| value::prefix_len(&mask, len));
    let bits = bits.ok_or_else(|| given.expected(format!("a prefix length 0-{}", len * 8)))?;
    Ok(bits as u8)
}

impl Hashlimit {
    /// Prints rate and burst; returns the expiry that they imply, in milliseconds.
    fn print_speed(&self, to: &mut Printer) -> u32 {
        to.flag(false, if self.above { "hashlimit-above" } else { "hashlimit-upto" });
        match self.table.speed {
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
        let (implied, table) = (self.print_speed(to), &self.table);
        if table.mode != 0 {
            to.option(false, "hashlimit-mode", words::text(table.mode, &MODES));
        }
        to.flag(false, "hashlimit-name").plain(&self.name);
        let numbers = [
            ("hashlimit-htable-size", table.size, 0),
            ("hashlimit-htable-max", table.max, 0),
            ("hashlimit-htable-gcinterval", table.gc_interval, DEFAULT_GC),
            ("hashlimit-htable-expire", table.expire, implied),
        ];
        for (name, number, silent) in numbers {
            if number != silent {
                to.option(false, name, number);
            }
        }
        let masks = [
            ("hashlimit-srcmask", table.source_bits),
            ("hashlimit-dstmask", table.destination_bits),
        ];
        for (name, bits) in masks {
            if bits != self.whole {
                to.option(false, name, bits);
            }
        }
        if let Some(interval) = table.rate_match {
            to.flag(false, "hashlimit-rate-match");
            if interval != 1 {
                to.option(false, "hashlimit-rate-interval", interval);
            }
        }
    }

    fn list(&self) -> Option<ListUse<'_>> {
        Some(ListUse { name: &self.name, sort: ListSort::Hashlimit(self.table) })
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        let Self { above, ref name, table, .. } = *self;
        Some(Box::new(Asking { name: name.clone(), table, above, at: None, holds: None }))
    }
}

/// A rule's part in a table.
#[derive(Debug)]
struct Asking {
    name: Box<str>,
    table: TableConfig,
    above: bool,
    at: Option<usize>,
    /// Packets that the last bucket held after it was asked, at least and at most.
    holds: Option<[i64; 2]>,
}

impl Asking {
    fn ask(&mut self, buckets: &mut Buckets, transit: &Transit<'_, '_>) -> Outcome {
        let found = key::of(buckets.config(), transit);
        let counts_bytes = matches!(self.table.speed, Speed::Bytes { .. });
        match (found, transit.time) {
            (Found::Key(_), _) if counts_bytes && transit.packet.is_open() => {
                buckets.make_indeterminate();
                Outcome::MAYBE
            }
            (Found::Key(key), Some(now)) => {
                let (len, certain) = (transit.packet.len() as u64, transit.certain);
                let (outcome, holds) = buckets.ask(&self.table, key, &Visit { now, len, certain });
                self.holds = holds;
                outcome
            }
            (Found::Drop, _) => Outcome::HOT_DROP,
            (Found::Unknown, _) | (Found::Key(_), None) => {
                buckets.make_indeterminate();
                Outcome::MAYBE.or(Outcome::HOT_DROP)
            }
        }
    }
}

impl Memory for Asking {
    fn evaluate(&mut self, transit: &mut Transit<'_, '_>, lists: &mut NamedLists) -> Outcome {
        if self.at.is_none() {
            self.join(lists);
        }
        self.holds = None;
        let table = self.at.and_then(|at| lists.hold(at));
        let Some(mut table) = table else { return Outcome::MAYBE };
        let Named::Hashlimit(buckets) = &mut *table else { return Outcome::MAYBE };
        self.ask(buckets, transit).invert(self.above)
    }

    fn remark(&self) -> Option<String> {
        Some(match self.holds? {
            [least, most] if least == most => format!("{}: {least} more packets", self.name),
            [least, most] => format!("{}: {least} to {most} more packets", self.name),
        })
    }

    fn join(&mut self, lists: &mut NamedLists) {
        let sort = ListSort::Hashlimit(self.table);
        self.at = Some(lists.join(ListUse { name: &self.name, sort }));
    }

    /// Only its table is; what this knows is the table's number.
    fn is_one(&self) -> bool {
        false
    }

    fn outlives_doubt(&self) -> bool {
        true
    }
}
