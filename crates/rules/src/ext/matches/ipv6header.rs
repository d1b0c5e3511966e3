//! `-m ipv6header`: which extension headers a packet has.
//!
//! It walks the chain by itself: after a fragment header it goes on whatever the offset, and it ends at
//! ESP. Without `--soft` the packet must have exactly the listed headers, with `--soft` at least those;
//! inverted, none of them. Source: iptables-extensions(8); kernel
//! `net/ipv6/netfilter/ip6t_ipv6header.c`.

use packet::{Read, ipv6, ipv6_ext};

use crate::error::What;
use crate::ext::kit::ipv6_chain;
use crate::ext::{Args, Given, Match, MatchKind, Opt, Printer, Support, V6};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "ipv6header",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[Opt::value("header").invertible(), Opt::flag("soft")],
    support: Support::Evaluated,
    parse,
};

/// Stands for any upper-layer protocol.
const UPPER: u8 = 255;

/// One kind of header: number, its other names, and the printed name. Its place is its bit; this is the
/// printing order.
const HEADERS: [(u8, &[&str], &str); 8] = [
    (ipv6_ext::HOP_BY_HOP, &["hop", "hopopt", "ip", "0"], "hop-by-hop"),
    (ipv6_ext::DESTINATION_OPTIONS, &["dst", "60"], "ipv6-opts"),
    (ipv6_ext::ROUTING, &["route", "43"], "ipv6-route"),
    (ipv6_ext::FRAGMENT, &["frag", "44"], "ipv6-frag"),
    (ipv6_ext::AUTH, &["auth", "51"], "ah"),
    (ipv6_ext::ESP, &["50"], "esp"),
    (ipv6_ext::NO_NEXT, &["none", "59"], "ipv6-nonxt"),
    (UPPER, &["prot", "255"], "protocol"),
];

/// The bit of a header in a set of headers.
fn bit(number: u8) -> u8 {
    HEADERS.iter().position(|(known, ..)| *known == number).map_or(0, |place| 1 << place)
}

#[derive(Debug)]
struct Ipv6Header {
    /// Wanted headers, as bits by place in [`HEADERS`].
    headers: u8,
    soft: bool,
    invert: bool,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let given = args.required("header")?;
    let headers = parse_headers(given)?;
    Ok(Box::new(Ipv6Header { headers, soft: args.has("soft"), invert: given.invert }))
}

fn parse_headers(given: &Given<'_>) -> Result<u8, What> {
    let named = |word: &str| {
        let is = |(_, others, name): &&(u8, &[&str], &str)| {
            others.contains(&word) || name.eq_ignore_ascii_case(word)
        };
        HEADERS.iter().find(is).map(|(number, ..)| bit(*number))
    };
    value::list(given.text())
        .try_fold(0, |headers, word| Some(headers | named(word)?))
        .filter(|headers| *headers != 0)
        .ok_or_else(|| {
            given.expected("a comma list of hop dst route frag auth esp none prot or their numbers")
        })
}

impl Ipv6Header {
    fn evaluate_found(&self, found: u8) -> Outcome {
        let matches = match (self.soft, self.invert) {
            (true, false) => found & self.headers == self.headers,
            (true, true) => found & self.headers == 0,
            (false, invert) => (found == self.headers) != invert,
        };
        Outcome::from_bool(matches)
    }
}

/// Length in bytes of an extension header of this type whose length field is `field`.
fn header_len(kind: u8, field: u8) -> usize {
    match kind {
        ipv6_ext::FRAGMENT => 8,
        ipv6_ext::AUTH => (usize::from(field) + 2) * 4,
        _ => ipv6_chain::len_of(field),
    }
}

/// The headers of a packet, or the outcome of not being able to walk them.
fn walk(transit: &Transit<'_, '_>) -> Result<u8, Outcome> {
    let packet = &transit.packet;
    let (mut at, end) = (packet.network_offset() + ipv6::HEADER_LEN, packet.headers().end);
    let mut next = match packet.net::<1>(ipv6::NEXT_HEADER.start) {
        Read::Known([next]) => next,
        Read::Unknown | Read::Absent => return Err(Outcome::MAYBE),
    };
    let mut found = 0;
    while ipv6_ext::is_extension(next) || next == ipv6_ext::ESP {
        if next == ipv6_ext::NO_NEXT {
            return Ok(found | bit(next));
        }
        // With no room for two bytes the packet does not match, be it inverted.
        let header = match packet.read::<2>(at) {
            Read::Absent => return Err(Outcome::NO),
            _ if next == ipv6_ext::ESP => return Ok(found | bit(next)),
            Read::Known(header) => header,
            Read::Unknown => return Err(Outcome::MAYBE),
        };
        found |= bit(next);
        at += header_len(next, header[1]);
        next = header[0];
        if at > end {
            break;
        }
    }
    let upper = next != ipv6_ext::NO_NEXT && next != ipv6_ext::ESP;
    Ok(if upper { found | bit(UPPER) } else { found })
}

impl Match for Ipv6Header {
    fn print(&self, to: &mut Printer) {
        let names: Vec<&str> = HEADERS
            .iter()
            .filter(|(number, ..)| self.headers & bit(*number) != 0)
            .map(|(.., name)| *name)
            .collect();
        to.option(self.invert, "header", names.join(","));
        if self.soft {
            to.flag(false, "soft");
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        walk(transit).map_or_else(|outcome| outcome, |found| self.evaluate_found(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, print};
    use crate::family::Family;

    #[test]
    fn names_print_in_one_order() {
        let text = print(Family::Ipv6, "-m ipv6header --soft ! --header prot,none,50,frag,0");
        assert_eq!(
            text.unwrap(),
            "-m ipv6header ! --header hop-by-hop,ipv6-frag,esp,ipv6-nonxt,protocol --soft"
        );
        for bad in ["--header tcp", "--header ,", "--soft", ""] {
            assert!(print(Family::Ipv6, &format!("-m ipv6header {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn exactly_these_or_at_least_these() {
        let packet =
            ipv6(0, &[[43, 0, 1, 4, 0, 0, 0, 0], [17, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat());
        for (rule, matches) in [
            ("--header hop,route,prot", true),
            ("! --header hop,route,prot", false),
            ("--header hop,route", false),
            ("--header hop,route --soft", true),
            ("--header hop,frag --soft", false),
            ("! --header hop,frag --soft", false),
            ("! --header dst,frag --soft", true),
        ] {
            let rule = format!("-m ipv6header {rule}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(matches), "{rule}");
        }
    }

    #[test]
    fn a_later_fragment_is_walked_on() {
        let packet = ipv6(44, &[[60, 0, 0, 8, 0, 0, 0, 1], [59, 0, 0, 0, 0, 0, 0, 0]].concat());
        let rule = "-m ipv6header --header frag,dst,none";
        assert_eq!(Frame::ip(&packet).evaluate(rule), Outcome::YES);
    }

    #[test]
    fn the_ends_of_the_chain() {
        let esp = ipv6(50, &[0; 8]);
        assert_eq!(Frame::ip(&esp).evaluate("-m ipv6header --header esp"), Outcome::YES);
        let empty = ipv6(50, &[]);
        assert_eq!(Frame::ip(&empty).evaluate("-m ipv6header ! --header esp"), Outcome::NO);
        // The header claims more than there is: what follows counts as an upper layer.
        let long = ipv6(60, &[17, 9, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Frame::ip(&long).evaluate("-m ipv6header --header dst,prot"), Outcome::YES);
        let whole = ipv6(60, &[17, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(
            Frame::ip(&whole).cut(41).evaluate("-m ipv6header --header dst"),
            Outcome::MAYBE
        );
    }
}
