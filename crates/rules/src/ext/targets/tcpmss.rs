//! `-j TCPMSS`: lowers the MSS option of a SYN, or adds one.
//!
//! A path MTU is not known, so with `--clamp-mss-to-pmtu` the value of the option is unknown afterwards. A
//! header that gets an option grows by four bytes, which a packet here cannot: its TCP header and the
//! lengths before it become unknown. The checksum takes the change as an aligned word even where the
//! option lies across two. Source: iptables-extensions(8); kernel `net/netfilter/xt_TCPMSS.c`.

use crate::error::What;
use crate::ext::kit::option_walk::find_mss;
use crate::ext::kit::tcp_header;
use crate::ext::kit::tcp_header::{MIN_LEN, WORDS};
use crate::ext::{Args, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::{Family, Hook};
use crate::transit::Transit;
use crate::value;
use packet::{Read, ipv4, ipv6};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TCPMSS",
    families: IP,
    options: &[Opt::value("set-mss"), Opt::flag("clamp-mss-to-pmtu")],
    support: Support::Evaluated,
    parse,
};

/// Longest TCP header.
const MAX_LEN: usize = 60;

#[derive(Debug, Clone, Copy)]
enum SetMss {
    To(u16),
    PathMtu,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_protocol(&[tcp_header::PROTOCOL])?;
    args.any_of(&["set-mss", "clamp-mss-to-pmtu"])?;
    if args.has("clamp-mss-to-pmtu") {
        args.needs_hook(&[Hook::Forward, Hook::Output, Hook::Postrouting])?;
    }
    if !args.options_of("tcp").any(wants_syn) {
        return Err(args.expected("--syn, or --tcp-flags that want SYN,"));
    }
    let mut set = SetMss::PathMtu;
    // The tool takes both, and the later one counts.
    for given in args.given {
        set = if given.name == "set-mss" { parse_mss(args, given)? } else { SetMss::PathMtu };
    }
    Ok(Box::new(set))
}

fn parse_mss(args: &Args<'_>, given: &Given<'_>) -> Result<SetMss, What> {
    let ip_header = if args.family == Family::Ipv6 { 40 } else { 20 };
    let max = u16::MAX - ip_header;
    let mss = value::u16(given.text()).filter(|mss| *mss <= max);
    mss.map(SetMss::To).ok_or_else(|| given.expected(format!("a number 0-{max}")))
}

/// Whether `-m tcp` with these options wants the SYN flag set.
fn wants_syn(options: &[Given<'_>]) -> bool {
    options.iter().any(|given| match given.name {
        "syn" => !given.invert,
        "tcp-flags" => {
            let is_syn = |flag: &str| ["SYN", "ALL"].iter().any(|n| n.eq_ignore_ascii_case(flag));
            !given.invert && value::list(given.second()).any(is_syn)
        }
        _ => false,
    })
}

impl SetMss {
    /// For a whole TCP header of `len` bytes at `tcp`.
    fn set(self, transit: &mut Transit<'_, '_>, tcp: usize, len: usize) {
        let found = match transit.packet.read_slice(tcp + MIN_LEN, len - MIN_LEN) {
            Read::Known(options) => find_mss(options),
            Read::Unknown | Read::Absent => {
                tcp_header::forget(transit, tcp, MIN_LEN, len - MIN_LEN);
                return grow(transit, tcp, len);
            }
        };
        match (found, self) {
            (None, _) => grow(transit, tcp, len),
            (Some((at, old)), Self::To(new)) if old > new => {
                let bytes = new.to_be_bytes();
                tcp_header::write(transit, tcp, MIN_LEN + at, &bytes, [(old, new)]);
            }
            (Some(_), Self::To(_)) => {}
            (Some((at, _)), Self::PathMtu) => tcp_header::forget(transit, tcp, MIN_LEN + at, 2),
        }
    }
}

/// An option is added, unless payload follows or the header is as long as can be.
fn grow(transit: &mut Transit<'_, '_>, tcp: usize, len: usize) {
    let headers = transit.packet.headers();
    if headers.end > tcp + len || len >= MAX_LEN {
        return;
    }
    let net = tcp - headers.network;
    transit.forget_net(net + WORDS..net + len);
    match transit.family {
        Family::Ipv6 => transit.forget_net(ipv6::PAYLOAD_LEN),
        _ => {
            transit.forget_net(ipv4::TOTAL_LEN);
            transit.forget_net(ipv4::CHECKSUM);
        }
    }
}

impl Target for SetMss {
    fn print(&self, to: &mut Printer) {
        match self {
            Self::To(mss) => to.option(false, "set-mss", mss),
            Self::PathMtu => to.flag(false, "clamp-mss-to-pmtu"),
        };
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        match tcp_header::whole(transit) {
            Ok((tcp, len)) => {
                transit.one_piece = true;
                self.set(transit, tcp, len);
                Effect::Continue
            }
            Err(effect) => effect,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print, read_in};
    use crate::outcome::Outcome;

    #[test]
    fn only_for_a_syn() {
        let text =
            |rule: &str| print(Family::Ipv4, &format!("-p tcp {rule} -j TCPMSS --set-mss 9"));
        assert!(text("--syn").is_ok());
        assert!(text("-m tcp --tcp-flags ALL ACK,SYN").is_ok());
        for bad in ["", "! --syn", "--tcp-flags SYN NONE", "! --tcp-flags SYN SYN"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert!(print(Family::Ipv4, "-p tcp --syn -j TCPMSS --set-mss 65516").is_err());
        assert!(print(Family::Ipv6, "-p tcp --syn -j TCPMSS --set-mss 65496").is_err());
        let clamp = "-p tcp --syn -j TCPMSS --clamp-mss-to-pmtu";
        assert!(read_in(Family::Ipv4, "mangle", "POSTROUTING", clamp).is_ok());
        assert!(read_in(Family::Ipv4, "mangle", "INPUT", clamp).is_err());
    }

    const SET: &str = "-p tcp --syn -j TCPMSS --set-mss 1000";
    const CLAMP: &str = "-p tcp --syn -j TCPMSS --clamp-mss-to-pmtu";

    /// A SYN whose TCP checksum, taken without a pseudo header, is right.
    fn syn(words: u8, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0; 20];
        (tcp[12], tcp[13]) = (words << 4, 2);
        tcp.extend_from_slice(options);
        let checksum = !packet::checksum::sum(&tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        tcp
    }

    #[test]
    fn the_mss_is_only_lowered() {
        for (old, new) in [(1460_u16, 1000), (1000, 1000), (536, 536)] {
            let [high, low] = old.to_be_bytes();
            for packet in
                [ipv4(6, &syn(6, &[2, 4, high, low])), ipv6(6, &syn(6, &[2, 4, high, low]))]
            {
                let then = format!("-p tcp -m tcpmss --mss {new}");
                let (effect, bytes, outcome) = Frame::ip(&packet).apply(SET, &then);
                assert_eq!((effect, outcome), (Effect::Continue, Outcome::YES), "{old}");
                let tcp = &bytes[bytes.len() - 24..];
                assert_eq!(packet::checksum::sum(tcp), 0xffff, "{old}");
            }
        }
    }

    #[test]
    fn an_option_across_words_spoils_the_checksum_as_in_the_kernel() {
        let packet = ipv4(6, &syn(7, &[1, 2, 4, 5, 0xb4, 0, 0, 0]));
        let (_, bytes, _) = Frame::ip(&packet).apply(SET, "-p tcp");
        assert_eq!(bytes[43..45], 1000_u16.to_be_bytes());
        assert_ne!(packet::checksum::sum(&bytes[20..]), 0xffff);
    }

    #[test]
    fn clamping_leaves_the_value_open() {
        let packet = ipv4(6, &syn(6, &[2, 4, 5, 0xb4]));
        let (effect, _, outcome) = Frame::ip(&packet).apply(CLAMP, "-p tcp -m tcpmss --mss 1460");
        assert_eq!((effect, outcome), (Effect::Continue, Outcome::MAYBE));
        let (_, _, outcome) = Frame::ip(&packet).apply(CLAMP, "-p tcp --tcp-option 2");
        assert_eq!(outcome, Outcome::MAYBE);
    }

    #[test]
    fn a_header_that_would_grow_is_open_unless_payload_follows() {
        let bare = ipv4(6, &syn(5, &[]));
        for then in ["-m length --length 40", "-p tcp -m tcpmss --mss 1000"] {
            assert_ne!(Frame::ip(&bare).apply(SET, then).2, Outcome::NO, "{then}");
            assert!(!Frame::ip(&bare).apply(SET, then).2.is_known(), "{then}");
        }
        assert_eq!(Frame::ip(&bare).apply(SET, "-p tcp --sport 0").2, Outcome::YES);
        let with_payload = ipv4(6, &[syn(5, &[]), vec![1]].concat());
        let then = "-m length --length 41";
        assert_eq!(Frame::ip(&with_payload).apply(SET, then).2, Outcome::YES);
    }

    #[test]
    fn malformed_headers_are_dropped_and_fragments_passed_over() {
        for tcp in [syn(4, &[]), syn(6, &[]), syn(5, &[])[..19].to_vec()] {
            let packet = ipv4(6, &tcp);
            assert_eq!(Frame::ip(&packet).apply(SET, "-p tcp").0, Effect::Drop);
        }
        let mut later = ipv4(6, &syn(4, &[]));
        later[7] = 9;
        assert_eq!(Frame::ip(&later).apply(SET, "-p tcp").0, Effect::Continue);
    }
}
