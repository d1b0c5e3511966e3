//! One generator per match. The table here must name every match that the registry of `rules` calls
//! evaluated, or say in [`SILENT`] why the kernel cannot be asked: a test checks it.

mod addresses;
mod bytes;
mod chain;
pub(crate) mod header;
mod network;
mod ports;
mod upper;

use rules::ext::{Families, IP, V4, V6};
use rules::model::Family;

use super::{Draw, Piece};

/// How to draw one match.
#[derive(Debug)]
pub struct MatchGen {
    /// Name after `-m`.
    pub name: &'static str,
    /// Families that have it.
    pub families: Families,
    /// Protocols of which the rule must say `-p`; empty for any.
    pub protocols: &'static [u8],
    /// Only Ethernet frames give an answer: off Ethernet it differs between kernels.
    pub ethernet: bool,
    /// Draws its options.
    pub draw: fn(&mut Draw) -> Piece,
}

const fn any(name: &'static str, families: Families, draw: fn(&mut Draw) -> Piece) -> MatchGen {
    MatchGen { name, families, protocols: &[], ethernet: false, draw }
}

const fn of(
    name: &'static str,
    families: Families,
    protocols: &'static [u8],
    draw: fn(&mut Draw) -> Piece,
) -> MatchGen {
    MatchGen { name, families, protocols, ethernet: false, draw }
}

/// Every generator.
pub static GENERATORS: &[MatchGen] = &[
    any("addrtype", IP, network::addrtype),
    of("ah", V4, &[51], upper::ah),
    any("ah", V6, upper::ah6),
    any("bpf", IP, bytes::bpf),
    any("comment", IP, comment),
    of("dccp", IP, &[33], upper::dccp),
    any("dscp", IP, network::dscp),
    any("dst", V6, chain::dst),
    any("ecn", IP, network::ecn),
    of("esp", IP, &[50], upper::esp),
    any("eui64", V6, network::eui64),
    any("frag", V6, chain::frag),
    any("hbh", V6, chain::hbh),
    any("hl", V6, network::hl),
    of("icmp", V4, &[1], ports::icmp),
    of("icmp6", V6, &[58], ports::icmp6),
    of("ipcomp", IP, &[108], upper::ipcomp),
    any("iprange", IP, addresses::iprange),
    any("ipv6header", V6, chain::ipv6header),
    any("length", IP, network::length),
    any("mac", IP, addresses::mac),
    any("mark", IP, mark),
    of("mh", V6, &[135], upper::mh),
    of("multiport", IP, &[6, 17, 33, 132, 136], ports::multiport),
    any("physdev", IP, network::physdev),
    any("pkttype", IP, network::pkttype),
    any("policy", IP, network::policy),
    any("rt", V6, chain::rt),
    of("sctp", IP, &[132], upper::sctp),
    any("srh", V6, chain::srh),
    any("statistic", IP, network::statistic),
    any("string", IP, bytes::string),
    of("tcp", IP, &[6], ports::tcp),
    of("tcpmss", IP, &[6], upper::tcpmss),
    any("tos", IP, network::tos),
    any("ttl", V4, network::ttl),
    any("u32", IP, bytes::u32),
    of("udp", IP, &[17], ports::udp),
];

/// Evaluated matches that the oracle does not ask the kernel about, and why.
pub static SILENT: &[(&str, &str)] = &[
    ("cgroup", SOCKET),
    ("cluster", CONVERSATION),
    ("connbytes", CONVERSATION),
    ("connlimit", CONVERSATION),
    ("connlabel", CONVERSATION),
    ("connmark", CONVERSATION),
    ("conntrack", CONVERSATION),
    ("geoip", "its module is not the kernel's: xtables-addons"),
    ("devgroup", TIMED),
    ("hashlimit", TIMED),
    ("helper", CONVERSATION),
    ("limit", CLOCK),
    ("owner", SOCKET),
    ("quota", TIMED),
    ("realm", TIMED),
    ("recent", CLOCK),
    ("osf", "it wants fingerprints: asked by tests/kernel/osf.rs"),
    ("rpfilter", "it wants random routes: tests of the crate `host` ask for the way back"),
    ("set", "its own oracle asks: `oracle::sets`"),
    ("state", CONVERSATION),
    ("time", TIMED),
];

/// Why single packets say nothing about connections.
pub(super) const CONVERSATION: &str = "it wants conversations, not single packets";
/// Why packets that nobody here sends say nothing.
const SOCKET: &str = "it asks for the socket that sent the packet";
/// Where they are compared.
const TIMED: &str = "its own oracle asks: `tests/kernel/timed`";
/// Why packets without pauses say little.
const CLOCK: &str = "it depends on the clock: conversations have pauses";

/// Protocols that some generator of the family is for, and a few others.
pub(crate) fn protocols(family: Family) -> Vec<u8> {
    let mut all = vec![6, 17, 6, 17, if family == Family::Ipv6 { 58 } else { 1 }, 47, 59, 255];
    let kinds = GENERATORS.iter().filter(|kind| kind.families.contains(&family));
    all.extend(kinds.flat_map(|kind| kind.protocols));
    all
}

fn comment(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["--comment x", "--comment \"two words\"", "--comment \"it's\""]))
}

fn mark(draw: &mut Draw) -> Piece {
    let value = if draw.one_in(2) { 0 } else { draw.word() };
    let mask = draw.word();
    let text = if draw.one_in(2) { format!("{value:#x}") } else { format!("{value:#x}/{mask:#x}") };
    Piece::plain(format!("{}--mark {text}", draw.bang()))
}
