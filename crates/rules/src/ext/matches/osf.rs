//! `-m osf`: the operating system that a SYN looks like, by the fingerprints that the host's kernel was given.
//!
//! The kernel does not look at `!` (measured): `! --genre Linux` matches what looks like Linux.
//! With `--log` the kernel compares fingerprints of all systems, and a packet that looks like any of them matches.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_osf.c`, `nfnetlink_osf.c`.

use host::{Fingerprint, Window};
use packet::tcp::Flags;
use packet::{Read, ipv4, tcp};

use crate::error::What;
use crate::ext::kit::{number, tcp_header};
use crate::ext::{Args, Match, MatchKind, Opt, Printer, Support, V4};
use crate::family::Hook;
use crate::outcome::Outcome;
use crate::transit::Transit;

const TCP: u8 = 6;
const MAX_GENRE: usize = 31;
/// `--ttl`: the fingerprint's, or any; else no more than the fingerprint's.
const TTL_SAME: u8 = 0;
const TTL_ANY: u8 = 2;
/// Most bytes of options that the kernel compares.
const MAX_OPTIONS: usize = 40;
/// Segment sizes of modems that make them smaller.
const SMART_MSS: [u32; 2] = [1460, 1448];
/// Headers of IPv4 and TCP.
const HEADERS: u32 = 40;

pub(crate) static KIND: MatchKind = MatchKind {
    name: "osf",
    aliases: &[],
    families: V4,
    protocol: None,
    options: &[Opt::value("genre").invertible(), Opt::value("ttl"), Opt::value("log")],
    support: Support::Evaluated,
    parse,
};

#[derive(Debug)]
struct Osf {
    genre: Box<str>,
    /// As printed: it makes no difference.
    invert: bool,
    ttl: Option<u8>,
    log: Option<u8>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Match>, What> {
    args.needs_protocol(&[TCP])?;
    args.needs_hook(&[Hook::Prerouting, Hook::Input, Hook::Forward])?;
    let given = args.required("genre")?;
    if given.text().len() > MAX_GENRE {
        return Err(given.expected(format!("at most {MAX_GENRE} bytes")));
    }
    let level = |name| {
        args.get(name)
            .map(|given| number::between(given, 0, 2).map(|level| level as u8))
            .transpose()
    };
    Ok(Box::new(Osf {
        genre: given.text().into(),
        invert: given.invert,
        ttl: level("ttl")?,
        log: level("log")?,
    }))
}

impl Match for Osf {
    fn print(&self, to: &mut Printer) {
        to.flag(self.invert, "genre").plain(&self.genre);
        for (name, level) in [("ttl", self.ttl), ("log", self.log)] {
            if let Some(level) = level {
                to.option(false, name, level);
            }
        }
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let syn = match Syn::read(transit) {
            Read::Known(syn) => syn,
            Read::Unknown => return Outcome::MAYBE,
            Read::Absent => return Outcome::NO,
        };
        let Some(fingerprints) = &transit.host.fingerprints else { return Outcome::MAYBE };
        let asked = |known: &&Fingerprint| self.log.is_some() || known.genre == self.genre;
        let mut is_one = Outcome::NO;
        for known in fingerprints.all().filter(asked) {
            match syn.looks_like(known, self.ttl.unwrap_or(TTL_SAME)) {
                Some(true) => return Outcome::YES,
                Some(false) => {}
                None => is_one = Outcome::MAYBE,
            }
        }
        is_one
    }
}

/// What counts of a SYN.
struct Syn<'p> {
    len: u16,
    ttl: u8,
    df: bool,
    window: u32,
    /// Options as they follow the header.
    options: &'p [u8],
}

impl<'p> Syn<'p> {
    /// `Absent` where the packet is none, or ends before its header does.
    fn read(transit: &'p Transit<'_, '_>) -> Read<Self> {
        let Some(at) = tcp_header::offset(transit) else { return Read::Unknown };
        if transit.packet.read_slice(at, tcp::MIN_HEADER_LEN) == Read::Absent {
            return Read::Absent;
        }
        match transit.packet.read::<1>(at + tcp::FLAGS.start) {
            Read::Known([flags]) if Flags(flags).contains(Flags::SYN) => {}
            Read::Unknown => return Read::Unknown,
            Read::Known(_) | Read::Absent => return Read::Absent,
        }
        let words = transit.packet.read::<1>(at + tcp::DATA_OFFSET.start);
        let Read::Known([words]) = words else { return Read::Unknown };
        let more = tcp_header::len_of(words).saturating_sub(tcp::MIN_HEADER_LEN);
        let options = match transit.packet.read_slice(at + tcp::MIN_HEADER_LEN, more) {
            Read::Known(options) => options,
            Read::Unknown => return Read::Unknown,
            Read::Absent => return Read::Absent,
        };
        let (Read::Known(len), Read::Known(fragment), Read::Known(ttl), Read::Known(window)) = (
            transit.net(ipv4::TOTAL_LEN.start),
            transit.net(ipv4::FRAGMENT.start),
            transit.ttl(),
            transit.packet.read(at + tcp::WINDOW.start),
        ) else {
            return Read::Unknown;
        };
        Read::Known(Self {
            len: u16::from_be_bytes(len),
            ttl,
            df: u16::from_be_bytes(fragment) & ipv4::DONT_FRAGMENT != 0,
            window: u16::from_be_bytes(window).into(),
            options,
        })
    }

    /// Whether a fingerprint is its own (`nf_osf_match_one`); `None` where the kernel would divide by zero.
    fn looks_like(&self, known: &Fingerprint, ttl: u8) -> Option<bool> {
        let is_ttl = match ttl {
            TTL_SAME => self.ttl == known.ttl,
            TTL_ANY => true,
            _ => self.ttl <= known.ttl,
        };
        if self.df != known.df || self.len != known.len || !is_ttl {
            return Some(false);
        }
        match self.segment_size(known) {
            Some(mss) => self.has_window(known.window, mss),
            None => Some(false),
        }
    }

    /// Returns the segment size that the options give, 0 without one; `None` if they differ from the fingerprint's.
    fn segment_size(&self, known: &Fingerprint) -> Option<u32> {
        let len: usize = known.options.iter().map(|(_, len)| usize::from(*len)).sum();
        if len != self.options.len() || len > MAX_OPTIONS {
            return None;
        }
        let (mut rest, mut mss) = (self.options, 0);
        for (kind, len) in &known.options {
            let (option, others) = rest.split_at_checked((*len).into())?;
            if option.first() != Some(kind) {
                return None;
            }
            if let (&tcp::OPTION_MSS, [_, _, high, low]) = (kind, option) {
                mss = u16::from_be_bytes([*high, *low]).into();
            }
            rest = others;
        }
        Some(mss)
    }

    fn has_window(&self, known: Window, mss: u32) -> Option<bool> {
        let is_times = |factor: u32, sizes: [u32; 3]| {
            sizes.into_iter().any(|size| self.window == factor.wrapping_mul(size))
        };
        Some(match known {
            Window::Any => true,
            Window::Is(window) => self.window == window,
            Window::Segments(factor) => is_times(factor, [mss, SMART_MSS[0], SMART_MSS[1]]),
            Window::Units(factor) => {
                is_times(factor, [mss, SMART_MSS[0], SMART_MSS[1]].map(|size| size + HEADERS))
            }
            Window::Multiple(0) => return None,
            Window::Multiple(of) => self.window.is_multiple_of(of),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ext::kit::probe::{Frame, ipv4};
    use host::{Fingerprints, Host};

    /// A SYN of Linux: a window of four segments, 60 bytes, DF.
    fn linux() -> Vec<u8> {
        let mut tcp =
            vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 2, 0x16, 0xd0, 0, 0, 0, 0];
        tcp.extend([2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
        let mut packet = ipv4(6, &tcp);
        packet[6] = 0x40;
        packet
    }

    fn host() -> Host {
        let text = "S4:64:1:60:M*,S,T,N,W0:Linux:2.4::x\n%1000:64:0:44:M*:Other:::x\n";
        Host { fingerprints: Some(Arc::new(Fingerprints::parse(text).unwrap())), ..Host::default() }
    }

    fn ask(bytes: &[u8], rule: &str) -> Outcome {
        Frame::ip(bytes).evaluate_in(&host(), &format!("-p tcp -m osf {rule}"))
    }

    #[test]
    fn a_syn_looks_like_its_fingerprint() {
        use Outcome as O;
        let syn = linux();
        let with = |at: usize, byte: u8| {
            let mut other = syn.clone();
            other[at] = byte;
            other
        };
        for (bytes, rule, expected) in [
            (&syn, "--genre Linux", O::YES),
            (&syn, "--genre Other", O::NO),
            (&syn, "--genre Other --log 0", O::YES),
            (&syn, "! --genre Linux", O::YES),
            (&syn, "! --genre Other", O::NO),
            (&with(8, 60), "--genre Linux", O::NO),
            (&with(8, 60), "--genre Linux --ttl 1", O::YES),
            (&with(8, 65), "--genre Linux --ttl 1", O::NO),
            (&with(8, 65), "--genre Linux --ttl 2", O::YES),
            (&with(6, 0), "--genre Linux", O::NO),
            (&with(34, 0x17), "--genre Linux", O::NO),
            // Four segments of a size that the kernel knows of modems.
            (&with(35, 0xa0), "--genre Linux", O::YES),
            (&with(40, 3), "--genre Linux", O::NO),
            (&with(44, 1), "--genre Linux", O::NO),
            (&with(33, 0x10), "--genre Linux", O::NO),
            (&with(33, 0x12), "--genre Linux", O::YES),
        ] {
            assert_eq!(ask(bytes, rule), expected, "{rule}");
        }
    }

    #[test]
    fn without_fingerprints_only_what_is_no_syn_is_known() {
        let rule = "-p tcp -m osf --genre Linux";
        assert_eq!(Frame::ip(&linux()).evaluate(rule), Outcome::MAYBE);
        let mut ack = linux();
        ack[33] = 0x10;
        assert_eq!(Frame::ip(&ack).evaluate(rule), Outcome::NO);
        assert_eq!(Frame::ip(&linux()).cut(40).evaluate_in(&host(), rule), Outcome::MAYBE);
    }
}
