//! Random NAT rules with counting rules around them.

use fastrand::Rng;
use rules::model::Family;

fn one_of<'a>(rng: &mut Rng, texts: &[&'a str]) -> &'a str {
    texts[rng.usize(..texts.len())]
}

const BEFORE: &[&str] = &[
    "-p tcp -m tcp --dport 80 -j DNAT --to-destination {C}9",
    "-p tcp -m tcp --dport 80 -j DNAT --to-destination {[}{C}9{]}:8080",
    "-p udp -m udp --dport 53 -j DNAT --to-destination {C}2-{C}4",
    "-p udp -j DNAT --to-destination {S}1-{S}9 --persistent",
    "-p udp -d {S}1 -j DNAT --to-destination {[}{S}2{]}:5000-5003",
    "-p tcp -j REDIRECT --to-ports 3128",
    "-i t0 -p udp -j REDIRECT",
    "-d {S}0/{N} -j NETMAP --to {X}0/{N}",
    "-p tcp -m tcp --dport 79:90 -j DNAT --to-destination {[}{C}9{]}:8080-8091/79",
    "-p udp -j DNAT --to-destination :99",
    "-d {S}3 -j DNAT --to-destination {S}1",
    "-d {L} -j DNAT --to-destination {C}3",
    "-p tcp -j DNAT --to-destination {[}{S}7{]}:1000-2000 --random",
    "-p udp -m udp --dport 80 -j ACCEPT",
];

const AFTER: &[&str] = &[
    "-o t1 -j MASQUERADE",
    "-o t1 -j MASQUERADE --random",
    "-o t1 -j SNAT --to-source {M}1",
    "-o t1 -j SNAT --to-source {M}1-{M}4",
    "-o t1 -j SNAT --to-source {M}1-{M}200 --persistent",
    "-p udp -j SNAT --to-source {[}{M}9{]}:2000-2010",
    "-p udp -o t1 -j SNAT --to-source {[}{M}9{]}:2000",
    "-p udp -j SNAT --to-source {[}{M}9{]}:1000-1002",
    "-o t1 -s {C}0/{N} -j NETMAP --to {M}0/{N}",
    "-p tcp -o t1 -j MASQUERADE --to-ports 1000-1004",
    "-o t0 -j SNAT --to-source {L}",
    "-p tcp -j ACCEPT",
];

const COUNTING: &[&str] = &[
    "-m conntrack --ctstate NEW",
    "-m conntrack --ctstate ESTABLISHED",
    "-m conntrack --ctstate RELATED",
    "-m conntrack --ctstate INVALID",
    "-m conntrack --ctstate DNAT",
    "-m conntrack --ctstatus SEEN_REPLY",
    "-m conntrack --ctstate SNAT",
    "-d {C}0/{N}",
    "-s {M}0/{N}",
    "-d {S}1",
    "-p tcp -m tcp --dport 8080",
    "-p udp -m udp --sport 1000",
    "-p udp -d {S}9 -j DROP",
    "-p tcp -m conntrack --ctstate INVALID -j DROP",
];

/// Save text of one ruleset. The host sends nothing of its own.
pub(super) fn draw(family: Family, rng: &mut Rng) -> String {
    let mut text = String::from("*raw\n-A OUTPUT -j DROP\nCOMMIT\n*nat\n");
    for _ in 0..rng.usize(0..4) {
        text += &format!("-A PREROUTING {}\n", one_of(rng, BEFORE));
    }
    if rng.bool() {
        text += "-A INPUT -p udp -j SNAT --to-source {M}77\n-A INPUT\n";
    }
    for _ in 0..rng.usize(0..4) {
        text += &format!("-A POSTROUTING {}\n", one_of(rng, AFTER));
    }
    text += "-A POSTROUTING\nCOMMIT\n*mangle\n";
    for chain in ["PREROUTING", "INPUT", "FORWARD", "POSTROUTING"] {
        for _ in 0..3 {
            let rule = one_of(rng, &COUNTING[..12]);
            text += &format!("-A {chain} {rule}\n");
        }
    }
    text += "COMMIT\n*filter\n";
    for chain in ["INPUT", "FORWARD"] {
        for _ in 0..3 {
            text += &format!("-A {chain} {}\n", one_of(rng, COUNTING));
        }
        text += &format!("-A {chain} -m conntrack --ctstate NEW\n");
    }
    text += "COMMIT\n";
    let words: &[(&str, &str)] = match family {
        Family::Ipv6 => &[
            ("{C}", "fd01::"),
            ("{S}", "2001:db8:5::"),
            ("{X}", "2001:db8:6::"),
            ("{M}", "2001:db8:7::"),
            ("{N}", "112"),
            ("{L}", "fd00:ffff:1::1"),
            ("{[}", "["),
            ("{]}", "]"),
        ],
        _ => &[
            ("{C}", "10.1.0."),
            ("{S}", "198.51.100."),
            ("{X}", "203.0.113."),
            ("{M}", "192.0.2."),
            ("{N}", "24"),
            ("{L}", "10.255.1.1"),
            ("{[}", ""),
            ("{]}", ""),
        ],
    };
    words.iter().fold(text, |text, (from, to)| text.replace(from, to))
}
