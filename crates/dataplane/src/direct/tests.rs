//! The direct path next to the full one: the same frames under the same rules, each path with a handler of its own.

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use proptest::prelude::*;
use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::*;
use crate::config::{Config, Unresolved};
use crate::handler::Handler;
use crate::headers::find_headers;
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
const RULES: [&str; 19] = [
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
    "-m conntrack --ctstate NEW -j ACCEPT",
    "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-m conntrack --ctstate INVALID -j DROP",
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

/// What is given of packets, and the rules that translate them, if any do.
#[derive(Debug, Clone, Copy)]
struct Setting {
    way: Source,
    translates: bool,
    unknown: Unresolved,
}

/// How path and interfaces are given.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The packet crosses a wire, as by a bridge or as by a router.
    Wire { ages: bool },
    /// The configuration names them.
    Config,
}

/// Rules that translate packets of a family.
fn nat(family: Family) -> &'static str {
    match family {
        Family::Ipv6 => {
            "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
             -A PREROUTING -p tcp -m tcp --dport 2 -j DNAT --to-destination fd00::9\n\
             -A POSTROUTING -p udp -j SNAT --to-source fd00::1\nCOMMIT\n"
        }
        _ => {
            "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
             -A PREROUTING -p tcp -m tcp --dport 2 -j DNAT --to-destination 10.0.0.9\n\
             -A PREROUTING -p tcp -m tcp --dport 3 -j DNAT --to-destination 224.0.0.9\n\
             -A POSTROUTING -p udp -j SNAT --to-source 192.0.2.1\nCOMMIT\n"
        }
    }
}

fn program(given: &Given, drops: bool, setting: Setting) -> Program {
    let rulesets = [Family::Ipv4, Family::Ipv6].map(|family| {
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        let translating = if setting.translates { nat(family) } else { "" };
        let text = text(given, drops) + translating;
        load(&text, &options).expect("rules of both families").ruleset
    });
    let mut config = Config { unknown: setting.unknown, ..Config::default() };
    if let Source::Config = setting.way {
        config.path = Some(Path::Forward);
        (config.input, config.output) = (Some("left".into()), Some("right".into()));
    }
    Program::new(rulesets, config)
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

/// All that is to be seen of frames that take one path.
fn seen(program: &Program, frames: &[Frame], setting: Setting, is_direct: bool) -> Vec<String> {
    let mut handler = Handler::new(program).sending();
    let crossing = match setting.way {
        Source::Wire { ages } => Some(Crossing { ages, ..Crossing::default() }),
        Source::Config => None,
    };
    let mut seen = Vec::new();
    for (number, frame) in (1..).zip(frames) {
        let mut bytes = frame.bytes();
        let wire_len = bytes.len();
        bytes.truncate(wire_len - frame.cut);
        let link = if crossing.is_some() { Link::Wire } else { Link::Ethernet };
        let mut arrival = Arrival { time: Some(number), ..Arrival::new(number, link, wire_len) };
        if crossing.is_some() {
            arrival = Arrival {
                direction: pktio::Direction::Inbound,
                interface: Some("left"),
                input: Some("left"),
                output: Some("right"),
                wire: crossing.as_ref(),
                origin: Origin::Wire,
                ..arrival
            };
        }
        let headers = find_headers(program, &bytes, link, wire_len, arrival.origin);
        arrival.headers = Some(&headers);
        let is_cut = !matches!(headers.l3, L3::Ipv4 { .. } | L3::Ipv6);
        let takes = direct_of(program, &headers, &arrival);
        assert_eq!(takes.is_none(), is_cut, "which path it takes");
        let mut events = Vec::new();
        let mut observer = Events(|event: crate::Event<'_>| events.push(format!("{event:?}")));
        let egress = match is_direct {
            true => handler.handle(program, &mut bytes, &arrival, &mut observer),
            false => {
                let packet = Packet::with_headers(&mut bytes, headers);
                handler.take(program, packet, &arrival, &mut observer)
            }
        };
        let egress = format!("{egress:?}");
        seen.extend(events);
        seen.extend([egress, format!("{bytes:?}")]);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]
    #[test]
    fn the_direct_path_is_the_full_one(
        given in prop::collection::vec((0..=CHAINS.len(), 0..RULES.len()), 0..10),
        drops in any::<bool>(),
        lets in any::<bool>(),
        translates in prop::bool::weighted(0.3),
        way in prop_oneof![
            Just(Source::Wire { ages: false }),
            Just(Source::Wire { ages: true }),
            Just(Source::Config),
        ],
        frames in frames(),
    ) {
        let unknown = if lets { Unresolved::Accept } else { Unresolved::Drop };
        let setting = Setting { way, translates, unknown };
        let program = program(&given, drops, setting);
        let (direct, full) =
            (seen(&program, &frames, setting, true), seen(&program, &frames, setting, false));
        prop_assert_eq!(direct, full, "{:?} {}", setting, text(&given, drops));
    }
}
