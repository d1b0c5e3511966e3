//! `-m srh`: the IPv6 segment routing header.
//!
//! Three quirks of tool and kernel are kept. The `-eq`, `-gt` and `-lt` options of a field share one
//! number: the last one given counts for all. The tag is compared in the byte order of the host, taken as
//! little endian here, so `--srh-tag 1` finds the bytes 01 00. And a header that is malformed or ends
//! early only does not match. Source: iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_srh.c`;
//! RFC 8754.

use packet::{Read, ipv6_ext};

use crate::error::What;
use crate::ext::kit::ipv6_chain;
use crate::ext::kit::ports::header_start;
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V6};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

/// Bytes before the segment list: next header, length, type, segments left, last entry, flags, tag (2).
const FIXED: usize = 8;
const ADDRESS: usize = 16;
/// Routing type of a segment routing header.
const TYPE: u8 = 4;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "srh",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[
        Opt::value("srh-next-hdr").invertible(),
        Opt::value("srh-hdr-len-eq").invertible(),
        Opt::value("srh-hdr-len-gt").invertible(),
        Opt::value("srh-hdr-len-lt").invertible(),
        Opt::value("srh-segs-left-eq").invertible(),
        Opt::value("srh-segs-left-gt").invertible(),
        Opt::value("srh-segs-left-lt").invertible(),
        Opt::value("srh-last-entry-eq").invertible(),
        Opt::value("srh-last-entry-gt").invertible(),
        Opt::value("srh-last-entry-lt").invertible(),
        Opt::value("srh-tag").invertible(),
        Opt::value("srh-psid").invertible(),
        Opt::value("srh-nsid").invertible(),
        Opt::value("srh-lsid").invertible(),
    ],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Equal,
    Greater,
    Less,
}

/// The one-byte fields, by the offset in the header: option, offset, comparison, in printing order.
const FIELDS: [(&str, usize, Compare); 10] = [
    ("srh-next-hdr", 0, Compare::Equal),
    ("srh-hdr-len-eq", 1, Compare::Equal),
    ("srh-hdr-len-gt", 1, Compare::Greater),
    ("srh-hdr-len-lt", 1, Compare::Less),
    ("srh-segs-left-eq", 3, Compare::Equal),
    ("srh-segs-left-gt", 3, Compare::Greater),
    ("srh-segs-left-lt", 3, Compare::Less),
    ("srh-last-entry-eq", 4, Compare::Equal),
    ("srh-last-entry-gt", 4, Compare::Greater),
    ("srh-last-entry-lt", 4, Compare::Less),
];

/// The options with an address, in printing order.
const SEGMENTS: [&str; 3] = ["srh-psid", "srh-nsid", "srh-lsid"];

#[derive(Debug)]
struct Srh {
    fields: Box<[FieldTest]>,
    tag: Option<(u16, bool)>,
    segments: Box<[SegmentTest]>,
}

#[derive(Debug)]
struct FieldTest {
    /// Index in [`FIELDS`].
    field: u8,
    number: u8,
    invert: bool,
}

#[derive(Debug)]
struct SegmentTest {
    which: Segment,
    /// As given: bits outside the mask are printed but not compared.
    addr: [u8; ADDRESS],
    bits: u8,
    invert: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    Previous,
    Next,
    Last,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    let mut numbers = [0; FIXED];
    for given in args.given {
        if let Some((_, offset, _)) = FIELDS.iter().find(|(name, ..)| *name == given.name) {
            numbers[*offset] =
                value::u8(given.text()).ok_or_else(|| given.expected("a number 0-255"))?;
        }
    }
    let field = |(index, (name, offset, _)): (usize, &(&str, usize, Compare))| {
        let given = args.get(name)?;
        Some(FieldTest { field: index as u8, number: numbers[*offset], invert: given.invert })
    };
    let tag = match args.get("srh-tag") {
        Some(given) => {
            let tag = value::u16(given.text());
            Some((tag.ok_or_else(|| given.expected("a number 0-65535"))?, given.invert))
        }
        None => None,
    };
    Ok(Box::new(Srh {
        fields: FIELDS.iter().enumerate().filter_map(field).collect(),
        tag,
        segments: parse_segments(args)?,
    }))
}

fn parse_segments(args: &Args<'_>) -> Result<Box<[SegmentTest]>, What> {
    let all = SEGMENTS.into_iter().zip([Segment::Previous, Segment::Next, Segment::Last]);
    all.filter_map(|(name, which)| Some((which, args.get(name)?)))
        .map(|(which, given)| {
            let (addr, bits) = parse_prefix(given.text())
                .ok_or_else(|| given.expected("an address or address/prefix length"))?;
            Ok(SegmentTest { which, addr, bits, invert: given.invert })
        })
        .collect()
}

fn parse_prefix(text: &str) -> Option<([u8; ADDRESS], u8)> {
    let (addr, mask) = match text.split_once('/') {
        Some((addr, mask)) => (addr, value::mask(mask, ADDRESS)?),
        None => (text, value::prefix_mask(128)),
    };
    Some((value::address(addr, ADDRESS)?, value::prefix_len(&mask, ADDRESS)? as u8))
}

impl FieldTest {
    fn accepts(&self, header: &[u8; FIXED]) -> bool {
        let (_, offset, compare) = FIELDS[usize::from(self.field)];
        let found = header[offset];
        let passes = match compare {
            Compare::Equal => found == self.number,
            Compare::Greater => found > self.number,
            Compare::Less => found < self.number,
        };
        passes != self.invert
    }
}

impl SegmentTest {
    /// `left` and `last` are the header's segments left and last entry, the former not above the latter.
    fn evaluate(&self, transit: &Transit<'_, '_>, at: usize, left: u8, last: u8) -> Outcome {
        let index = match self.which {
            Segment::Previous if left == last => return Outcome::NO,
            Segment::Previous => usize::from(left) + 1,
            Segment::Next if left == 0 => return Outcome::NO,
            Segment::Next => usize::from(left) - 1,
            Segment::Last => 0,
        };
        match transit.packet.read::<ADDRESS>(at + FIXED + index * ADDRESS) {
            Read::Known(found) => {
                let mask = u128::from_be_bytes(value::prefix_mask(self.bits.into()));
                let differ = u128::from_be_bytes(found) ^ u128::from_be_bytes(self.addr);
                Outcome::from_bool((differ & mask == 0) != self.invert)
            }
            Read::Unknown => Outcome::MAYBE,
            Read::Absent => Outcome::NO,
        }
    }
}

impl Match for Srh {
    fn print(&self, to: &mut Printer) {
        for test in &self.fields {
            let (name, ..) = FIELDS[usize::from(test.field)];
            to.option(test.invert, name, test.number);
        }
        if let Some((tag, invert)) = self.tag {
            to.option(invert, "srh-tag", tag);
        }
        for test in &self.segments {
            let addr = value::address_text(&test.addr, ADDRESS);
            let name = SEGMENTS[test.which as usize];
            to.option(test.invert, name, format_args!("{addr}/{}", test.bits));
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let header = match ipv6_chain::find(transit, ipv6_ext::ROUTING) {
            Ok(at) => header_start::<FIXED>(transit, at, FIXED).map(|header| (at, header)),
            Err(outcome) => Err(outcome),
        };
        let (at, header) = match header {
            Ok(header) => header,
            // Nothing is dropped here.
            Err(Outcome::NO | Outcome::HOT_DROP) => return Outcome::NO,
            Err(_) => return Outcome::MAYBE,
        };
        let [_, len, kind, left, last, _, tag @ ..] = header;
        let is_whole = transit.packet.headers().end.saturating_sub(at) >= ipv6_chain::len_of(len);
        let passes = is_whole
            && kind == TYPE
            && left <= last
            && self.fields.iter().all(|test| test.accepts(&header))
            && self.tag.is_none_or(|(want, invert)| (u16::from_le_bytes(tag) == want) != invert);
        let segments = || {
            self.segments.iter().fold(Outcome::YES, |all, test| {
                all.and_then(|| test.evaluate(transit, at, left, last))
            })
        };
        Outcome::from_bool(passes).and_then(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, print};
    use crate::family::Family;

    #[test]
    fn the_last_number_of_a_field_counts_for_all_its_options() {
        let text = print(Family::Ipv6, "-m srh ! --srh-hdr-len-gt 2 --srh-hdr-len-eq 4").unwrap();
        assert_eq!(text, "-m srh --srh-hdr-len-eq 4 ! --srh-hdr-len-gt 4");
        let text = print(Family::Ipv6, "-m srh --srh-psid a::1/64 --srh-nsid b::").unwrap();
        assert_eq!(text, "-m srh --srh-psid a::1/64 --srh-nsid b::/128");
        for bad in ["--srh-tag 65536", "--srh-next-hdr 256", "--srh-psid a::/129", "--srh-lsid x"] {
            assert!(print(Family::Ipv6, &format!("-m srh {bad}")).is_err(), "{bad}");
        }
    }

    /// Segments a::, b::, c:: with the last entry 2 and this many left.
    fn srh(left: u8) -> Vec<u8> {
        let mut header = vec![17, 6, 4, left, 2, 0, 1, 0];
        for first in [0x0a, 0x0b, 0x0c] {
            header.extend_from_slice(&[0, first]);
            header.extend_from_slice(&[0; 14]);
        }
        header.extend_from_slice(&[0; 8]);
        ipv6(43, &header)
    }

    #[test]
    fn fields_and_segments_are_compared() {
        let packet = srh(1);
        for (rule, matches) in [
            ("", true),
            ("--srh-next-hdr 17 --srh-hdr-len-eq 6 --srh-last-entry-gt 1", true),
            ("--srh-segs-left-lt 2", true),
            ("! --srh-segs-left-lt 2", false),
            ("--srh-tag 1", true),
            ("--srh-tag 256", false),
            ("--srh-psid c::/16", true),
            ("--srh-nsid a::", true),
            ("--srh-lsid a::", true),
            ("! --srh-lsid a::", false),
            ("--srh-psid b::", false),
        ] {
            let rule = format!("-m srh {rule}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(matches), "{rule}");
        }
    }

    #[test]
    fn at_the_ends_there_is_no_previous_or_next_segment() {
        assert_eq!(Frame::ip(&srh(2)).evaluate("-m srh ! --srh-psid d::"), Outcome::NO);
        assert_eq!(Frame::ip(&srh(0)).evaluate("-m srh ! --srh-nsid d::"), Outcome::NO);
        assert_eq!(Frame::ip(&srh(3)).evaluate("-m srh"), Outcome::NO);
    }

    #[test]
    fn nothing_is_dropped_for_a_short_header() {
        assert_eq!(Frame::ip(&ipv6(43, &[17, 0, 4])).evaluate("-m srh"), Outcome::NO);
        assert_eq!(
            Frame::ip(&ipv6(43, &[17, 9, 4, 0, 0, 0, 0, 0])).evaluate("-m srh"),
            Outcome::NO
        );
        let whole = srh(1);
        assert_eq!(Frame::ip(&whole).cut(44).evaluate("-m srh"), Outcome::MAYBE);
        assert_eq!(Frame::ip(&whole).cut(48).evaluate("-m srh --srh-lsid a::"), Outcome::MAYBE);
    }
}
