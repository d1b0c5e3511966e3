//! Draws a nat table: every kind of translation, ranges, ports, and what the kernel draws at random.

use super::Draw;
use crate::generate::Piece;
use crate::generate::ruleset::{ChainText, RuleText, TableText};

/// `{C}` hosts inside, `{S}` outside, `{X}` known to rules alone, `{L}` the firewall outside, `{N}` prefix.
const BEFORE: &[&str] = &[
    "-p tcp -m tcp --dport 80 -j DNAT --to-destination {C}2",
    "-p tcp -m tcp --dport 80 -j DNAT --to-destination {[}{C}1{]}:8080",
    "-p udp -m udp --dport 53 -j DNAT --to-destination {C}1-{C}3",
    "-p udp -j DNAT --to-destination {S}1-{S}3 --persistent",
    "-p tcp -m tcp --dport 443 -j REDIRECT --to-ports 3128",
    "-i t0 -p udp -m udp --dport 80 -j REDIRECT",
    "-d {S}0/{N} -j NETMAP --to {X}0/{N}",
    "-d {X}0/{N} -j NETMAP --to {C}0/{N}",
    "-p tcp -m tcp --dport 79:90 -j DNAT --to-destination {[}{C}3{]}:8080-8091/79",
    "-p udp -j DNAT --to-destination :99",
    "-d {S}3 -j DNAT --to-destination {S}1",
    "-d {L} -j DNAT --to-destination {C}3",
    "-d {X}2 -j DNAT --to-destination {C}1",
    "-p sctp -j DNAT --to-destination {[}{S}1{]}:9",
    "-p udp -m udp --dport 80 -j ACCEPT",
];

const AFTER: &[&str] = &[
    "-o t1 -j MASQUERADE",
    "-o t1 -p tcp -j MASQUERADE",
    "-o t1 -j SNAT --to-source {X}101",
    "-o t1 -j SNAT --to-source {X}101-{X}104",
    "-o t1 -j SNAT --to-source {X}101-{X}200 --persistent",
    "-p udp -o t1 -j SNAT --to-source {[}{X}109{]}:2000",
    "-o t1 -s {C}0/{N} -j NETMAP --to {X}0/{N}",
    "-o t0 -j SNAT --to-source {L}",
    "-p tcp -j ACCEPT",
    "-p sctp -o t1 -j SNAT --to-source {X}101",
];

/// What the kernel draws from: mostly unknown, so seldom asked.
const DRAWN_BEFORE: &[&str] = &[
    "-p udp -d {S}1 -j DNAT --to-destination {[}{S}2{]}:5000-5003",
    "-p tcp -d {S}2 -j DNAT --to-destination {[}{S}1{]}:1000-2000 --random",
];
const DRAWN_AFTER: &[&str] = &[
    "-o t1 -p udp -j MASQUERADE --random",
    "-p udp -j SNAT --to-source {[}{X}109{]}:2000-2010",
    "-p udp -j SNAT --to-source {[}{X}109{]}:1000-1002",
    "-p tcp -o t1 -j MASQUERADE --to-ports 1000-1004",
];
/// One table in this many has such a rule.
const DRAWN_ONE_IN: u32 = 8;

pub(super) fn table(draw: &mut Draw) -> TableText {
    let mut chains = Vec::new();
    let none: &[&str] = &[];
    for (name, list, drawn) in [
        ("PREROUTING", BEFORE, DRAWN_BEFORE),
        ("INPUT", none, none),
        ("POSTROUTING", AFTER, DRAWN_AFTER),
    ] {
        let count = if list.is_empty() { 0 } else { draw.rng.usize(..4) };
        let mut rules: Vec<RuleText> = (0..count).map(|_| rule(draw, list)).collect();
        if !drawn.is_empty() && draw.one_in(DRAWN_ONE_IN) {
            rules.push(rule(draw, drawn));
        }
        if name == "INPUT" && draw.one_in(4) {
            rules.push(rule(draw, &["-p udp -j SNAT --to-source {X}77"]));
        }
        // Counts the first packets of connections that nothing claimed.
        rules.push(rule(draw, &[""]));
        chains.push(ChainText { name: name.to_owned(), policy: "ACCEPT", rules });
    }
    TableText { name: "nat", chains }
}

fn rule(draw: &mut Draw, list: &[&str]) -> RuleText {
    let text = draw.pick(list);
    let words: &[(&str, &str)] = match draw.ipv6() {
        true => &[
            ("{C}", "2001:db8:1::"),
            ("{S}", "2001:db8:2::"),
            ("{X}", "2001:db8:3::"),
            ("{N}", "112"),
            ("{L}", "fd00:ffff:1::1"),
            ("{[}", "["),
            ("{]}", "]"),
        ],
        false => &[
            ("{C}", "192.0.2."),
            ("{S}", "198.51.100."),
            ("{X}", "203.0.113."),
            ("{N}", "24"),
            ("{L}", "10.255.1.1"),
            ("{[}", ""),
            ("{]}", ""),
        ],
    };
    let text = words.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    RuleText { tests: Vec::new(), action: Piece::plain(text), to: None }
}
