//! The short way beside the long one: the same frames under the same rules, each way with a handler of its own.

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use proptest::prelude::*;
use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::*;
use crate::config::{Config, Unresolved};
use crate::handler::Handler;
use crate::observer::Events;
use crate::wires::Crossing;

/// Chains that a forwarded packet passes, by their tables.
const CHAINS: [(&str, &str); 5] = [
    ("raw", "PREROUTING"),
    ("mangle", "PREROUTING"),
    ("mangle", "POSTROUTING"),
    ("filter", "FORWARD"),
    ("mangle", "FORWARD"),
];

/// Rules that change packets, refuse them, remember them, and leave open what becomes of them.
const RULES: [&str; 16] = [
    "-p udp -m udp --dport 1:3 -j DROP",
    "-p tcp -m tcp --sport 2 -j ACCEPT",
    "-p tcp -m tcp --dport 2:9 -j REJECT",
    "-i left -p udp",
    "-o right -p tcp -m tcp --dport 1 -j DROP",
    "-p tcp -j MARK --set-mark 7",
    "-m mark --mark 7 -j DROP",
    "-j DSCP --set-dscp 3",
    "-m dscp --dscp 3 -j RETURN",
    "-j u",
    "-p udp -g u",
    "-m statistic --mode nth --every 3 --packet 0 -j DROP",
    "-m statistic --mode random --probability 0.5 -j DROP",
    "-m statistic --mode random --probability 0.3 -j ACCEPT",
    "-m length --length 0:60 -j ACCEPT",
    "-m statistic --mode random --probability 0.7 -j MARK --set-mark 9",
];

/// Rules as they are given: of the chain with this number, or of the user chain where there is none.
type Given = Vec<(usize, usize)>;

fn text(given: &Given, drops: bool) -> String {
    let table = |name: &str| {
        let chains = CHAINS.iter().enumerate().filter(|(_, (table, _))| *table == name);
        let policy = if drops && name == "filter" { "DROP" } else { "ACCEPT" };
        let heads = chains.clone().map(|(_, (_, chain))| format!(":{chain} {policy} [0:0]\n"));
        // Not every chain and table takes every test and target.
        let rule = |chain: &str, number: usize| {
            let mut rule = RULES[number].to_owned();
            if name != "filter" {
                rule = rule.replace("REJECT", "DROP");
            }
            if chain.ends_with("ROUTING") {
                rule = rule.replace("-i left", "").replace("-o right", "");
            }
            format!("-A {chain} {rule}\n")
        };
        let leads_on = |number: usize| RULES[number].ends_with('u');
        let is_taken = |number: usize| name == "mangle" || !RULES[number].contains("DSCP");
        let given = given.iter().filter(|(_, number)| is_taken(*number));
        let rules = given.filter_map(|(at, number)| match CHAINS.get(*at) {
            Some((table, chain)) if *table == name => Some(rule(chain, *number)),
            Some(_) => None,
            None if leads_on(*number) => None,
            None => Some(rule("u", *number)),
        });
        let rules: String = rules.collect();
        format!("*{name}\n{}:u - [0:0]\n{rules}COMMIT\n", heads.collect::<String>())
    };
    ["raw", "mangle", "filter"].map(table).concat()
}

fn program(given: &Given, drops: bool, unknown: Unresolved) -> Program {
    let rulesets = [Family::Ipv4, Family::Ipv6].map(|family| {
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        load(&text(given, drops), &options).expect("rules of both families").ruleset
    });
    Program::new(rulesets, Config { unknown, ..Config::default() })
}

/// A frame: its family, whether it is TCP, its ports, and how many of its last bytes are cut off.
#[derive(Debug, Clone)]
struct Frame {
    is_v6: bool,
    is_tcp: bool,
    ports: (u16, u16),
    is_fragment: bool,
    cut: usize,
}

impl Frame {
    fn bytes(&self) -> Vec<u8> {
        let ends = if self.is_v6 { ["fd00::7", "2001:db8::9"] } else { ["10.0.0.7", "192.0.2.9"] };
        let [source, destination] = ends.map(|end| end.parse().unwrap());
        let addresses = Addresses::new(source, destination).unwrap();
        let message = match self.is_tcp {
            true => Message::tcp(self.ports.0, self.ports.1, Flags::SYN),
            false => Message::udp(self.ports.0, self.ports.1),
        };
        let mut bytes = Craft::new(addresses, message).frame();
        if self.is_fragment && !self.is_v6 {
            // More fragments: the checksum goes along.
            bytes[20] |= 0x20;
            let (sum, carry) =
                (!u16::from_be_bytes([bytes[24], bytes[25]])).overflowing_add(0x2000);
            bytes[24..26].copy_from_slice(&(!(sum + u16::from(carry))).to_be_bytes());
        }
        bytes
    }
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let frame = (any::<bool>(), any::<bool>(), (0..4_u16, 0..4_u16), any::<bool>(), 0..30_usize);
    let frame = frame.prop_map(|(is_v6, is_tcp, ports, is_fragment, cut)| Frame {
        is_v6,
        is_tcp,
        ports,
        is_fragment,
        cut: cut.saturating_sub(20),
    });
    prop::collection::vec(frame, 1..12)
}

/// All that is to be seen of frames that take one way.
fn seen(program: &Program, frames: &[Frame], is_short: bool) -> Vec<String> {
    let mut handler = Handler::new(program).sending();
    let crossing = Crossing::default();
    let mut seen = Vec::new();
    for (number, frame) in (1..).zip(frames) {
        let mut bytes = frame.bytes();
        let wire_len = bytes.len();
        bytes.truncate(wire_len - frame.cut);
        let headers = find_headers(program, &bytes, Link::Wire, wire_len, Origin::Wire);
        let arrival = Arrival {
            time: Some(number),
            direction: pktio::Direction::Inbound,
            interface: Some("left"),
            input: Some("left"),
            output: Some("right"),
            wire: Some(&crossing),
            origin: Origin::Wire,
            headers: Some(&headers),
            ..Arrival::new(number, Link::Wire, wire_len)
        };
        let is_cut = !matches!(headers.l3, L3::Ipv4 { .. } | L3::Ipv6);
        assert_eq!(wire_of(program, &arrival).is_none(), is_cut, "which way it takes");
        let mut events = Vec::new();
        let mut observer = Events(|event: crate::Event<'_>| events.push(format!("{event:?}")));
        let egress = match is_short {
            true => handler.handle(program, &mut bytes, &arrival, &mut observer),
            false => handler.take(program, &mut bytes, &arrival, &mut observer),
        };
        let egress = format!("{egress:?}");
        seen.extend(events);
        seen.extend([egress, format!("{bytes:?}")]);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_short_way_is_the_long_one(
        given in prop::collection::vec((0..=CHAINS.len(), 0..RULES.len()), 0..10),
        drops in any::<bool>(),
        lets in any::<bool>(),
        frames in frames(),
    ) {
        let unknown = if lets { Unresolved::Accept } else { Unresolved::Drop };
        let program = program(&given, drops, unknown);
        let (short, long) = (seen(&program, &frames, true), seen(&program, &frames, false));
        prop_assert_eq!(short, long, "{}", text(&given, drops));
    }
}
