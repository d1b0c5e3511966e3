//! Tests of one field: equal, ordered, masked, in a range, a prefix or a set.

use std::sync::Arc;

use super::super::draw::Piece;
use super::field::{Field, Kind};
use super::pick::{is_link, is_untyped};
use super::{Drawing, Part, TableFamily};

/// A value, a range or a prefix, with a value that is in it.
pub(super) struct Operand {
    pub(super) text: String,
    pub(super) value: u128,
    /// The least and the greatest value, of numbers.
    pub(super) span: Option<(u128, u128)>,
}

/// Whether it is the code of a message, which nft 1.0.6 compares, if with one value, along with the type that a later field asks
/// for: behind the counters between.
fn is_code(field: Field) -> bool {
    matches!(field.name, "icmp code" | "icmpv6 code")
}

impl Drawing<'_> {
    /// A test of a field.
    pub(super) fn compare(&mut self, field: Field) -> Part {
        let name = field.name;
        match (field.kind, self.draw.rng.u8(..20)) {
            (Kind::Presence, _) => {
                let value = (field.draw)(self);
                self.test(field, format!("{name} {}", field.kind.show(value)), value, "op presence")
            }
            (Kind::Flags(words), choice) => self.flags(field, words, choice),
            (Kind::Words(words), 0..=3) if !words[0].contains('-') && words.len() > 2 => {
                let (text, value) = self.anonymous(field, false);
                self.test(field, format!("{name} {text}"), value, "op set")
            }
            (Kind::Words(_) | Kind::Mac | Kind::Hex(_), _) if self.is_joined(field) => {
                let (text, value) = self.anonymous(field, false);
                self.test(field, format!("{name} {text}"), value, "op set")
            }
            (Kind::Words(_) | Kind::Mac, choice) => {
                self.about.plain |= is_link(field.item);
                let value = (field.draw)(self);
                let (op, item) = if choice < 8 { ("!= ", "op ne") } else { ("", "op eq") };
                self.test(field, format!("{name} {op}{}", field.kind.show(value)), value, item)
            }
            (_, 0..=3) => self.ordered(field),
            (_, 4 | 5) => {
                let Operand { text, value, .. } = self.range(field);
                let op = if self.draw.one_in(4) { "!= " } else { "" };
                self.test(field, format!("{name} {op}{text}"), value, "op range")
            }
            (Kind::V4 | Kind::V6, 6..=9) => {
                let Operand { text, value, .. } = self.prefix(field);
                let op = if self.draw.one_in(4) { "!= " } else { "" };
                self.test(field, format!("{name} {op}{text}"), value, "op prefix")
            }
            (_, 8 | 9) => self.masked(field),
            (_, 10 | 11) => {
                let (text, value) = self.anonymous(field, false);
                let op = if self.draw.one_in(3) { "!= " } else { "" };
                self.test(field, format!("{name} {op}{text}"), value, "op set")
            }
            (_, 12 | 13) => {
                let (text, value) = self.anonymous(field, true);
                let op = if self.draw.one_in(3) { "!= " } else { "" };
                self.test(field, format!("{name} {op}{text}"), value, "op interval set")
            }
            (_, 14 | 15) if !is_untyped(field) => self.named(field),
            _ if field.item.starts_with("payload") && (self.about.plain || is_code(field)) => {
                let (text, value) = self.anonymous(field, false);
                self.test(field, format!("{name} {text}"), value, "op set")
            }
            (_, choice) => {
                self.about.plain |= field.item.starts_with("payload");
                let value = (field.draw)(self);
                let (op, item) = if choice == 16 { ("!= ", "op ne") } else { ("", "op eq") };
                self.test(field, format!("{name} {op}{}", field.kind.show(value)), value, item)
            }
        }
    }

    /// Whether nft 1.0.6 would make one test of a field of the link header, were it compared with one value, and of another:
    /// in family inet of the EtherType that a field of another header asks for.
    fn is_joined(&self, field: Field) -> bool {
        let asks = self.family == TableFamily::Inet && field.name != "ether type";
        is_link(field.item) && (self.about.plain || asks)
    }

    /// A test whose text is made, and a value with which a packet passes it.
    pub(super) fn test(&mut self, field: Field, text: String, value: u128, item: &str) -> Part {
        let craft = field.craft;
        let craft = self.in_family(field.family, Arc::new(move |p| craft(p, value)));
        self.with_protocol(field, Part::test(&[field.item, item], Piece { text, craft }))
    }

    /// The test, of packets of a protocol with ports where nft knows the field's type of those alone.
    pub(super) fn with_protocol(&mut self, field: Field, part: Part) -> Part {
        if !is_untyped(field) || self.about.upper.is_some() {
            return part;
        }
        let (name, number) = self.draw.pick(&[("tcp", 6), ("udp", 17)]);
        self.about.upper = Some(if number == 6 { "payload tcp" } else { "payload udp" });
        let Piece { text, craft } = part.piece;
        let piece = Piece::new(format!("meta l4proto {name} {text}"), move |p| {
            craft(p);
            p.protocol = number;
        });
        Part { piece, ..part }
    }

    fn ordered(&mut self, field: Field) -> Part {
        let value = (field.draw)(self);
        let op = self.draw.pick(&["<", ">", "<=", ">="]);
        let near = match op {
            "<" => value.saturating_sub(1),
            ">" => value.saturating_add(1),
            _ => value,
        };
        self.test(
            field,
            format!("{} {op} {}", field.name, field.kind.show(value)),
            near,
            "op order",
        )
    }

    fn masked(&mut self, field: Field) -> Part {
        let bits = field.kind.bits().unwrap_or(1);
        let all = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let (value, mask) =
            ((field.draw)(self), (self.draw.rng.u128(..) | (field.draw)(self)) & all);
        let show = |value| match field.kind {
            Kind::Number(_) => Kind::Hex(bits).show(value),
            kind => kind.show(value),
        };
        let is_payload = field.item.starts_with("payload");
        let operations: &[&str] = match is_payload && (self.about.plain || is_code(field)) {
            true => &["&", "|"],
            false => &["&", "&", "&", "^", "|"],
        };
        let (name, operation) = (field.name, self.draw.pick(operations));
        // nft takes the constant to the other side, which makes it a plain comparison.
        self.about.plain |= is_payload && operation == "^";
        let result = match operation {
            "^" => value ^ mask,
            "|" => value | mask,
            _ => value & mask,
        };
        let op = self.draw.pick(&["==", "==", "!="]);
        let text = format!("{name} {operation} {} {op} {}", show(mask), show(result & all));
        self.test(field, text, value, "op bitwise")
    }

    /// Bits of a field: some set, all as said, or one of a list.
    fn flags(&mut self, field: Field, words: &[&str], choice: u8) -> Part {
        let name = field.name;
        let value = (field.draw)(self) % words.len() as u128;
        let (first, other) = (field.kind.show(value), self.draw.pick(words));
        let is_payload = field.item.starts_with("payload");
        let choice = if is_payload && self.about.plain { 15 } else { choice };
        self.about.plain |= is_payload;
        let text = match choice {
            0..=4 => format!("{name} {first}"),
            5..=8 => format!("{name} {first},{other}"),
            9 | 10 => format!("{name} == {first}"),
            11 => format!("{name} != {first}"),
            12 | 13 => format!("{name} {{ {first}, {other} }}"),
            14 => format!("{name} & ({first} | {other}) == {first}"),
            15 => format!("{name} & ({first} | {other}) != 0"),
            16 => format!("{name} ! {first}"),
            17 => format!("{name} {first} / {first},{other}"),
            18 => format!("{name} != {{ {first}, {other} }}"),
            _ => format!("{name} != {first},{other}"),
        };
        self.test(field, text, value, "op flags")
    }

    /// A range of two values.
    pub(super) fn range(&mut self, field: Field) -> Operand {
        let (mut a, mut b) = ((field.draw)(self), (field.draw)(self));
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        if a == b {
            let text = field.kind.show(a);
            return Operand { text, value: a, span: Some((a, a)) };
        }
        let between = a + (b - a) / 2;
        let value = self.draw.pick(&[a, b, a.saturating_sub(1), b.saturating_add(1), between]);
        let text = format!("{}-{}", field.kind.show(a), field.kind.show(b));
        Operand { text, value, span: Some((a, b)) }
    }

    /// A prefix of an address.
    pub(super) fn prefix(&mut self, field: Field) -> Operand {
        let value = (field.draw)(self);
        let bits = field.kind.bits().unwrap_or(32);
        let len = match bits {
            128 => self.draw.pick(&[128, 127, 112, 65, 64, 63, 48, 32, 10, 3, 1]),
            _ => self.draw.pick(&[31, 30, 25, 24, 23, 16, 15, 9, 8, 7, 1]),
        };
        let host = if len == bits { 0 } else { (1_u128 << (bits - len)) - 1 };
        let text = format!("{}/{len}", field.kind.show(value & !host));
        Operand { text, value, span: Some((value & !host, value | host)) }
    }

    /// An element of a set.
    pub(super) fn element(&mut self, field: Field, intervals: bool) -> Operand {
        let plain = !intervals || field.kind.bits().is_none();
        match self.draw.rng.u8(..6) {
            0 | 1 if !plain => self.range(field),
            2 | 3 if !plain && matches!(field.kind, Kind::V4 | Kind::V6) => self.prefix(field),
            _ => {
                let value = (field.draw)(self);
                let span = field.kind.bits().map(|_| (value, value));
                Operand { text: field.kind.show(value), value, span }
            }
        }
    }

    /// An anonymous set, and one of its values.
    fn anonymous(&mut self, field: Field, intervals: bool) -> (String, u128) {
        let count = 2 + self.draw.rng.usize(..4);
        let elements: Vec<Operand> = (0..count).map(|_| self.element(field, intervals)).collect();
        let chosen = self.draw.rng.usize(..count);
        let texts: Vec<&str> = elements.iter().map(|element| element.text.as_str()).collect();
        (format!("{{ {} }}", texts.join(", ")), elements[chosen].value)
    }

    /// A test for membership in a named set.
    fn named(&mut self, field: Field) -> Part {
        let intervals = self.draw.one_in(2);
        let (elements, value) = self.anonymous(field, intervals);
        let flags = if intervals { "flags interval ; auto-merge ; " } else { "" };
        // What elements count no rule asks.
        let counting = if self.draw.one_in(6) { "counter ; " } else { "" };
        let name = field.name;
        let declared = format!("typeof {name} ; {flags}{counting}elements = {elements} ; ");
        let set = self.declare("set", &declared);
        let op = if self.draw.one_in(3) { "!= " } else { "" };
        let item = if intervals { "op named interval set" } else { "op named set" };
        let mut part = self.test(field, format!("{} {op}@{set}", field.name), value, item);
        part.sets.push(set);
        part
    }

    /// Declares a set or map; its name.
    pub(super) fn declare(&mut self, word: &str, body: &str) -> String {
        let name = format!("s{}", self.sets.len() + 1);
        self.sets.push((name.clone(), format!("{word} {{F}} {{T}} {name} {{ {body}}}")));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::super::ruleset::{Ending, draw};
    use super::TableFamily;
    use crate::generate::Draw;
    use crate::scene::{Placement, Scene, Wire};
    use rules::model::Family;

    /// What comes after these words in the rules of the first table of many rulesets that ask the link header alone.
    fn after(words: &str, family: TableFamily) -> Vec<String> {
        let mut choices = Draw::new(Scene::new(Family::Ipv4, Wire::Tap, Placement::Raw), 1);
        let only = ["payload ether", "op "].map(str::to_owned);
        let mut found = Vec::new();
        for _ in 0..100 {
            let ruleset = draw(&mut choices, family, Ending::Early, &only);
            let lines = ruleset.lines();
            let rules =
                lines.iter().filter(|(_, line)| line.contains("rule ") && line.contains(" t0 "));
            found.extend(rules.flat_map(|(_, line)| line.split(words).skip(1).map(str::to_owned)));
        }
        found
    }

    /// nft 1.0.6 makes one test of an address that is compared with one value and of the EtherType beside it.
    #[test]
    fn link_addresses_are_compared_with_sets_where_an_ethertype_may_be_asked() {
        let inet = after("ether saddr ", TableFamily::Inet);
        assert!(inet.len() > 100);
        assert!(inet.iter().all(|rest| rest.starts_with('{')), "{inet:?}");
        let plain = |rest: &&String| !rest.starts_with('{');
        let ip = after("ether saddr ", TableFamily::Ip);
        assert!(ip.iter().any(|rest| plain(&rest)));
        let is_set = |next: &str| next.split(' ').nth(1).is_some_and(|word| word == "{");
        let again = |rest: &&String| rest.split("ether ").skip(1).any(|next| !is_set(next));
        assert!(!ip.iter().filter(plain).any(|rest| again(&rest)), "{ip:?}");
    }
}
