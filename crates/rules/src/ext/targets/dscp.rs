//! `-j DSCP`: sets the differentiated services code point and leaves the ECN bits.
//!
//! Source: iptables-extensions(8); kernel `dscp_tg` in `net/netfilter/xt_DSCP.c`.

use crate::family::TableKind;
use packet::Read;

use crate::error::What;
use crate::ext::matches::dscp::parse_dscp;
use crate::ext::{Alters, Args, Course, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::predicate::{Change, Field};
use crate::transit::Transit;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "DSCP",
    families: IP,
    options: &[Opt::value("set-dscp"), Opt::value("set-dscp-class")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct SetDscp(u8);

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    let (dscp, _) = parse_dscp(args, "set-dscp", "set-dscp-class")?;
    Ok(Box::new(SetDscp(dscp)))
}

impl Target for SetDscp {
    fn print(&self, to: &mut Printer) {
        to.option(false, "set-dscp", format_args!("{:#04x}", self.0));
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        if let Read::Known(tos) = transit.tos() {
            transit.set_tos(tos & 3 | self.0 << 2);
        }
        Effect::Continue
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        Change::masked(Field::Tos, 8, u128::from(self.0) << 2, 0xfc)
    }
}

#[cfg(test)]
mod tests {
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print, read_in};
    use crate::family::Family;
    use crate::outcome::Outcome;

    #[test]
    fn a_class_prints_as_a_number() {
        let text = print(Family::Ipv4, "-j DSCP --set-dscp-class ef").unwrap();
        assert_eq!(text, "-j DSCP --set-dscp 0x2e");
        assert!(print(Family::Ipv4, "-j DSCP --set-dscp 64").is_err());
        assert!(read_in(Family::Ipv4, "raw", "OUTPUT", "-j DSCP --set-dscp 1").is_err());
    }

    #[test]
    fn the_ecn_bits_stay() {
        for mut packet in [ipv4(17, &[]), ipv6(17, &[])] {
            packet[1] |= if packet[0] == 0x45 { 0x03 } else { 0x3a };
            let then = "-m tos --tos 0xbb";
            let (_, bytes, outcome) = Frame::ip(&packet).apply("-j DSCP --set-dscp 0x2e", then);
            assert_eq!(outcome, Outcome::YES);
            assert_eq!(bytes[1] & 0x0f, if bytes[0] == 0x45 { 0x0b } else { 0x0a });
        }
    }
}
