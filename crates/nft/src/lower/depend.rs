//! The comparisons that a listing leaves out because others imply them: on which packets a rule is read depends on them.
//!
//! `tcp dport` reads packets of TCP alone, and in family inet `ip saddr` packets of IPv4; `th dport` and raw bits have no such
//! comparison. Source: nftables `src/payload.c` (`payload_gen_dependency`); held to the bytecode of nftables' own tests.

use super::compare::{self, Tested};
use super::load::meta::Meta;
use super::load::payload::Payload;
use super::shape::Shape;
use super::test::Test;
use crate::expr::{self, Expr, Field, Part, Space};
use crate::family::Family;
use crate::headers::{Base, Header, PAYLOAD};
use crate::stmt::{Op, Reject, Stmt};
use crate::types::{ICMP_CODE, ICMPV6_CODE};
use rules::model::Family as Packets;

/// Numbers of the families of packets.
const IPV4: u128 = 2;
const IPV6: u128 = 10;
const TCP: u128 = 6;
/// EtherTypes: of packets, and of a frame with a VLAN's tag.
const ETHERTYPE_IPV4: u128 = 0x800;
const ETHERTYPE_IPV6: u128 = 0x86dd;
const VLAN: u128 = 0x8100;

/// What a rule has said so far of the headers that its packets have.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The family of its packets.
    network: Option<u128>,
    /// The protocol of the upper layer.
    upper: Option<u128>,
    /// What is needed at the beginning of the rule.
    at_start: Vec<Need>,
    /// The input device is Ethernet.
    ether: bool,
    /// The type of an ICMP message was compared.
    typed: bool,
    /// The frame has a VLAN's tag.
    tagged: bool,
    /// `meta protocol` says the family: where nft's tables see frames.
    by_protocol: bool,
}

/// A comparison that a statement needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The family of the packet.
    Network(u128),
    /// The EtherType of a family of packets, at this bit of the frame.
    EtherType(u128, u32),
    /// The protocol of its upper layer.
    Upper(u128),
    /// An input device that is Ethernet.
    Ether,
    /// The type of an ICMP message.
    Message(u128),
    /// One of two types of an ICMP message that differ by a bit: a type, and the other bits.
    Echo(u128, u128),
    /// A VLAN's tag.
    Tagged,
}

impl Need {
    /// Makes the comparison, for packets of a family, with its name.
    pub(crate) fn test(self, packets: Packets) -> (&'static str, Box<dyn Tested>) {
        match self {
            Self::Network(family) => {
                let shape = Shape::family(Test::is(family), false, packets);
                let test = compare::equal(Box::new(Meta::Family), family, "meta nfproto", shape);
                ("meta nfproto", test)
            }
            Self::EtherType(family, offset) => {
                let number = if family == IPV6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
                let kind = Box::new(Payload { base: Base::Link, offset, bits: 16 });
                ("ether type", compare::equal(kind, number, "ether type", Shape::default()))
            }
            Self::Upper(protocol) => {
                let shape = u8::try_from(protocol).map_or_else(|_| Shape::default(), Shape::upper);
                let test = compare::equal(Box::new(Meta::Upper), protocol, "meta l4proto", shape);
                ("meta l4proto", test)
            }
            Self::Ether => {
                let input = Box::new(Meta::InputType);
                ("meta iiftype", compare::equal(input, 1, "meta iiftype ether", Shape::default()))
            }
            Self::Message(kind) => {
                let first = Payload { base: Base::Transport, offset: 0, bits: 8 };
                let first = Box::new(first);
                ("icmp type", compare::equal(first, kind, "icmp type", Shape::default()))
            }
            Self::Echo(kind, mask) => {
                let first = Payload { base: Base::Transport, offset: 0, bits: 8 };
                ("icmp type", compare::masked(Box::new(first), kind, mask, "icmp type"))
            }
            Self::Tagged => {
                let kind = Box::new(Payload { base: Base::Link, offset: 96, bits: 16 });
                ("ether type", compare::equal(kind, VLAN, "ether type 8021q", Shape::default()))
            }
        }
    }
}

impl Known {
    /// What is known of packets in a family of tables.
    pub(crate) fn of(family: Family) -> Self {
        let network = match family {
            Family::Ip => Some(IPV4),
            Family::Ip6 => Some(IPV6),
            _ => None,
        };
        let by_protocol = matches!(family, Family::Bridge | Family::Netdev);
        Self { network, by_protocol, ..Self::default() }
    }

    /// What a statement needs that stands at the beginning of its rule, wherever it stands itself.
    pub(crate) fn needs_first(&mut self, stmt: &Stmt) -> Vec<Need> {
        let mut needs = Vec::new();
        match stmt {
            Stmt::Reject(Reject::Reset) => self.upper(TCP, &mut needs),
            Stmt::Reject(Reject::Code(code)) if code.ty == &ICMP_CODE => {
                needs.extend(self.network_before(IPV4));
            }
            Stmt::Reject(Reject::Code(code)) if code.ty == &ICMPV6_CODE => {
                needs.extend(self.network_before(IPV6));
            }
            _ => {}
        }
        needs
    }

    /// What a statement needs, and what is known after it.
    pub(crate) fn needs(&mut self, stmt: &Stmt) -> Vec<Need> {
        let mut needs = Vec::new();
        match stmt {
            Stmt::Compare(compare) => {
                self.expr(&compare.left, &mut needs);
                if compare.op == Op::Equal {
                    self.learn(&compare.left, &compare.right);
                    self.typed |= is_message(&compare.left) && has_value(&compare.right);
                }
            }
            Stmt::Vmap(key, _) => self.expr(key, &mut needs),
            Stmt::Mangle(key, value) => {
                self.expr(key, &mut needs);
                self.expr(value, &mut needs);
            }
            Stmt::Nat(nat) => {
                nat.addr.iter().chain(&nat.port).for_each(|expr| self.expr(expr, &mut needs));
            }
            Stmt::Forward(forward) => {
                forward.addr.iter().for_each(|expr| self.expr(expr, &mut needs));
            }
            Stmt::Update(update) => self.expr(&update.element.key, &mut needs),
            Stmt::Named(named) => self.expr(&named.name, &mut needs),
            _ => {}
        }
        needs
    }

    /// What the statement of the last [`Known::needs`] needs at the beginning of the rule.
    pub(crate) fn needs_at_start(&mut self) -> Vec<Need> {
        std::mem::take(&mut self.at_start)
    }

    fn expr(&mut self, expr: &Expr, needs: &mut Vec<Need>) {
        match expr {
            Expr::Field(field) => self.field(field, needs),
            Expr::Concat(parts) => parts.iter().for_each(|part| self.expr(part, needs)),
            Expr::Binary(_, pair) => {
                self.expr(&pair.0, needs);
                self.expr(&pair.1, needs);
            }
            Expr::Map(pair) => self.expr(&pair.0, needs),
            _ => {}
        }
    }

    fn field(&mut self, field: &Field, needs: &mut Vec<Need>) {
        match field {
            Field::Payload(expr::Payload::Field(header, field)) => {
                self.header(header, needs);
                self.message(header.name, field.name, needs);
            }
            Field::Part(Part::Exists(space, _) | Part::Field(space, ..)) => match space {
                Space::Extension => self.network_at_start(IPV6),
                Space::Ip => self.network_at_start(IPV4),
                Space::Tcp | Space::Sctp => {}
            },
            Field::Hash(hash) => hash.of.iter().for_each(|of| self.expr(of, needs)),
            Field::Inner(tunnel, _) => self.header(tunnel, needs),
            _ => {}
        }
    }

    fn header(&mut self, header: &Header, needs: &mut Vec<Need>) {
        match header.base {
            Base::Link => {
                if !std::mem::replace(&mut self.ether, true) {
                    needs.push(Need::Ether);
                }
                if header.name == "vlan" && !std::mem::replace(&mut self.tagged, true) {
                    needs.push(Need::Tagged);
                }
            }
            Base::Network => match header.name {
                "ip" => self.network(IPV4, needs),
                "ip6" => self.network(IPV6, needs),
                _ => {}
            },
            Base::Transport if header.number != 0 => {
                match header.name {
                    "icmp" | "igmp" => self.network(IPV4, needs),
                    "icmpv6" => self.network(IPV6, needs),
                    _ => {}
                }
                self.upper(header.number.into(), needs);
            }
            Base::Inner if matches!(header.name, "vxlan" | "geneve") => self.upper(17, needs),
            _ => {}
        }
    }

    fn network(&mut self, family: u128, needs: &mut Vec<Need>) {
        if self.network.is_none() {
            self.network = Some(family);
            needs.push(Need::Network(family));
        }
    }

    /// What says the family of packets before all else in a rule: in a rule that reads frames, their type.
    fn network_before(&mut self, family: u128) -> Option<Need> {
        let need = match (self.tagged, self.ether) {
            (true, _) => Need::EtherType(family, 128),
            (false, true) => Need::EtherType(family, 96),
            (false, false) => Need::Network(family),
        };
        self.network.replace(self.network.unwrap_or(family)).is_none().then_some(need)
    }

    /// nft puts what an extension header or an option needs before all else, counters included.
    fn network_at_start(&mut self, family: u128) {
        let other = self.network.filter(|known| *known != family).map(|_| Need::Network(family));
        let need = self.network_before(family).or(other);
        self.at_start.extend(need);
    }

    fn upper(&mut self, protocol: u128, needs: &mut Vec<Need>) {
        if self.upper != Some(protocol) {
            self.upper = Some(protocol);
            needs.push(Need::Upper(protocol));
        }
    }

    /// The types of an ICMP message that has a field.
    fn message(&mut self, header: &str, field: &str, needs: &mut Vec<Need>) {
        let need = match (header, field) {
            ("icmp", "gateway") => Need::Message(5),
            ("icmp", "mtu") => Need::Message(3),
            ("icmp", "id" | "sequence") => Need::Echo(0, 0xf7),
            ("icmpv6", "mtu") => Need::Message(2),
            ("icmpv6", "parameter-problem") => Need::Message(4),
            ("icmpv6", "max-delay") => Need::Message(130),
            ("icmpv6", "daddr") => Need::Message(137),
            ("icmpv6", "id" | "sequence") => Need::Echo(128, 0xfe),
            _ => return,
        };
        if !std::mem::replace(&mut self.typed, true) {
            needs.push(need);
        }
    }

    /// Keeps what an equality says of headers. Of the values of a set nft keeps the last that means something to it, in the
    /// order in which they were written; what ranges and concatenations say it does not know.
    fn learn(&mut self, left: &Expr, right: &Expr) {
        let Expr::Field(field) = left else { return };
        match right {
            Expr::Set(elements) => {
                let values = elements.iter().filter_map(|element| element.key.as_number());
                values.for_each(|value| self.learn_value(field, value));
            }
            _ => right.as_number().into_iter().for_each(|value| self.learn_value(field, value)),
        }
    }

    fn learn_value(&mut self, field: &Field, value: u128) {
        match field {
            Field::Keyed(keyed) if keyed.of == "meta" => match keyed.key.0 {
                "l4proto" => self.upper = Some(value),
                "nfproto" => self.network = Some(value),
                "protocol" if self.by_protocol => self.ethertype(value),
                "iiftype" => self.ether |= value == 1,
                _ => {}
            },
            Field::Ct(ct) => match ct.key.0 {
                // Which protocols there are depends on the family.
                "protocol" if self.network.is_some() => self.upper_named(value),
                "l3proto" if !self.ether && matches!(value, IPV4 | IPV6) => {
                    self.network = Some(value);
                }
                _ => {}
            },
            Field::Payload(expr::Payload::Field(header, field)) => {
                match (header.name, field.name) {
                    ("ip", "protocol") | ("ip6", "nexthdr") => self.upper_named(value),
                    ("ether", "type") => self.ethertype(value),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// A protocol of the upper layer, unless nft reads no field of it.
    fn upper_named(&mut self, value: u128) {
        let is_named = |header: &Header| {
            header.base == Base::Transport && value != 0 && u128::from(header.number) == value
        };
        if PAYLOAD.iter().any(is_named) {
            self.upper = Some(value);
        }
    }

    fn ethertype(&mut self, value: u128) {
        match value {
            VLAN => self.tagged = true,
            ETHERTYPE_IPV4 => self.network = Some(IPV4),
            ETHERTYPE_IPV6 => self.network = Some(IPV6),
            _ => {}
        }
    }
}

/// Whether an expression is the type of an ICMP message.
fn is_message(expr: &Expr) -> bool {
    let Expr::Field(field) = expr else { return false };
    let Field::Payload(expr::Payload::Field(header, field)) = &**field else { return false };
    matches!(header.name, "icmp" | "icmpv6") && field.name == "type"
}

/// Whether what is compared with is a value, or a set of the rule with one: nft looks into no range, and no named set.
fn has_value(right: &Expr) -> bool {
    match right {
        Expr::Set(elements) => elements.iter().any(|element| element.key.as_number().is_some()),
        _ => right.as_number().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::Packets;
    use crate::lower::probe::{Frame, lowered};
    use rules::Outcome;

    /// Read from the bytecode of nft 1.0.6.
    #[test]
    fn the_type_that_a_field_of_icmp_needs_is_asked_unless_an_equality_said_one() {
        let asked = |rule: &str| {
            let set = "set s { type icmpv6_type; flags interval; elements = { 1-5 } }";
            let text = format!("table ip6 t {{\n{set}\nchain c {{\n{rule}\n}}\n}}\n");
            let matches =
                &lowered(&text, Packets::Ipv6).ruleset.tables[0].chains[0].rules[0].matches;
            matches.iter().map(|used| used.name.to_string()).collect::<Vec<_>>()
        };
        let needed = ["icmp type", "icmpv6 mtu"];
        assert_eq!(asked("icmpv6 type packet-too-big icmpv6 mtu 3"), needed);
        assert_eq!(asked("icmpv6 mtu 3"), needed);
        let both = ["icmpv6 type", "icmp type", "icmpv6 mtu"];
        for says_none in [">= 128", "@s", "1-5", "{ 1-5 }"] {
            assert_eq!(
                asked(&format!("icmpv6 type {says_none} icmpv6 mtu 3")),
                both,
                "{says_none}"
            );
        }
        let one = ["icmpv6 type", "icmpv6 mtu"];
        assert_eq!(asked("icmpv6 type { 2, 4-5 } icmpv6 mtu 3"), one);
    }

    /// Read from the bytecode of nft 1.0.6.
    #[test]
    fn a_set_says_what_its_last_value_says_that_nft_knows() {
        let asked = |family: &str, rule: &str| {
            let text = format!("table {family} t {{ chain c {{\n{rule}\n}}\n}}\n");
            let rules = lowered(&text, Packets::Ipv6).ruleset;
            let rule = &rules.tables[0].chains[0].rules[0];
            // What a rule's common header tests is its upper layer.
            let upper = rule.header.iter().map(|_| "meta l4proto".to_owned());
            upper.chain(rule.matches.iter().map(|used| used.name.to_string())).collect::<Vec<_>>()
        };
        let device = "meta iiftype";
        for types in ["{ ip, vlan, ip6 }", "{ ip6, vlan }", "{ ip6, 0x9998 }"] {
            let rule = format!("ether type {types} rt hdrlength >= 0");
            assert_eq!(asked("inet", &rule), [device, "ether type", "rt hdrlength"], "{types}");
        }
        for types in ["{ 0x9999, 0x9998 }", "{ 0x700-0x900, 0x9999 }", "{ 0x86dd-0x86de, 1 }"] {
            let rule = format!("ether type {types} rt hdrlength >= 0");
            let expected = ["ether type", device, "ether type", "rt hdrlength"];
            assert_eq!(asked("inet", &rule), expected, "{types}");
        }
        let (upper, tcp) = ("meta l4proto", "tcp dport");
        for (rule, expected) in [
            ("ip6 nexthdr { 6, 250 } tcp dport 4", vec!["ip6 nexthdr", tcp]),
            ("ip6 nexthdr { 249, 250 } tcp dport 4", vec![upper, "ip6 nexthdr", tcp]),
            ("meta l4proto { 6 } tcp dport 5", vec![upper, tcp]),
            // What a connection's protocol means depends on the family.
            ("ct protocol tcp tcp dport 5", vec![upper, "ct protocol", tcp]),
            ("meta nfproto ipv6 ct protocol { 6, 250 } tcp dport 5", vec!["ct protocol", tcp]),
        ] {
            assert_eq!(asked("inet", rule), expected, "{rule}");
        }
        assert_eq!(asked("ip6", "ct protocol tcp tcp dport 5"), ["ct protocol", tcp]);
        let frames = "ether saddr { 2:0:0:0:0:1, 2:0:0:0:0:2 } ct l3proto ipv6 hbh nexthdr 3";
        assert_eq!(asked("inet", frames)[0], "ether type");
    }

    #[test]
    fn what_an_extension_header_needs_is_asked_before_the_counter() {
        let first = |rule: &str| {
            let text = format!("table inet t {{ chain c {{\n{rule}\n}}\n}}\n");
            let ruleset = lowered(&text, Packets::Ipv4).ruleset;
            let matches = &ruleset.tables[0].chains[0].rules[0].matches;
            matches.iter().map(|used| used.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(first("counter ip6 hoplimit 1 srh tag 3"), Vec::<String>::new());
        // What `meta protocol` says of frames nft does not take for the family of packets.
        assert_eq!(first("counter meta protocol ip6 srh tag 3"), ["meta nfproto"]);
        assert_eq!(first("counter ether saddr 2:0:0:0:0:1 hbh nexthdr 6"), ["ether type"]);
        assert_eq!(first("counter ether type ip6 hbh nexthdr 6"), Vec::<String>::new());
        // The type behind a tag.
        assert_eq!(first("counter ether type 8021q hbh nexthdr 6"), ["ether type"]);
        let frame = Frame::syn(22);
        assert_eq!(frame.says_in("inet", "", "@ll,128,16 0x0028"), Outcome::YES);
        assert_eq!(first("counter ether type ip reject with icmp host-unreachable"), [""; 0]);
        assert_eq!(first("counter meta nfproto { ipv4, ipv6 } rt hdrlength 0"), [""; 0]);
        assert_eq!(first("counter ct l3proto { ipv4, ipv6 } rt hdrlength 0"), [""; 0]);
        assert_eq!(first("counter meta protocol { ip, ip6 } rt hdrlength 0"), ["meta nfproto"]);
    }
}
