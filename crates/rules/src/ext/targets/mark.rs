//! `-j MARK`: sets bits of the packet mark.
//!
//! Every spelling is one operation, `mark = (mark & ~mask) ^ value`, and prints as `--set-xmark`.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_mark.c`.

use crate::error::What;
use crate::ext::{
    ARP, Alters, Args, Course, Effect, IP, Opt, Printer, Support, Target, TargetKind,
};
use crate::predicate::{Change, Field};
use crate::transit::Transit;
use crate::value;
use packet::Mark;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "MARK",
    families: IP,
    options: &[
        Opt::value("set-xmark"),
        Opt::value("set-mark"),
        Opt::value("and-mark"),
        Opt::value("or-mark"),
        Opt::value("xor-mark"),
    ],
    support: Support::Evaluated,
    parse,
};

/// The target for ARP, whose tool knows three spellings, all of them hexadecimal.
pub(crate) static ARP_KIND: TargetKind = TargetKind {
    families: ARP,
    options: &[Opt::value("set-mark"), Opt::value("and-mark"), Opt::value("or-mark")],
    parse: parse_hex,
    ..KIND
};

/// `mark = (mark & ~mask) ^ value`.
#[derive(Debug)]
pub(crate) struct SetMark {
    pub(crate) value: u32,
    pub(crate) mask: u32,
}

/// An operation, and the spelling that it prints with.
#[derive(Debug)]
struct Spelt {
    option: &'static str,
    bits: u32,
    mark: SetMark,
}

fn parse_hex(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let [given] = args.given else {
        return Err(args.expected("one of --set-mark --and-mark --or-mark"));
    };
    let digits = given.text().trim_start_matches("0x");
    let bits = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    let bits = bits.ok_or_else(|| given.expected("a hexadecimal value of 32 bits"))?;
    let mark = match given.name {
        "set-mark" => SetMark { value: bits, mask: u32::MAX },
        "and-mark" => SetMark { value: 0, mask: !bits },
        _ => SetMark { value: bits, mask: bits },
    };
    Ok(Box::new(Spelt { option: given.name, bits, mark }))
}

impl Target for Spelt {
    fn print(&self, to: &mut Printer) {
        to.option(false, self.option, format_args!("{:x}", self.bits));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        self.mark.change(transit);
        Effect::Continue
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    let names = ["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark"];
    args.any_of(&names)?;
    args.one_of(&names)?;
    let given = &args.given[0];
    let masked = matches!(given.name, "set-xmark" | "set-mark");
    let parsed = if masked {
        value::masked_u32(given.text())
    } else {
        value::u32(given.text()).map(|bits| (bits, u32::MAX))
    };
    let (bits, mask) = parsed.ok_or_else(|| {
        given.expected(if masked { "value or value/mask of 32 bits" } else { "a value of 32 bits" })
    })?;
    let (value, mask) = match given.name {
        "set-mark" => (bits, bits | mask),
        "and-mark" => (0, !bits),
        "or-mark" => (bits, bits),
        "xor-mark" => (bits, 0),
        _ => (bits, mask),
    };
    Ok(Box::new(SetMark { value, mask }))
}

impl Target for SetMark {
    fn print(&self, to: &mut Printer) {
        to.option(false, "set-xmark", format!("{:#x}/{:#x}", self.value, self.mask));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        self.change(transit);
        Effect::Continue
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        Change::masked(Field::Mark, 32, self.value.into(), self.mask.into())
    }
}

impl SetMark {
    /// Changes the mark.
    pub(crate) fn change(&self, transit: &mut Transit<'_, '_>) {
        let unknown = transit.mark.unknown & !self.mask;
        let value = ((transit.mark.value & !self.mask) ^ self.value) & !unknown;
        transit.set_mark(Mark { value, unknown });
    }
}
