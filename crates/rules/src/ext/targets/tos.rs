//! `-j TOS`: sets bits of the type of service or traffic class.
//!
//! Every spelling is one operation, `tos = (tos & ~mask) ^ value`, and prints as `--set-tos`. Source:
//! iptables-extensions(8); kernel `tos_tg` in `net/netfilter/xt_DSCP.c`.

use crate::family::TableKind;
use packet::Read;

use crate::error::What;
use crate::ext::matches::tos;
use crate::ext::matches::tos::{parse_tos, tos_text};
use crate::ext::{Alters, Args, Course, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::predicate::{Change, Field};
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TOS",
    families: IP,
    options: &[
        Opt::value("set-tos"),
        Opt::value("and-tos"),
        Opt::value("or-tos"),
        Opt::value("xor-tos"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct SetTos {
    value: u8,
    mask: u8,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    let names = ["set-tos", "and-tos", "or-tos", "xor-tos"];
    args.any_of(&names)?;
    args.one_of(&names)?;
    let given = &args.given[0];
    let (value, mask) = if given.name == "set-tos" {
        parse_tos(given.text()).ok_or_else(|| given.expected(tos::WANTED))?
    } else {
        let bits = value::u8(given.text()).ok_or_else(|| given.expected("a number 0-255"))?;
        match given.name {
            "and-tos" => (0, !bits),
            "or-tos" => (bits, bits),
            _ => (bits, 0),
        }
    };
    Ok(Box::new(SetTos { value, mask }))
}

impl Target for SetTos {
    fn print(&self, to: &mut Printer) {
        to.option(false, "set-tos", tos_text(self.value, self.mask));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        if let Read::Known(tos) = transit.tos() {
            transit.set_tos((tos & !self.mask) ^ self.value);
        }
        Effect::Continue
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        Change::masked(Field::Tos, 8, self.value.into(), self.mask.into())
    }
}

#[cfg(test)]
mod tests {
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};
    use crate::family::Family;
    use crate::outcome::Outcome;

    #[test]
    fn one_operation_in_table_mangle() {
        let text = print(Family::Ipv6, "-j TOS --and-tos 0x12").unwrap();
        assert_eq!(text, "-j TOS --set-tos 0x00/0xed");
        for bad in ["", "--set-tos 1 --or-tos 1", "--xor-tos 256", "--and-tos Normal-Service"] {
            assert!(print(Family::Ipv4, &format!("-j TOS {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn bits_are_cleared_and_flipped() {
        for (option, tos) in [
            ("--set-tos 0x0f/0x33", 0xc3),
            ("--set-tos 0x10", 0x10),
            ("--and-tos 0xf0", 0xc0),
            ("--or-tos 0x03", 0xcf),
            ("--xor-tos 0xff", 0x33),
        ] {
            let then = format!("-m tos --tos {tos}");
            let rule = format!("-j TOS {option}");
            let (mut four, mut six) = (ipv4(17, &[]), ipv6(17, &[]));
            four[1] = 0xcc;
            (six[0], six[1]) = (0x6c, 0xc5);
            assert_eq!(Frame::ip(&four).apply(&rule, &then).2, Outcome::YES, "{rule}");
            let (_, bytes, outcome) = Frame::ip(&six).apply(&rule, &then);
            assert_eq!((outcome, bytes[1] & 0x0f), (Outcome::YES, 5), "{rule}");
        }
    }
}
