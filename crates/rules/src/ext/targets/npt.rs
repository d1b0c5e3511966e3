//! `-j SNPT` and `-j DNPT`: IPv6 network prefix translation, without state, after which the walk goes on: the prefix of
//! an address is replaced and one 16-bit word adjusted so that no checksum changes.
//!
//! Source: RFC 6296, section 3; kernel `net/ipv6/netfilter/ip6t_NPT.c` for what it does where the RFC
//! leaves a choice.

use packet::{L4, Read};

use crate::error::What;
use crate::ext::{Args, Effect, Opt, Printer, Support, Target, TargetKind, V6};
use crate::family::{Hook, TableKind};
use crate::transit::Transit;
use crate::value;

/// The options of both targets.
const OPTIONS: &[Opt] = &[Opt::value("src-pfx"), Opt::value("dst-pfx")];

/// For the source.
pub(crate) static SNPT: TargetKind = TargetKind {
    name: "SNPT",
    families: V6,
    options: OPTIONS,
    support: Support::Evaluated,
    parse: |args| {
        args.needs_hook(&[Hook::Input, Hook::Postrouting])?;
        Ok(Box::new(Npt::of_source(args)?))
    },
};

/// For the destination.
pub(crate) static DNPT: TargetKind = TargetKind {
    name: "DNPT",
    families: V6,
    options: OPTIONS,
    support: Support::Evaluated,
    parse: |args| {
        args.needs_hook(&[Hook::Prerouting, Hook::Output])?;
        Ok(Box::new(Npt::of_destination(args)?))
    },
};

const MAX_PREFIX: usize = 64;
const ADDR_LEN: usize = 16;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;
const ICMPV6: u8 = 58;
/// ICMPv6 types below this one are errors, which quote a packet after 8 bytes.
const FIRST_QUERY: u8 = 128;
const ICMPV6_HEADER: usize = 8;

/// SNPT or DNPT with its prefixes.
#[derive(Debug)]
struct Npt {
    /// Offset in the IPv6 header of the address that is translated.
    addr_at: usize,
    /// Where a packet of the other direction, quoted by an ICMPv6 error, has the address.
    quoted_at: usize,
    from: Prefix,
    to: Prefix,
}

#[derive(Debug)]
struct Prefix {
    addr: [u8; 16],
    bits: usize,
}

impl Npt {
    /// Translates the source address.
    fn of_source(args: &Args<'_>) -> Result<Self, What> {
        Self::parse(args, SOURCE, DESTINATION)
    }

    /// Translates the destination address.
    fn of_destination(args: &Args<'_>) -> Result<Self, What> {
        Self::parse(args, DESTINATION, SOURCE)
    }

    fn parse(args: &Args<'_>, addr_at: usize, quoted_at: usize) -> Result<Self, What> {
        args.needs_table(&[TableKind::MANGLE])?;
        let (from, to) = (Prefix::parse(args, "src-pfx")?, Prefix::parse(args, "dst-pfx")?);
        Ok(Self { addr_at, quoted_at, from, to })
    }

    /// The translated address; `None` if no word of it can be adjusted.
    fn map(&self, mut addr: [u8; 16]) -> Option<[u8; 16]> {
        let bits = self.from.bits.max(self.to.bits);
        let keep = value::prefix_mask(bits);
        for (byte, (keep, new)) in addr.iter_mut().zip(keep.into_iter().zip(self.to.addr)) {
            *byte = (*byte & !keep) | new;
        }
        let word = adjusted_word(bits, &addr)?;
        let at = word * 2;
        let old = u16::from_be_bytes([addr[at], addr[at + 1]]);
        let new = (u32::from(old) + self.adjustment()) % 0xffff;
        addr[at..at + 2].copy_from_slice(&(new as u16).to_be_bytes());
        Some(addr)
    }

    /// What is added to a word, modulo 0xffff, to make up for the new prefix.
    fn adjustment(&self) -> u32 {
        self.from.sum() + 0xffff - self.to.sum()
    }

    /// An ICMPv6 error quotes a packet in which the kernel translates the address back.
    fn forget_quoted(&self, transit: &mut Transit<'_, '_>) {
        let headers = *transit.packet.headers();
        let L4::Upper(upper) = headers.l4 else { return };
        let is_query = matches!(
            transit.packet.upper::<1>(&upper, 0),
            Read::Known([kind]) if kind >= FIRST_QUERY
        );
        if upper.protocol == ICMPV6 && !is_query {
            let start =
                (upper.offset + ICMPV6_HEADER + self.quoted_at).saturating_sub(headers.network);
            transit.forget_net(start..start + ADDR_LEN);
        }
    }

    /// The address is not known: neither is its translation, nor, when all its words may be 0xffff,
    /// whether there is one.
    fn map_unknown(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let decided = self.from.bits.max(self.to.bits) <= 48
            || (4..8).any(|word| {
                let read = transit.net::<2>(self.addr_at + word * 2);
                matches!(read, Read::Known(bytes) if bytes != [0xff; 2])
            });
        transit.forget_net(self.addr_at..self.addr_at + ADDR_LEN);
        if decided { Effect::Continue } else { Effect::Unknown }
    }
}

/// The word that takes the adjustment: the one after a prefix of up to 48 bits, else the first of the
/// interface identifier that is not 0xffff.
fn adjusted_word(bits: usize, addr: &[u8; 16]) -> Option<usize> {
    if bits <= 48 {
        return Some(3);
    }
    (4..8).find(|word| addr[word * 2..word * 2 + 2] != [0xff; 2])
}

impl Prefix {
    fn parse(args: &Args<'_>, name: &str) -> Result<Self, What> {
        let given = args.required(name)?;
        let text = given.text().split('/').next().unwrap_or("");
        let prefix = value::network(given.text(), ADDR_LEN)
            .filter(|(masked, _)| value::address(text, ADDR_LEN) == Some(*masked))
            .and_then(|(addr, mask)| Some((addr, value::prefix_len(&mask, ADDR_LEN)?)))
            .filter(|(_, bits)| *bits <= MAX_PREFIX);
        let (addr, bits) =
            prefix.ok_or_else(|| given.expected("a prefix of at most 64 bits, others zero,"))?;
        Ok(Self { addr, bits })
    }

    /// Sum of its words, modulo 0xffff.
    fn sum(&self) -> u32 {
        self.addr
            .as_chunks::<2>()
            .0
            .iter()
            .map(|word| u32::from(u16::from_be_bytes(*word)))
            .sum::<u32>()
            % 0xffff
    }

    fn print(&self, name: &str, to: &mut Printer) {
        let addr = value::address_text(&self.addr, ADDR_LEN);
        to.option(false, name, format_args!("{addr}/{}", self.bits));
    }
}

impl Target for Npt {
    fn print(&self, to: &mut Printer) {
        self.from.print("src-pfx", to);
        self.to.print("dst-pfx", to);
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let effect = match transit.net::<ADDR_LEN>(self.addr_at) {
            Read::Known(addr) => match self.map(addr) {
                Some(mapped) => {
                    transit.write_net(self.addr_at, &mapped);
                    Effect::Continue
                }
                None => Effect::Reject,
            },
            Read::Unknown | Read::Absent => self.map_unknown(transit),
        };
        if effect != Effect::Reject {
            self.forget_quoted(transit);
        }
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> [u8; 16] {
        value::address(text, ADDR_LEN).unwrap()
    }

    fn npt(from: (&str, usize), to: (&str, usize)) -> Npt {
        let prefix = |(text, bits): (&str, usize)| Prefix { addr: addr(text), bits };
        Npt { addr_at: SOURCE, quoted_at: DESTINATION, from: prefix(from), to: prefix(to) }
    }

    fn sum(addr: &[u8; 16]) -> u32 {
        Prefix { addr: *addr, bits: 128 }.sum()
    }

    /// RFC 6296, section 4.1: the example of a /48.
    #[test]
    fn the_example_of_rfc_6296() {
        let npt = npt(("fd01:203:405::", 48), ("2001:db8:1::", 48));
        let mapped = npt.map(addr("fd01:203:405:1::1234")).unwrap();
        assert_eq!(mapped, addr("2001:db8:1:d550::1234"));
    }

    #[test]
    fn every_translation_keeps_the_checksum() {
        for (from, to) in [
            (("fd01:203:405::", 48), ("2001:db8:1::", 48)),
            (("fd01:203:405:6::", 64), ("2001:db8::", 56)),
            (("fd00::", 8), ("2001:db8::", 32)),
        ] {
            let before = addr("fd01:203:405:6:ffff:9:ffff:8");
            let after = npt(from, to).map(before).unwrap();
            // Only the bits that both prefixes know are a prefix: others are replaced unaccounted.
            if from.1 >= to.1 {
                assert_eq!(sum(&before), sum(&after), "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn an_identifier_of_ones_cannot_be_adjusted() {
        let npt = npt(("fd00:1::", 64), ("2001:db8::", 64));
        assert_eq!(npt.map(addr("fd00:1::ffff:ffff:ffff:ffff")), None);
        assert!(npt.map(addr("fd00:1::ffff:ffff:ffff:0")).is_some());
    }
}
