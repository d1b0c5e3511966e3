//! `-j SYNPROXY`: answers a SYN in the server's place, and makes the connection itself once the client has proven
//! itself.
//!
//! The SYN goes no further, and neither does the client's acknowledgement, whatever it acknowledges: what the server gets
//! are packets of the host. All other packets go on, but for those whose header is cut or whose checksum is wrong. One
//! that looks wrong may have been left to a network card, so that is not known.
//! Source: iptables-extensions(8); kernel `net/ipv4/netfilter/ipt_SYNPROXY.c`, `ip6t_SYNPROXY.c`.

use crate::error::What;
use crate::ext::kit::tcp_header::{FLAGS, MIN_LEN, PROTOCOL, WORDS, len_of};
use crate::ext::{Args, Effect, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Family, Hook};
use crate::transit::Transit;
use crate::value;
use packet::tcp::Flags;
use packet::{L4, Read, checksum, ipv4, ipv6};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "SYNPROXY",
    families: IP,
    options: &[
        Opt::flag("sack-perm"),
        Opt::flag("timestamp"),
        Opt::value("wscale"),
        Opt::value("mss"),
        Opt::flag("ecn"),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Synproxy {
    sack_perm: bool,
    timestamp: bool,
    wscale: Option<u8>,
    mss: Option<u16>,
    ecn: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_hook(&[Hook::Input, Hook::Forward])?;
    args.needs_protocol(&[6])?;
    let wscale = args
        .get("wscale")
        .map(|given| value::u8(given.text()).ok_or_else(|| given.expected("a window scale 0-255")));
    let mss = args.get("mss").map(|given| {
        value::u16(given.text()).ok_or_else(|| given.expected("a segment size 0-65535"))
    });
    Ok(Box::new(Synproxy {
        sack_perm: args.has("sack-perm"),
        timestamp: args.has("timestamp"),
        wscale: wscale.transpose()?,
        mss: mss.transpose()?,
        ecn: args.has("ecn"),
    }))
}

impl Target for Synproxy {
    fn print(&self, to: &mut Printer) {
        for (name, given) in [("sack-perm", self.sack_perm), ("timestamp", self.timestamp)] {
            if given {
                to.flag(false, name);
            }
        }
        if let Some(wscale) = self.wscale {
            to.option(false, "wscale", wscale);
        }
        if let Some(mss) = self.mss {
            to.option(false, "mss", mss);
        }
        if self.ecn {
            to.flag(false, "ecn");
        }
    }

    fn tracks(&self) -> bool {
        true
    }

    fn proxies(&self) -> bool {
        true
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let at = match transit.packet.headers().l4 {
            L4::Upper(upper) => upper.offset,
            L4::Fragment { .. } | L4::Broken { .. } | L4::None | L4::Unknown => {
                return Effect::Unknown;
            }
        };
        if transit.packet.read_slice(at, MIN_LEN) == Read::Absent {
            return Effect::Drop;
        }
        let (Read::Known([words]), Read::Known([flags])) =
            (transit.packet.read(at + WORDS), transit.packet.read(at + FLAGS))
        else {
            return Effect::Unknown;
        };
        let (flags, len) = (Flags(flags), len_of(words));
        let has = |flag| flags.contains(flag);
        let ends = has(Flags::FIN) || has(Flags::RST);
        // A client begins, or acknowledges; either is dropped, if for nothing else.
        if !ends && has(Flags::SYN) != has(Flags::ACK) {
            return Effect::Drop;
        }
        match transit.packet.read_slice(at, len.max(MIN_LEN)) {
            Read::Absent => Effect::Drop,
            _ if len < MIN_LEN => Effect::Unknown,
            _ if sums_up(transit, at) => Effect::Continue,
            _ => Effect::Unknown,
        }
    }
}

/// Whether the checksum of the segment at an offset may be right: it is, or not all of it is known.
fn sums_up(transit: &Transit<'_, '_>, at: usize) -> bool {
    let len = transit.packet.headers().end.saturating_sub(at);
    let addresses = match transit.family {
        Family::Ipv6 => transit.net::<32>(ipv6::SOURCE.start).map(|both| checksum::sum(&both)),
        _ => transit.net::<8>(ipv4::SOURCE.start).map(|both| checksum::sum(&both)),
    };
    let (Read::Known(bytes), Read::Known(addresses)) =
        (transit.packet.read_slice(at, len), addresses)
    else {
        return true;
    };
    let pseudo = [u16::from(PROTOCOL), (len >> 16) as u16, len as u16];
    pseudo.into_iter().fold(checksum::add(checksum::sum(bytes), addresses), checksum::add) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6};

    const RULE: &str = "-p tcp -j SYNPROXY --mss 1460";

    /// A segment of this first word of the fourth line, whose checksum makes it right in a packet of `ipv4` or `ipv6`.
    fn segment(words: u8, flags: u8, addresses: &[u8]) -> Vec<u8> {
        let mut bytes = vec![4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, words, flags, 1, 0, 0, 0, 0, 0];
        let sum = checksum::add(checksum::sum(&bytes), checksum::sum(addresses));
        let sum = checksum::add(sum, u16::from(PROTOCOL) + bytes.len() as u16);
        bytes[16..18].copy_from_slice(&(!sum).to_be_bytes());
        bytes
    }

    fn effect(bytes: &[u8]) -> Effect {
        Frame::ip(bytes).apply(RULE, "-p tcp").0
    }

    fn tcp(words: u8, flags: u8) -> Vec<u8> {
        ipv4(PROTOCOL, &segment(words, flags, &ipv4(PROTOCOL, &[])[12..20]))
    }

    #[test]
    fn what_a_client_begins_with_goes_no_further() {
        for (flags, expected) in [
            (0x02, Effect::Drop),
            (0xc2, Effect::Drop),
            (0x10, Effect::Drop),
            (0x18, Effect::Drop),
            (0x12, Effect::Continue),
            (0x11, Effect::Continue),
            (0x04, Effect::Continue),
            (0x14, Effect::Continue),
            (0x03, Effect::Continue),
            (0x00, Effect::Continue),
        ] {
            assert_eq!(effect(&tcp(0x50, flags)), expected, "{flags:#x}");
            let segment = segment(0x50, flags, &ipv6(PROTOCOL, &[])[8..40]);
            assert_eq!(effect(&ipv6(PROTOCOL, &segment)), expected, "{flags:#x}");
        }
    }

    #[test]
    fn cut_headers_are_dropped_and_wrong_checksums_may_be() {
        assert_eq!(effect(&tcp(0x60, 0x04)), Effect::Drop);
        assert_eq!(effect(&ipv4(PROTOCOL, &[0; 19])), Effect::Drop);
        assert_eq!(effect(&tcp(0x40, 0x04)), Effect::Unknown);
        let mut wrong = tcp(0x50, 0x04);
        wrong[36] ^= 1;
        assert_eq!(effect(&wrong), Effect::Unknown);
        assert_eq!(Frame::ip(&tcp(0x50, 0x04)).cut(30).apply(RULE, "-p tcp").0, Effect::Unknown);
        assert_eq!(Frame::ip(&tcp(0x50, 0x04)).cut(36).apply(RULE, "-p tcp").0, Effect::Continue);
    }
}
