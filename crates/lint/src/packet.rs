//! A packet of a region in bytes and in the words of a packet spec, and the reference walk of it: what every finding is
//! held to.

use conntrack::CtState;
use packet::craft::{Addresses, Craft, Ethernet, Fragment, Message};
use packet::tcp::Flags;
use packet::{Checksums, L3, Link, Mark, Packet, icmpv4, icmpv6, tcp, udp};
use rules::eval::{Alive, By, Memories, Observer, RuleRef, Verdict, Verdicts, walk};
use rules::ipset::Sets;
use rules::model::{Family, Hook, Ruleset};
use rules::predicate::{Field, Form, Values};
use rules::{Iface, KnownFlow, Outcome, Request, Transit, protocol_name};

use crate::around::{connection, host_of, tracker_of};
use crate::space::address;

/// Protocol numbers that IPv6 takes for extension headers, or for none: no packet is of such a protocol.
const OF_IPV6_HEADERS: [u8; 8] = [0, 43, 44, 50, 51, 60, 59, 135];

/// Longest packet that is made.
const LONGEST: usize = 65_535;

/// Where a later fragment lies in its packet.
const LATER: u16 = 1480;

/// What a walk of one table said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// The verdict and what gave it, if one is certain.
    pub verdict: Option<(Verdict, Option<By>)>,
    /// Every verdict that is possible, with what gives it if that is one thing alone.
    pub possible: Vec<(Verdict, Option<By>)>,
    /// Rules that certainly matched, in the order of evaluation.
    pub hits: Vec<RuleRef>,
    /// How many rules it came to.
    pub rules: usize,
    /// What became of the packet itself, if that is certain.
    pub after: Option<After>,
}

/// A packet after a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct After {
    /// Fields that rules may have changed.
    pub numbers: Vec<(Field, u128)>,
    /// The packet is not to be tracked.
    pub untracked: bool,
}

impl Observer for Walked {
    fn rule(&mut self, _at: RuleRef, _outcome: Outcome, _alive: Alive, _: &Transit<'_, '_>) {
        self.rules += 1;
    }

    fn hit(&mut self, at: RuleRef, certain: bool, _transit: &Transit<'_, '_>) {
        if certain {
            self.hits.push(at);
        }
    }
}

/// Walks a table's chain at a hook with such a packet, before which there was none; `None` where no such packet can be
/// made, or the host's stack drops it before any rule.
#[must_use]
pub fn walked(ruleset: &Ruleset, table: usize, hook: Hook, values: &Values) -> Option<Walked> {
    walked_after(&mut Memories::of(ruleset), ruleset, (table, hook), values)
}

/// Walks a chain as [`walked`] does, after the packets that these states remember.
pub fn walked_after(
    memories: &mut Memories,
    ruleset: &Ruleset,
    place: (usize, Hook),
    values: &Values,
) -> Option<Walked> {
    walked_among(memories, None, ruleset, place, values)
}

/// Walks a chain as [`walked_after`] does, with the host's sets where they are known.
pub fn walked_among(
    memories: &mut Memories,
    sets: Option<&mut Sets>,
    ruleset: &Ruleset,
    (table, hook): (usize, Hook),
    values: &Values,
) -> Option<Walked> {
    let craft = craft(ruleset.family, values)?;
    let mut frame = craft.frame();
    let link = if values.has_mac { Link::Ethernet } else { Link::Raw };
    let len = frame.len();
    let mut packet = Packet::parse(&mut frame, len, link, Checksums::Ignore);
    // What the stack drops no rule ever sees.
    if matches!(packet.headers().l3, L3::Fault(_)) {
        return None;
    }
    let host = host_of(ruleset.family, values);
    let mut tracker = tracker_of(values);
    let ct = connection(tracker.as_mut(), craft.addresses, values);
    let mut transit = Transit::new(&mut packet, ruleset.family, hook, &host);
    transit.input = iface(&values.input);
    transit.output = iface(&values.output);
    transit.mark = Mark { value: values.number(Field::Mark) as u32, unknown: 0 };
    transit.ct = ct;
    transit.sets = sets;
    let mut seen = Walked::default();
    let verdicts = walk(ruleset, table, &mut transit, Alive::Certain, memories, &mut seen);
    seen.verdict = verdicts.only();
    seen.possible = possible(&verdicts);
    seen.after = after(&transit, values);
    Some(seen)
}

fn possible(verdicts: &Verdicts) -> Vec<(Verdict, Option<By>)> {
    let all = [Verdict::Accept, Verdict::Drop, Verdict::Reject].into_iter();
    let is_possible = all.filter(|verdict| verdicts.may_be(*verdict));
    let given = |verdict| {
        let alone = verdicts.or_by(verdict).is_none();
        (verdict, verdicts.by(verdict).filter(|_| alone))
    };
    if verdicts.is_given_up() { Vec::new() } else { is_possible.map(given).collect() }
}

fn after(transit: &Transit<'_, '_>, values: &Values) -> Option<After> {
    let (mark, tos, ttl) = (transit.mark, transit.tos().known()?, transit.ttl().known()?);
    let mut numbers = vec![(Field::Mark, mark.value.into()), (Field::Tos, tos.into())];
    if values.number(Field::Ttl) != 0 {
        numbers.push((Field::Ttl, ttl.into()));
    }
    match transit.ct.marked() {
        KnownFlow::Flow(flow) => numbers.push((Field::ConnMark, flow.mark.into())),
        KnownFlow::None => {}
        KnownFlow::Unknown if !values.has_flow => {}
        KnownFlow::Unknown => return None,
    }
    let untracked = transit.ct.request == Request::Untracked;
    (mark.unknown == 0).then_some(After { numbers, untracked })
}

fn iface(name: &str) -> Iface<'_> {
    if name.is_empty() { Iface::Absent } else { Iface::Named(name) }
}

/// Whether one address is said to be of two types.
fn contradicts_itself(values: &Values) -> bool {
    let types = [Field::SourceType, Field::DestinationType].map(|field| values.number(field));
    values.number(Field::Source) == values.number(Field::Destination)
        && types[0] != types[1]
        && !types.contains(&0)
}

fn craft(family: Family, values: &Values) -> Option<Craft> {
    let protocol = u8::try_from(values.number(Field::Protocol)).ok()?;
    let is_header = family == Family::Ipv6 && OF_IPV6_HEADERS.contains(&protocol);
    if is_header || values.form == Form::Bare || contradicts_itself(values) {
        return None;
    }
    let addresses = match family {
        Family::Ipv6 => Addresses::V6 {
            source: values.number(Field::Source).to_be_bytes(),
            destination: values.number(Field::Destination).to_be_bytes(),
        },
        _ => Addresses::V4 {
            source: (values.number(Field::Source) as u32).to_be_bytes(),
            destination: (values.number(Field::Destination) as u32).to_be_bytes(),
        },
    };
    let mut craft = Craft::new(addresses, message(family, protocol, values));
    let [.., a, b, c, d, e, f] = values.number(Field::SourceMac).to_be_bytes();
    let source = [a, b, c, d, e, f];
    let destination = link_destination(values.number(Field::PacketType))?;
    craft.ethernet =
        values.has_mac.then(|| Ethernet { source, destination, ..Ethernet::default() });
    craft.tos = values.number(Field::Tos) as u8;
    craft.ttl = Some(values.number(Field::Ttl) as u8).filter(|ttl| *ttl > 0).unwrap_or(craft.ttl);
    if values.form == Form::LaterFragment {
        craft.fragment = Some(Fragment { offset: LATER, more: false });
        craft.payload_len = 32;
    }
    if values.number(Field::Length) > 0 {
        let len =
            usize::try_from(values.number(Field::Length)).ok().filter(|len| *len <= LONGEST)?;
        let header = craft.header_len();
        craft.payload_len = len.checked_sub(header)?;
    }
    Some(craft)
}

/// An address of the link layer for a packet to whom a type says.
fn link_destination(kind: u128) -> Option<[u8; 6]> {
    match kind {
        0 => Some(Ethernet::default().destination),
        1 => Some([0xff; 6]),
        2 => Some([1, 0, 0x5e, 0, 0, 1]),
        // Which host that is the link alone tells.
        _ => None,
    }
}

fn message(family: Family, protocol: u8, values: &Values) -> Message {
    let [source, destination] = ports(values);
    match protocol {
        tcp::PROTOCOL => {
            Message::tcp(source, destination, Flags(values.number(Field::TcpFlags) as u8))
        }
        udp::PROTOCOL => Message::udp(source, destination),
        icmp if icmp == icmp_of(family) => Message::Icmp {
            kind: values.number(Field::IcmpType) as u8,
            code: values.number(Field::IcmpCode) as u8,
            id: 1,
            sequence: 1,
        },
        _ => {
            let mut header = vec![0; 12];
            header[..2].copy_from_slice(&source.to_be_bytes());
            header[2..4].copy_from_slice(&destination.to_be_bytes());
            Message::Other { protocol, header }
        }
    }
}

fn icmp_of(family: Family) -> u8 {
    if family == Family::Ipv6 { icmpv6::PROTOCOL } else { icmpv4::PROTOCOL }
}

fn ports(values: &Values) -> [u16; 2] {
    [Field::SourcePort, Field::DestinationPort].map(|field| values.number(field) as u16)
}

/// The packet as `tamis why --packet` takes it; `None` where it has no words.
#[must_use]
pub fn spec(family: Family, hook: Hook, values: &Values) -> Option<String> {
    spec_of(family, hook, values, true)
}

/// Writes a packet spec without path and output interface, which routes find.
pub(crate) fn spec_to_route(family: Family, hook: Hook, values: &Values) -> Option<String> {
    let mut values = values.clone();
    values.output.clear();
    spec_of(family, hook, &values, false)
}

fn spec_of(family: Family, hook: Hook, values: &Values, names_way: bool) -> Option<String> {
    craft(family, values).filter(|_| values.has_mac)?;
    let has_words = [Field::ConnMark, Field::Translated, Field::PacketType];
    if has_words.iter().any(|field| values.number(*field) != 0) {
        return None;
    }
    let protocol = values.number(Field::Protocol) as u8;
    let [source, destination] =
        [Field::Source, Field::Destination].map(|field| address(family, values.number(field)));
    let with_port = |address: String, port: u16| match family {
        Family::Ipv6 => format!("[{address}]:{port}"),
        _ => format!("{address}:{port}"),
    };
    let name = protocol_name(protocol).map_or_else(|| protocol.to_string(), str::to_owned);
    let [from, to] = ports(values);
    let between =
        format!("{} > {}", with_port(source.clone(), from), with_port(destination.clone(), to));
    let packet = match protocol {
        tcp::PROTOCOL => {
            let flags = flags(values.number(Field::TcpFlags) as u8);
            format!("tcp {between} {flags}")
        }
        udp::PROTOCOL => format!("udp {between}"),
        icmp if icmp == icmp_of(family) => {
            let [kind, code] = [Field::IcmpType, Field::IcmpCode].map(|field| values.number(field));
            let name = if family == Family::Ipv6 { "icmpv6" } else { "icmp" };
            format!("{name} {source} > {destination} {kind}/{code}")
        }
        _ if from == 0 && to == 0 => format!("{name} {source} > {destination}"),
        _ => format!("{name} {between}"),
    };
    Some(with_keys(packet, hook, values, names_way))
}

fn with_keys(packet: String, hook: Hook, values: &Values, names_way: bool) -> String {
    let mut words = Vec::new();
    for (key, name) in [("in", &values.input), ("out", &values.output)] {
        if !name.is_empty() {
            words.push(format!("{key}={name}"));
        }
    }
    words.push(packet);
    if values.number(Field::SourceMac) != 0x0200_0000_0001 {
        let bytes = values.number(Field::SourceMac).to_be_bytes();
        let hex: Vec<String> = bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect();
        words.push(format!("mac={}", hex.join(":")));
    }
    if values.form == Form::LaterFragment {
        words.push(format!("frag={LATER}"));
    }
    if values.number(Field::Mark) != 0 {
        words.push(format!("mark={:#x}", values.number(Field::Mark)));
    }
    if values.number(Field::Tos) != 0 {
        words.push(format!("tos={:#04x}", values.number(Field::Tos)));
    }
    if values.number(Field::Length) != 0 {
        words.push(format!("len={}", values.number(Field::Length)));
    }
    if values.number(Field::Ttl) != 0 {
        // On the way through the host FORWARD sees one less than the packet had.
        let lowered = u128::from(hook == Hook::Forward);
        words.push(format!("ttl={}", values.number(Field::Ttl) + lowered));
    }
    let path = match hook {
        Hook::Input => Some("input"),
        Hook::Forward => Some("forward"),
        Hook::Output => Some("output"),
        Hook::Prerouting | Hook::Postrouting | Hook::Brouting => None,
    };
    words.extend(path.filter(|_| names_way).map(|path| format!("path={path}")));
    if values.state != CtState::New {
        words.push(format!("ctstate={}", values.state.name()));
    }
    words.join(" ")
}

fn flags(bits: u8) -> String {
    let names: Vec<&str> =
        Flags::NAMES.iter().filter(|(flag, _)| bits & flag.0 != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(",") }
}
