//! `--vlan-id`, `--vlan-prio`, `--vlan-encap`: the VLAN tag of a frame.
//!
//! The kernel forgets the priority of a rule that names an id other than 0, for the standard says that such
//! tags have any. Source: ebtables-nft(8); kernel `net/bridge/netfilter/ebt_vlan.c`.

use packet::{Read, ethertype, vlan};

use crate::error::What;
use crate::ext::kit::{native, number};
use crate::ext::{Args, BRIDGE, Match, MatchKind, Opt, Printer, Support};
use crate::names::ethertype_number;
use crate::outcome::Outcome;
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "vlan",
    aliases: &[],
    families: BRIDGE,
    protocol: None,
    options: &[
        Opt::value("vlan-id").invertible(),
        Opt::value("vlan-prio").invertible(),
        Opt::value("vlan-encap").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_ID: u64 = 4094;
const MAX_PRIO: u64 = 7;
/// Bytes from the tag's control information back to the network header.
const TAG_LEN: usize = 4;

/// A number, and `!`.
type Test = Option<(u16, bool)>;

#[derive(Debug)]
struct Vlan {
    id: Test,
    prio: Test,
    encap: Test,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_ethertype(&[ethertype::VLAN])?;
    let number = |name, max| -> Result<Test, What> {
        let Some(given) = args.get(name) else { return Ok(None) };
        Ok(Some((number::between(given, 0, max)? as u16, given.invert)))
    };
    let encap = match args.get("vlan-encap") {
        None => None,
        Some(given) => {
            let hex = given.text().trim_start_matches("0x");
            let read = ethertype_number(given.text())
                .or_else(|| u16::from_str_radix(hex, 16).ok())
                .filter(|kind| *kind >= ethertype::MIN);
            let kind =
                read.ok_or_else(|| given.expected("an EtherType, hexadecimal or by name"))?;
            Some((kind, given.invert))
        }
    };
    Ok(Box::new(Vlan {
        id: number("vlan-id", MAX_ID)?,
        prio: number("vlan-prio", MAX_PRIO)?,
        encap,
    }))
}

impl Match for Vlan {
    fn print(&self, to: &mut Printer) {
        for (test, name) in [(self.id, "vlan-id"), (self.prio, "vlan-prio")] {
            if let Some((number, invert)) = test {
                to.option(invert, name, number);
            }
        }
        if let Some((kind, invert)) = self.encap {
            to.option(invert, "vlan-encap", format_args!("{kind:04X}"));
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let Some(tci) = transit.packet.headers().link.vlan else { return Outcome::NO };
        let is = |test: Test, value: u16| test.is_none_or(|(wanted, not)| (value == wanted) != not);
        let names_id = self.id.is_some_and(|(id, _)| id != 0);
        let prio = self.prio.filter(|_| !names_id);
        if !(is(self.id, vlan::id(tci)) && is(prio, vlan::priority(tci).into())) {
            return Outcome::NO;
        }
        let Some((wanted, invert)) = self.encap else { return Outcome::YES };
        let at = transit.packet.network_offset().saturating_sub(TAG_LEN) + vlan::TYPE.start;
        let read: Read<[u8; 2]> = transit.packet.read(at);
        native::test(read, |kind| (u16::from_be_bytes(kind) == wanted) != invert)
    }
}
