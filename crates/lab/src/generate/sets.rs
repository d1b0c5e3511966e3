//! Draws sets, rules that look packets up in them and change them, and packets that often are in them.
//!
//! Only types that this kernel has: it lacks hash:mac, hash:ip,mac, hash:ip,mark, hash:net,net and
//! hash:net,port,net.

use std::fmt::Write;

use super::Draw;
use super::draft::Draft;

/// A host's sets and rules as text.
#[derive(Debug, Clone)]
pub struct Host {
    /// `ipset save` text.
    pub sets: String,
    /// iptables-save text of tables mangle and filter.
    pub rules: String,
}

/// Types with the number of their dimensions; the last is a list.
const KINDS: &[(&str, usize)] = &[
    ("hash:ip", 1),
    ("hash:net", 1),
    ("hash:ip,port", 2),
    ("hash:ip,port,ip", 3),
    ("hash:ip,port,net", 3),
    ("hash:net,port", 2),
    ("hash:net,iface", 2),
    ("bitmap:port", 1),
    ("bitmap:ip", 1),
];
/// How many of them IPv6 has too.
const KINDS_V6: usize = 8;

/// A set, and what tests of it have to know.
struct Set {
    name: String,
    kind: &'static str,
    dims: usize,
    has_marks: bool,
    /// It may become full, and then elements must not leave it: docs/sets.md.
    is_small: bool,
}

/// Draws sets and rules.
pub fn draw(draw: &mut Draw) -> Host {
    let mut sets = String::new();
    let mut all = Vec::new();
    for number in 0..3 + draw.rng.usize(..4) {
        all.push(set(draw, number, &mut sets));
    }
    if draw.one_in(2) {
        let members: Vec<&Set> = all.iter().filter(|_| draw.one_in(2)).collect();
        let dims = members.iter().map(|set| set.dims).max().unwrap_or(1);
        let counters = if draw.one_in(2) { " counters" } else { "" };
        let _ = writeln!(sets, "create list list:set size 8{counters}");
        for member in members {
            let _ = writeln!(sets, "add list {}", member.name);
        }
        all.push(Set {
            name: "list".to_owned(),
            kind: "list:set",
            dims,
            has_marks: false,
            is_small: false,
        });
    }
    let mut rules = String::new();
    for table in ["mangle", "filter"] {
        let _ = writeln!(rules, "*{table}\n:FORWARD ACCEPT [0:0]\n-A FORWARD");
        for _ in 0..4 + draw.rng.usize(..8) {
            let _ = writeln!(rules, "-A FORWARD {}", rule(draw, &all, table));
        }
        rules.push_str("COMMIT\n");
    }
    Host { sets, rules }
}

fn set(draw: &mut Draw, number: usize, text: &mut String) -> Set {
    let count = if draw.ipv6() { KINDS_V6 } else { KINDS.len() };
    let (kind, dims) = draw.pick(&KINDS[..count]);
    let name = format!("s{number}");
    let mut is_small = false;
    let is_plain = kind == "hash:net,iface";
    let has = |draw: &mut Draw| !is_plain && draw.one_in(3);
    let (counters, timeouts, marks) = (has(draw), has(draw), has(draw));
    let _ = write!(text, "create {name} {kind}");
    match kind {
        "bitmap:ip" => text.push_str(" range 10.0.0.0/22"),
        "bitmap:port" => text.push_str(" range 0-60"),
        _ => {
            let _ = write!(text, " family {}", if draw.ipv6() { "inet6" } else { "inet" });
            if draw.one_in(4) {
                is_small = true;
                let _ = write!(text, " maxelem {}", 20 + draw.rng.u32(..60));
            }
            // Elements that a mask makes one would share their counters.
            if kind == "hash:ip" && !counters && draw.one_in(3) {
                let _ = write!(text, " netmask {}", if draw.ipv6() { 124 } else { 30 });
            }
        }
    }
    for (option, given) in
        [(" counters", counters), (" timeout 600", timeouts), (" skbinfo", marks)]
    {
        text.push_str(if given { option } else { "" });
    }
    text.push('\n');
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..draw.rng.usize(..20) {
        let element = element(draw, kind);
        if seen.contains(&element) {
            continue;
        }
        let _ = write!(text, "add {name} {element}");
        if kind.contains("net") && draw.one_in(4) {
            text.push_str(" nomatch");
        }
        if timeouts && draw.one_in(3) {
            text.push_str(" timeout 0");
        }
        if counters && draw.one_in(3) {
            let _ = write!(text, " packets {} bytes 7", draw.rng.u32(..9));
        }
        if marks && draw.one_in(2) {
            let _ = write!(text, " skbmark {:#x}/{:#x}", draw.rng.u32(..16), draw.rng.u32(..32));
        }
        text.push('\n');
        seen.push(element);
    }
    Set { name, kind, dims, has_marks: marks, is_small }
}

/// An element in the form in which ipset prints it, so that no two texts are the same element.
fn element(draw: &mut Draw, kind: &str) -> String {
    let (_, dims) = kind.split_once(':').unwrap_or_default();
    let whole = if draw.ipv6() { 128 } else { 32 };
    let part = |dim: &str, draw: &mut Draw| match dim {
        "ip" => {
            let addr = address(draw.ipv6(), &mut draw.rng);
            draw.text(&addr)
        }
        "net" => {
            let bits = whole - draw.pick(&[0, 0, 1, 2, 8, 10, 24]);
            let mut addr = address(draw.ipv6(), &mut draw.rng);
            clear(&mut addr, bits as usize);
            let text = draw.text(&addr);
            if bits == whole { text } else { format!("{text}/{bits}") }
        }
        "port" if kind == "bitmap:port" => port(draw).min(60).to_string(),
        "port" => match draw.rng.u8(..6) {
            0..=2 => format!("tcp:{}", port(draw)),
            3 => format!("udp:{}", port(draw)),
            4 if draw.ipv6() => format!("icmpv6:{}/0", draw.pick(&[128, 129])),
            4 => format!("icmp:{}/0", draw.pick(&[8, 0])),
            _ => "gre:0".to_owned(),
        },
        _ => draw.pick(&["t0", "t1", "eth7"]).to_owned(),
    };
    dims.split(',').map(|dim| part(dim, draw)).collect::<Vec<_>>().join(",")
}

/// Clears all bits of an address after the first `bits`.
fn clear(addr: &mut [u8; 16], bits: usize) {
    for (index, byte) in addr.iter_mut().enumerate() {
        let here = bits.saturating_sub(index * 8).min(8);
        *byte &= (0xff00_u16 >> here) as u8;
    }
}

/// An address of a small set that routes and shares prefixes.
fn address(ipv6: bool, rng: &mut fastrand::Rng) -> [u8; 16] {
    let (subnet, host) = (rng.u8(..4), 1 + rng.u8(..9));
    match ipv6 {
        true => [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, subnet, host],
        false => {
            let mut addr = [0; 16];
            addr[..4].copy_from_slice(&[10, 0, subnet, host]);
            addr
        }
    }
}

fn port(draw: &mut Draw) -> u16 {
    draw.pick(&[0, 22, 53, 80, 443])
}

fn sides(draw: &mut Draw, dims: usize) -> String {
    // Some rules name fewer dimensions than the set has, and some more.
    let count = if draw.one_in(12) { 1 + draw.rng.usize(..4) } else { dims };
    let sides: Vec<&str> = (0..count).map(|_| draw.pick(&["src", "dst"])).collect();
    sides.join(",")
}

fn rule(draw: &mut Draw, sets: &[Set], table: &str) -> String {
    let pick = |draw: &mut Draw| draw.rng.usize(..sets.len());
    let set = &sets[pick(draw)];
    let mut text = match draw.one_in(5) {
        true => "-p udp ".to_owned(),
        false => String::new(),
    };
    if !draw.one_in(4) {
        let _ = write!(
            text,
            "-m set {}--match-set {} {} ",
            draw.bang(),
            set.name,
            sides(draw, set.dims)
        );
        for (option, chance) in
            [("--return-nomatch ", 6), ("! --update-counters ", 6), ("! --update-subcounters ", 8)]
        {
            text.push_str(if draw.one_in(chance) { option } else { "" });
        }
        if draw.one_in(5) {
            let test =
                draw.pick(&["--packets-eq", "! --packets-eq", "--packets-lt", "--packets-gt"]);
            let _ = write!(text, "{test} {} ", draw.rng.u32(..40));
        }
        if draw.one_in(6) {
            let _ = write!(text, "--bytes-gt {} ", draw.rng.u32(..3000));
        }
    }
    let other = &sets[pick(draw)];
    // Bucket order decides what a set of interfaces does with two elements of one network.
    let changes = other.kind != "hash:net,iface" && other.kind != "list:set";
    text + &match draw.rng.u8(..8) {
        0 if table == "filter" => "-j DROP".to_owned(),
        1 => "-j ACCEPT".to_owned(),
        2 | 3 if changes => {
            let exist = if draw.one_in(3) { " --exist" } else { "" };
            format!("-j SET --add-set {} {}{exist}", other.name, sides(draw, other.dims))
        }
        4 if changes && !other.is_small => {
            format!("-j SET --del-set {} {}", other.name, sides(draw, other.dims))
        }
        5 if table == "mangle" && other.has_marks => {
            format!("-j SET --map-set {} {} --map-mark", other.name, sides(draw, other.dims))
        }
        6 => "-m mark --mark 0x1/0x1".to_owned(),
        _ => String::new(),
    }
}

/// Draws a packet that routes forwards.
pub fn packet(draw: &mut Draw, number: u16) -> Vec<u8> {
    let ipv6 = draw.ipv6();
    let (source, mut destination) = (address(ipv6, &mut draw.rng), address(ipv6, &mut draw.rng));
    if destination == source {
        let last = if ipv6 { 15 } else { 3 };
        destination[last] += 16;
    }
    let mut draft = Draft::new(draw.scene, source, destination);
    let icmp = if ipv6 { 58 } else { 1 };
    draft.protocol = draw.pick(&[6, 6, 6, 17, 17, icmp, 47, 132, 136, 50, 59]);
    draft.ports = (port(draw), port(draw));
    draft.icmp = (draw.pick(if ipv6 { &[128, 129] } else { &[8, 0] }), 0);
    draft.payload = vec![0x61; draw.pick(&[0, 1, 8, 20])];
    if draw.one_in(10) {
        draft.fragment = draw.pick(if ipv6 { &[1, 8, 9, 0x0100] } else { &[0x2000, 1, 2, 0x2004] });
    }
    if draw.one_in(10) {
        // Cut short: too few bytes of an upper header for ports.
        draft.total_len = Some(if ipv6 { 40 } else { 20 } + draw.rng.usize(..20));
    }
    let mut frame = draft.bytes();
    let at = if ipv6 { 2 } else { 4 };
    frame[at..at + 2].copy_from_slice(&number.to_be_bytes());
    if !ipv6 {
        frame[10..12].fill(0);
        let checksum = !packet::checksum::sum(&frame[..20]);
        frame[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    frame
}
