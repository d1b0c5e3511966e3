//! `-m mark`: the packet mark under a mask.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_mark.c`.

use crate::error::What;
use crate::ext::{Args, BRIDGE, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::predicate::{Field, Predicate};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "mark",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("mark").invertible()],
    support: Support::Evaluated,
    parse,
};

/// The match on a bridge, where `--mark /MASK` asks for any bit of the mask.
pub(crate) static FRAME_KIND: MatchKind =
    MatchKind { families: BRIDGE, parse: parse_any_bit, ..KIND };

#[derive(Debug)]
struct Mark {
    value: u32,
    mask: u32,
    invert: bool,
}

/// Some bit of the mask is set.
#[derive(Debug)]
struct AnyBit {
    mask: u32,
    invert: bool,
}

fn parse_any_bit(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("mark")?;
    let Some(mask) = given.text().strip_prefix('/') else { return parse(args) };
    let mask = value::u32(mask).ok_or_else(|| given.expected("/mask of 32 bits"))?;
    Ok(Box::new(AnyBit { mask, invert: given.invert }))
}

impl Match for AnyBit {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "mark", format_args!("/{:#x}", self.mask));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        if transit.mark.value & self.mask != 0 {
            return Outcome::from_bool(!self.invert);
        }
        match transit.mark.unknown & self.mask {
            0 => Outcome::from_bool(self.invert),
            _ => Outcome::MAYBE,
        }
    }
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("mark")?;
    let (value, mask) = value::masked_u32(given.text())
        .ok_or_else(|| given.expected("value or value/mask of 32 bits"))?;
    Ok(Box::new(Mark { value, mask, invert: given.invert }))
}

/// `0xvalue`, or `0xvalue/0xmask` for a partial mask.
pub(crate) fn masked_text(value: u32, mask: u32) -> String {
    if mask == u32::MAX { format!("{value:#x}") } else { format!("{value:#x}/{mask:#x}") }
}

impl Match for Mark {
    fn print(&self, to: &mut Printer) {
        to.option(self.invert, "mark", masked_text(self.value, self.mask));
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match transit.mark.matches(self.value, self.mask) {
            Some(matches) => Outcome::from_bool(matches != self.invert),
            None => Outcome::MAYBE,
        }
    }

    fn predicate(&self) -> Option<Predicate> {
        let (value, mask) = (self.value.into(), self.mask.into());
        let same = Predicate::Masked { field: Field::Mark, value, mask };
        Some(same.inverted(self.invert))
    }
}
