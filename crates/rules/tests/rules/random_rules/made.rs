//! Random rulesets, as values and as text, and random IPv4 packets, as values and as bytes.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::*;

/// Interfaces that packets use and rules name.
pub(crate) const IFACES: [&str; 4] = ["lan0", "lan1", "wan0", "lo"];

/// Protocols that packets use and rules name.
const PROTOCOLS: [u8; 4] = [1, 6, 17, 50];

/// A chain of the table under test: the first is FORWARD, the others are c1, c2, …
pub(crate) type Chain = Vec<Rule>;

/// A table with one built-in chain.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) drops: bool,
    pub(crate) chains: Vec<Chain>,
}

/// One rule; every test is `(invert, value)`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) source: Option<(bool, Net)>,
    pub(crate) destination: Option<(bool, Net)>,
    pub(crate) input: Option<(bool, &'static str)>,
    pub(crate) output: Option<(bool, &'static str)>,
    pub(crate) protocol: Option<(bool, u8)>,
    pub(crate) fragment: Option<bool>,
    /// Only in rules with `-p tcp` or `-p udp`.
    pub(crate) ports: Option<Ports>,
    pub(crate) mark: Option<(bool, (u32, u32))>,
    /// `-m geoip`, of which nothing is known.
    pub(crate) opaque: bool,
    pub(crate) action: Action,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Net {
    pub(crate) addr: u32,
    pub(crate) bits: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) destination: bool,
    pub(crate) invert: bool,
    pub(crate) low: u16,
    pub(crate) high: u16,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Action {
    #[default]
    None,
    Accept,
    Drop,
    Return,
    Log,
    /// `--set-xmark value/mask`.
    Mark(u32, u32),
    Jump(usize),
    Goto(usize),
}

/// One packet at the FORWARD hook.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    /// The whole IPv4 packet.
    pub(crate) bytes: Vec<u8>,
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
    pub(crate) mark: u32,
}

pub(crate) fn tables() -> impl Strategy<Value = Table> {
    let chains = (1..5_usize).prop_flat_map(|count| {
        (0..count).map(|chain| vec(rules(chain, count), 0..7)).collect::<Vec<_>>()
    });
    (any::<bool>(), chains).prop_map(|(drops, chains)| Table { drops, chains })
}

/// A table whose first chain is long, and jumps to a short one.
pub(crate) fn long_tables() -> impl Strategy<Value = Table> {
    let chains = (vec(rules(0, 2), 64..200), vec(rules(1, 2), 0..7));
    (any::<bool>(), chains)
        .prop_map(|(drops, (long, short))| Table { drops, chains: vec![long, short] })
}

fn rules(chain: usize, chains: usize) -> impl Strategy<Value = Rule> {
    let iface = (any::<bool>(), prop::sample::select(&["lan0", "lan+", "wan0", "+", "l+"][..]));
    let network = (seldom(not(net())), seldom(not(net())), seldom(iface.clone()), seldom(iface));
    let mark = (0..4_u32, 0..4_u32).prop_map(|(value, mask)| (value & mask, mask));
    let upper = (
        seldom(not(prop::sample::select(&PROTOCOLS[..]))),
        proptest::option::weighted(0.1, any::<bool>()),
        proptest::option::weighted(0.6, ports()),
        seldom(not(mark)),
        prop::bool::weighted(0.1),
    );
    (network, upper, action(chain, chains)).prop_map(|(network, upper, action)| {
        let (source, destination, input, output) = network;
        let (protocol, fragment, ports, mark, opaque) = upper;
        let has_ports = matches!(protocol, Some((false, 6 | 17)));
        let ports = ports.filter(|_| has_ports);
        // `! -i +` matches nothing, and the tool refuses it.
        let some = |test: Option<(bool, &'static str)>| test.filter(|t| *t != (true, "+"));
        let (input, output) = (some(input), some(output));
        Rule { source, destination, input, output, protocol, fragment, ports, mark, opaque, action }
    })
}

fn seldom<T: std::fmt::Debug>(test: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::weighted(0.25, test)
}

fn not<T: std::fmt::Debug>(test: impl Strategy<Value = T>) -> impl Strategy<Value = (bool, T)> {
    (prop::bool::weighted(0.3), test)
}

fn net() -> impl Strategy<Value = Net> {
    (0..4_u32, prop::sample::select(&[8_u32, 24, 30, 31, 32][..]))
        .prop_map(|(host, bits)| Net { addr: (0x0a00_0000 | host) & u32::MAX << (32 - bits), bits })
}

fn ports() -> impl Strategy<Value = Ports> {
    (any::<bool>(), prop::bool::weighted(0.3), 0..4_u16, 0..3_u16).prop_map(
        |(destination, invert, low, more)| Ports { destination, invert, low, high: low + more },
    )
}

/// Jumps lead to later chains only, so that there are no loops.
fn action(chain: usize, chains: usize) -> BoxedStrategy<Action> {
    let plain = prop_oneof![
        Just(Action::None),
        Just(Action::Accept),
        Just(Action::Drop),
        Just(Action::Return),
        Just(Action::Log),
        (0..4_u32, 0..4_u32).prop_map(|(value, mask)| Action::Mark(value, mask)),
    ];
    if chain + 1 == chains {
        return plain.boxed();
    }
    let jump = (chain + 1..chains, any::<bool>())
        .prop_map(|(to, goto)| if goto { Action::Goto(to) } else { Action::Jump(to) });
    prop_oneof![2 => plain, 1 => jump].boxed()
}

pub(crate) fn packets() -> impl Strategy<Value = Packet> {
    let upper = (prop::sample::select(&PROTOCOLS[..]), 0..5_u16, 0..5_u16);
    // The last sizes end inside the TCP and UDP headers.
    let shape = (
        prop::sample::select(&[0_u16, 0, 0, 0, 1, 100][..]),
        prop::sample::select(&[28_u16, 28, 20, 19, 7, 2][..]),
    );
    let ifaces = (prop::sample::select(&IFACES[..]), prop::sample::select(&IFACES[..]));
    (0..4_u32, 0..4_u32, upper, shape, ifaces, 0..4_u32).prop_map(
        |(source, destination, upper, shape, (input, output), mark)| {
            let bytes = ipv4(source, destination, upper, shape);
            Packet { bytes, input, output, mark }
        },
    )
}

pub(crate) fn ipv4(
    source: u32,
    destination: u32,
    (protocol, sport, dport): (u8, u16, u16),
    (fragment, upper_len): (u16, u16),
) -> Vec<u8> {
    let mut bytes = vec![0; 20 + usize::from(upper_len)];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(20 + upper_len).to_be_bytes());
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    bytes[8] = 64;
    bytes[9] = protocol;
    bytes[12..16].copy_from_slice(&(0x0a00_0000 | source).to_be_bytes());
    bytes[16..20].copy_from_slice(&(0x0a00_0000 | destination).to_be_bytes());
    let ports = [sport.to_be_bytes(), dport.to_be_bytes()].concat();
    let length = ports.len().min(usize::from(upper_len));
    bytes[20..20 + length].copy_from_slice(&ports[..length]);
    bytes
}

impl Table {
    /// As save text, in table mangle, where every action is allowed.
    pub(crate) fn text(&self) -> String {
        let mut text =
            format!("*mangle\n:FORWARD {} [0:0]\n", if self.drops { "DROP" } else { "ACCEPT" });
        for chain in 1..self.chains.len() {
            writeln!(text, ":{} - [0:0]", chain_name(chain)).unwrap();
        }
        for (index, chain) in self.chains.iter().enumerate() {
            for rule in chain {
                writeln!(text, "-A {}{}", chain_name(index), rule.text()).unwrap();
            }
        }
        text + "COMMIT\n"
    }
}

fn chain_name(index: usize) -> String {
    if index == 0 { "FORWARD".to_owned() } else { format!("c{index}") }
}

impl Rule {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |invert: bool, words: String| {
            text.push_str(if invert { " ! " } else { " " });
            text.push_str(&words);
        };
        for (option, test) in [("-s", self.source), ("-d", self.destination)] {
            if let Some((invert, net)) = test {
                let addr = std::net::Ipv4Addr::from(net.addr);
                add(invert, format!("{option} {addr}/{}", net.bits));
            }
        }
        for (option, test) in [("-i", self.input), ("-o", self.output)] {
            if let Some((invert, name)) = test {
                add(invert, format!("{option} {name}"));
            }
        }
        if let Some((invert, protocol)) = self.protocol {
            add(invert, format!("-p {protocol}"));
        }
        if let Some(invert) = self.fragment {
            add(invert, "-f".to_owned());
        }
        if let (Some(ports), Some((_, protocol))) = (self.ports, self.protocol) {
            add(false, format!("-m {}", if protocol == 6 { "tcp" } else { "udp" }));
            let option = if ports.destination { "--dport" } else { "--sport" };
            add(ports.invert, format!("{option} {}:{}", ports.low, ports.high));
        }
        if let Some((invert, (value, mask))) = self.mark {
            add(false, "-m mark".to_owned());
            add(invert, format!("--mark {value}/{mask}"));
        }
        if self.opaque {
            add(false, "-m geoip --source-country DE".to_owned());
        }
        match self.action {
            Action::None => {}
            Action::Accept => add(false, "-j ACCEPT".to_owned()),
            Action::Drop => add(false, "-j DROP".to_owned()),
            Action::Return => add(false, "-j RETURN".to_owned()),
            Action::Log => add(false, "-j LOG --log-prefix \"seen: \"".to_owned()),
            Action::Mark(value, mask) => add(false, format!("-j MARK --set-xmark {value}/{mask}")),
            Action::Jump(to) => add(false, format!("-j {}", chain_name(to))),
            Action::Goto(to) => add(false, format!("-g {}", chain_name(to))),
        }
        text
    }
}
