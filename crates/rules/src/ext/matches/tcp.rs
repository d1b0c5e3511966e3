//! `-m tcp`: ports, flags and the presence of an option.
//!
//! A fragment that starts 8 bytes into the packet could overwrite the flags, so it is dropped on the
//! spot; so is a packet that ends inside the header, and with `--tcp-option` one whose options run past
//! the end. Source: iptables-extensions(8); kernel `net/netfilter/xt_tcpudp.c`.

use packet::{L4, Read};

use crate::backend::Backend;
use crate::error::What;
use crate::ext::kit::native;
use crate::ext::kit::option_walk::has_option;
use crate::ext::kit::ports::{DPORT, PortTest, SPORT, upper_start};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, PortRanges, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

const PROTOCOL: u8 = 6;
const HEADER: usize = 20;
/// Bytes of the header that are tested: up to the flags. The checksum after them may be unknown.
const NEEDED: usize = 14;
/// Offset of the flags in the header.
const FLAGS_AT: usize = 13;
/// The byte whose upper half is the header's length in words of 32 bits.
const WORDS_AT: usize = 12;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "tcp",
    aliases: &[],
    families: IP,
    protocol: Some(PROTOCOL),
    options: &[
        SPORT,
        DPORT,
        Opt::pair("tcp-flags").invertible(),
        Opt::flag("syn").invertible(),
        Opt::value("tcp-option").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

/// Flag bits by the names that options and printed rules use, in printing order.
const FLAGS: [(&str, u8); 6] =
    [("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

#[derive(Debug)]
struct Tcp {
    source: PortTest,
    destination: PortTest,
    flags: FlagsTest,
    option: Option<(u8, bool)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FlagsTest {
    mask: u8,
    set: u8,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    args.one_of(&["tcp-flags", "syn"])?;
    let flags = match (args.get("tcp-flags"), args.get("syn")) {
        (Some(given), _) => parse_flags(given)?,
        (None, Some(given)) => FlagsTest { mask: 0x17, set: 0x02, invert: given.invert },
        (None, None) => FlagsTest::default(),
    };
    let option = match args.get("tcp-option") {
        Some(given) => {
            let kind = value::u8(given.text()).filter(|kind| *kind > 0);
            Some((kind.ok_or_else(|| given.expected("an option kind 1-255"))?, given.invert))
        }
        None => None,
    };
    Ok(Box::new(Tcp {
        source: PortTest::parse(args, "sport")?,
        destination: PortTest::parse(args, "dport")?,
        flags,
        option,
    }))
}

fn parse_flags(given: &Given<'_>) -> Result<FlagsTest, What> {
    let what = "a comma list of FIN SYN RST PSH ACK URG, or ALL, or NONE";
    let mask = flag_bits(given.text()).ok_or_else(|| given.expected(what))?;
    let set = flag_bits(given.second()).ok_or_else(|| given.second_expected(what))?;
    Ok(FlagsTest { mask, set, invert: given.invert })
}

fn flag_bits(text: &str) -> Option<u8> {
    value::list(text).try_fold(0, |bits, name| {
        let bit = match FLAGS.iter().find(|(flag, _)| flag.eq_ignore_ascii_case(name)) {
            Some((_, bit)) => *bit,
            None if name.eq_ignore_ascii_case("ALL") => 0x3f,
            None if name.eq_ignore_ascii_case("NONE") => 0,
            None => return None,
        };
        Some(bits | bit)
    })
}

fn flag_names(bits: u8) -> String {
    let names: Vec<&str> =
        FLAGS.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect();
    if names.is_empty() { "NONE".to_owned() } else { names.join(",") }
}

impl Match for Tcp {
    fn print(&self, to: &mut Printer) {
        self.source.print("sport", to);
        self.destination.print("dport", to);
        if let Some((kind, invert)) = self.option {
            to.option(invert, "tcp-option", kind);
        }
        let FlagsTest { mask, set, invert } = self.flags;
        if mask != 0 || set != 0 || invert {
            to.option(invert, "tcp-flags", flag_names(mask)).word(flag_names(set));
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        if transit.backend == Backend::Nft && self.is_native() {
            return self.evaluate_fields(transit);
        }
        if let L4::Fragment { offset: 1, .. } = transit.packet.headers().l4 {
            return Outcome::HOT_DROP;
        }
        match upper_start::<NEEDED>(transit, HEADER) {
            Ok((offset, header)) => self.evaluate_header(transit, offset, &header),
            Err(Outcome::MAYBE) => self.evaluate_cut(transit),
            Err(outcome) => outcome,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        let FlagsTest { mask, set, invert } = self.flags;
        // Under nf_tables a mask without a bit is no test, not even with `!`.
        if self.option.is_some() || mask == 0 && self.flags != FlagsTest::default() {
            return None;
        }
        let flags = Predicate::byte(Field::TcpFlags, set, mask).inverted(invert);
        Some(Predicate::of_header([flags, PortTest::predicate(self.source, self.destination)?]))
    }

    fn port_ranges(&self) -> Option<PortRanges> {
        let only_ports = self.option.is_none() && self.flags == FlagsTest::default();
        PortRanges::of(PROTOCOL, self.source, self.destination).filter(|_| only_ports)
    }

    fn destinations(&self) -> Option<Vec<(u16, u16)>> {
        let ranges = PortRanges::of(PROTOCOL, PortTest::ANY, self.destination)?;
        Some(vec![ranges.destination])
    }
}

impl Tcp {
    /// Whether iptables-nft turns it into native expressions.
    fn is_native(&self) -> bool {
        let ports = self.source != PortTest::ANY || self.destination != PortTest::ANY;
        self.option.is_none() && (ports || self.flags != FlagsTest::default())
    }

    /// Field by field, as nf_tables does. A mask without a bit is no test, not even with `!`.
    fn evaluate_fields(&self, transit: &Transit<'_, '_>) -> Outcome {
        let FlagsTest { mask, set, invert } = self.flags;
        let flags = match mask {
            0 => Outcome::YES,
            _ => native::test(native::field(transit, FLAGS_AT), |[flags]: [u8; 1]| {
                ((flags & mask) == set) != invert
            }),
        };
        flags.and_then(|| native::ports(transit, [self.source, self.destination]))
    }

    fn evaluate_header(
        &self,
        transit: &Transit<'_, '_>,
        offset: usize,
        header: &[u8; NEEDED],
    ) -> Outcome {
        let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        if !self.source.accepts(port(0)) || !self.destination.accepts(port(2)) {
            return Outcome::NO;
        }
        let FlagsTest { mask, set, invert } = self.flags;
        if ((header[FLAGS_AT] & mask) == set) == invert {
            return Outcome::NO;
        }
        match self.option {
            None => Outcome::YES,
            Some((kind, invert)) => {
                find_option(transit, offset, header[WORDS_AT] >> 4, kind, invert)
            }
        }
    }

    /// The capture holds only part of the header: what it holds may still decide.
    fn evaluate_cut(&self, transit: &Transit<'_, '_>) -> Outcome {
        match upper_start::<4>(transit, HEADER) {
            Ok((offset, b)) => {
                let source = u16::from_be_bytes([b[0], b[1]]);
                let destination = u16::from_be_bytes([b[2], b[3]]);
                if !self.source.accepts(source) || !self.destination.accepts(destination) {
                    return Outcome::NO;
                }
                let flags = self.cut_flags(transit);
                match self.option {
                    _ if flags == Outcome::NO => Outcome::NO,
                    None => flags,
                    Some((kind, invert)) => match transit.packet.read(offset + WORDS_AT) {
                        Read::Known([words]) => flags
                            .and_then(|| find_option(transit, offset, words >> 4, kind, invert)),
                        _ => Outcome::MAYBE.or(Outcome::HOT_DROP),
                    },
                }
            }
            Err(_) if self.option.is_some() => Outcome::MAYBE.or(Outcome::HOT_DROP),
            Err(_) => Outcome::MAYBE,
        }
    }
}

impl Tcp {
    /// The test of flags, of a header of which other bytes are not known.
    fn cut_flags(&self, transit: &Transit<'_, '_>) -> Outcome {
        let FlagsTest { mask, set, invert } = self.flags;
        let L4::Upper(upper) = transit.upper_layer() else { return Outcome::MAYBE };
        match transit.packet.upper(&upper, FLAGS_AT) {
            Read::Known([flags]) => Outcome::from_bool(((flags & mask) == set) != invert),
            _ if mask == 0 => Outcome::from_bool((set == 0) != invert),
            Read::Unknown | Read::Absent => Outcome::MAYBE,
        }
    }
}

/// Walks the options that a data offset of `words` 32-bit words announces.
fn find_option(
    transit: &Transit<'_, '_>,
    offset: usize,
    words: u8,
    kind: u8,
    invert: bool,
) -> Outcome {
    let header_len = usize::from(words) * 4;
    if header_len < HEADER {
        return Outcome::HOT_DROP;
    }
    match transit.packet.read_slice(offset + HEADER, header_len - HEADER) {
        Read::Known(options) => Outcome::from_bool(has_option(options, kind) != invert),
        Read::Unknown => Outcome::MAYBE,
        Read::Absent => Outcome::HOT_DROP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_in_header_order() {
        assert_eq!(flag_bits("syn,FIN"), Some(3));
        assert_eq!(flag_names(3), "FIN,SYN");
        assert_eq!(flag_bits("ALL"), Some(0x3f));
        assert_eq!(flag_names(0), "NONE");
        assert_eq!(flag_bits("SYN,FOO"), None);
    }
}
