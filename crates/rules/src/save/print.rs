//! Writes rules back in canonical form.
//!
//! Source: the text of iptables 1.8.13's `iptables-save`; deviations of other versions are listed in
//! docs/rule-dialects.md.

use std::fmt::Write;

use super::dialect::Part;
use super::listed::print_listed;
use crate::ext::{MatchUse, Printer};
use crate::family::Family;
use crate::header::{Field, FieldTest, Header, IfaceTest, MaskedAddr, ProtocolTest};
use crate::model::{Action, Chain, Counters, FallThrough, Rule, Ruleset, Table};
use crate::names::{ethertype_name, protocol_name};
use crate::value;

/// One rule as `-A CHAIN …`.
#[must_use]
pub fn print_rule(family: Family, table: &Table, chain: &Chain, rule: &Rule) -> String {
    if let Some(listed) = &rule.listed {
        return print_listed(&table.name, &chain.name, listed);
    }
    let name = |index: u32| table.chains.get(index as usize).map_or("?", |chain| &chain.name);
    print_named(family, &chain.name, rule, name)
}

/// One rule as `-A CHAIN …`; `name` names the chains that it may jump to.
pub(crate) fn print_named<'n>(
    family: Family,
    chain: &str,
    rule: &Rule,
    name: impl Fn(u32) -> &'n str,
) -> String {
    if let Some(listed) = &rule.listed {
        return print_listed("", chain, listed).trim_start().to_owned();
    }
    let mut to = Printer::new("-A");
    to.word(chain);
    let dialect = family.dialect();
    if dialect.target_first {
        print_verdict(rule, &name, &mut to);
    }
    if let Some(header) = &rule.header {
        print_header(header, family, &mut to);
    }
    for used in &rule.matches {
        print_match(used, family, &mut to);
    }
    if !dialect.target_first {
        print_verdict(rule, &name, &mut to);
    }
    match (&rule.action, dialect.no_verdict) {
        (Action::Target(used), _) => used.body.print(&mut to),
        (Action::None, Some(verdict)) => _ = to.word("-j").word(verdict),
        _ => {}
    }
    to.finish()
}

/// What stands after `-j` or `-g`.
fn print_verdict<'n>(rule: &Rule, name: &impl Fn(u32) -> &'n str, to: &mut Printer) {
    match &rule.action {
        Action::None => {}
        Action::Accept => _ = to.word("-j ACCEPT"),
        Action::Drop => _ = to.word("-j DROP"),
        Action::Return => _ = to.word("-j RETURN"),
        Action::Jump(chain) => _ = to.word("-j").word(name(*chain)),
        Action::Goto(chain) => _ = to.word("-g").word(name(*chain)),
        Action::Target(used) => _ = to.word("-j").word(&used.name),
    }
}

/// A match with its name, where the family's text names them.
pub(crate) fn print_match(used: &MatchUse, family: Family, to: &mut Printer) {
    if family.dialect().names_matches {
        to.word("-m").word(&used.name);
    }
    used.body.print(to);
}

/// The tests that need no extension.
pub(crate) fn print_header(header: &Header, family: Family, to: &mut Printer) {
    for (part, names) in family.dialect().parts {
        let option = names[0];
        match part {
            Part::Source => print_address(option, header.source().as_ref(), family, to),
            Part::Destination => print_address(option, header.destination().as_ref(), family, to),
            Part::Input => print_iface(option, header.input(), to),
            Part::Output => print_iface(option, header.output(), to),
            Part::LogicalInput => print_iface(option, header.logical_input(), to),
            Part::LogicalOutput => print_iface(option, header.logical_output(), to),
            Part::Protocol => print_protocol(option, header.protocol(), to),
            Part::Fragment => {
                if let Some(invert) = header.fragment() {
                    print_option(option, invert, to);
                }
            }
            Part::Field(field) => {
                let said = |test: &&FieldTest| {
                    test.field == *field && !super::header::implied(family).contains(test)
                };
                if let Some(test) = header.fields().iter().find(said) {
                    print_option(option, test.invert, to);
                    to.word(field_text(test));
                }
            }
        }
    }
}

fn print_protocol(option: &str, test: Option<ProtocolTest>, to: &mut Printer) {
    let Some(protocol) = test else { return };
    print_option(option, protocol.invert, to);
    match protocol_name(protocol.number) {
        Some(name) => to.word(name),
        None => to.word(protocol.number),
    };
}

/// A field's value and mask, each field in the tool's own notation.
fn field_text(test: &FieldTest) -> String {
    let mask = u16::from_be_bytes([test.mask[0], test.mask[1]]);
    let value = test.value_u16();
    let with_mask = |value: String, mask: String, whole: bool| {
        if whole { value } else { format!("{value}/{mask}") }
    };
    match test.field {
        Field::EtherType => {
            ethertype_name(value).map_or_else(|| format!("0x{value:x}"), str::to_owned)
        }
        Field::SenderHardware | Field::TargetHardware => {
            value::masked_mac_text(test.value, test.mask)
        }
        Field::HardwareLen => {
            let (value, mask) = (test.value[0], test.mask[0]);
            with_mask(value.to_string(), mask.to_string(), mask == u8::MAX)
        }
        Field::Operation => with_mask(value.to_string(), mask.to_string(), mask == u16::MAX),
        Field::HardwareType | Field::ProtocolType => {
            with_mask(format!("{value:#x}"), format!("{mask:#x}"), mask == u16::MAX)
        }
    }
}

fn print_option(option: &str, invert: bool, to: &mut Printer) {
    if invert {
        to.word("!");
    }
    to.word(option);
}

fn print_address(option: &str, test: Option<&MaskedAddr>, family: Family, to: &mut Printer) {
    if let Some(test) = test {
        print_option(option, test.invert, to);
        to.word(test.text(family));
    }
}

fn print_iface(option: &str, test: Option<&IfaceTest>, to: &mut Printer) {
    if let Some(test) = test {
        print_option(option, test.invert, to);
        to.plain(&format!("{}{}", test.name, if test.prefix { "+" } else { "" }));
    }
}

/// A whole ruleset as the save tool prints it, without the comments that name a tool and a time.
///
/// `counters` gives the counters of a policy (`None`) or a rule (its index) of a chain; `with_rule_counters`
/// puts them before rules too, as `iptables-save -c` does.
#[must_use]
pub fn print_ruleset(
    ruleset: &Ruleset,
    with_rule_counters: bool,
    counters: impl Fn(usize, usize, Option<usize>) -> Counters,
) -> String {
    let mut text = String::new();
    let dialect = ruleset.family.dialect();
    for (t, table) in ruleset.tables.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "*{}", table.name);
        // A chain without a name was deleted (see `Revision::ruleset`).
        let named = table.chains.iter().enumerate().filter(|(_, chain)| !chain.name.is_empty());
        for (c, chain) in named {
            let policy = match (chain.base, chain.fall_through) {
                (Some(base), _) => base.policy.to_string(),
                (None, FallThrough::Policy(policy)) => policy.to_string(),
                (None, FallThrough::Return) if dialect.user_policies => "RETURN".to_owned(),
                (None, FallThrough::Return) => "-".to_owned(),
            };
            let _ = match (dialect.commits, chain.base) {
                (true, Some(_)) => {
                    writeln!(text, ":{} {policy} {}", chain.name, counters(t, c, None))
                }
                (true, None) => writeln!(text, ":{} {policy} {}", chain.name, Counters::default()),
                (false, _) => writeln!(text, ":{} {policy}", chain.name),
            };
        }
        for (c, chain) in table.chains.iter().enumerate() {
            for (r, rule) in chain.rules.iter().enumerate() {
                if with_rule_counters {
                    let _ = write!(text, "{} ", counters(t, c, Some(r)));
                }
                let _ = writeln!(text, "{}", print_rule(ruleset.family, table, chain, rule));
            }
        }
        text.push_str(if dialect.commits { "COMMIT\n" } else { "" });
    }
    text
}
