//! `-m frag`: the IPv6 fragment header.
//!
//! `--fraglen` is kept but tests nothing: the kernel does not look at it. Source:
//! iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_frag.c`; RFC 8200.

use packet::ipv6_ext::{self, MORE_FRAGMENTS, OFFSET_MASK};

use crate::error::What;
use crate::ext::kit::ipv6_chain;
use crate::ext::kit::ports::header_start;
use crate::ext::kit::span::Span;
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V6};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

const HEADER: usize = 8;
/// The two bits between the offset and [`MORE_FRAGMENTS`].
const RESERVED_BITS: u16 = 0x0006;

/// Flags in printing order.
const FLAGS: [&str; 4] = ["fragres", "fragfirst", "fragmore", "fraglast"];

pub(crate) static KIND: MatchKind = MatchKind {
    name: "frag",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[
        Opt::value("fragid").invertible(),
        Opt::value("fraglen").invertible(),
        Opt::flag(FLAGS[0]),
        Opt::flag(FLAGS[1]),
        Opt::flag(FLAGS[2]),
        Opt::flag(FLAGS[3]),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Frag {
    id: Span,
    /// Printed only: the length, and whether it is inverted.
    len: Option<(u32, bool)>,
    /// Which of [`FLAGS`] are wanted.
    flags: [bool; 4],
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.one_of(&["fragmore", "fraglast"])?;
    let len = match args.get("fraglen") {
        Some(given) => {
            let len = value::u32(given.text());
            Some((len.ok_or_else(|| given.expected("a length of 32 bits"))?, given.invert))
        }
        None => None,
    };
    let id = Span::parse(args, "fragid", u32::MAX)?;
    Ok(Box::new(Frag { id, len, flags: FLAGS.map(|name| args.has(name)) }))
}

impl Frag {
    fn evaluate_flags(&self, header: Result<[u8; 4], Outcome>) -> Outcome {
        if self.flags == [false; 4] {
            return header.map_or_else(|outcome| outcome, |_| Outcome::YES);
        }
        let header = match header {
            Ok(header) => header,
            Err(outcome) => return outcome,
        };
        let field = u16::from_be_bytes([header[2], header[3]]);
        let [reserved, first, more, last] = self.flags;
        let is_more = field & MORE_FRAGMENTS != 0;
        let fails = (reserved && (header[1] != 0 || field & RESERVED_BITS != 0))
            || (first && field & OFFSET_MASK != 0)
            || (more && !is_more)
            || (last && is_more);
        Outcome::from_bool(!fails)
    }
}

impl Match for Frag {
    fn print(&self, to: &mut Printer) {
        self.id.print("fragid", to);
        if let Some((len, invert)) = self.len {
            to.option(invert, "fraglen", len);
        }
        for (name, _) in FLAGS.into_iter().zip(self.flags).filter(|(_, wanted)| *wanted) {
            to.flag(false, name);
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let offset = match ipv6_chain::find(transit, ipv6_ext::FRAGMENT) {
            Ok(offset) => offset,
            Err(outcome) => return outcome,
        };
        let id = header_start::<HEADER>(transit, offset, HEADER)
            .map(|b| u32::from_be_bytes([b[4], b[5], b[6], b[7]]));
        self.id.evaluate(id).and_then(|| self.evaluate_flags(header_start(transit, offset, HEADER)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, print};
    use crate::family::Family;
    use host::{Host, Kernel};

    fn fragment(reserved: u8, field: u16, id: u32) -> Vec<u8> {
        let mut header = vec![17, reserved];
        header.extend_from_slice(&field.to_be_bytes());
        header.extend_from_slice(&id.to_be_bytes());
        header.extend_from_slice(&[0; 8]);
        ipv6(44, &header)
    }

    #[test]
    fn options_are_printed_in_one_order() {
        let rule = "-m frag --fraglast --fragfirst --fragres ! --fraglen 42 --fragid :";
        assert_eq!(
            print(Family::Ipv6, rule).unwrap(),
            "-m frag ! --fraglen 42 --fragres --fragfirst --fraglast"
        );
        assert!(print(Family::Ipv6, "-m frag --fraglast --fragmore").is_err());
    }

    #[test]
    fn each_flag_is_a_test() {
        for (reserved, field, rule, matches) in [
            (0, 0x0000, "--fragfirst --fraglast --fragres", true),
            (0, 0x0009, "--fragmore", true),
            (0, 0x0009, "--fragfirst", false),
            (0, 0x0009, "--fraglast", false),
            (0, 0x0008, "--fragmore", false),
            (1, 0x0008, "--fragres", false),
            (0, 0x0004, "--fragres", false),
            (0, 0x0004, "--fraglen 1", true),
            (0, 0x0004, "--fragid 7", true),
            (0, 0x0004, "! --fragid 6:8", false),
        ] {
            let packet = fragment(reserved, field, 7);
            let rule = format!("-m frag {rule}");
            assert_eq!(
                Frame::ip(&packet).evaluate(&rule),
                Outcome::from_bool(matches),
                "{rule} {field:#x}"
            );
        }
    }

    #[test]
    fn a_chain_that_claims_too_much_breaks_off_as_the_kernel_s_version_says() {
        let packet = ipv6(60, &[6, 1, 1, 4, 0, 0, 0, 0]);
        for (version, expected) in [
            (None, Outcome::NO),
            (Some("6.18.44"), Outcome::NO),
            (Some("6.1.192"), Outcome::HOT_DROP),
            (Some("6.1"), Outcome::NO.or(Outcome::HOT_DROP)),
        ] {
            let kernel = version.and_then(Kernel::parse);
            let host = Host { kernel, ..Host::default() };
            assert_eq!(Frame::ip(&packet).evaluate_in(&host, "-m frag"), expected, "{version:?}");
        }
    }

    #[test]
    fn what_is_missing_decides_as_in_the_kernel() {
        assert_eq!(Frame::ip(&ipv6(17, &[0; 8])).evaluate("-m frag"), Outcome::NO);
        assert_eq!(Frame::ip(&ipv6(44, &[17, 0, 0])).evaluate("-m frag"), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&ipv6(44, &[17, 0, 0, 1])).evaluate("-m frag"), Outcome::HOT_DROP);
        let whole = fragment(0, 1, 7);
        let cut = Frame::ip(&whole).cut(44);
        assert_eq!(cut.evaluate("-m frag --fragmore"), Outcome::YES);
        assert_eq!(cut.evaluate("-m frag --fraglast"), Outcome::NO);
        assert_eq!(cut.evaluate("-m frag --fragid 7"), Outcome::MAYBE);
    }
}
