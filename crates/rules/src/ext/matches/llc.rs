//! `--802_3-sap`, `--802_3-type`: service access points and SNAP type of an 802.3 frame.
//!
//! Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_802_3.c`.

use packet::{LinkHeader, Read};

use crate::error::What;
use crate::ext::{Args, BRIDGE, Given, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "802_3",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[Opt::value("802_3-sap").invertible(), Opt::value("802_3-type").invertible()],
    support: Support::Evaluated,
    parse,
};

/// Both access points of a frame that carries a type.
const SNAP: u8 = 0xaa;
/// Bits of the control byte that say that it is one byte long.
const UNNUMBERED: u8 = 0x03;

/// A number, and `!`.
type Test<T> = Option<(T, bool)>;

#[derive(Debug)]
struct Llc {
    sap: Test<u8>,
    kind: Test<u16>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_ethertype(&[LinkHeader::LLC])?;
    let sap = args.get("802_3-sap").map(|given| hex(given, 0xff)).transpose()?;
    let kind = args.get("802_3-type").map(|given| hex(given, 0xffff)).transpose()?;
    Ok(Box::new(Llc { sap: sap.map(|(sap, invert)| (sap as u8, invert)), kind }))
}

fn hex(given: &Given<'_>, max: u16) -> Result<(u16, bool), What> {
    let digits = given.text().trim_start_matches("0x");
    let number = u16::from_str_radix(digits, 16).ok();
    let number = number.filter(|number| *number <= max && !digits.starts_with('+'));
    let number =
        number.ok_or_else(|| given.expected(format!("a hexadecimal number of at most {max:x}")))?;
    Ok((number, given.invert))
}

impl Match for Llc {
    fn print(&self, to: &mut Printer) {
        if let Some((sap, invert)) = self.sap {
            to.option(invert, "802_3-sap", format_args!("{sap:#04x}"));
        }
        if let Some((kind, invert)) = self.kind {
            to.option(invert, "802_3-type", format_args!("{kind:#06x}"));
        }
    }

    /// The kernel does not look where the frame ends: what is absent is not known.
    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Read::Known([destination, source, control]) = transit.net::<3>(0) else {
            return Outcome::MAYBE;
        };
        let both = self.sap.is_none_or(|(sap, invert)| {
            (source == sap) != invert && (destination == sap) != invert
        });
        let Some((wanted, invert)) = self.kind.filter(|_| both) else {
            return Outcome::from_bool(both);
        };
        if (source, destination) != (SNAP, SNAP) {
            return Outcome::NO;
        }
        // Behind a control field of two bytes the kernel's structure has one of padding.
        let at = if control & UNNUMBERED != 0 { 6 } else { 8 };
        match transit.net::<2>(at) {
            Read::Known(kind) => Outcome::from_bool((u16::from_be_bytes(kind) == wanted) != invert),
            _ => Outcome::MAYBE,
        }
    }
}
