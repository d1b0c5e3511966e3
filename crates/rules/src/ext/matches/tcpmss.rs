//! `-m tcpmss`: the MSS option of TCP.
//!
//! Without the option only the inverted test matches. A header that is short, or whose options run past
//! the end of the packet, is dropped on the spot. Later fragments are not told apart: their bytes are read
//! as a header. Source: iptables-extensions(8); kernel `net/netfilter/xt_tcpmss.c`.

use packet::Read;

use crate::error::What;
use crate::ext::kit::option_walk::find_mss;
use crate::ext::kit::ports::header_start;
use crate::ext::kit::span::Span;
use crate::ext::kit::tcp_header;
use crate::ext::kit::tcp_header::MIN_LEN;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "tcpmss",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[Opt::value("mss").invertible()],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Tcpmss {
    mss: Span,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[tcp_header::PROTOCOL])?;
    let given = args.required("mss")?;
    let mss = Span::from_given(given, u16::MAX.into())?;
    Ok(Box::new(Tcpmss { mss, invert: given.invert }))
}

impl Match for Tcpmss {
    fn print(&self, to: &mut Printer) {
        self.mss.print_always("mss", to);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let open = Outcome::MAYBE.or(Outcome::HOT_DROP);
        let Some(tcp) = tcp_header::offset(transit) else { return open };
        let at = tcp + tcp_header::WORDS;
        let words = match header_start(transit, at, MIN_LEN - tcp_header::WORDS) {
            Ok([words]) => words,
            Err(Outcome::MAYBE) => return open,
            Err(outcome) => return outcome,
        };
        let Some(len) = tcp_header::len_of(words).checked_sub(MIN_LEN) else {
            return Outcome::HOT_DROP;
        };
        match transit.packet.read_slice(tcp + MIN_LEN, len) {
            Read::Known(options) => Outcome::from_bool(match find_mss(options) {
                Some((_, mss)) => self.mss.accepts(mss.into()),
                None => self.invert,
            }),
            Read::Unknown => Outcome::MAYBE,
            Read::Absent => Outcome::HOT_DROP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, ipv6, print};
    use crate::family::Family;

    fn syn(words: u8, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0; 20];
        tcp[12] = words << 4;
        tcp[13] = 2;
        tcp.extend_from_slice(options);
        tcp
    }

    #[test]
    fn an_mss_is_a_16_bit_range_of_tcp() {
        let text = print(Family::Ipv4, "-p tcp -m tcpmss ! --mss :42").unwrap();
        assert_eq!(text, "-p tcp -m tcpmss ! --mss 0:42");
        assert!(print(Family::Ipv4, "-m tcpmss --mss 42").is_err());
        assert!(print(Family::Ipv4, "-p tcp -m tcpmss --mss 42:65536").is_err());
    }

    #[test]
    fn the_option_is_compared() {
        for packet in [
            ipv4(6, &syn(7, &[1, 1, 1, 2, 4, 5, 0xb4, 0])),
            ipv6(6, &syn(7, &[1, 1, 1, 2, 4, 5, 0xb4, 0])),
        ] {
            let frame = Frame::ip(&packet);
            assert_eq!(frame.evaluate("-p tcp -m tcpmss --mss 1400:1500"), Outcome::YES);
            assert_eq!(frame.evaluate("-p tcp -m tcpmss ! --mss 1460"), Outcome::NO);
            let cut = frame.cut(packet.len() - 2);
            assert_eq!(cut.evaluate("-p tcp -m tcpmss --mss 1460"), Outcome::MAYBE);
        }
        let none = ipv4(6, &syn(5, &[]));
        assert_eq!(Frame::ip(&none).evaluate("-p tcp -m tcpmss --mss :"), Outcome::NO);
        assert_eq!(Frame::ip(&none).evaluate("-p tcp -m tcpmss ! --mss :"), Outcome::YES);
    }

    #[test]
    fn malformed_headers_are_dropped() {
        for tcp in [syn(4, &[]), syn(6, &[]), syn(5, &[])[..19].to_vec()] {
            let packet = ipv4(6, &tcp);
            assert_eq!(Frame::ip(&packet).evaluate("-p tcp -m tcpmss --mss 1"), Outcome::HOT_DROP);
        }
    }
}
