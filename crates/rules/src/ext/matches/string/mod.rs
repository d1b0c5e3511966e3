//! `-m string`: a byte string in the packet, searched from the network header on.
//!
//! A match lies wholly between `--from` and `--to`, both counted from the network header. Both
//! algorithms find the same in a packet that lies in one piece, as every packet is taken to, but for one
//! flaw (measured): `bm` with `--icase` may step over the bytes 0xdf and 0xff where the pattern has
//! their capitals. Such a find is unknown. Source: iptables-extensions(8); kernel
//! `net/netfilter/xt_string.c`, `lib/ts_bm.c`, and `skb_find_text` as of Linux 6.2.

mod capitals;
mod frame;
mod pattern;
mod text;

use crate::error::What;
use crate::ext::kit::work::steps_of;
use crate::ext::{Args, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
pub(crate) use frame::FRAME_KIND;
use text::{MAX_OFFSET, Needle, Text};

pub(crate) static KIND: MatchKind = MatchKind {
    name: "string",
    aliases: &[],
    families: IP,
    protocol: None,
    options: &[
        Opt::value("string").invertible(),
        Opt::value("hex-string").invertible(),
        Opt::value("algo"),
        Opt::value("from"),
        Opt::value("to"),
        Opt::flag("icase"),
    ],
    support: Support::Evaluated,
    parse,
};

/// How much longer a search takes that folds every byte, one after the other.
const FOLDED: u32 = 8;

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.any_of(&["string", "hex-string"])?;
    args.one_of(&["string", "hex-string"])?;
    Ok(Box::new(Text::parse(args, ["string", "hex-string", "from", "to", "algo", "icase"])?))
}

impl Match for Text {
    fn print(&self, to: &mut Printer) {
        match pattern::plain_text(&self.pattern) {
            Some(text) => to.option(self.invert, "string", text),
            None => to.option(self.invert, "hex-string", pattern::hex_text(&self.pattern)),
        };
        to.option(false, "algo", self.algorithm);
        if self.from != 0 {
            to.option(false, "from", self.from);
        }
        if self.to != MAX_OFFSET {
            to.option(false, "to", self.to);
        }
        if matches!(self.needle, Needle::AnyCase(_)) {
            to.flag(false, "icase");
        }
    }

    fn work(&self, bytes: usize) -> u32 {
        let searched = bytes.min(self.to.into()).saturating_sub(self.from.into());
        match self.needle {
            Needle::Exact(_) => steps_of(searched),
            Needle::AnyCase(_) => steps_of(searched).saturating_mul(FOLDED),
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let found = match self.search(transit) {
            Outcome::YES if self.may_be_missed() => Outcome::MAYBE,
            found => found,
        };
        found.invert(self.invert)
    }
}

#[cfg(test)]
mod tests {
    use memchr::memmem::Finder;
    use proptest::prelude::*;

    use super::capitals::Capitals;
    use super::*;
    use crate::ext::kit::testing::{evaluate, evaluate_cut, ipv4_udp, with_transit};

    fn text(pattern: &[u8], icase: bool, from: u16, to: u16) -> Text {
        let needle = match icase {
            true => Needle::AnyCase(Capitals::of(pattern)),
            false => Needle::Exact(Box::new(Finder::new(pattern).into_owned())),
        };
        Text { pattern: pattern.into(), needle, invert: false, algorithm: "bm", from, to }
    }

    #[test]
    fn the_match_lies_between_from_and_to() {
        let packet = ipv4_udp(b"GET /index");
        let holds = |from, to| evaluate(&text(b"GET", false, from, to), &packet);
        assert_eq!(holds(0, MAX_OFFSET), Outcome::YES);
        assert_eq!(holds(28, 31), Outcome::YES);
        assert_eq!(holds(28, 30), Outcome::NO);
        assert_eq!(holds(29, MAX_OFFSET), Outcome::NO);
        assert_eq!(holds(60, MAX_OFFSET), Outcome::NO);
        assert_eq!(evaluate(&text(b"get", false, 0, MAX_OFFSET), &packet), Outcome::NO);
        assert_eq!(evaluate(&text(b"get", true, 0, MAX_OFFSET), &packet), Outcome::YES);
        assert_eq!(evaluate(&text(&[0x45, 0, 0], false, 0, 3), &packet), Outcome::YES);
    }

    #[test]
    fn bm_is_not_trusted_with_the_odd_letters_of_latin_1() {
        let packet = ipv4_udp(&[0xff, 0xdd]);
        let mut text = text(&[0xff, 0xdd], true, 0, MAX_OFFSET);
        assert_eq!(evaluate(&text, &packet), Outcome::MAYBE);
        text.algorithm = "kmp";
        assert_eq!(evaluate(&text, &packet), Outcome::YES);
    }

    #[test]
    fn what_was_not_captured_or_is_forgotten_is_unknown() {
        let packet = ipv4_udp(b"GET /index GET");
        let cut = |pattern: &[u8], to| evaluate_cut(&text(pattern, false, 0, to), &packet, 35);
        assert_eq!(cut(b"GET", MAX_OFFSET), Outcome::YES);
        assert_eq!(cut(b"index", MAX_OFFSET), Outcome::MAYBE);
        assert_eq!(cut(b"index", 35), Outcome::NO);
        with_transit(&packet, packet.len(), |transit| {
            transit.forget_net(30..31);
            assert_eq!(text(b"GET", false, 0, 40).evaluate(transit), Outcome::MAYBE);
            assert_eq!(text(b"GET", false, 0, MAX_OFFSET).evaluate(transit), Outcome::YES);
        });
    }

    proptest! {
        /// Small alphabets, so that patterns nearly match often.
        #[test]
        fn finding_is_what_comparing_at_every_place_finds(
            payload in proptest::collection::vec(97..100_u8, 0..40),
            pattern in proptest::collection::vec(97..100_u8, 1..4),
            from in 0..60_u16,
            to in 0..70_u16,
            capture in 28..68_usize,
        ) {
            let packet = ipv4_udp(&payload);
            let within = packet.get(from.into()..packet.len().min(to.into())).unwrap_or_default();
            for icase in [false, true] {
                // Headers hold capitals, too.
                let found = within.windows(pattern.len()).any(|window| {
                    window == pattern || icase && window.eq_ignore_ascii_case(&pattern)
                });
                let whole = evaluate(&text(&pattern, icase, from, to), &packet);
                prop_assert_eq!(whole, Outcome::from_bool(found));
                let cut = evaluate_cut(&text(&pattern, icase, from, to), &packet, capture.min(packet.len()));
                prop_assert!(cut == whole || cut == Outcome::MAYBE, "{:?} is not {:?}", cut, whole);
            }
        }
    }
}
