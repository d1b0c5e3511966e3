//! `-j ECN`: sets the ECN bits of TCP and of the IPv4 header.
//!
//! It does not tell fragments apart: after the IPv4 header of a later one it changes payload. A TCP
//! header that is short drops the packet. Source: iptables-extensions(8); kernel
//! `net/ipv4/netfilter/ipt_ECN.c`; options besides `--ecn-tcp-remove` are undocumented.

use crate::error::What;
use crate::ext::kit::tcp_header;
use crate::ext::kit::tcp_header::{CWR, ECE, FLAGS, MIN_LEN};
use crate::ext::{Args, Effect, Given, Opt, Printer, Support, Target, TargetKind, V4};
use crate::family::TableKind;
use crate::transit::Transit;
use crate::value;
use packet::{L3, Read, ipv4};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "ECN",
    families: V4,
    options: &[
        Opt::flag("ecn-tcp-remove"),
        Opt::value("ecn-tcp-cwr"),
        Opt::value("ecn-tcp-ece"),
        Opt::value("ecn-ip-ect"),
    ],
    support: Support::Evaluated,
    parse,
};

/// New values, where there are any.
#[derive(Debug, Default, PartialEq, Eq)]
struct SetEcn {
    ece: Option<bool>,
    cwr: Option<bool>,
    ect: Option<u8>,
}

/// What `--ecn-tcp-remove` says.
const REMOVE: SetEcn = SetEcn { ece: Some(false), cwr: Some(false), ect: None };

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    args.any_of(&["ecn-tcp-remove", "ecn-tcp-cwr", "ecn-tcp-ece", "ecn-ip-ect"])?;
    args.one_of(&["ecn-tcp-remove", "ecn-tcp-cwr"])?;
    args.one_of(&["ecn-tcp-remove", "ecn-tcp-ece"])?;
    let mut set = SetEcn::default();
    for given in args.given {
        match given.name {
            // Forgets an --ecn-ip-ect before it, as the tool does.
            "ecn-tcp-remove" => set = REMOVE,
            "ecn-tcp-cwr" => set.cwr = Some(parse_number(given, 1)? == 1),
            "ecn-tcp-ece" => set.ece = Some(parse_number(given, 1)? == 1),
            _ => set.ect = Some(parse_number(given, 3)?),
        }
    }
    if set.ece.is_some() || set.cwr.is_some() {
        args.needs_protocol(&[tcp_header::PROTOCOL])?;
    }
    Ok(Box::new(set))
}

fn parse_number(given: &Given<'_>, max: u8) -> Result<u8, What> {
    let number = value::u8(given.text()).filter(|number| *number <= max);
    number.ok_or_else(|| given.expected(format!("a number 0-{max}")))
}

impl SetEcn {
    fn set_ip(&self, transit: &mut Transit<'_, '_>) {
        if let (Some(ect), Read::Known(tos)) = (self.ect, transit.tos()) {
            transit.set_tos(tos & !3 | ect);
        }
    }

    fn set_tcp(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let headers = transit.packet.headers();
        let L3::Ipv4 { header_len } = headers.l3 else { return Effect::Continue };
        let tcp = headers.network + header_len;
        match transit.net::<1>(ipv4::PROTOCOL.start) {
            Read::Known([tcp_header::PROTOCOL]) => {}
            Read::Known(_) => return Effect::Continue,
            Read::Unknown | Read::Absent => return Effect::Unknown,
        }
        if transit.packet.read_slice(tcp, MIN_LEN) == Read::Absent {
            return Effect::Drop;
        }
        match transit.packet.read::<2>(tcp + FLAGS - 1) {
            Read::Known([words, old]) => {
                let new = with_bit(with_bit(old, ECE, self.ece), CWR, self.cwr);
                if new != old {
                    let word = |flags| u16::from_be_bytes([words, flags]);
                    tcp_header::write(transit, tcp, FLAGS, &[new], [(word(old), word(new))]);
                }
            }
            Read::Unknown | Read::Absent => tcp_header::forget(transit, tcp, FLAGS, 1),
        }
        Effect::Continue
    }
}

fn with_bit(flags: u8, bit: u8, set: Option<bool>) -> u8 {
    match set {
        Some(true) => flags | bit,
        Some(false) => flags & !bit,
        None => flags,
    }
}

impl Target for SetEcn {
    fn print(&self, to: &mut Printer) {
        if *self == REMOVE {
            to.flag(false, "ecn-tcp-remove");
            return;
        }
        if let Some(ece) = self.ece {
            to.option(false, "ecn-tcp-ece", u8::from(ece));
        }
        if let Some(cwr) = self.cwr {
            to.option(false, "ecn-tcp-cwr", u8::from(cwr));
        }
        if let Some(ect) = self.ect {
            to.option(false, "ecn-ip-ect", ect);
        }
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        self.set_ip(transit);
        if self.ece.is_none() && self.cwr.is_none() {
            return Effect::Continue;
        }
        self.set_tcp(transit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, print};
    use crate::family::Family;
    use crate::outcome::Outcome;

    #[test]
    fn removing_is_setting_both_to_zero() {
        let text = |rule: &str| print(Family::Ipv4, &format!("-p tcp -j ECN {rule}"));
        assert_eq!(
            text("--ecn-tcp-cwr 0 --ecn-tcp-ece 0").unwrap(),
            "-p tcp -j ECN --ecn-tcp-remove"
        );
        assert_eq!(
            text("--ecn-tcp-remove --ecn-ip-ect 1").unwrap(),
            "-p tcp -j ECN --ecn-tcp-ece 0 --ecn-tcp-cwr 0 --ecn-ip-ect 1"
        );
        for bad in ["", "--ecn-tcp-remove --ecn-tcp-cwr 0", "--ecn-tcp-ece 2", "--ecn-ip-ect 4"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert!(print(Family::Ipv4, "-j ECN --ecn-tcp-remove").is_err());
        assert!(print(Family::Ipv4, "-j ECN --ecn-ip-ect 1").is_ok());
        assert!(print(Family::Ipv6, "-p tcp -j ECN --ecn-tcp-remove").is_err());
    }

    fn tcp() -> Vec<u8> {
        let mut tcp = vec![0; 20];
        (tcp[12], tcp[13]) = (0x50, ECE | CWR | 2);
        let checksum = !packet::checksum::sum(&tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        ipv4(6, &tcp)
    }

    #[test]
    fn the_tcp_checksum_goes_along() {
        let packet = tcp();
        let then = "-p tcp -m ecn ! --ecn-tcp-ece ! --ecn-tcp-cwr --ecn-ip-ect 3";
        let rule = "-p tcp -j ECN --ecn-tcp-remove --ecn-ip-ect 3";
        let (effect, bytes, outcome) = Frame::ip(&packet).apply(rule, then);
        assert_eq!((effect, outcome, bytes[33]), (Effect::Continue, Outcome::YES, 2));
        assert_eq!(packet::checksum::sum(&bytes[20..]), 0xffff);
        assert_eq!(packet::checksum::sum(&bytes[..20]), 0xffff);
    }

    #[test]
    fn a_short_header_is_dropped_and_a_cut_one_left_open() {
        let short = ipv4(6, &[0; 19]);
        let then = "-p tcp -m ecn --ecn-tcp-ece";
        let rule = "-p tcp -j ECN --ecn-tcp-remove";
        assert_eq!(Frame::ip(&short).apply(rule, then).0, Effect::Drop);
        let whole = tcp();
        let (effect, _, outcome) = Frame::ip(&whole).cut(33).apply(rule, then);
        assert_eq!((effect, outcome), (Effect::Continue, Outcome::MAYBE));
    }
}
