//! [`Shape`]: what a comparison is in the terms of every rule: a test of addresses, devices or the protocol that rules hold
//! themselves, ranges of ports, and a predicate. Layouts find rules by them, and what reads rules without packets
//! reasons with them.
//!
//! Contract: each says of a packet what the comparison says, as far as it says anything: tests and ports of all packets,
//! predicates of packets that are no fragments.

use super::load::connection::state_number;
use super::read::is_key;
use super::scope::Scope;
use super::set::Span;
use super::test::Test;
use super::word::{Word, ones};
use crate::expr::{Expr, Field, Operator, Payload};
use conntrack::{CtState, States};
use rules::Outcome;
use rules::ext::PortRanges;
use rules::model::{Family, HeaderTests, IfaceTest, MaskedAddr, ProtocolTest};
use rules::predicate::{self, Predicate};

/// What a comparison is besides what it asks of a packet.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// What a rule can hold itself.
    pub header: Option<HeaderTest>,
    /// Ranges of ports.
    pub ports: Option<PortRanges>,
    /// What it asks, as data.
    pub predicate: Option<Predicate>,
    /// It holds for every packet of the family.
    pub always: bool,
}

/// A test that a rule holds itself.
#[derive(Debug, Clone)]
pub(crate) enum HeaderTest {
    /// Of the source address.
    Source(MaskedAddr),
    /// Of the destination address.
    Destination(MaskedAddr),
    /// Of the protocol.
    Protocol(ProtocolTest),
    /// Of the input device.
    Input(IfaceTest),
    /// Of the output device.
    Output(IfaceTest),
}

impl HeaderTest {
    /// Puts it among tests, where there is no other of its kind; says whether.
    pub(crate) fn put(self, to: &mut HeaderTests) -> bool {
        fn one<T>(place: &mut Option<T>, test: T) -> bool {
            let free = place.is_none();
            if free {
                *place = Some(test);
            }
            free
        }
        match self {
            Self::Source(test) => one(&mut to.source, test),
            Self::Destination(test) => one(&mut to.destination, test),
            Self::Protocol(test) => one(&mut to.protocol, test),
            Self::Input(test) => one(&mut to.input, test),
            Self::Output(test) => one(&mut to.output, test),
        }
    }
}

/// What of a packet a field is to predicates.
#[derive(Debug, Clone, Copy)]
struct Named {
    field: predicate::Field,
    /// How far the number lies above the field's lowest bit.
    shift: u32,
    part: Part,
}

/// What has to be there for a field to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Network,
    Transport,
    Protocol,
    Connection,
}

impl Shape {
    /// The shape of a comparison of an expression's value.
    pub(crate) fn of(left: &Expr, test: Test, invert: bool, scope: &Scope<'_>) -> Self {
        if is_key(left, "meta", "nfproto") {
            return Self::family(test, invert, scope.family);
        }
        if is_key(left, "ct", "state") {
            let states = states(test, invert).map_or(Predicate::NEVER, Predicate::State);
            return Self { predicate: Some(states), ..Self::default() };
        }
        let header = header(left, test, invert, scope);
        let devices = match &header {
            Some(HeaderTest::Input(test)) => Some(Predicate::Input(test.clone())),
            Some(HeaderTest::Output(test)) => Some(Predicate::Output(test.clone())),
            _ => None,
        };
        let predicate = devices.or_else(|| predicate(left, test, invert));
        Self { header, ports: ports(left, test, invert), predicate, always: false }
    }

    /// The shape of a comparison of the packet's family.
    pub(crate) fn family(test: Test, invert: bool, family: Family) -> Self {
        let number = if family == Family::Ipv6 { 10 } else { 2 };
        let always = test.of(Word::known(number)).invert(invert) == Outcome::YES;
        let predicate = Some(if always { Predicate::ALWAYS } else { Predicate::NEVER });
        Self { predicate, always, ..Self::default() }
    }

    /// The shape of a comparison of the upper layer's protocol.
    pub(crate) fn upper(protocol: u8) -> Self {
        let test = ProtocolTest { number: protocol, invert: false };
        Self {
            header: Some(HeaderTest::Protocol(test)).filter(|_| protocol > 0),
            predicate: Some(Predicate::is(predicate::Field::Protocol, protocol.into())),
            ..Self::default()
        }
    }
}

/// The states that a test of the state matches, if any.
pub(crate) fn states(test: Test, invert: bool) -> Option<States> {
    let holds =
        |state: &CtState| test.of(Word::known(state_number(*state))).invert(invert) == Outcome::YES;
    CtState::ALL.into_iter().filter(holds).map(States::of).reduce(States::or)
}

/// The names of the header and the field that an expression is.
fn payload(left: &Expr) -> Option<(&'static str, &'static str)> {
    let Expr::Field(field) = left else { return None };
    match &**field {
        Field::Payload(Payload::Field(header, field)) => Some((header.name, field.name)),
        _ => None,
    }
}

fn header(left: &Expr, test: Test, invert: bool, scope: &Scope<'_>) -> Option<HeaderTest> {
    let Test::Within(low, high) = test else { return None };
    let bits = if scope.family == Family::Ipv6 { 128 } else { 32 };
    match payload(left) {
        Some(("ip" | "ip6", "saddr")) => {
            return Some(HeaderTest::Source(masked(low, high, bits, invert)?));
        }
        Some(("ip" | "ip6", "daddr")) => {
            return Some(HeaderTest::Destination(masked(low, high, bits, invert)?));
        }
        Some(_) => return None,
        None => {}
    }
    if is_key(left, "meta", "l4proto") {
        let number = u8::try_from(low).ok().filter(|number| low == high && *number > 0)?;
        return Some(HeaderTest::Protocol(ProtocolTest { number, invert }));
    }
    let is = |key| is_key(left, "meta", key);
    if is("oifname") || is("oif") {
        return Some(HeaderTest::Output(device(low, high, invert)?));
    }
    if is("iifname") || is("iif") {
        return Some(HeaderTest::Input(device(low, high, invert)?));
    }
    None
}

/// The mask of a span of addresses that is a prefix.
fn masked(low: u128, high: u128, bits: u32, invert: bool) -> Option<MaskedAddr> {
    let host = low ^ high;
    let is_prefix = host & host.wrapping_add(1) == 0 && low & host == 0 && high <= ones(bits);
    is_prefix.then(|| {
        let left = |number: u128| (number << (128 - bits)).to_be_bytes();
        MaskedAddr { addr: left(low), mask: left(ones(bits) & !host), invert }
    })
}

/// The test of a device's name, or of its beginning.
fn device(low: u128, high: u128, invert: bool) -> Option<IfaceTest> {
    let bytes = low.to_be_bytes();
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
    let name = std::str::from_utf8(&bytes[..len]).ok()?;
    let prefix = low != high;
    let whole = !prefix || high == low | ones(128 - 8 * len as u32);
    whole.then(|| IfaceTest { name: name.into(), prefix, invert })
}

fn ports(left: &Expr, test: Test, invert: bool) -> Option<PortRanges> {
    let Test::Within(low, high) = test else { return None };
    let (header, field) = payload(left)?;
    let protocol = match header {
        "tcp" => 6,
        "udp" => 17,
        _ => return None,
    };
    let (low, high) = (u16::try_from(low).ok()?, u16::try_from(high.min(0xffff)).ok()?);
    if invert || low > high {
        return None;
    }
    let all = (0, u16::MAX);
    match field {
        "sport" => Some(PortRanges { protocol, source: (low, high), destination: all }),
        "dport" => Some(PortRanges { protocol, source: all, destination: (low, high) }),
        _ => None,
    }
}

/// What predicates call a field.
fn named(left: &Expr) -> Option<Named> {
    use predicate::Field as F;
    let of = |field, part| Some(Named { field, shift: 0, part });
    let (header, field) = match payload(left) {
        Some(names) => names,
        None if is_key(left, "meta", "mark") => return of(F::Mark, Part::Network),
        None if is_key(left, "meta", "length") => return of(F::Length, Part::Network),
        None if is_key(left, "meta", "pkttype") => return of(F::PacketType, Part::Network),
        None if is_key(left, "meta", "l4proto") => return of(F::Protocol, Part::Protocol),
        None if is_key(left, "ct", "mark") => return of(F::ConnMark, Part::Connection),
        None => return None,
    };
    match (header, field) {
        ("ip" | "ip6", "saddr") => of(F::Source, Part::Network),
        ("ip" | "ip6", "daddr") => of(F::Destination, Part::Network),
        ("ip", "protocol") => of(F::Protocol, Part::Network),
        ("ip", "ttl") | ("ip6", "hoplimit") => of(F::Ttl, Part::Network),
        ("ip" | "ip6", "dscp") => Some(Named { field: F::Tos, shift: 2, part: Part::Network }),
        ("tcp" | "udp" | "udplite" | "sctp" | "dccp" | "th", "sport") => {
            of(F::SourcePort, Part::Transport)
        }
        ("tcp" | "udp" | "udplite" | "sctp" | "dccp" | "th", "dport") => {
            of(F::DestinationPort, Part::Transport)
        }
        ("tcp", "flags") => of(F::TcpFlags, Part::Transport),
        ("icmp" | "icmpv6", "type") => of(F::IcmpType, Part::Transport),
        ("icmp" | "icmpv6", "code") => of(F::IcmpCode, Part::Transport),
        _ => None,
    }
}

impl Named {
    /// The number of the field is within a span.
    fn within(self, Span { low, high }: Span) -> Predicate {
        let below = ones(self.shift);
        let (low, high) = (low << self.shift, high.saturating_mul(below + 1) | below);
        Predicate::Range { field: self.field, low, high }
    }

    fn test(self, test: Test) -> Predicate {
        let field = self.field;
        match test {
            Test::Within(low, high) => self.within(Span { low, high }),
            Test::Masked { value, mask } => {
                Predicate::Masked { field, value: value << self.shift, mask: mask << self.shift }
            }
            Test::Any(mask) => {
                Predicate::Masked { field, value: 0, mask: mask << self.shift }.inverted(true)
            }
        }
    }

    /// What has to be there, and what is asked of it.
    fn there(self, asked: Predicate) -> Predicate {
        match self.part {
            Part::Network => asked,
            Part::Transport => Predicate::of_header([asked]),
            Part::Protocol => {
                let any = Predicate::Range { field: self.field, low: 0, high: 255 };
                Predicate::All(vec![any, asked])
            }
            Part::Connection => Predicate::All(vec![Predicate::has_connection(), asked]),
        }
    }
}

fn predicate(left: &Expr, test: Test, invert: bool) -> Option<Predicate> {
    if let (Expr::Binary(Operator::And, pair), Test::Within(low, high)) = (left, test) {
        let (named, mask) = (named(&pair.0)?, pair.1.as_number()?);
        let masked = Test::Masked { value: low, mask };
        return (low == high).then(|| named.there(named.test(masked).inverted(invert)));
    }
    let named = named(left)?;
    Some(named.there(named.test(test).inverted(invert)))
}

/// The predicate of being among the elements of a set, each a span for each part of what is looked up.
pub(crate) fn member(left: &Expr, elements: &[&[Span]], invert: bool) -> Option<Predicate> {
    let parts = match left {
        Expr::Concat(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    if is_key(left, "ct", "state") {
        let of = |span: &Span| states(Test::Within(span.low, span.high), false);
        let all = elements.iter().filter_map(|key| of(key.first()?)).reduce(States::or);
        return Some(all.map_or(Predicate::NEVER, Predicate::State).inverted(invert));
    }
    let named: Vec<Named> = parts.iter().map(named).collect::<Option<_>>()?;
    let element = |key: &&[Span]| {
        let spans = named.iter().zip(key.iter());
        Predicate::All(spans.map(|(named, span)| named.within(*span)).collect())
    };
    let among = Predicate::Any(elements.iter().map(element).collect()).inverted(invert);
    let there = named.iter().map(|named| named.there(Predicate::ALWAYS));
    Some(Predicate::All(there.chain([among]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::probe::{Frame, craft, lowered};
    use packet::craft::Message;
    use packet::tcp::Flags;
    use rules::model::Action;

    fn rule(text: &str) -> rules::model::Rule {
        let text = format!("table ip t {{ chain c {{ {text}; }}; }}");
        let rule = &lowered(&text, Family::Ipv4).ruleset.tables[0].chains[0].rules[0];
        rules::model::Rule::clone(rule)
    }

    #[test]
    fn plain_tests_are_the_rules_own() {
        let rule = rule(
            "iifname \"eth*\" oif != \"lo\" ip saddr 10.0.0.0/8 ip daddr != 1.2.3.4 tcp dport 22 accept",
        );
        let tests = rule.header.as_ref().map(|header| header.tests()).unwrap_or_default();
        assert_eq!(tests.source.map(|test| test.text(Family::Ipv4)).as_deref(), Some("10.0.0.0/8"));
        assert!(tests.destination.is_some_and(|test| test.invert));
        assert!(tests.input.is_some_and(|test| test.prefix && &*test.name == "eth"));
        assert!(tests.output.is_some_and(|test| test.invert && !test.prefix));
        assert_eq!(tests.protocol.map(|test| test.number), Some(6));
        let [ports] = &rule.matches[..] else { panic!("{rule:?}") };
        assert_eq!(ports.body.port_ranges().map(|ranges| ranges.destination), Some((22, 22)));
        assert!(matches!(rule.action, Action::Accept));
    }

    #[test]
    fn a_limit_comes_before_what_stands_after_it() {
        let rule = rule("limit rate 1/second ip saddr 10.0.0.1 drop");
        assert!(rule.header.is_none());
        assert_eq!(rule.matches.len(), 2);
    }

    /// The values of a packet from 10.0.0.1:1000 to 10.0.0.2:22 with a SYN.
    fn values() -> predicate::Values {
        use predicate::Field as F;
        let mut values = predicate::Values::default();
        for (field, value) in [
            (F::Source, 0x0a00_0001),
            (F::Destination, 0x0a00_0002),
            (F::Protocol, 6),
            (F::SourcePort, 1000),
            (F::DestinationPort, 22),
            (F::TcpFlags, 2),
            (F::IcmpType, 3),
            (F::IcmpCode, 232),
            (F::Length, 40),
            (F::Ttl, 64),
        ] {
            values.set(field, value);
        }
        (values.input, values.output) = ("eth0".to_owned(), "eth1".to_owned());
        values
    }

    #[test]
    fn predicates_say_what_the_matches_say() {
        let syn = Frame::of(&craft("10.0.0.1", "10.0.0.2", Message::tcp(1000, 22, Flags::SYN)));
        for text in [
            "tcp dport 22",
            "tcp dport != 22",
            "tcp dport { 22, 80-90 }",
            "tcp dport != { 22, 80-90 }",
            "tcp sport > 1000",
            "tcp flags syn",
            "tcp flags & (syn|ack) == syn",
            "tcp flags == syn|ack",
            "ip saddr 10.0.0.0-10.0.0.7",
            "ip saddr { 10.0.0.0/8, 192.168.0.0/16 }",
            "ip saddr . tcp dport { 10.0.0.1 . 22 }",
            "ip saddr . tcp dport != { 10.0.0.1 . 22 }",
            "ip ttl < 64",
            "ip dscp cs1",
            "ip dscp != cs1",
            "meta length 40",
            "meta l4proto { tcp, udp }",
            "ct state new,established",
            "ct state != { new, established }",
            "meta mark & 1 == 0",
            "icmp type echo-request",
        ] {
            let (rule, says) = (rule(text), syn.says(text));
            let matches = rule.matches.iter().map(|used| used.body.predicate());
            let header = rule.header.iter().map(|header| header.predicate(Family::Ipv4));
            let all: Option<Vec<Predicate>> = matches.chain(header).collect();
            let all = Predicate::All(all.unwrap_or_else(|| panic!("{text} has no predicate")));
            assert_eq!(Outcome::from_bool(all.holds(&values())), says, "{text}");
        }
    }
}
