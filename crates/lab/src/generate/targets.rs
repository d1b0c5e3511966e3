//! Draws what a rule does when it matches. One function per target that has options.

use rules::ext::{Families, IP, Support, V4, V6, find_target};

use super::matches::CONVERSATION;
use super::{Draw, Piece};
use crate::scene::{GATEWAY_V4, GATEWAY_V6};

/// How to draw one target.
#[derive(Debug)]
pub struct TargetGen {
    /// Name after `-j`.
    pub name: &'static str,
    /// Families that have it.
    pub families: Families,
    /// The table it is confined to, if it is.
    pub table: Option<&'static str>,
    /// The protocol of which the rule must say `-p`, if any.
    pub protocol: Option<u8>,
    /// Draws its options.
    pub draw: fn(&mut Draw) -> Piece,
}

const fn any(name: &'static str, families: Families, draw: fn(&mut Draw) -> Piece) -> TargetGen {
    TargetGen { name, families, table: None, protocol: None, draw }
}

const fn of(
    name: &'static str,
    families: Families,
    table: &'static str,
    draw: fn(&mut Draw) -> Piece,
) -> TargetGen {
    TargetGen { table: Some(table), ..any(name, families, draw) }
}

const fn of_tcp(name: &'static str, families: Families, draw: fn(&mut Draw) -> Piece) -> TargetGen {
    TargetGen { protocol: Some(6), ..of(name, families, "mangle", draw) }
}

/// Every generator.
pub static GENERATORS: &[TargetGen] = &[
    any("AUDIT", IP, audit),
    of("CHECKSUM", IP, "mangle", checksum),
    of("CLASSIFY", IP, "mangle", classify),
    of("DSCP", IP, "mangle", dscp),
    of_tcp("ECN", V4, ecn),
    any("HMARK", IP, hmark),
    of("HL", V6, "mangle", hl),
    any("LOG", IP, log),
    any("MARK", IP, mark),
    any("NFLOG", IP, nflog),
    any("NFQUEUE", IP, nfqueue),
    any("QUEUE", IP, queue),
    of("REJECT", V4, "filter", reject_v4),
    of("REJECT", V6, "filter", reject_v6),
    of_tcp("TCPMSS", IP, tcpmss),
    of_tcp("TCPOPTSTRIP", IP, tcpoptstrip),
    of("TEE", IP, "raw", tee),
    of("TOS", IP, "mangle", tos),
    of("TRACE", IP, "raw", trace),
    of("TTL", V4, "mangle", ttl),
];

/// Why NAT is not drawn here.
const NAT: &str = "asked by tests/kernel/nat, in conversations";
/// Evaluated targets that the oracle does not ask the kernel about, and why.
pub static SILENT: &[(&str, &str)] = &[
    ("CONNMARK", CONVERSATION),
    ("CONNSECMARK", "it wants SELinux"),
    ("CT", CONVERSATION),
    ("DNAT", NAT),
    ("DNPT", "it stands at other hooks"),
    ("IDLETIMER", "its timers are the host's, not the namespace's"),
    ("LED", "not built into the kernel"),
    ("MASQUERADE", NAT),
    ("NETMAP", NAT),
    ("NOTRACK", CONVERSATION),
    ("RATEEST", "its estimators live on after the rule"),
    ("REDIRECT", NAT),
    ("SECMARK", "it wants SELinux"),
    ("SET", "its own oracle asks: `oracle::sets`"),
    ("SNAT", NAT),
    ("SNPT", "it stands at other hooks"),
    ("SYNPROXY", "it makes the kernel track connections, and answers by itself: not asked"),
    ("ULOG", "gone from the kernel"),
];

/// TCPMSS wants a test of SYN; and it adds the option to a SYN without one, which moves every byte after
/// it: the result is unknown to tamis, and not asked.
const WITH_MSS: &str = "-m tcp --tcp-flags SYN SYN -m tcpmss --mss 0:65535 ";

/// An action: a verdict, a target, or nothing.
pub(super) fn draw(draw: &mut Draw) -> Piece {
    // Targets of one protocol have few rules to stand in, so they take half of those.
    let rare = draw.table == "mangle" && draw.protocol == Some(6);
    match draw.rng.u8(..if rare { 36 } else { 20 }) {
        0..=3 => Piece::plain("-j ACCEPT"),
        4..=6 => Piece::plain("-j DROP"),
        7..=9 => Piece::plain("-j RETURN"),
        10..=13 => Piece::plain(""),
        _ => target(draw),
    }
}

fn target(draw: &mut Draw) -> Piece {
    let may = |kind: &&TargetGen| {
        kind.families.contains(&draw.scene.family)
            && kind.table.is_none_or(|table| table == draw.table)
            && kind.protocol.is_none_or(|protocol| Some(protocol) == draw.protocol)
            && find_target(kind.name, draw.scene.family)
                .is_some_and(|known| known.support == Support::Evaluated)
    };
    let list: Vec<&TargetGen> = GENERATORS.iter().filter(may).collect();
    let own: Vec<&TargetGen> =
        list.iter().copied().filter(|kind| kind.protocol.is_some()).collect();
    let list = if own.is_empty() || draw.one_in(4) { list } else { own };
    let kind = draw.pick(&list);
    let Piece { text, craft } = (kind.draw)(draw);
    let before = if kind.name == "TCPMSS" { WITH_MSS } else { "" };
    Piece { text: format!("{before}-j {} {text}", kind.name).trim_end().into(), craft }
}

fn log(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["", "--log-prefix \"a b \"", "--log-level 7 --log-ip-options"]))
}

fn nflog(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["--nflog-group 9", "--nflog-group 9 --nflog-prefix x"]))
}

fn mark(draw: &mut Draw) -> Piece {
    let (value, mask) = (draw.word(), draw.word());
    Piece::plain(match draw.rng.u8(..6) {
        0 => format!("--set-mark {value:#x}"),
        1 => format!("--set-mark {value:#x}/{mask:#x}"),
        2 => format!("--and-mark {value:#x}"),
        3 => format!("--or-mark {value:#x}"),
        4 => format!("--xor-mark {value:#x}"),
        _ => format!("--set-xmark {value:#x}/{mask:#x}"),
    })
}

/// No program listens on any queue of the namespace.
fn nfqueue(draw: &mut Draw) -> Piece {
    let bypass = if draw.one_in(2) { " --queue-bypass" } else { "" };
    let queues = draw.pick(&["", "--queue-num 3", "--queue-balance 2:5"]);
    let fanout = if queues.contains('b') && draw.one_in(2) { " --queue-cpu-fanout" } else { "" };
    Piece::plain(format!("{queues}{bypass}{fanout}"))
}

fn queue(_: &mut Draw) -> Piece {
    Piece::plain("")
}

/// Ports and SPI exclude each other, and so do a field of the tuple and a mask of its own.
fn hmark(draw: &mut Draw) -> Piece {
    let bits = if draw.ipv6() { 128 } else { 32 };
    let (mask, set) = (draw.rng.u16(..), draw.rng.u16(..));
    let mut fields = vec![match draw.rng.u8(..3) {
        0 => "--hmark-tuple src,dst".to_owned(),
        1 => format!("--hmark-src-prefix {}", draw.rng.u8(..=bits)),
        _ => format!("--hmark-src-prefix {} --hmark-dst-prefix {}", bits / 2, draw.rng.u8(..=bits)),
    }];
    fields.push(match draw.rng.u8(..5) {
        0 => String::new(),
        1 => format!("--hmark-sport-mask {mask:#x} --hmark-dport-mask {set:#x}"),
        2 => format!("--hmark-sport {set:#x} --hmark-dport-mask {mask:#x}"),
        3 => format!("--hmark-spi-mask {:#x} --hmark-spi {:#x}", draw.word(), draw.word()),
        _ => "--hmark-sport-mask 0xffff --hmark-dport-mask 0xffff".to_owned(),
    });
    if draw.one_in(2) {
        fields.push(format!("--hmark-proto-mask {:#x}", draw.byte()));
    }
    if draw.one_in(2) {
        fields.push(format!("--hmark-offset {}", draw.word()));
    }
    let (modulus, seed) = (draw.pick(&[1, 3, 8, 1000, u32::MAX]), draw.word());
    let text = format!("{} --hmark-mod {modulus} --hmark-rnd {seed:#x}", fields.join(" "));
    if draw.protocol.is_some() || draw.one_in(2) {
        return Piece::plain(text);
    }
    let (protocol, kinds) = if draw.ipv6() { (58, [1, 2, 127, 0]) } else { (1, [3, 5, 11, 12]) };
    let (kind, quoted) = (draw.pick(&kinds), quoted(draw));
    Piece::new(text, move |p| {
        p.protocol = protocol;
        p.icmp = (kind, 0);
        p.payload.clone_from(&quoted);
    })
}

/// The beginning of a packet, as an error of ICMP quotes it: now and then less than a header.
fn quoted(draw: &mut Draw) -> Vec<u8> {
    let protocol = draw.pick(&[6, 17, 1, 58, 50, 51, 132, 47]);
    let mut bytes = if draw.ipv6() {
        let first = draw.pick(&[protocol, 60, 44, 51]);
        let mut bytes = vec![draw.pick(&[0x60, 0x60, 0x60, 0x50]), 0, 0, 0, 0, 40, first, 64];
        bytes.extend((0..32).map(|_| draw.rng.u8(..)));
        if first != protocol {
            let offset = if draw.one_in(2) { 0 } else { draw.byte() };
            bytes.extend([protocol, 0, 0, offset, 0, 0, 0, 0]);
        }
        bytes
    } else {
        let fragment = if draw.one_in(4) { draw.byte() } else { 0 };
        let mut bytes = vec![draw.pick(&[0x45, 0x45, 0x46, 0x42]), 0, 0, 48, 0, 1, fragment, 0, 64];
        bytes.extend([protocol, 0, 0]);
        bytes.extend((0..8).map(|_| draw.rng.u8(..)));
        bytes
    };
    let [a, b] = [draw.port(), draw.port()].map(u16::to_be_bytes);
    bytes.extend([a, b].as_flattened());
    bytes.extend([0; 8]);
    let len = if draw.one_in(3) { draw.rng.usize(..bytes.len()) } else { bytes.len() };
    bytes.truncate(len);
    bytes
}

fn reject_v4(draw: &mut Draw) -> Piece {
    let mut kinds = vec!["", "--reject-with icmp-host-unreachable"];
    if draw.protocol == Some(6) {
        kinds.push("--reject-with tcp-reset");
    }
    Piece::plain(draw.pick(&kinds))
}

fn reject_v6(draw: &mut Draw) -> Piece {
    let mut kinds = vec!["", "--reject-with icmp6-adm-prohibited"];
    if draw.protocol == Some(6) {
        kinds.push("--reject-with tcp-reset");
    }
    Piece::plain(draw.pick(&kinds))
}

fn dscp(draw: &mut Draw) -> Piece {
    Piece::plain(format!("--set-dscp {:#x}", draw.pick(&[0, 1, 10, 46, 63])))
}

fn ecn(_: &mut Draw) -> Piece {
    Piece::plain("--ecn-tcp-remove")
}

fn hops(draw: &mut Draw, name: &str) -> Piece {
    let how = draw.pick(&["set", "inc", "dec"]);
    let value = draw.pick(&[1, 2, 63, 64, 200, 255]);
    Piece::plain(format!("--{name}-{how} {value}"))
}

fn ttl(draw: &mut Draw) -> Piece {
    hops(draw, "ttl")
}

fn hl(draw: &mut Draw) -> Piece {
    hops(draw, "hl")
}

fn tos(draw: &mut Draw) -> Piece {
    let (value, mask) = (draw.byte(), draw.byte());
    Piece::plain(match draw.rng.u8(..4) {
        0 => format!("--set-tos {value:#x}"),
        1 => format!("--set-tos {value:#x}/{mask:#x}"),
        2 => format!("--and-tos {value:#x}"),
        _ => format!("--or-tos {value:#x}"),
    })
}

fn audit(draw: &mut Draw) -> Piece {
    Piece::plain(draw.pick(&["--type accept", "--type drop"]))
}

fn checksum(_: &mut Draw) -> Piece {
    Piece::plain("--checksum-fill")
}

fn classify(draw: &mut Draw) -> Piece {
    Piece::plain(format!("--set-class {:x}:{:x}", draw.rng.u16(..), draw.rng.u16(..)))
}

fn trace(_: &mut Draw) -> Piece {
    Piece::plain("")
}

/// Its copies leave by OUTPUT, where the raw scenes let nothing go.
fn tee(draw: &mut Draw) -> Piece {
    let gateway = if draw.ipv6() { GATEWAY_V6 } else { GATEWAY_V4 };
    Piece::plain(format!("--gateway {gateway}"))
}

fn tcpmss(draw: &mut Draw) -> Piece {
    let mss = draw.pick(&[0_u16, 1, 536, 1000, 1460, 32767]);
    let has = draw.pick(&[536_u16, 1460, 65535]);
    Piece::new(format!("--set-mss {mss}"), move |p| {
        p.flags |= 2;
        let [high, low] = has.to_be_bytes();
        p.tcp_options = vec![1, 1, 1, 2, 4, high, low, 0];
    })
}

fn tcpoptstrip(draw: &mut Draw) -> Piece {
    let list = draw.pick(&["2", "3,4,8", "4", "5,30,253,255", "2,3,4,5,6,7,8"]);
    Piece::new(format!("--strip-options {list}"), |p| {
        p.tcp_options.extend([2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 3, 3, 7]);
        p.tcp_options.truncate(40);
    })
}
