//! `--stp-type` and kin: fields of a spanning tree BPDU.
//!
//! The kernel takes the protocol for one byte, which is two on the wire, so that it reads every field one byte
//! too early: its type is the version (0, or the frame is no BPDU to it), its flags are the type. Measured on
//! Linux 6.18, and done likewise here.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_stp.c`; IEEE 802.1D.

use packet::Read;

use crate::error::What;
use crate::ext::kit::native;
use crate::ext::{Args, BRIDGE, Given, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "stp",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::value("stp-type").invertible(),
        Opt::value("stp-flags").invertible(),
        Opt::value("stp-root-prio").invertible(),
        Opt::value("stp-root-addr").invertible(),
        Opt::value("stp-root-cost").invertible(),
        Opt::value("stp-sender-prio").invertible(),
        Opt::value("stp-sender-addr").invertible(),
        Opt::value("stp-port").invertible(),
        Opt::value("stp-msg-age").invertible(),
        Opt::value("stp-max-age").invertible(),
        Opt::value("stp-hello-time").invertible(),
        Opt::value("stp-forward-delay").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

/// What a BPDU starts with.
const HEADER: [u8; 6] = [0x42, 0x42, 3, 0, 0, 0];
/// Offset of what is taken for the type; every frame that gets this far has 0 there.
const TYPE: usize = 5;
const CONFIG: u8 = 0;
/// Bytes of what is taken for a configuration BPDU.
const CONFIG_LEN: usize = 37;

/// What one option tests.
#[derive(Debug, Clone, Copy)]
struct Field {
    option: &'static str,
    /// Offset from the LLC header, and number of bytes.
    at: usize,
    len: usize,
}

const fn field(option: &'static str, at: usize, len: usize) -> Field {
    Field { option, at, len }
}

/// In the order in which they print.
const FIELDS: [Field; 12] = [
    field("stp-type", TYPE, 1),
    field("stp-flags", 6, 1),
    field("stp-root-prio", 7, 2),
    field("stp-root-addr", 9, 6),
    field("stp-root-cost", 15, 4),
    field("stp-sender-prio", 19, 2),
    field("stp-sender-addr", 21, 6),
    field("stp-port", 27, 2),
    field("stp-msg-age", 29, 2),
    field("stp-max-age", 31, 2),
    field("stp-hello-time", 33, 2),
    field("stp-forward-delay", 35, 2),
];

/// Types and flags by name.
const TYPES: [(&str, u8); 2] = [("config", CONFIG), ("tcn", 0x80)];
const FLAGS: [(&str, u8); 2] = [("topology-change", 1), ("topology-change-ack", 0x80)];

#[derive(Debug)]
enum Wanted {
    Range(u32, u32),
    Mac([u8; 6], [u8; 6]),
}

#[derive(Debug)]
struct Test {
    field: Field,
    wanted: Wanted,
    invert: bool,
}

#[derive(Debug)]
struct Stp(Vec<Test>);

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = FIELDS.iter().filter_map(|field| Some((*field, args.get(field.option)?)));
    let tests = given.map(|(field, given)| {
        Ok(Test { field, wanted: wanted(field, given)?, invert: given.invert })
    });
    Ok(Box::new(Stp(tests.collect::<Result<_, What>>()?)))
}

fn wanted(field: Field, given: &Given<'_>) -> Result<Wanted, What> {
    let text = given.text();
    if field.len == 6 {
        let (addr, mask) =
            value::masked_mac(text).ok_or_else(|| given.expected("an Ethernet address[/mask]"))?;
        return Ok(Wanted::Mac(addr, mask));
    }
    let named = |names: &[(&str, u8)]| {
        let found = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, value)| u32::from(*value))
    };
    let number = match field.option {
        "stp-type" => named(&TYPES),
        "stp-flags" => named(&FLAGS),
        _ => None,
    };
    if let Some(number) = number {
        return Ok(Wanted::Range(number, number));
    }
    let max = u64::from(u32::MAX) >> (32 - 8 * field.len);
    let range = match field.len {
        1 => value::number(text, max).map(|number| (number, number)),
        _ => value::range(text, ':', max),
    };
    let (low, high) =
        range.ok_or_else(|| given.expected(format!("a number 0-{max}, its range or its name")))?;
    Ok(Wanted::Range(low as u32, high as u32))
}

impl Test {
    fn text(&self) -> String {
        match (self.field.option, &self.wanted) {
            (_, Wanted::Mac(addr, mask)) => value::masked_mac_text(*addr, *mask),
            (option @ ("stp-type" | "stp-flags"), Wanted::Range(number, _)) => {
                let names = if option == "stp-type" { TYPES } else { FLAGS };
                let found = names.iter().find(|(_, value)| u32::from(*value) == *number);
                found.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned())
            }
            (_, Wanted::Range(low, high)) if low == high => low.to_string(),
            (_, Wanted::Range(low, high)) => format!("{low}:{high}"),
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match self.wanted {
            Wanted::Mac(addr, mask) => native::test(transit.net::<6>(self.field.at), |mac| {
                (0..6).all(|i| (mac[i] ^ addr[i]) & mask[i] == 0) != self.invert
            }),
            Wanted::Range(low, high) => {
                let read = transit
                    .packet
                    .read_slice(transit.packet.network_offset() + self.field.at, self.field.len);
                let number =
                    |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
                match read.map(number) {
                    Read::Known(number) => {
                        Outcome::from_bool((low..=high).contains(&number) != self.invert)
                    }
                    Read::Unknown => Outcome::MAYBE,
                    Read::Absent => Outcome::NO,
                }
            }
        }
    }
}

impl Match for Stp {
    fn print(&self, to: &mut Printer) {
        for test in &self.0 {
            to.option(test.invert, test.field.option, test.text());
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.net::<6>(0) {
            Read::Known(HEADER) => {}
            Read::Known(_) | Read::Absent => return Outcome::NO,
            Read::Unknown => return Outcome::MAYBE,
        }
        let network = transit.packet.network_offset();
        let has_config = self.0.iter().any(|test| test.field.at != TYPE);
        if has_config && transit.packet.read_slice(network, CONFIG_LEN) == Read::Absent {
            return Outcome::NO;
        }
        self.0.iter().fold(Outcome::YES, |all, test| all.and_then(|| test.evaluate(transit)))
    }
}
