//! What is evaluated: every header, key and statement of the tables of this crate, asked of the lowering itself.

use super::items::{self, Item};
use super::read;
use super::scope::Scope;
use crate::expr::{Expr, Field, Part, Payload, Space};
use crate::family::Family as Of;
use crate::headers::{self, Header};
use crate::json::Json;
use crate::model::{Ruleset, Table};
use rules::model::Family;

/// A header, a key or a statement, and whether it is evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supported {
    /// What it belongs to: `payload`, `meta`, `ct`, `statement`, …
    pub of: &'static str,
    /// The name.
    pub name: String,
    /// Whether it is evaluated; else what depends on it is unknown.
    pub evaluated: bool,
}

/// Statements, each with a rule that has it.
const STATEMENTS: &[(&str, &str)] = &[
    ("accept", "accept"),
    ("drop", "drop"),
    ("continue", "continue"),
    ("return", "return"),
    ("jump", "jump c"),
    ("goto", "goto c"),
    ("vmap", "tcp dport vmap { 22 : accept }"),
    ("counter", "counter"),
    ("counter name", "counter name \"x\""),
    ("limit", "limit rate 1/second"),
    ("limit name", "limit name \"x\""),
    ("quota", "quota 1 mbytes"),
    ("quota name", "quota name \"x\""),
    ("ct count", "ct count over 3"),
    ("log", "log"),
    ("reject", "reject"),
    ("snat", "snat to 10.0.0.1"),
    ("dnat", "dnat to 10.0.0.1"),
    ("masquerade", "masquerade"),
    ("redirect", "redirect"),
    ("notrack", "notrack"),
    ("queue", "queue"),
    ("tproxy", "tproxy to :80"),
    ("synproxy", "synproxy mss 1460 wscale 7"),
    ("dup", "dup to 10.0.0.1"),
    ("flow add", "flow add @f"),
    ("add, update and delete of elements", "add @s { ip saddr }"),
    ("meta mark set", "meta mark set 1"),
    ("meta priority set", "meta priority set 1:2"),
    ("meta pkttype set", "meta pkttype set host"),
    ("ct mark set", "ct mark set 1"),
    ("ct label set", "ct label set 1"),
    ("ct zone set", "ct zone set 1"),
    ("ct helper set", "ct helper set \"h\""),
    ("ct timeout set", "ct timeout set \"t\""),
    ("ct expectation set", "ct expectation set \"e\""),
    ("ip and ip6 dscp, ecn, ttl and hoplimit set", "ip dscp set cs1"),
    ("other fields set", "tcp dport set 22"),
    ("tcp option maxseg size set", "tcp option maxseg size set rt mtu"),
    ("reset tcp option", "reset tcp option timestamp"),
    ("last", "last"),
    ("xt", "xt match \"comment\""),
];

const AROUND: &str = "table ip t {
    ct helper h { type \"ftp\" protocol tcp; }
    limit x { rate 1/second; }
    quota x { 1 mbytes; }
    counter x { }
    set s { type ipv4_addr; size 10; flags dynamic; }
    chain c { }
}";

/// Lists what is evaluated of nft, and what is not.
pub fn supported() -> Vec<Supported> {
    let around = crate::text::parse("around", AROUND, &|_| Err(String::new())).unwrap_or_default();
    let blank = Table::new(Of::Ip, "t");
    let table = around.tables.first().unwrap_or(&blank);
    let scope = Scope::new(table, Family::Ipv4);
    let mut all = fields(&scope);
    all.extend(STATEMENTS.iter().filter_map(|(name, rule)| statement(name, rule, &around, &scope)));
    all
}

fn fields(scope: &Scope<'_>) -> Vec<Supported> {
    let evaluated = |field: Field| read::one(&field.expr(), scope).lacks().is_none();
    let mut all = Vec::new();
    let mut add = |of: &'static str, name: String, evaluated: bool| {
        all.push(Supported { of, name, evaluated });
    };
    let whole = |header: &'static Header, field: &dyn Fn(&'static headers::Field) -> Field| {
        header.fields.iter().all(|one| evaluated(field(one)))
    };
    for header in headers::PAYLOAD.iter().filter(|header| !header.fields.is_empty()) {
        let of = |field| Field::Payload(Payload::Field(header, field));
        add("payload", header.name.to_owned(), whole(header, &of));
    }
    for base in headers::BASES {
        let raw = Payload::Raw { base: base.1, offset: 0, len: 16 };
        add("payload", format!("@{}", base.0), evaluated(Field::Payload(raw)));
    }
    for (of, space, table) in [
        ("exthdr", Space::Extension, headers::EXTENSION),
        ("tcp option", Space::Tcp, headers::TCP_OPTION),
        ("ip option", Space::Ip, headers::IP_OPTION),
        ("sctp chunk", Space::Sctp, headers::SCTP_CHUNK),
    ] {
        for header in table {
            let part = |field| Field::Part(Part::Field(space, header, field, None));
            let exists = evaluated(Field::Part(Part::Exists(space, header)));
            add(of, header.name.to_owned(), exists && whole(header, &part));
        }
    }
    for (of, table) in [
        ("meta", headers::META),
        ("rt", headers::RT),
        ("socket", headers::SOCKET),
        ("ipsec", headers::IPSEC),
        ("ct", headers::CT),
    ] {
        for (key, _) in table.iter().filter(|key| key.0 != "secpath" && key.0 != "count") {
            let body = Json::object(vec![("key", Json::text(key))]);
            let field = Field::read(of, &body);
            // Labels are read by comparisons alone.
            let is_label = (of, *key) == ("ct", "label");
            add(of, (*key).to_owned(), is_label || field.is_some_and(evaluated));
        }
    }
    for (name, text) in [
        ("fib type", "fib daddr type"),
        ("fib oif, oifname and check", "fib daddr oif"),
        ("numgen inc", "numgen inc mod 2"),
        ("numgen random", "numgen random mod 2"),
        ("jhash with a seed", "jhash ip saddr mod 2 seed 0x1"),
        ("jhash without a seed", "jhash ip saddr mod 2"),
        ("symhash", "symhash mod 2"),
        ("osf", "osf name"),
        ("tunnel", "tunnel id"),
    ] {
        let rule = crate::text::parse_rule(Of::Ip, &format!("{text} 1"), Ruleset::default());
        let left = rule.ok().and_then(|rule| match rule.stmts.into_iter().next() {
            Some(crate::stmt::Stmt::Compare(compare)) => Some(compare.left),
            _ => None,
        });
        let is = left.is_some_and(|left: Expr| read::one(&left, scope).lacks().is_none());
        add("other", name.to_owned(), is);
    }
    all
}

fn statement(name: &str, rule: &str, around: &Ruleset, scope: &Scope<'_>) -> Option<Supported> {
    let rule = crate::text::parse_rule(Of::Ip, rule, around.clone()).ok()?;
    let lacks = rule.stmts.iter().any(|stmt| match items::item(stmt, "", scope) {
        Item::Test(_, test) => test.lacks().is_some(),
        Item::Act(act) => act.lacks().is_some() && !act.watches(),
        Item::End(super::statement::sequence::End::Unevaluated(..)) => true,
        Item::End(_) | Item::State(..) | Item::Count(_) | Item::Choice(..) => false,
    });
    Some(Supported { of: "statement", name: name.to_owned(), evaluated: !lacks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_of_the_list_is_read() {
        let names = supported().into_iter().filter(|one| one.of == "statement").count();
        assert_eq!(names, STATEMENTS.len());
    }
}
