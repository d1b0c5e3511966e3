//! `-j TCPMSS`: lowers the MSS option of a SYN, or adds one.
//!
//! `--clamp-mss-to-pmtu` uses the smaller MTU of the packet's way and of the way back to its source, as the host's
//! links and routes, or the ports of a wire, give them; where those are not given, the value of the option is unknown
//! afterwards. A header that gets an option grows by four bytes; where it is not certain that it does, the TCP header
//! and the lengths before it become unknown. The checksum takes the change as an aligned word even where the option
//! lies across two.
//!
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_TCPMSS.c`.

use crate::error::What;
use crate::ext::kit::option_walk::find_mss;
use crate::ext::kit::tcp_header;
use crate::ext::kit::tcp_header::{MIN_LEN, WORDS};
use crate::ext::{
    Alters, Args, Course, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind,
};
use crate::family::{Family, Hook};
use crate::predicate::{Change, Field};
use crate::transit::Transit;
use crate::value;
use packet::{L4, Read, ipv4, ipv6};

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TCPMSS",
    families: IP,
    options: &[Opt::value("set-mss"), Opt::flag("clamp-mss-to-pmtu")],
    support: Support::Evaluated,
    parse,
};

/// Longest TCP header.
const MAX_LEN: usize = 60;
/// Bytes of the option, which starts with its kind and this length.
const OPTION_LEN: usize = 4;
const OPTION_KIND: u8 = 2;

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

/// What a segment size is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    To(u16),
    Unknown,
    /// The path carries no segment at all: the packet is dropped.
    None,
}

impl SetMss {
    fn size(self, transit: &Transit<'_, '_>) -> Size {
        let headers = if transit.family == Family::Ipv6 { 60 } else { 40 };
        match self {
            Self::To(mss) => Size::To(mss),
            Self::PathMtu => match transit.least_mtu() {
                None => Size::Unknown,
                Some(mtu) if mtu <= headers => Size::None,
                // The kernel takes the lower half, too.
                Some(mtu) => Size::To((mtu - headers) as u16),
            },
        }
    }
}

/// For a whole TCP header of `len` bytes at `tcp`.
fn set(transit: &mut Transit<'_, '_>, tcp: usize, len: usize, size: Size) {
    let found = match transit.packet.read_slice(tcp + MIN_LEN, len - MIN_LEN) {
        Read::Known(options) => find_mss(options),
        Read::Unknown | Read::Absent => {
            tcp_header::forget(transit, tcp, MIN_LEN, len - MIN_LEN);
            return lose_growth(transit, tcp, len);
        }
    };
    match (found, size) {
        (None, _) => grow(transit, tcp, len, size),
        (Some((at, old)), Size::To(new)) if old > new => {
            let bytes = new.to_be_bytes();
            tcp_header::write(transit, tcp, MIN_LEN + at, &bytes, [(old, new)]);
        }
        (Some(_), Size::To(_)) => {}
        (Some((at, _)), _) => tcp_header::forget(transit, tcp, MIN_LEN + at, 2),
    }
}

/// Whether the header gets an option: no payload follows, and it is not as long as can be.
fn grows(transit: &Transit<'_, '_>, tcp: usize, len: usize) -> bool {
    transit.packet.headers().end <= tcp + len && len < MAX_LEN
}

/// An option is added, with no more than what goes for a segment size where none is announced.
fn grow(transit: &mut Transit<'_, '_>, tcp: usize, len: usize, size: Size) {
    let usual = if transit.family == Family::Ipv6 { 1220 } else { 536 };
    let Size::To(mss) = size else { return lose_growth(transit, tcp, len) };
    let [high, low] = mss.min(usual).to_be_bytes();
    let option = [OPTION_KIND, OPTION_LEN as u8, high, low];
    let at = tcp + MIN_LEN;
    let Read::Known([words, flags]) = transit.packet.read(tcp + WORDS) else {
        return lose_growth(transit, tcp, len);
    };
    if !grows(transit, tcp, len) {
        return;
    }
    if !transit.certain || !transit.packet.splice(at..at, &option) {
        return lose_growth(transit, tcp, len);
    }
    let longer = words.wrapping_add((OPTION_LEN as u8 / 4) << 4);
    let word = |high, low| u16::from_be_bytes([high, low]);
    let summed = [
        (len as u16, (len + OPTION_LEN) as u16),
        (0, word(option[0], option[1])),
        (0, word(option[2], option[3])),
        (word(words, flags), word(longer, flags)),
    ];
    tcp_header::write(transit, tcp, WORDS, &[longer], summed);
}

/// Whether an option is added, and with which value, is not known.
fn lose_growth(transit: &mut Transit<'_, '_>, tcp: usize, len: usize) {
    if !grows(transit, tcp, len) {
        return;
    }
    let net = tcp - transit.packet.headers().network;
    transit.forget_net(net + WORDS..net + len);
    lose_length(transit);
}

/// How long the packet is now is not known.
fn lose_length(transit: &mut Transit<'_, '_>) {
    transit.packet.open();
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
                let size = self.size(transit);
                if size == Size::None {
                    return Effect::Drop;
                }
                set(transit, tcp, len, size);
                Effect::Continue
            }
            Err(effect) => {
                // Described, with a header of which nobody said how long it is, nor so where the payload begins.
                let headers = transit.packet.headers();
                if effect == Effect::Continue && matches!(headers.l4, L4::Upper(_)) {
                    lose_length(transit);
                }
                effect
            }
        }
    }

    /// Packets with a broken header, or on a way that carries no segment, are dropped; no predicate covers them.
    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        Change::lost(Field::Length, 32)
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
        for (bare, len) in [(ipv4(6, &syn(5, &[])), 40), (ipv6(6, &syn(5, &[])), 60)] {
            for then in [format!("-m length --length {len}"), "-p tcp -m tcpmss --mss 1000".into()]
            {
                assert_ne!(Frame::ip(&bare).apply(SET, &then).2, Outcome::NO, "{then}");
                assert!(!Frame::ip(&bare).apply(SET, &then).2.is_known(), "{then}");
            }
            assert_eq!(Frame::ip(&bare).apply(SET, "-p tcp --sport 0").2, Outcome::YES);
        }
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
