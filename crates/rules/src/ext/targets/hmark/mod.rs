//! `-j HMARK`: sets the packet mark from a hash of its flow, and goes on. A packet of which there is nothing to hash
//! keeps its mark.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_HMARK.c`.

mod tuple;

use self::tuple::{Fields, Tuple};
use crate::error::What;
use crate::ext::{Args, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::Family;
use crate::transit::Transit;
use crate::value;
use packet::{Mark, Read};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "HMARK",
    families: IP,
    options: &[
        Opt::value("hmark-tuple"),
        Opt::value("hmark-src-prefix"),
        Opt::value("hmark-dst-prefix"),
        Opt::value("hmark-sport-mask"),
        Opt::value("hmark-dport-mask"),
        Opt::value("hmark-spi-mask"),
        Opt::value("hmark-sport"),
        Opt::value("hmark-dport"),
        Opt::value("hmark-spi"),
        Opt::value("hmark-proto-mask"),
        Opt::value("hmark-rnd"),
        Opt::value("hmark-mod"),
        Opt::value("hmark-offset"),
    ],
    support: Support::Evaluated,
    parse,
};

/// What goes into the hash; a field that is `None` stays out.
#[derive(Debug, Default)]
struct Hmark {
    source_prefix: Option<u8>,
    destination_prefix: Option<u8>,
    sport_mask: Option<u16>,
    dport_mask: Option<u16>,
    spi_mask: Option<u32>,
    sport: Option<u16>,
    dport: Option<u16>,
    spi: Option<u32>,
    proto_mask: Option<u16>,
    seed: u32,
    modulus: u32,
    offset: Option<u32>,
    conntrack: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.required("hmark-mod")?;
    args.required("hmark-rnd")?;
    let full = args.family.addr_len() as u8 * 8;
    let mut hmark = Hmark::default();
    for given in args.given {
        match given.name {
            "hmark-tuple" => hmark.take_tuple(given, full)?,
            "hmark-src-prefix" => hmark.source_prefix = Some(prefix(given, full)?),
            "hmark-dst-prefix" => hmark.destination_prefix = Some(prefix(given, full)?),
            _ => hmark.take_number(given)?,
        }
    }
    hmark.check(args)?;
    Ok(Box::new(hmark))
}

/// A prefix length or a mask that has one.
fn prefix(given: &Given<'_>, full: u8) -> Result<u8, What> {
    let len = usize::from(full / 8);
    value::mask(given.text(), len)
        .and_then(|mask| value::prefix_len(&mask, len))
        .map(|bits| bits as u8)
        .ok_or_else(|| given.expected(format!("a prefix length 0-{full}")))
}

fn number(given: &Given<'_>, max: u32) -> Result<u32, What> {
    value::number(given.text(), max.into())
        .map(|number| number as u32)
        .ok_or_else(|| given.expected(format!("a number 0-{max}")))
}

impl Hmark {
    /// Names of the tuple may be shortened; the first that fits is meant.
    fn take_tuple(&mut self, given: &Given<'_>, full: u8) -> Result<(), What> {
        const NAMES: [&str; 7] = ["ct", "src", "dst", "sport", "dport", "proto", "spi"];
        for part in given.text().split(',') {
            let part = part.to_ascii_lowercase();
            match NAMES.into_iter().find(|name| !part.is_empty() && name.starts_with(&part)) {
                Some("ct") => self.conntrack = true,
                Some("src") => self.source_prefix = Some(full),
                Some("dst") => self.destination_prefix = Some(full),
                Some("sport") => self.sport_mask = Some(u16::MAX),
                Some("dport") => self.dport_mask = Some(u16::MAX),
                Some("proto") => self.proto_mask = Some(u16::MAX),
                Some(_) => self.spi_mask = Some(u32::MAX),
                None => {
                    return Err(given.expected(format!("a comma-list of {}", NAMES.join(" "))));
                }
            }
        }
        Ok(())
    }

    fn take_number(&mut self, given: &Given<'_>) -> Result<(), What> {
        let port = || number(given, u16::MAX.into()).map(|number| Some(number as u16));
        let word = || number(given, u32::MAX);
        match given.name {
            "hmark-sport-mask" => self.sport_mask = port()?,
            "hmark-dport-mask" => self.dport_mask = port()?,
            "hmark-sport" => self.sport = port()?,
            "hmark-dport" => self.dport = port()?,
            "hmark-proto-mask" => self.proto_mask = port()?,
            "hmark-spi-mask" => self.spi_mask = Some(word()?),
            "hmark-spi" => self.spi = Some(word()?),
            "hmark-rnd" => self.seed = word()?,
            "hmark-offset" => self.offset = Some(word()?),
            _ => {
                self.modulus = word()?;
                if self.modulus == 0 {
                    return Err(given.expected("a number from 1"));
                }
            }
        }
        Ok(())
    }

    /// Ports and SPI share their place in the kernel.
    fn check(&self, args: &Args<'_>) -> Result<(), What> {
        let masks = self.sport_mask.is_some() || self.dport_mask.is_some();
        let ports = self.sport.is_some() || self.dport.is_some();
        if (masks && self.spi_mask.is_some()) || (ports && self.spi.is_some()) {
            return Err(args.expected("ports or SPI, not both,"));
        }
        let addresses = self.source_prefix.is_some() || self.destination_prefix.is_some();
        let spi = self.spi_mask.is_some() || self.spi.is_some();
        if addresses || masks || ports || spi || self.proto_mask.is_some() || self.conntrack {
            return Ok(());
        }
        Err(args.expected("--hmark-tuple"))
    }
}

impl Target for Hmark {
    fn print(&self, to: &mut Printer) {
        let mut option = |name: &str, text: Option<String>| {
            if let Some(text) = text {
                to.option(false, name, text);
            }
        };
        let port = |port: Option<u16>| port.map(|port| format!("{port:#06x}"));
        let spi = |spi: Option<u32>| spi.map(|spi| format!("{spi:#010x}"));
        option("hmark-src-prefix", self.source_prefix.map(|bits| bits.to_string()));
        option("hmark-dst-prefix", self.destination_prefix.map(|bits| bits.to_string()));
        option("hmark-sport-mask", port(self.sport_mask));
        option("hmark-dport-mask", port(self.dport_mask));
        option("hmark-spi-mask", spi(self.spi_mask));
        option("hmark-sport", port(self.sport));
        option("hmark-dport", port(self.dport));
        option("hmark-spi", spi(self.spi));
        option("hmark-proto-mask", self.proto_mask.map(|mask| format!("{mask:#04x}")));
        option("hmark-rnd", spi(Some(self.seed)));
        option("hmark-mod", Some(self.modulus.to_string()));
        option("hmark-offset", self.offset.map(|offset| offset.to_string()));
        option("hmark-tuple", self.conntrack.then(|| "ct".to_owned()));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let fields = self.fields();
        let tuple = match (self.conntrack, transit.family) {
            (true, _) => fields.of_connection(&transit.ct),
            (false, Family::Ipv6) => fields.of_ipv6(transit),
            (false, _) => fields.of_ipv4(transit),
        };
        match tuple {
            Read::Known(tuple) => transit.set_mark(Mark { value: self.mark(&tuple), unknown: 0 }),
            Read::Unknown => transit.set_mark(Mark { value: 0, unknown: u32::MAX }),
            Read::Absent => {}
        }
        Effect::Continue
    }
}

impl Hmark {
    /// What is hashed of a packet. Ports and SPI are one field.
    fn fields(&self) -> Fields {
        let ports = |source: Option<u16>, destination: Option<u16>| {
            u32::from(source.unwrap_or(0)) << 16 | u32::from(destination.unwrap_or(0))
        };
        Fields {
            source_prefix: self.source_prefix.unwrap_or(0),
            destination_prefix: self.destination_prefix.unwrap_or(0),
            port_mask: ports(self.sport_mask, self.dport_mask) | self.spi_mask.unwrap_or(0),
            port_set: ports(self.sport, self.dport) | self.spi.unwrap_or(0),
        }
    }

    /// `hmark_hash`.
    fn mark(&self, tuple: &Tuple) -> u32 {
        let proto = u16::from(tuple.protocol) & self.proto_mask.unwrap_or(0);
        let hash = tuple.hash(self.seed) ^ u32::from(proto);
        let scaled = (u64::from(hash) * u64::from(self.modulus)) >> 32;
        (scaled as u32).wrapping_add(self.offset.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests;
