//! Random rules of a router: what rejects, mangles and translates.

use fastrand::Rng;
use rules::model::Family;

const REJECTED: &[&str] = &[
    "-p tcp -m tcp --dport 81 -j REJECT --reject-with tcp-reset",
    "-p tcp -m tcp --dport 82 -j REJECT",
    "-p udp -m udp --dport 81 -j REJECT",
    "-p udp -m udp --dport 82 -j REJECT --reject-with {U}",
    "-p udp -m udp --dport 53 -j REJECT --reject-with {H}",
    "-p {I} -j REJECT --reject-with {N}",
    "-m tos --tos 0x10/0xff -j REJECT --reject-with {U}",
    "-m mark --mark 7 -j REJECT",
    "-p tcp -m tos --tos 0x08/0xff -j REJECT --reject-with tcp-reset",
    "-m length --length 1000:1600 -j REJECT",
    "-p tcp -m tcp --sport 81 -j REJECT --reject-with tcp-reset",
    "-p sctp -j REJECT",
];
const DROPPED: &[&str] = &["-p udp -m udp --sport 1002 -j DROP", "-m mark --mark 5 -j DROP"];
const STATED: &[&str] = &[
    "-m conntrack --ctstate INVALID -j DROP",
    "-m conntrack --ctstate ESTABLISHED -j ACCEPT",
    "-m conntrack --ctstate INVALID -j REJECT",
    "-m conntrack --ctstate RELATED",
];
const MANGLED: &[&str] = &[
    "{T}-set 40",
    "{T}-inc 3",
    "{T}-dec 2",
    "-p udp -j TOS --set-tos 0x10/0xff",
    "-j DSCP --set-dscp 0x2e",
    "-p udp -j MARK --set-mark 7",
    "-p tcp -j MARK --set-mark 3",
    "-p {I} -j DSCP --set-dscp-class AF21",
    "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 900",
    "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
];
/// What the host itself sends.
const OF_HOST: &[&str] = &[
    "-p tcp -m tcp --tcp-flags RST RST -j DROP",
    "-p {I} -j DROP",
    "-d {C}2 -j DROP",
    "-p tcp",
    "-p {I}",
];
const BEFORE: &[&str] = &[
    "-p tcp -m tcp --dport 80 -j DNAT --to-destination {C}9",
    "-p tcp -m tcp --dport 81 -j DNAT --to-destination {S}9",
    "-p udp -m udp --dport 53 -j DNAT --to-destination {[}{S}7{]}:5353",
    "-d {S}3 -j DNAT --to-destination {S}1",
    "-d {S}2 -p tcp -j DNAT --to-destination {[}{S}8{]}:82",
];
const AFTER: &[&str] = &[
    "-o t1 -j MASQUERADE",
    "-o t1 -j SNAT --to-source {M}1",
    "-p udp -o t1 -j SNAT --to-source {M}2",
    "-s {C}0/{W} -o t1 -j SNAT --to-source {M}3",
];

/// Lines of save text.
pub(super) fn draw(family: Family, rng: &mut Rng) -> Vec<String> {
    let (tracks, translates) = (rng.u8(..3) > 0, rng.bool());
    let mut lines = vec!["*raw".to_owned()];
    if tracks {
        lines.push("-A PREROUTING -p tcp -m tcp --dport 21 -j CT --helper ftp".to_owned());
    }
    lines.extend(["COMMIT".to_owned(), "*mangle".to_owned()]);
    for chain in ["PREROUTING", "FORWARD", "POSTROUTING", "OUTPUT"] {
        // Clamping needs the device that the packet leaves by.
        let rules = if chain == "FORWARD" { MANGLED } else { &MANGLED[..8] };
        rule(&mut lines, chain, rules, if chain == "OUTPUT" { 2 } else { 3 }, rng);
    }
    lines.push("COMMIT".to_owned());
    if tracks && translates {
        lines.push("*nat".to_owned());
        rule(&mut lines, "PREROUTING", BEFORE, 3, rng);
        rule(&mut lines, "POSTROUTING", AFTER, 3, rng);
        lines.push("COMMIT".to_owned());
    }
    // What the host takes it would answer by itself.
    lines.extend(["*filter".to_owned(), ":INPUT DROP [0:0]".to_owned()]);
    for chain in ["FORWARD", "INPUT"] {
        if tracks {
            rule(&mut lines, chain, STATED, 3, rng);
        }
        rule(&mut lines, chain, REJECTED, 5, rng);
        rule(&mut lines, chain, DROPPED, 2, rng);
    }
    rule(&mut lines, "OUTPUT", OF_HOST, 2, rng);
    lines.push("COMMIT".to_owned());
    for line in &mut lines {
        *line = words(family).iter().fold(line.clone(), |line, (from, to)| line.replace(from, to));
    }
    lines
}

fn rule(lines: &mut Vec<String>, chain: &str, texts: &[&str], most: usize, rng: &mut Rng) {
    for _ in 0..rng.usize(..most) {
        lines.push(format!("-A {chain} {}", texts[rng.usize(..texts.len())]));
    }
}

fn words(family: Family) -> &'static [(&'static str, &'static str)] {
    match family {
        Family::Ipv6 => &[
            ("{U}", "icmp6-adm-prohibited"),
            ("{H}", "icmp6-addr-unreachable"),
            ("{N}", "icmp6-no-route"),
            ("{I}", "ipv6-icmp"),
            ("{T}", "-j HL --hl"),
            ("{C}", "fd01::"),
            ("{S}", "2001:db8:5::"),
            ("{M}", "2001:db8:7::"),
            ("{W}", "112"),
            ("{[}", "["),
            ("{]}", "]"),
        ],
        _ => &[
            ("{U}", "icmp-admin-prohibited"),
            ("{H}", "icmp-host-prohibited"),
            ("{N}", "icmp-net-unreachable"),
            ("{I}", "icmp"),
            ("{T}", "-j TTL --ttl"),
            ("{C}", "10.1.0."),
            ("{S}", "198.51.100."),
            ("{M}", "192.0.2."),
            ("{W}", "24"),
            ("{[}", ""),
            ("{]}", ""),
        ],
    }
}
