//! `-j TCPOPTSTRIP`: overwrites TCP options with padding.
//!
//! Even without an option to strip it drops a packet whose TCP header is short or claims more than there
//! is. Source: iptables-extensions(8); kernel `net/netfilter/xt_TCPOPTSTRIP.c`.

use crate::error::What;
use crate::ext::kit::option_walk::options;
use crate::ext::kit::tcp_header;
use crate::ext::kit::tcp_header::MIN_LEN;
use crate::ext::{Args, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind};
use crate::family::TableKind;
use crate::transit::Transit;
use crate::value;
use packet::Read;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "TCPOPTSTRIP",
    families: IP,
    options: &[Opt::value("strip-options")],
    support: Support::Evaluated,
    parse,
};

const NAMES: [(&str, u8); 6] =
    [("wscale", 3), ("mss", 2), ("sack-permitted", 4), ("sack", 5), ("timestamp", 8), ("md5", 19)];

/// The padding option.
const NOP: u8 = 1;

/// Option kinds in ascending order.
#[derive(Debug)]
struct Strip(Box<[u8]>);

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.needs_table(&[TableKind::MANGLE])?;
    args.needs_protocol(&[tcp_header::PROTOCOL])?;
    let kinds = args.get("strip-options").map(parse_kinds).transpose()?;
    Ok(Box::new(Strip(kinds.unwrap_or_default())))
}

fn parse_kinds(given: &Given<'_>) -> Result<Box<[u8]>, What> {
    let kind = |word: &str| {
        let named = NAMES.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
        named.or_else(|| value::u8(word)).filter(|kind| *kind > NOP)
    };
    let kinds: Option<Vec<u8>> = given.text().split(',').map(kind).collect();
    let mut kinds =
        kinds.ok_or_else(|| given.expected("a comma list of option kinds 2-255 or their names"))?;
    kinds.sort_unstable();
    if kinds.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(given.expected("each option kind only once"));
    }
    Ok(kinds.into())
}

impl Strip {
    /// Strips the options of a whole header of `len` bytes at `tcp`.
    fn strip(&self, transit: &mut Transit<'_, '_>, tcp: usize, len: usize) {
        let len = len - MIN_LEN;
        let Read::Known(old) = transit.packet.read_slice(tcp + MIN_LEN, len) else {
            if !self.0.is_empty() {
                tcp_header::forget(transit, tcp, MIN_LEN, len);
            }
            return;
        };
        let old = old.to_vec();
        // The kernel does not look at an option that begins with the last byte.
        let whole = |at: usize, size: usize| at + 1 < len && at + size <= len;
        for option in options(&old).take_while(|option| whole(option.at, option.len)) {
            if self.0.binary_search(&option.kind).is_ok() {
                let at = MIN_LEN + option.at;
                let words = old[option.at..option.at + option.len]
                    .iter()
                    .enumerate()
                    .map(|(index, byte)| (in_word(*byte, at + index), in_word(NOP, at + index)));
                tcp_header::write(transit, tcp, at, &vec![NOP; option.len], words);
            }
        }
    }
}

/// A byte in its half of the word that it belongs to.
fn in_word(byte: u8, at: usize) -> u16 {
    if at.is_multiple_of(2) { u16::from(byte) << 8 } else { byte.into() }
}

impl Target for Strip {
    fn print(&self, to: &mut Printer) {
        if !self.0.is_empty() {
            let kinds: Vec<String> = self.0.iter().map(ToString::to_string).collect();
            to.option(false, "strip-options", kinds.join(","));
        }
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        match tcp_header::whole(transit) {
            Ok((tcp, len)) => {
                transit.one_piece = true;
                self.strip(transit, tcp, len);
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
    use crate::family::Family;
    use crate::outcome::Outcome;

    #[test]
    fn kinds_print_sorted() {
        let text = |list: &str| print(Family::Ipv4, &format!("-p tcp -j TCPOPTSTRIP {list}"));
        let printed = text("--strip-options md5,200,mss,sack-permitted").unwrap();
        assert_eq!(printed, "-p tcp -j TCPOPTSTRIP --strip-options 2,4,19,200");
        assert_eq!(text("").unwrap(), "-p tcp -j TCPOPTSTRIP");
        for bad in ["1,2", "2,mss", "256", "2,", "MSS"] {
            assert!(text(&format!("--strip-options {bad}")).is_err(), "{bad}");
        }
        assert!(read_in(Family::Ipv4, "filter", "INPUT", "-p tcp -j TCPOPTSTRIP").is_err());
        assert!(print(Family::Ipv4, "-j TCPOPTSTRIP").is_err());
    }

    fn tcp(words: u8, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0; 20];
        tcp[12] = words << 4;
        tcp.extend_from_slice(options);
        let checksum = !packet::checksum::sum(&tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        tcp
    }

    #[test]
    fn options_become_padding_and_the_checksum_stays_right() {
        let rule = "-p tcp -j TCPOPTSTRIP --strip-options 3,8";
        let list = [2, 4, 5, 0xb4, 3, 3, 7, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 4, 2];
        let stripped = [2, 4, 5, 0xb4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 2];
        for packet in [ipv4(6, &tcp(10, &list)), ipv6(6, &tcp(10, &list))] {
            let (effect, bytes, outcome) = Frame::ip(&packet).apply(rule, "-p tcp --tcp-option 3");
            assert_eq!((effect, outcome), (Effect::Continue, Outcome::NO));
            let tcp = &bytes[bytes.len() - 40..];
            assert_eq!(tcp[20..], stripped);
            assert_eq!(packet::checksum::sum(tcp), 0xffff);
        }
    }

    #[test]
    fn an_option_that_runs_past_the_header_ends_the_walk() {
        let rule = "-p tcp -j TCPOPTSTRIP --strip-options 8";
        for list in [[8, 5, 0, 0], [1, 1, 1, 8], [4, 9, 8, 2]] {
            let packet = ipv4(6, &tcp(6, &list));
            let (_, bytes, _) = Frame::ip(&packet).apply(rule, "-p tcp");
            assert_eq!(bytes, packet, "{list:?}");
        }
    }

    #[test]
    fn malformed_headers_are_dropped() {
        let rule = "-p tcp -j TCPOPTSTRIP";
        for tcp in [tcp(4, &[]), tcp(6, &[]), tcp(5, &[])[..19].to_vec()] {
            assert_eq!(Frame::ip(&ipv4(6, &tcp)).apply(rule, "-p tcp").0, Effect::Drop);
        }
        let whole = ipv4(6, &tcp(6, &[8, 4, 0, 0]));
        let cut = Frame::ip(&whole).cut(42);
        let strip = "-p tcp -j TCPOPTSTRIP --strip-options 8";
        let (effect, _, outcome) = cut.apply(strip, "-p tcp --tcp-option 8");
        assert_eq!((effect, outcome), (Effect::Continue, Outcome::MAYBE));
    }
}
