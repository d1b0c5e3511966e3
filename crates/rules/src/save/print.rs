//! Writes rules back in canonical form.
//!
//! Source: the text of iptables 1.8.13's `iptables-save`; deviations of other versions are listed in
//! docs/rule-dialects.md.

use std::fmt::Write;

use crate::ext::Printer;
use crate::family::protocol_name;
use crate::model::{
    Action, Chain, Counters, Family, Header, IfaceTest, MaskedAddr, Rule, Ruleset, Table,
};

/// One rule as `-A CHAIN …`.
#[must_use]
pub fn print_rule(family: Family, table: &Table, chain: &Chain, rule: &Rule) -> String {
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
    let mut to = Printer::new("-A");
    to.word(chain);
    if let Some(header) = &rule.header {
        print_header(header, family, &mut to);
    }
    for used in &rule.matches {
        to.word("-m").word(&used.name);
        used.body.print(&mut to);
    }
    match &rule.action {
        Action::None => {}
        Action::Accept => _ = to.word("-j ACCEPT"),
        Action::Drop => _ = to.word("-j DROP"),
        Action::Return => _ = to.word("-j RETURN"),
        Action::Jump(chain) => _ = to.word("-j").word(name(*chain)),
        Action::Goto(chain) => _ = to.word("-g").word(name(*chain)),
        Action::Target(used) => {
            to.word("-j").word(&used.name);
            used.body.print(&mut to);
        }
    }
    to.finish()
}

/// The tests that need no extension.
pub(crate) fn print_header(header: &Header, family: Family, to: &mut Printer) {
    print_address("-s", header.source.as_ref(), family, to);
    print_address("-d", header.destination.as_ref(), family, to);
    print_iface("-i", header.input.as_ref(), to);
    print_iface("-o", header.output.as_ref(), to);
    if let Some(protocol) = header.protocol {
        print_option("-p", protocol.invert, to);
        match protocol_name(protocol.number) {
            Some(name) => to.word(name),
            None => to.word(protocol.number),
        };
    }
    if let Some(invert) = header.fragment {
        print_option("-f", invert, to);
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
    for (t, table) in ruleset.tables.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "*{}", table.name);
        // A chain without a name was deleted (see `Revision::ruleset`).
        let named = table.chains.iter().enumerate().filter(|(_, chain)| !chain.name.is_empty());
        for (c, chain) in named {
            let _ = match chain.base {
                Some(base) => {
                    writeln!(text, ":{} {} {}", chain.name, base.policy, counters(t, c, None))
                }
                None => writeln!(text, ":{} - {}", chain.name, Counters::default()),
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
        text.push_str("COMMIT\n");
    }
    text
}
