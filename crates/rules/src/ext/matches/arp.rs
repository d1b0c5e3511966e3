//! `--arp-op` and kin: fields of an ARP packet on a bridge.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_arp.c`; RFC 826.

use packet::{Read, arp, ethertype};

use crate::error::What;
use crate::ext::kit::native;
use crate::ext::{Args, BRIDGE, Given, Match, MatchKind, Opt, Printer, Support};
use crate::names::ethertype_number;
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "arp",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::value("arp-op").alias(&["arp-opcode"]).invertible(),
        Opt::value("arp-htype").alias(&["arp-hwtype"]).invertible(),
        Opt::value("arp-ptype").invertible(),
        Opt::value("arp-ip-src").invertible(),
        Opt::value("arp-ip-dst").invertible(),
        Opt::value("arp-mac-src").invertible(),
        Opt::value("arp-mac-dst").invertible(),
        Opt::flag("arp-gratuitous").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

/// Reverse ARP.
const RARP: u16 = 0x8035;
/// Hardware type of Ethernet.
const ETHERNET: u16 = 1;

const NUMBERS: [(&str, usize); 3] = [
    ("arp-op", arp::OPERATION.start),
    ("arp-htype", arp::HARDWARE_TYPE.start),
    ("arp-ptype", arp::PROTOCOL_TYPE.start),
];
const ADDRESSES: [&str; 2] = ["arp-ip-src", "arp-ip-dst"];
const MACS: [&str; 2] = ["arp-mac-src", "arp-mac-dst"];

/// A value under a mask, and `!`.
#[derive(Debug, Clone, Copy)]
struct Masked<const N: usize> {
    value: [u8; N],
    mask: [u8; N],
    invert: bool,
}

impl<const N: usize> Masked<N> {
    fn accepts(&self, bytes: [u8; N]) -> bool {
        (0..N).all(|i| (bytes[i] ^ self.value[i]) & self.mask[i] == 0) != self.invert
    }
}

#[derive(Debug)]
struct Arp {
    numbers: [Option<(u16, bool)>; 3],
    addresses: [Option<Masked<4>>; 2],
    macs: [Option<Masked<6>>; 2],
    /// Sender and target have one address: `Some(true)` is `!`.
    gratuitous: Option<bool>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_ethertype(&[ethertype::ARP, RARP])?;
    let [op, htype, ptype] = NUMBERS.map(|(name, _)| args.get(name).map(number).transpose());
    let [source, destination] = ADDRESSES.map(|name| args.get(name).map(network).transpose());
    let [sender, target] = MACS.map(|name| args.get(name).map(mac).transpose());
    Ok(Box::new(Arp {
        numbers: [op?, htype?, ptype?],
        addresses: [source?, destination?],
        macs: [sender?, target?],
        gratuitous: args.get("arp-gratuitous").map(|given| given.invert),
    }))
}

fn number(given: &Given<'_>) -> Result<(u16, bool), What> {
    let text = given.text();
    let hex = || u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let read = match given.name {
        "arp-op" => value::arp_operation(text).or_else(|| value::u16(text)),
        "arp-htype" if text.eq_ignore_ascii_case("Ethernet") => Some(ETHERNET),
        "arp-htype" => value::u16(text),
        _ => ethertype_number(text).or_else(|| hex().filter(|_| !text.starts_with('+'))),
    };
    let number = read.ok_or_else(|| given.expected("a number of 16 bits, or a name of one"))?;
    Ok((number, given.invert))
}

fn network(given: &Given<'_>) -> Result<Masked<4>, What> {
    let (addr, mask) = value::network(given.text(), 4)
        .ok_or_else(|| given.expected("an IPv4 address or address/mask"))?;
    let first = |bytes: [u8; 16]| [bytes[0], bytes[1], bytes[2], bytes[3]];
    Ok(Masked { value: first(addr), mask: first(mask), invert: given.invert })
}

fn mac(given: &Given<'_>) -> Result<Masked<6>, What> {
    let (value, mask) = value::masked_mac(given.text())
        .ok_or_else(|| given.expected("an Ethernet address[/mask]"))?;
    Ok(Masked { value, mask, invert: given.invert })
}

impl Match for Arp {
    fn print(&self, to: &mut Printer) {
        for (test, (name, _)) in self.numbers.iter().zip(NUMBERS) {
            let Some((number, invert)) = *test else { continue };
            let operation = value::ARP_OPERATIONS.get(usize::from(number).wrapping_sub(1));
            match (name, operation) {
                ("arp-op", Some(operation)) => _ = to.option(invert, name, operation),
                ("arp-ptype", _) => _ = to.option(invert, name, format_args!("{number:#x}")),
                _ => _ = to.option(invert, name, number),
            }
        }
        for (test, name) in self.addresses.iter().zip(ADDRESSES) {
            let Some(Masked { value, mask, invert }) = *test else { continue };
            let wide = |[a, b, c, d]: [u8; 4]| [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            to.option(invert, name, value::short_network_text(&wide(value), &wide(mask), 4));
        }
        for (test, name) in self.macs.iter().zip(MACS) {
            let Some(Masked { value, mask, invert }) = *test else { continue };
            to.option(invert, name, value::masked_mac_text(value, mask));
        }
        if let Some(invert) = self.gratuitous {
            to.flag(invert, "arp-gratuitous");
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        // The kernel wants the fixed part whole.
        if transit.net::<8>(0) == Read::Absent {
            return Outcome::NO;
        }
        self.numbers
            .iter()
            .zip(NUMBERS)
            .fold(Outcome::YES, |all, (test, (_, at))| {
                all.and_then(|| match test {
                    None => Outcome::YES,
                    Some((number, invert)) => native::test(transit.net::<2>(at), |bytes| {
                        (u16::from_be_bytes(bytes) == *number) != *invert
                    }),
                })
            })
            .and_then(|| self.evaluate_addresses(transit))
            .and_then(|| self.evaluate_macs(transit))
    }
}

impl Arp {
    /// Addresses stand after as many bytes as the packet says its hardware addresses have.
    fn evaluate_addresses(&self, transit: &Transit<'_, '_>) -> Outcome {
        let [source, destination] = &self.addresses;
        if source.is_none() && destination.is_none() && self.gratuitous.is_none() {
            return Outcome::YES;
        }
        let hardware = match transit.net::<6>(0) {
            Read::Known([_, _, 0x08, 0x00, len, 4]) => usize::from(len),
            Read::Known(_) | Read::Absent => return Outcome::NO,
            Read::Unknown => return Outcome::MAYBE,
        };
        let fixed = arp::SENDER_HARDWARE.start;
        let sender = transit.net::<4>(fixed + hardware);
        let target = transit.net::<4>(fixed + 2 * hardware + 4);
        if sender == Read::Absent || target == Read::Absent {
            return Outcome::NO;
        }
        let evaluate = |test: &Option<Masked<4>>, read| match test {
            None => Outcome::YES,
            Some(test) => native::test(read, |addr| test.accepts(addr)),
        };
        let gratuitous = || match (self.gratuitous, sender, target) {
            (None, ..) => Outcome::YES,
            (Some(invert), Read::Known(sender), Read::Known(target)) => {
                Outcome::from_bool((sender == target) != invert)
            }
            (Some(_), ..) => Outcome::MAYBE,
        };
        evaluate(source, sender).and_then(|| evaluate(destination, target)).and_then(gratuitous)
    }

    fn evaluate_macs(&self, transit: &Transit<'_, '_>) -> Outcome {
        if self.macs.iter().all(Option::is_none) {
            return Outcome::YES;
        }
        let protocol = match transit.net::<6>(0) {
            Read::Known([0, 1, _, _, 6, len]) => usize::from(len),
            Read::Known(_) | Read::Absent => return Outcome::NO,
            Read::Unknown => return Outcome::MAYBE,
        };
        let sender = arp::SENDER_HARDWARE.start;
        let at = [sender, sender + 6 + protocol];
        self.macs.iter().zip(at).fold(Outcome::YES, |all, (test, at)| {
            all.and_then(|| match test {
                None => Outcome::YES,
                Some(test) => native::test(transit.net(at), |mac| test.accepts(mac)),
            })
        })
    }
}
