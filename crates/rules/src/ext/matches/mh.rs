//! `-m mh`: the type of a mobility header.
//!
//! A header that claims another one after it is dropped on the spot. Source: iptables-extensions(8);
//! kernel `net/ipv6/netfilter/ip6t_mh.c`; RFC 6275.

use packet::ipv6_ext;

use crate::error::What;
use crate::ext::kit::ports::upper_start;
use crate::ext::kit::span::Span;
use crate::ext::{Args, Given, Match, MatchKind, Opt, Printer, Support, V6};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

const PROTOCOL: u8 = ipv6_ext::MOBILITY;
/// Payload protocol, length, type, reserved, checksum (2).
const HEADER: usize = 6;
const MAX: u32 = 255;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "mh",
    aliases: &[],
    families: V6,
    protocol: Some(PROTOCOL),
    options: &[Opt::value("mh-type").invertible()],
    support: Support::Evaluated,
    parse,
};

const NAMES: [(&str, u8); 16] = [
    ("binding-refresh-request", 0),
    ("brr", 0),
    ("home-test-init", 1),
    ("hoti", 1),
    ("careof-test-init", 2),
    ("coti", 2),
    ("home-test", 3),
    ("hot", 3),
    ("careof-test", 4),
    ("cot", 4),
    ("binding-update", 5),
    ("bu", 5),
    ("binding-acknowledgement", 6),
    ("ba", 6),
    ("binding-error", 7),
    ("be", 7),
];

#[derive(Debug)]
struct Mh(Span);

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    Ok(Box::new(Mh(args.get("mh-type").map_or(Ok(Span::all(MAX)), parse_types)?)))
}

fn parse_types(given: &Given<'_>) -> Result<Span, What> {
    let text = given.text();
    let types = match text.split_once(':') {
        None => find_type(text).map(|kind| (kind, kind)),
        Some((low, high)) => {
            let low = if low.is_empty() { Some(0) } else { find_type(low) };
            let high = if high.is_empty() { Some(u8::MAX) } else { find_type(high) };
            low.zip(high)
        }
    };
    let (low, high) = types
        .filter(|(low, high)| low <= high)
        .ok_or_else(|| given.expected("a type 0-255, a type name, or a range low:high"))?;
    Ok(Span::new(low.into(), high.into(), MAX, given.invert))
}

/// A name in any case, the first name that starts so, or a number.
fn find_type(text: &str) -> Option<u8> {
    let starts = |name: &str| name.get(..text.len()).is_some_and(|s| s.eq_ignore_ascii_case(text));
    let exact = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let named = exact.or_else(|| NAMES.iter().find(|(name, _)| !text.is_empty() && starts(name)));
    named.map(|(_, kind)| *kind).or_else(|| value::u8(text))
}

impl Match for Mh {
    fn print(&self, to: &mut Printer) {
        self.0.print("mh-type", to);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        match upper_start::<3>(transit, HEADER) {
            Ok((_, [payload, ..])) if payload != ipv6_ext::NO_NEXT => Outcome::HOT_DROP,
            Ok((_, [.., kind])) => Outcome::from_bool(self.0.accepts(kind.into())),
            Err(Outcome::MAYBE) => {
                let payload = upper_start::<1>(transit, HEADER).map(|(_, [payload])| payload);
                match payload {
                    Ok(ipv6_ext::NO_NEXT) => self.0.evaluate(Err(Outcome::MAYBE)),
                    Ok(_) => Outcome::HOT_DROP,
                    Err(_) => Outcome::MAYBE.or(Outcome::HOT_DROP),
                }
            }
            Err(outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, print};
    use crate::family::Family;

    #[test]
    fn names_print_as_numbers() {
        let text = |rule: &str| print(Family::Ipv6, &format!("-p mh -m mh {rule}"));
        assert_eq!(text("--mh-type ba:BE").unwrap(), "-p mobility-header -m mh --mh-type 6:7");
        assert_eq!(text("--mh-type hot").unwrap(), "-p mobility-header -m mh --mh-type 3");
        assert_eq!(text("--mh-type home").unwrap(), "-p mobility-header -m mh --mh-type 1");
        assert_eq!(text("--mh-type :").unwrap(), "-p mobility-header -m mh");
        for bad in ["--mh-type 4:3", "--mh-type 256", "--mh-type \"\"", "--mh-type x"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert!(print(Family::Ipv6, "-m mh").is_err());
    }

    #[test]
    fn the_type_is_compared_if_nothing_follows() {
        let mh = [59, 0, 5, 0, 0, 0, 0, 0];
        let packet = ipv6(135, &mh);
        assert_eq!(Frame::ip(&packet).evaluate("-p mh --mh-type bu"), Outcome::YES);
        assert_eq!(Frame::ip(&packet).evaluate("-p mh ! --mh-type 4:6"), Outcome::NO);
        assert_eq!(Frame::ip(&packet).cut(42).evaluate("-p mh --mh-type bu"), Outcome::MAYBE);
        assert_eq!(Frame::ip(&packet).cut(42).evaluate("-p mh -m mh"), Outcome::YES);
        let followed = ipv6(135, &[6, 0, 5, 0, 0, 0, 0, 0]);
        assert_eq!(Frame::ip(&followed).evaluate("-p mh -m mh"), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&ipv6(135, &mh[..5])).evaluate("-p mh -m mh"), Outcome::HOT_DROP);
    }
}
