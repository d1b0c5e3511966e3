//! What a comparison depends on: nft lists it only where it says more than what follows.

use crate::expr::{Element, Expr, Field, Payload};
use crate::headers::{Base, Header};
use crate::model::{Family, Rule};
use crate::stmt::{Compare, Op, Reject, Stmt};
use crate::types::{ICMP_CODE, ICMP_TYPE, ICMPV6_CODE, ICMPV6_TYPE, PROTO};

/// A comparison that what follows may imply: where it stands, and the number of the header that it names.
#[derive(Clone, Copy)]
struct Pending {
    at: usize,
    number: u32,
}

#[derive(Default)]
struct Known {
    link: Option<Pending>,
    network: Option<Pending>,
    transport: Option<Pending>,
    icmp: Option<Pending>,
    /// Whether the rule has named the type of its ICMP message, a network header, a transport.
    typed: bool,
    family: Option<Family>,
    transport_named: bool,
}

/// Removes comparisons that others imply, and adds what nft adds.
pub(super) fn rule(rule: &mut Rule, family: Family) {
    let mut known = Known::default();
    let mut gone = Vec::new();
    let mut added: Vec<(usize, Stmt)> = Vec::new();
    for at in 0..rule.stmts.len() {
        if let Stmt::Reject(reject) = &mut rule.stmts[at] {
            known.reject(reject, family, &mut gone);
            if *reject == Reject::Reset && family == Family::Inet && !known.transport_named {
                added.push((0, equal("meta", "l4proto", 6)));
                known.transport_named = true;
            }
        }
        let stmt = &rule.stmts[at];
        let left = match stmt {
            Stmt::Compare(compare) => Some(&compare.left),
            Stmt::Vmap(key, _) => Some(key),
            _ => None,
        };
        let Some(left) = left else {
            known.forget();
            continue;
        };
        known.read(left, family, &mut gone);
        if let Some(missing) = known.message(left, &mut gone) {
            added.push((at, missing));
        }
        if let Some((left, right)) = equality(stmt) {
            known.learn(at, left, right, family);
        }
    }
    apply(rule, gone, added);
}

fn apply(rule: &mut Rule, mut gone: Vec<usize>, added: Vec<(usize, Stmt)>) {
    if gone.is_empty() && added.is_empty() {
        return;
    }
    gone.sort_unstable();
    let mut stmts = Vec::new();
    for (at, stmt) in std::mem::take(&mut rule.stmts).into_iter().enumerate() {
        stmts
            .extend(added.iter().filter(|(before, _)| *before == at).map(|(_, stmt)| stmt.clone()));
        if gone.binary_search(&at).is_err() {
            stmts.push(stmt);
        }
    }
    rule.stmts = stmts;
}

fn equal(of: &str, key: &str, value: u128) -> Stmt {
    let name = crate::json::Json::object(vec![("key", crate::json::Json::text(key))]);
    let left = Field::read(of, &name).map_or(Expr::Any, Field::expr);
    let right = Expr::number(&PROTO, value);
    Stmt::Compare(Compare { op: Op::Equal, left, right })
}

fn each_payload(expr: &Expr, show: &mut dyn FnMut(&'static Header, &'static str)) {
    match expr {
        Expr::Field(field) => {
            if let Field::Payload(Payload::Field(header, field)) = &**field {
                show(header, field.name);
            }
        }
        Expr::Concat(parts) => parts.iter().for_each(|part| each_payload(part, show)),
        Expr::Binary(_, pair) => each_payload(&pair.0, show),
        _ => {}
    }
}

impl Known {
    fn forget(&mut self) {
        (self.link, self.network, self.transport, self.icmp) = (None, None, None, None);
    }

    fn take(pending: &mut Option<Pending>, number: u32, gone: &mut Vec<usize>) {
        if let Some(found) = pending.take_if(|found| found.number == number) {
            gone.push(found.at);
        }
    }

    /// Removes what the headers that are read imply.
    fn read(&mut self, left: &Expr, family: Family, gone: &mut Vec<usize>) {
        let mut headers = Vec::new();
        each_payload(left, &mut |header, field| headers.push((header, field)));
        for (header, _) in headers {
            match header.base {
                Base::Link => {
                    Self::take(&mut self.link, 1, gone);
                    Self::take(&mut self.network, header.number, gone);
                }
                Base::Network => {
                    self.family = match header.name {
                        "ip" => Some(Family::Ip),
                        "ip6" => Some(Family::Ip6),
                        _ => self.family,
                    };
                    Self::take(&mut self.network, header.number, gone);
                }
                Base::Transport if header.number != 0 => {
                    self.transport_named = true;
                    Self::take(&mut self.transport, header.number, gone);
                    let network = match header.name {
                        "icmp" => 0x800,
                        "icmpv6" => 0x86dd,
                        _ if family == Family::Ip => 0x800,
                        _ if family == Family::Ip6 => 0x86dd,
                        _ => continue,
                    };
                    Self::take(&mut self.network, network, gone);
                }
                _ => {}
            }
        }
        if let Expr::Field(field) = left
            && let Field::Ct(ct) = &**field
            && let Some(of) = ct.family
        {
            Self::take(&mut self.network, if of == "ip" { 0x800 } else { 0x86dd }, gone);
        }
    }

    /// Says which comparison of the type of an ICMP message a field needs that the rule lacks.
    fn message(&mut self, left: &Expr, gone: &mut Vec<usize>) -> Option<Stmt> {
        let mut found = None;
        each_payload(left, &mut |header, field| found = found.or(Some((header.name, field))));
        let (header, field) = found?;
        let types: &[u128] = match (header, field) {
            ("icmp" | "icmpv6", "type") => {
                self.typed = true;
                return None;
            }
            ("icmp", "id" | "sequence") => &[0, 8],
            ("icmp", "gateway") => &[5],
            ("icmp", "mtu") => &[3],
            ("icmpv6", "id" | "sequence") => &[128, 129],
            ("icmpv6", "mtu") => &[2],
            ("icmpv6", "parameter-problem") => &[4],
            ("icmpv6", "max-delay") => &[130],
            ("icmpv6", "daddr") => &[137],
            ("icmpv6", "taddr") => &[130, 131, 132, 135, 136, 137],
            _ => return None,
        };
        if let [one] = types {
            Self::take(&mut self.icmp, u32::try_from(*one).ok()?, gone);
            return None;
        }
        if std::mem::replace(&mut self.typed, true) {
            return None;
        }
        let ty = if header == "icmp" { &ICMP_TYPE } else { &ICMPV6_TYPE };
        let left = Field::Payload(Payload::find(header, "type")?).expr();
        Some(Stmt::Compare(Compare { op: Op::Equal, left, right: numbers(ty, types) }))
    }

    /// Keeps what a comparison says of headers.
    fn learn(&mut self, at: usize, left: &Expr, right: &Expr, family: Family) {
        let Expr::Field(field) = left else { return };
        let names_transport = match &**field {
            Field::Keyed(keyed) => (keyed.of, keyed.key.0) == ("meta", "l4proto"),
            Field::Payload(Payload::Field(header, field)) => {
                matches!((header.name, field.name), ("ip", "protocol") | ("ip6", "nexthdr"))
            }
            _ => false,
        };
        self.transport_named |= names_transport;
        let Some(value) = right.as_number().and_then(|value| u32::try_from(value).ok()) else {
            return;
        };
        let pending = |number| Some(Pending { at, number });
        match &**field {
            Field::Keyed(keyed) if keyed.of == "meta" => match keyed.key.0 {
                "l4proto" => self.transport = pending(value),
                "nfproto" if family == Family::Inet => {
                    let (of, number) =
                        if value == 2 { (Family::Ip, 0x800) } else { (Family::Ip6, 0x86dd) };
                    self.family = Some(of);
                    self.network = pending(number);
                }
                "protocol" if matches!(family, Family::Ip | Family::Ip6) => {
                    self.network = pending(value)
                }
                "iiftype" => self.link = pending(value),
                _ => {}
            },
            Field::Payload(Payload::Field(header, field)) => match (header.name, field.name) {
                ("ip", "protocol") if family == Family::Ip => self.transport = pending(value),
                // `ip6 nexthdr` asks for the byte alone: extension headers may follow.
                ("ip", "protocol") | ("ip6", "nexthdr") => self.transport = None,
                ("ether", "type") => self.network = pending(value),
                ("icmp" | "icmpv6", "type") => self.icmp = pending(value),
                _ => {}
            },
            _ => {}
        }
    }

    /// Says what `reject` alone means after what the rule has named.
    fn reject(&mut self, reject: &mut Reject, family: Family, gone: &mut Vec<usize>) {
        let both = !matches!(family, Family::Ip | Family::Ip6);
        if *reject == Reject::Usual {
            *reject = Reject::usual(self.family.filter(|_| both).unwrap_or(family));
        }
        if let Reject::Code(code) = reject {
            match code.ty {
                ty if ty == &ICMP_CODE => Self::take(&mut self.network, 0x800, gone),
                ty if ty == &ICMPV6_CODE => Self::take(&mut self.network, 0x86dd, gone),
                _ => {}
            }
        }
    }
}

/// Whether a statement is a comparison with equality.
fn equality(stmt: &Stmt) -> Option<(&Expr, &Expr)> {
    match stmt {
        Stmt::Compare(compare) if compare.op == Op::Equal => Some((&compare.left, &compare.right)),
        _ => None,
    }
}

/// Makes the elements of a set of numbers.
fn numbers(ty: crate::types::Ty, values: &[u128]) -> Expr {
    Expr::Set(values.iter().map(|value| Element::new(Expr::number(ty, *value))).collect())
}
