//! `-m hbh` and `-m dst`: the length of an IPv6 options header (hop by hop, destination), and a list of options that its
//! first options must follow, in order.
//!
//! A header that claims more bytes than the packet has is dropped on the spot (measured on Linux 6.18;
//! older kernels took it for no match).
//!
//! Source: iptables-extensions(8); kernel `net/ipv6/netfilter/ip6t_hbh.c`, which is both matches.

use packet::{Read, ipv6_ext};

use crate::error::What;
use crate::ext::kit::ipv6_chain;
use crate::ext::kit::ports::header_start;
use crate::ext::{Args, Given, Match, MatchKind, Opt, Printer, Support, V6};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

/// Hop-by-hop options.
pub(crate) static HBH: MatchKind = MatchKind {
    name: "hbh",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[Opt::value("hbh-len").invertible(), Opt::value("hbh-opts")],
    support: Support::Evaluated,
    parse: |args| parse(args, ipv6_ext::HOP_BY_HOP, "hbh-len", "hbh-opts"),
};

/// Destination options.
pub(crate) static DST: MatchKind = MatchKind {
    name: "dst",
    aliases: &[],
    families: V6,
    protocol: None,
    options: &[Opt::value("dst-len").invertible(), Opt::value("dst-opts")],
    support: Support::Evaluated,
    parse: |args| parse(args, ipv6_ext::DESTINATION_OPTIONS, "dst-len", "dst-opts"),
};

/// Most options in a list (`IP6T_OPTS_OPTSNR`).
const MAX_OPTIONS: usize = 16;
/// A length that stands for any.
const ANY_LEN: u8 = 0xff;

/// A test of an options header.
#[derive(Debug)]
struct OptionHeader {
    /// Type of the header.
    kind: u8,
    len_name: &'static str,
    options_name: &'static str,
    /// Length in bytes, and whether it is inverted.
    len: Option<(u32, bool)>,
    options: Option<Box<[Wanted]>>,
}

/// One option of the list: its type, and its length unless [`ANY_LEN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    kind: u8,
    len: u8,
}

/// Reads the test of a header of type `kind` from options of these names.
fn parse(
    args: &Args<'_>,
    kind: u8,
    len_name: &'static str,
    options_name: &'static str,
) -> Result<Box<dyn Match>, What> {
    let len = match args.get(len_name) {
        Some(given) => {
            let len = value::u32(given.text());
            Some((len.ok_or_else(|| given.expected("a length of 32 bits"))?, given.invert))
        }
        None => None,
    };
    let options = args.get(options_name).map(parse_options).transpose()?;
    Ok(Box::new(OptionHeader { kind, len_name, options_name, len, options }))
}

fn parse_options(given: &Given<'_>) -> Result<Box<[Wanted]>, What> {
    let parts: Vec<&str> = given.text().split(',').collect();
    // The tool wants two places for an option with a length, and finds only one at the end.
    if parts.len() > MAX_OPTIONS || parts.get(MAX_OPTIONS - 1).is_some_and(|p| p.contains(':')) {
        return Err(
            given.expected(format!("at most {MAX_OPTIONS} options, the last without length"))
        );
    }
    parts
        .into_iter()
        .map(|part| {
            parse_option(part)
                .ok_or_else(|| given.expected("a comma list of type or type:length, each 0-255"))
        })
        .collect()
}

fn parse_option(text: &str) -> Option<Wanted> {
    match text.split_once(':') {
        None => Some(Wanted { kind: value::u8(text)?, len: ANY_LEN }),
        // Pad1 has no length.
        Some((kind, len)) => {
            let kind = value::u8(kind).filter(|kind| *kind != 0)?;
            Some(Wanted { kind, len: value::u8(len)? })
        }
    }
}

impl OptionHeader {
    /// Follows the options from `at`, of which `left` bytes belong to the header.
    fn follow(
        transit: &Transit<'_, '_>,
        wanted: &[Wanted],
        mut at: usize,
        mut left: usize,
    ) -> Outcome {
        for (index, want) in wanted.iter().enumerate() {
            let size = match option_size(transit, *want, at, left) {
                Ok(size) => size,
                Err(outcome) => return outcome,
            };
            if left < size && index + 1 < wanted.len() {
                return Outcome::NO;
            }
            at += size;
            left = left.saturating_sub(size);
        }
        Outcome::YES
    }
}

/// Size of the option at `at` if it is the wanted one.
fn option_size(
    transit: &Transit<'_, '_>,
    want: Wanted,
    at: usize,
    left: usize,
) -> Result<usize, Outcome> {
    if left < 1 || byte(transit, at)? != want.kind {
        return Err(Outcome::NO);
    }
    if want.kind == 0 {
        return Ok(1);
    }
    if left < 2 {
        return Err(Outcome::NO);
    }
    let len = byte(transit, at + 1)?;
    if want.len != ANY_LEN && want.len != len {
        return Err(Outcome::NO);
    }
    Ok(usize::from(len) + 2)
}

fn byte(transit: &Transit<'_, '_>, at: usize) -> Result<u8, Outcome> {
    match transit.packet.read(at) {
        Read::Known([byte]) => Ok(byte),
        Read::Unknown => Err(Outcome::MAYBE),
        Read::Absent => Err(Outcome::NO),
    }
}

impl Match for OptionHeader {
    fn print(&self, to: &mut Printer) {
        if let Some((len, invert)) = self.len {
            to.option(invert, self.len_name, len);
        }
        if let Some(options) = &self.options {
            let text = |option: &Wanted| match option.len {
                ANY_LEN => option.kind.to_string(),
                len => format!("{}:{len}", option.kind),
            };
            let list: Vec<String> = options.iter().map(text).collect();
            to.option(false, self.options_name, list.join(","));
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let header = ipv6_chain::find(transit, self.kind)
            .and_then(|at| Ok((at, header_start::<2>(transit, at, 2)?)));
        let (at, [_, field]) = match header {
            Ok(header) => header,
            Err(outcome) => return outcome,
        };
        let len = ipv6_chain::len_of(field);
        if transit.packet.headers().end.saturating_sub(at) < len {
            return Outcome::HOT_DROP;
        }
        let len_passes = self.len.is_none_or(|(wanted, invert)| (wanted as usize == len) != invert);
        match &self.options {
            _ if !len_passes => Outcome::NO,
            None => Outcome::YES,
            Some(options) => Self::follow(transit, options, at + 2, len - 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv6, print};
    use crate::family::Family;

    #[test]
    fn lists_read_and_print() {
        let text = |list: &str| print(Family::Ipv6, &format!("-m hbh --hbh-opts {list}"));
        assert_eq!(text("1:2,0x17:42,0,5:255").unwrap(), "-m hbh --hbh-opts 1:2,23:42,0,5");
        for bad in ["\"\"", "1,", "0:3", "256", "1:256", "1:2:3"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        let sixteen = vec!["1"; 16].join(",");
        assert!(text(&sixteen).is_ok());
        assert!(text(&format!("{sixteen},1")).is_err());
        assert!(text(&format!("{sixteen}:2")).is_err());
        assert!(print(Family::Ipv6, "-m hbh ! --hbh-opts 1").is_err());
    }

    #[test]
    fn the_first_options_must_be_the_listed_ones() {
        // Router alert, then Pad1, Pad1.
        let packet = ipv6(0, &[59, 0, 5, 2, 0, 0, 0, 0]);
        for (rule, matches) in [
            ("", true),
            ("--hbh-len 8", true),
            ("! --hbh-len 8", false),
            ("--hbh-opts 5", true),
            ("--hbh-opts 5:2,0,0", true),
            ("--hbh-opts 5:2,0,0,0", false),
            ("--hbh-opts 5:3", false),
            ("--hbh-opts 0", false),
            ("--hbh-len 16 --hbh-opts 5", false),
        ] {
            let rule = format!("-m hbh {rule}");
            assert_eq!(Frame::ip(&packet).evaluate(&rule), Outcome::from_bool(matches), "{rule}");
        }
        assert_eq!(Frame::ip(&packet).evaluate("-m dst"), Outcome::NO);
    }

    #[test]
    fn a_header_that_runs_past_the_end_is_dropped() {
        let packet = ipv6(60, &[59, 1, 1, 4, 0, 0, 0, 0]);
        assert_eq!(Frame::ip(&packet).evaluate("-m dst"), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&packet).evaluate("-m dst ! --dst-len 8"), Outcome::HOT_DROP);
        assert_eq!(Frame::ip(&ipv6(60, &[59])).evaluate("-m dst"), Outcome::HOT_DROP);
        let whole = ipv6(60, &[59, 0, 1, 4, 0, 0, 0, 0]);
        let cut = Frame::ip(&whole).cut(43);
        assert_eq!(cut.evaluate("-m dst --dst-len 8"), Outcome::YES);
        assert_eq!(cut.evaluate("-m dst --dst-opts 1"), Outcome::MAYBE);
        assert_eq!(cut.evaluate("-m dst --dst-opts 2:4"), Outcome::NO);
    }
}
