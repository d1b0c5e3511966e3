//! `-m sctp`: ports and chunks of SCTP.
//!
//! Flags count for the chunks DATA, ABORT and SHUTDOWN_COMPLETE alone: the tool keeps them under the place
//! of a name in its list, the kernel looks them up by chunk type, and for the other chunks with flags the
//! two differ. The tool does not print those either. A chunk whose header lies beyond the end, or that is
//! 0 bytes long, drops the packet on the spot. Source: iptables-extensions(8); kernel
//! `net/netfilter/xt_sctp.c`; RFC 9260.

use packet::Read;

use crate::error::What;
use crate::ext::kit::ports::{DPORT, PortTest, SPORT, upper_start};
use crate::ext::{Args, Given, IP, Match, MatchKind, Opt, Printer, Support};
use crate::outcome::Outcome;
use crate::transit::Transit;
use crate::value;

const PROTOCOL: u8 = 132;
/// Ports, verification tag, checksum.
const HEADER: usize = 12;
/// Most chunk types with flags (`XT_NUM_SCTP_FLAGS`).
const MAX_FLAGS: usize = 4;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "sctp",
    aliases: &[],
    families: IP,
    protocol: Some(PROTOCOL),
    options: &[SPORT, DPORT, Opt::pair("chunk-types").invertible()],
    support: Support::Evaluated,
    parse,
};

/// Chunk types: name, number, and the letters of its flags from bit 7 to bit 0.
const CHUNKS: [(&str, u8, &str); 22] = [
    ("DATA", 0, "----IUBE"),
    ("INIT", 1, NO_FLAGS),
    ("INIT_ACK", 2, NO_FLAGS),
    ("SACK", 3, NO_FLAGS),
    ("HEARTBEAT", 4, NO_FLAGS),
    ("HEARTBEAT_ACK", 5, NO_FLAGS),
    ("ABORT", 6, "-------T"),
    ("SHUTDOWN", 7, NO_FLAGS),
    ("SHUTDOWN_ACK", 8, NO_FLAGS),
    ("ERROR", 9, NO_FLAGS),
    ("COOKIE_ECHO", 10, NO_FLAGS),
    ("COOKIE_ACK", 11, NO_FLAGS),
    ("ECN_ECNE", 12, NO_FLAGS),
    ("ECN_CWR", 13, NO_FLAGS),
    ("SHUTDOWN_COMPLETE", 14, "-------T"),
    ("I_DATA", 64, "----IUBE"),
    ("RE_CONFIG", 130, NO_FLAGS),
    ("PAD", 132, NO_FLAGS),
    ("ASCONF", 193, NO_FLAGS),
    ("ASCONF_ACK", 128, NO_FLAGS),
    ("FORWARD_TSN", 192, NO_FLAGS),
    ("I_FORWARD_TSN", 194, NO_FLAGS),
];

const NO_FLAGS: &str = "--------";

#[derive(Debug)]
struct Sctp {
    source: Option<PortTest>,
    destination: Option<PortTest>,
    chunks: Option<Box<ChunkTest>>,
}

#[derive(Debug)]
struct ChunkTest {
    which: Which,
    types: Types,
    /// Flags by chunk type; a type is there once.
    flags: Vec<FlagTest>,
    invert: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Some chunk is one of the listed.
    Any,
    /// Every listed type is among the chunks.
    All,
    /// Every chunk is one of the listed.
    Only,
}

/// A set of chunk types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Types([u64; 4]);

impl Types {
    const NONE: Self = Self([0; 4]);
    const ALL: Self = Self([u64::MAX; 4]);

    fn holds(&self, kind: u8) -> bool {
        self.0[usize::from(kind >> 6)] & (1 << (kind & 63)) != 0
    }

    fn add(&mut self, kind: u8) {
        self.0[usize::from(kind >> 6)] |= 1 << (kind & 63);
    }

    fn remove(&mut self, kind: u8) {
        self.0[usize::from(kind >> 6)] &= !(1 << (kind & 63));
    }
}

#[derive(Debug, Clone, Copy)]
struct FlagTest {
    kind: u8,
    mask: u8,
    set: u8,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[PROTOCOL])?;
    Ok(Box::new(Sctp {
        source: PortTest::parse_given(args, "sport")?,
        destination: PortTest::parse_given(args, "dport")?,
        chunks: args.get("chunk-types").map(parse_chunks).transpose()?.map(Box::new),
    }))
}

fn parse_chunks(given: &Given<'_>) -> Result<ChunkTest, What> {
    let which = match given.text().to_ascii_lowercase().as_str() {
        "any" => Which::Any,
        "all" => Which::All,
        "only" => Which::Only,
        _ => return Err(given.expected("any, all or only")),
    };
    let mut test = ChunkTest { which, types: Types::NONE, flags: Vec::new(), invert: given.invert };
    let list = given.second();
    if list.eq_ignore_ascii_case("ALL") {
        test.types = Types::ALL;
    } else if !list.eq_ignore_ascii_case("NONE") {
        for word in value::list(list) {
            test.add(word).ok_or_else(|| {
                given.second_expected("a comma list of chunk types with :flags, or ALL, or NONE")
            })?;
        }
    }
    if test.flags.len() > MAX_FLAGS {
        return Err(given.second_expected(format!("at most {MAX_FLAGS} chunk types with flags")));
    }
    // Kept under the place of the name, these are for a chunk type that no name stands for.
    test.flags.retain(|flags| CHUNKS[usize::from(flags.kind)].1 == flags.kind);
    Ok(test)
}

impl ChunkTest {
    /// Adds `TYPE[:flags]`. The flags are kept under the place of the name for now.
    fn add(&mut self, word: &str) -> Option<()> {
        let (name, letters) = word.split_once(':').unwrap_or((word, ""));
        let place = CHUNKS.iter().position(|(known, ..)| known.eq_ignore_ascii_case(name))?;
        let (_, kind, flags) = CHUNKS[place];
        self.types.add(kind);
        for letter in letters.chars() {
            let bit = 0x80 >> flags.find(letter.to_ascii_uppercase())?;
            self.want(place as u8, bit, letter.is_ascii_uppercase());
        }
        Some(())
    }

    fn want(&mut self, kind: u8, bit: u8, set: bool) {
        let set = if set { bit } else { 0 };
        match self.flags.iter_mut().find(|flags| flags.kind == kind) {
            Some(flags) => {
                flags.mask |= bit;
                flags.set |= set;
            }
            None => self.flags.push(FlagTest { kind, mask: bit, set }),
        }
    }

    fn text(&self) -> String {
        if self.types == Types::NONE {
            return "NONE".to_owned();
        }
        if self.types == Types::ALL {
            return "ALL".to_owned();
        }
        let mut listed: Vec<_> =
            CHUNKS.iter().filter(|(_, kind, _)| self.types.holds(*kind)).collect();
        listed.sort_by_key(|(_, kind, _)| *kind);
        let names: Vec<String> =
            listed.into_iter().map(|(name, kind, flags)| self.name(name, *kind, flags)).collect();
        names.join(",")
    }

    fn name(&self, name: &str, kind: u8, letters: &str) -> String {
        let mut text = name.to_owned();
        if let Some(flags) = self.flags.iter().find(|flags| flags.kind == kind) {
            text.push(':');
            for (place, letter) in letters.chars().enumerate() {
                match (flags.mask & (0x80 >> place), flags.set & (0x80 >> place)) {
                    (0, _) => {}
                    (_, 0) => text.push(letter.to_ascii_lowercase()),
                    _ => text.push(letter),
                }
            }
        }
        text
    }

    fn accepts(&self, kind: u8, flags: u8) -> bool {
        let wanted = self.flags.iter().find(|wanted| wanted.kind == kind);
        self.types.holds(kind) && wanted.is_none_or(|wanted| flags & wanted.mask == wanted.set)
    }

    /// Walks the chunks from `at`; `!` is not applied yet. Broken chunks are dropped before it is, so that
    /// `! --chunk-types` matches what it drops (measured).
    fn evaluate(&self, transit: &Transit<'_, '_>, mut at: usize) -> Outcome {
        let end = transit.packet.headers().end;
        let mut missing = self.types;
        loop {
            let [kind, flags, len @ ..] = match transit.packet.read::<4>(at) {
                Read::Known(chunk) => chunk,
                Read::Unknown => return Outcome::MAYBE.or(Outcome::HOT_DROP),
                Read::Absent => return Outcome::HOT_DROP,
            };
            let len = usize::from(u16::from_be_bytes(len));
            if len == 0 {
                return Outcome::HOT_DROP;
            }
            match (self.which, self.accepts(kind, flags)) {
                (Which::Any, true) => return Outcome::YES,
                (Which::Only, false) => return Outcome::NO,
                (Which::All, true) => missing.remove(kind),
                _ => {}
            }
            at += len.next_multiple_of(4);
            if at >= end {
                break;
            }
        }
        let matches = match self.which {
            Which::Any => false,
            Which::All => missing == Types::NONE,
            Which::Only => true,
        };
        Outcome::from_bool(matches)
    }
}

impl Match for Sctp {
    fn print(&self, to: &mut Printer) {
        if let Some(source) = self.source {
            source.print_always("sport", to);
        }
        if let Some(destination) = self.destination {
            destination.print_always("dport", to);
        }
        if let Some(chunks) = &self.chunks {
            let which = match chunks.which {
                Which::Any => "any",
                Which::All => "all",
                Which::Only => "only",
            };
            to.option(chunks.invert, "chunk-types", which).word(chunks.text());
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let (offset, [s0, s1, d0, d1]) = match upper_start(transit, HEADER) {
            Ok(header) => header,
            Err(Outcome::MAYBE) if let Some(chunks) = &self.chunks => {
                let any = Outcome::MAYBE.or(Outcome::HOT_DROP);
                return any.or(any.invert_drop(chunks.invert));
            }
            Err(outcome) => return outcome,
        };
        let passes = |test: Option<PortTest>, port| {
            test.is_none_or(|test| test.accepts(u16::from_be_bytes(port)))
        };
        let ports = passes(self.source, [s0, s1]) && passes(self.destination, [d0, d1]);
        Outcome::from_bool(ports).and_then(|| match &self.chunks {
            Some(chunks) => chunks.evaluate(transit, offset + HEADER).invert_drop(chunks.invert),
            None => Outcome::YES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4, print};
    use crate::family::Family;

    #[test]
    fn chunks_print_by_number_with_their_flags() {
        let text = |list: &str| {
            let rule = format!("-p sctp --chunk-types {list}");
            print(Family::Ipv4, &rule).map(|t| t.replace("-p sctp -m sctp --chunk-types ", ""))
        };
        assert_eq!(text("ANY asconf,data:Ub,init").unwrap(), "any DATA:Ub,INIT,ASCONF");
        assert_eq!(text("all i_data:u,DATA").unwrap(), "all DATA,I_DATA");
        assert_eq!(text("only all").unwrap(), "only ALL");
        assert_eq!(text("only none").unwrap(), "only NONE");
        for bad in ["some DATA", "any FOO", "any DATA:X", "any ABORT:U", "any"] {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert!(print(Family::Ipv4, "-m sctp --sport 1").is_err());
        let ports = print(Family::Ipv4, "-p sctp --dport : ! --sport 1:2").unwrap();
        assert_eq!(ports, "-p sctp -m sctp ! --sport 1:2 --dport 0:65535");
    }

    fn sctp(chunks: &[u8]) -> Vec<u8> {
        ipv4(132, &[&[0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0][..], chunks].concat())
    }

    #[test]
    fn any_all_and_only() {
        // DATA with U and E, 5 bytes padded to 8; then SACK.
        let packet = sctp(&[0, 5, 0, 5, 0, 0, 0, 0, 3, 0, 0, 4]);
        for (rule, matches) in [
            ("any SACK,INIT", true),
            ("any INIT", false),
            ("any DATA:U", true),
            ("any DATA:u", false),
            ("all DATA,SACK", true),
            ("all DATA,SACK,INIT", false),
            ("all DATA:UE", true),
            ("all DATA:UB", false),
            ("only DATA,SACK,INIT", true),
            ("only DATA", false),
            ("only DATA:b,SACK", true),
            ("only DATA:B,SACK", false),
            ("all NONE", true),
            ("any ALL", true),
        ] {
            for (bang, matches) in [("", matches), ("! ", !matches)] {
                let rule = format!("-p sctp {bang}--chunk-types {rule}");
                assert_eq!(
                    Frame::ip(&packet).evaluate(&rule),
                    Outcome::from_bool(matches),
                    "{rule}"
                );
            }
        }
    }

    #[test]
    fn broken_chunks_are_dropped_if_the_ports_pass() {
        for chunks in [&[][..], &[0, 0, 0], &[0, 0, 0, 0], &[3, 0, 0, 4, 0, 0]] {
            let packet = sctp(chunks);
            let frame = Frame::ip(&packet);
            assert_eq!(frame.evaluate("-p sctp --chunk-types any INIT"), Outcome::HOT_DROP);
            assert_eq!(frame.evaluate("-p sctp ! --chunk-types any INIT"), Outcome::HIT_DROP);
            assert_eq!(frame.evaluate("-p sctp --dport 9 --chunk-types any INIT"), Outcome::NO);
        }
        let packet = sctp(&[3, 0, 0, 4]);
        let cut = Frame::ip(&packet).cut(33);
        assert_eq!(cut.evaluate("-p sctp --sport 1"), Outcome::YES);
        let open = cut.evaluate("-p sctp --chunk-types any SACK");
        assert_eq!(open, Outcome::MAYBE.or(Outcome::HOT_DROP));
    }
}
