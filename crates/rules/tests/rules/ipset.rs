//! Sets through `-m set` and `-j SET`, against a search that looks at every element, and by hand.

use std::net::Ipv4Addr;
use std::time::Instant;

use packet::{Checksums, Link, Packet};
use proptest::prelude::*;
use rules::eval::{Alive, Memories, Nobody, Verdict, walk};
use rules::ipset::Sets;
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Iface, Transit};

/// A ruleset with its sets, through which packets go one by one.
struct Host {
    ruleset: Ruleset,
    memories: Memories,
    sets: Sets,
}

impl Host {
    /// Rules of filter FORWARD, whose policy is to accept.
    fn new(sets: &str, rules: &[&str]) -> Self {
        let rules: String = rules.iter().map(|rule| format!("-A FORWARD {rule}\n")).collect();
        let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
        let ruleset = load(&text, &LoadOptions::default()).unwrap().ruleset;
        let memories = Memories::of(&ruleset);
        Self { ruleset, memories, sets: Sets::parse(sets).unwrap() }
    }

    /// Whether the packet is dropped, at this number of seconds; `None` if that is not known.
    fn drops(&mut self, packet: &Sent, seconds: u64) -> Option<bool> {
        let mut bytes = packet.bytes();
        let len = bytes.len();
        let mut parsed = Packet::parse(
            &mut bytes[..packet.captured.min(len)],
            len,
            Link::Ipv4,
            Checksums::Ignore,
        );
        let (host, time) = (host::Host::default(), Some(seconds * 1_000_000_000));
        self.sets.begin(time);
        let mut transit = Transit {
            input: Iface::Named("eth0"),
            output: Iface::Named("eth1"),
            time,
            sets: Some(&mut self.sets),
            ..Transit::new(&mut parsed, Family::Ipv4, Hook::Forward, &host)
        };
        let found =
            walk(&self.ruleset, 0, &mut transit, Alive::Certain, &mut self.memories, &mut Nobody);
        found.only().map(|(verdict, _)| verdict == Verdict::Drop)
    }
}

/// A UDP or TCP packet.
#[derive(Debug, Clone)]
struct Sent {
    addrs: [u32; 2],
    ports: [u16; 2],
    protocol: u8,
    captured: usize,
}

impl Sent {
    fn new(source: &str, destination: &str, protocol: u8, ports: [u16; 2]) -> Self {
        let addr = |text: &str| text.parse::<Ipv4Addr>().unwrap().into();
        Self { addrs: [addr(source), addr(destination)], ports, protocol, captured: usize::MAX }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, self.protocol, 0, 0];
        self.addrs.iter().for_each(|addr| bytes.extend(addr.to_be_bytes()));
        self.ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
        bytes.extend([0; 8]);
        bytes.extend([0x50, 2, 0, 0, 0, 0, 0, 0]);
        bytes
    }
}

/// One dimension of an element, as a test of a packet and how narrow it is.
#[derive(Debug, Clone)]
enum Part {
    Net(u32, u8),
    Port(u8, u16),
}

impl Part {
    fn text(&self) -> String {
        match self {
            Self::Net(addr, 32) => Ipv4Addr::from(*addr).to_string(),
            Self::Net(addr, bits) => format!("{}/{bits}", Ipv4Addr::from(*addr)),
            Self::Port(protocol, port) => format!("{protocol}:{port}"),
        }
    }

    fn accepts(&self, packet: &Sent, source: bool) -> bool {
        let end = usize::from(!source);
        match self {
            Self::Net(addr, bits) => {
                (u64::from(packet.addrs[end]) ^ u64::from(*addr)) >> (32 - bits) == 0
            }
            Self::Port(protocol, port) => {
                *protocol == packet.protocol && *port == packet.ports[end]
            }
        }
    }

    fn bits(&self) -> u8 {
        match self {
            Self::Net(_, bits) => *bits,
            Self::Port(..) => 0,
        }
    }
}

/// An element, and whether it is an exception.
type Element = (Vec<Part>, bool);

/// The narrowest element that holds the packet decides.
fn naive(elements: &[Element], packet: &Sent, by_source: &[bool]) -> bool {
    let holds = |(parts, _): &&Element| {
        parts.iter().zip(by_source).all(|(part, source)| part.accepts(packet, *source))
    };
    let narrow = |(parts, _): &&Element| parts.iter().map(Part::bits).collect::<Vec<_>>();
    elements.iter().filter(holds).max_by_key(narrow).is_some_and(|(_, nomatch)| !nomatch)
}

/// Addresses that often share prefixes.
fn addr() -> impl Strategy<Value = u32> {
    (0..2_u32, 0..4_u32, 0..4_u32).prop_map(|(a, b, c)| 0x0a00_0000 | a << 22 | b << 8 | c)
}

fn net() -> impl Strategy<Value = Part> {
    (addr(), prop::sample::select(vec![1_u8, 8, 10, 22, 24, 31, 32])).prop_map(|(addr, bits)| {
        Part::Net((u64::from(addr) >> (32 - bits) << (32 - bits)) as u32, bits)
    })
}

fn port() -> impl Strategy<Value = Part> {
    (prop::sample::select(vec![6_u8, 17]), 0..3_u16).prop_map(|(p, port)| Part::Port(p, port))
}

fn part(dim: &str) -> BoxedStrategy<Part> {
    match dim {
        "ip" => addr().prop_map(|addr| Part::Net(addr, 32)).boxed(),
        "net" => net().boxed(),
        _ => port().boxed(),
    }
}

const KINDS: [&str; 8] =
    ["ip", "net", "ip,port", "net,port", "net,net", "ip,port,ip", "ip,port,net", "net,port,net"];

fn elements(kind: &'static str) -> impl Strategy<Value = Vec<Element>> {
    let dims: Vec<BoxedStrategy<Part>> = kind.split(',').map(part).collect();
    let excepts = kind.contains("net");
    prop::collection::vec((dims, any::<bool>()), 0..40).prop_map(move |mut list| {
        list.iter_mut().for_each(|(_, nomatch)| *nomatch &= excepts);
        // Of two equal elements, the last counts.
        let key = |parts: &[Part]| format!("{parts:?}");
        let mut kept: Vec<Element> = Vec::new();
        for element in list {
            kept.retain(|(parts, _)| key(parts) != key(&element.0));
            kept.push(element);
        }
        kept
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    ([addr(), addr()], [0..3_u16, 0..3_u16], prop::sample::select(vec![6_u8, 17]))
        .prop_map(|(addrs, ports, protocol)| Sent { addrs, ports, protocol, captured: usize::MAX })
}

proptest! {
    #[test]
    fn a_set_finds_what_looking_at_every_element_finds(
        (kind, elements) in prop::sample::select(KINDS.to_vec()).prop_flat_map(|kind| (Just(kind), elements(kind))),
        by_source in prop::collection::vec(any::<bool>(), 3),
        packets in prop::collection::vec(sent(), 1..20),
    ) {
        let mut text = format!("create s hash:{kind} family inet\n");
        for (parts, nomatch) in &elements {
            let parts: Vec<String> = parts.iter().map(Part::text).collect();
            let nomatch = if *nomatch { " nomatch" } else { "" };
            text += &format!("add s {}{nomatch}\n", parts.join(","));
        }
        let by_source = &by_source[..kind.split(',').count()];
        let sides: Vec<&str> = by_source.iter().map(|s| if *s { "src" } else { "dst" }).collect();
        let rule = format!("-m set --match-set s {} -j DROP", sides.join(","));
        let mut host = Host::new(&text, &[&rule]);
        for packet in &packets {
            prop_assert_eq!(host.drops(packet, 1), Some(naive(&elements, packet, by_source)), "{}", text);
        }
    }
}

fn udp(source: &str) -> Sent {
    Sent::new(source, "192.0.2.9", 17, [1000, 53])
}

#[test]
fn a_packet_adds_its_source_until_it_times_out() {
    let rules =
        ["-m set --match-set seen src -j DROP", "-p udp -j SET --add-set seen src --timeout 10"];
    let mut host = Host::new("create seen hash:ip timeout 60\n", &rules);
    assert_eq!(host.drops(&udp("10.0.0.1"), 100), Some(false));
    assert_eq!(host.drops(&udp("10.0.0.1"), 105), Some(true));
    assert_eq!(host.drops(&udp("10.0.0.2"), 105), Some(false));
    assert_eq!(host.drops(&udp("10.0.0.1"), 111), Some(false));
    assert_eq!(host.sets.elements("seen"), Some(2));
}

#[test]
fn counters_of_elements_count_and_are_tested() {
    let rules = ["-m set --match-set c src --packets-gt 2 -j DROP"];
    let mut host = Host::new("create c hash:net counters\nadd c 10.0.0.0/8 packets 1\n", &rules);
    let all: Vec<_> = (0..3).map(|_| host.drops(&udp("10.0.0.1"), 1)).collect();
    assert_eq!(all, [Some(false), Some(true), Some(true)]);
}

#[test]
fn a_list_asks_its_members_in_order() {
    let sets = "create a hash:ip\nadd a 10.0.0.1\ncreate b hash:net,port\nadd b 10.0.0.0/24,udp:53\n\
                create l list:set size 8\nadd l a\nadd l b\n";
    let mut host = Host::new(sets, &["-m set --match-set l src,dst -j DROP"]);
    assert_eq!(host.drops(&udp("10.0.0.1"), 1), Some(true));
    assert_eq!(host.drops(&udp("10.0.0.7"), 1), Some(true));
    assert_eq!(host.drops(&udp("10.0.1.7"), 1), Some(false));
    let mut short = Host::new(sets, &["-m set --match-set l src -j DROP"]);
    assert_eq!(short.drops(&udp("10.0.0.7"), 1), Some(false), "b has two dimensions");
}

#[test]
fn exceptions_alone_match_with_return_nomatch() {
    let sets = "create n hash:net\nadd n 10.0.0.0/8\nadd n 10.1.0.0/16 nomatch\n";
    let mut host = Host::new(sets, &["-m set --match-set n src --return-nomatch -j DROP"]);
    assert_eq!(host.drops(&udp("10.1.0.1"), 1), Some(true));
    assert_eq!(host.drops(&udp("10.2.0.1"), 1), Some(false));
}

#[test]
fn what_is_not_known_stays_unknown() {
    let rule = "-m set --match-set s src -j DROP";
    let mut missing = Host::new("create other hash:ip\n", &[rule]);
    assert_eq!(missing.drops(&udp("10.0.0.1"), 1), None);
    let cut = Sent { captured: 14, ..udp("10.0.0.1") };
    let rules = [rule, "-j SET --add-set s src"];
    let mut host = Host::new("create s hash:ip\n", &rules);
    assert_eq!(host.drops(&udp("10.0.0.1"), 1), Some(false));
    assert_eq!(host.drops(&cut, 1), None);
    assert_eq!(host.drops(&udp("10.0.0.3"), 1), None, "the set may hold any address now");
}

#[test]
fn set_text_that_is_wrong_is_refused_at_its_place() {
    for (text, line, column) in [
        ("create s hash:ip\nadd s 10.0.0.256\n", 2, 7),
        ("create s hash:ip\nadd t 10.0.0.1\n", 2, 5),
        ("create s hash:foo\n", 1, 10),
        ("create s hash:ip\nadd s 10.0.0.1 timeout 5\n", 2, 16),
        ("create s bitmap:ip\n", 1, 19),
        ("create s bitmap:ip range 10.0.0.0/24\nadd s 10.0.1.0\n", 2, 7),
        ("create s hash:ip maxelem 1\nadd s 10.0.0.1\nadd s 10.0.0.2\n", 3, 7),
        ("create s hash:ip maxelem 4294967295\nadd s 0.0.0.0-255.255.255.255\n", 2, 7),
        ("create s hash:ip,port\nadd s 10.0.0.1\n", 2, 7),
        ("flush s\n", 1, 1),
        ("create s list:set\ncreate t list:set\nadd s t\n", 3, 7),
    ] {
        let error = Sets::parse(text).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text}{error}");
    }
}

/// Not a bound, which would depend on the machine: prints what a set of a million elements costs.
#[test]
#[ignore = "a measurement: cargo test --release -p tamis-rules ipset -- --ignored --nocapture"]
fn cost_of_a_million_elements() {
    let add = |number: u32| format!("add s {}\n", Ipv4Addr::from(number.wrapping_mul(0x9e37_79b1)));
    for options in ["", " timeout 60 counters"] {
        let mut text = format!("create s hash:ip family inet maxelem 1000000{options}\n");
        (1..=1_000_000).for_each(|number| text += &add(number));
        let mut times: Vec<_> = (0..5)
            .map(|_| {
                let start = Instant::now();
                let sets = Sets::parse(&text).unwrap();
                assert_eq!(sets.elements("s"), Some(1_000_000));
                start.elapsed()
            })
            .collect();
        times.sort();
        println!("hash:ip{options}: {:?} (median of 5, {} bytes of text)", times[2], text.len());
    }
}
