//! `-j TTL` and `-j HL`: set, raise or lower the time to live or the hop limit.
//!
//! Sums stop at 255 and 0. Source: iptables-extensions(8); kernel `net/netfilter/xt_HL.c`.

use crate::family::TableKind;
use packet::Read;

use crate::error::What;
use crate::ext::{Alters, Args, Course, Effect, Opt, Printer, Support, Target, TargetKind, V4, V6};
use crate::predicate::{Change, Field};
use crate::transit::Transit;
use crate::value;

/// IPv4.
pub(crate) static TTL: TargetKind = TargetKind {
    name: "TTL",
    families: V4,
    options: &[Opt::value("ttl-set"), Opt::value("ttl-dec"), Opt::value("ttl-inc")],
    support: Support::Evaluated,
    parse,
};

/// IPv6.
pub(crate) static HL: TargetKind = TargetKind {
    name: "HL",
    families: V6,
    options: &[Opt::value("hl-set"), Opt::value("hl-dec"), Opt::value("hl-inc")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct SetTtl {
    option: &'static str,
    change: Operation,
    by: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Set,
    Lower,
    Raise,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    let names = match args.family.addr_len() {
        4 => ["ttl-set", "ttl-dec", "ttl-inc"],
        _ => ["hl-set", "hl-dec", "hl-inc"],
    };
    args.any_of(&names)?;
    args.one_of(&names)?;
    let given = &args.given[0];
    let change = match &given.name[given.name.len() - 3..] {
        "dec" => Operation::Lower,
        "inc" => Operation::Raise,
        _ => Operation::Set,
    };
    let by = value::u8(given.text()).filter(|by| change == Operation::Set || *by > 0);
    let least = u8::from(change != Operation::Set);
    let by = by.ok_or_else(|| given.expected(format!("a number {least}-255")))?;
    Ok(Box::new(SetTtl { option: given.name, change, by }))
}

impl Target for SetTtl {
    fn print(&self, to: &mut Printer) {
        to.option(false, self.option, self.by);
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        if let Read::Known(old) = transit.ttl() {
            transit.set_ttl(match self.change {
                Operation::Set => self.by,
                Operation::Lower => old.saturating_sub(self.by),
                Operation::Raise => old.saturating_add(self.by),
            });
        }
        Effect::Continue
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        match self.change {
            Operation::Set => Change::masked(Field::Ttl, 8, self.by.into(), 0xff),
            Operation::Lower | Operation::Raise => Change::lost(Field::Ttl, 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print, read_in};
    use crate::family::Family;
    use crate::outcome::Outcome;

    #[test]
    fn one_change_in_table_mangle() {
        assert_eq!(print(Family::Ipv6, "-j HL --hl-inc 0x2").unwrap(), "-j HL --hl-inc 2");
        assert!(read_in(Family::Ipv4, "filter", "FORWARD", "-j TTL --ttl-set 1").is_err());
        for bad in ["", "--ttl-set 256", "--ttl-dec 0", "--ttl-dec 1 --ttl-set 2"] {
            assert!(print(Family::Ipv4, &format!("-j TTL {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn later_matches_see_the_new_value() {
        for (option, ttl) in [("set 0", 0), ("dec 1", 63), ("dec 65", 0), ("inc 200", 255)] {
            let (four, six) = (format!("-j TTL --ttl-{option}"), format!("-j HL --hl-{option}"));
            let packet = ipv4(17, &[]);
            let (effect, bytes, outcome) =
                Frame::ip(&packet).apply(&four, &format!("-m ttl --ttl-eq {ttl}"));
            assert_eq!((effect, outcome, bytes[8]), (Effect::Continue, Outcome::YES, ttl));
            assert_eq!(packet::checksum::sum(&bytes[..20]), 0xffff, "{four}");
            let packet = ipv6(17, &[]);
            let (_, bytes, outcome) =
                Frame::ip(&packet).apply(&six, &format!("-m hl --hl-eq {ttl}"));
            assert_eq!((outcome, bytes[7]), (Outcome::YES, ttl));
        }
    }

    #[test]
    fn what_may_not_happen_leaves_the_value_open() {
        let packet = ipv4(17, &[]);
        let maybe = Frame { certain: false, ..Frame::ip(&packet) };
        let (_, bytes, outcome) = maybe.apply("-j TTL --ttl-set 9", "-m ttl --ttl-eq 64");
        assert_eq!((bytes[8], outcome), (64, Outcome::MAYBE));
        let (_, _, outcome) = maybe.apply("-j TTL --ttl-set 64", "-m ttl --ttl-eq 64");
        assert_eq!(outcome, Outcome::YES, "nothing would change");
    }
}
