//! Warnings about rules before they run on wires: chains that no packet there reaches, interfaces that are no ports,
//! neighbour discovery that the rules drop, a family without rules.
//!
//! Contract: nothing here keeps a run from starting. Each warning is one line, with file and line where it has one.

use std::net::IpAddr;
use std::sync::Arc;

use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::Iface;
use rules::eval::Nobody;
use rules::model::{Action, Family, Hook, IfaceTest, Ruleset};

use crate::config::{Settings, Ttl};
use dataplane::config::Config;
use dataplane::{Arrival, Origin};
use dataplane::{Crossing, Evaluator, FinalVerdict, Program};

/// Rules that nothing on a wire matches, by their lines.
pub(crate) fn idle_rules(ruleset: &Ruleset, settings: &Settings) -> Vec<(u32, String)> {
    let mut idle = Vec::new();
    for chain in ruleset.tables.iter().flat_map(|table| &table.chains) {
        let hook = chain.base.map(|base| base.hook);
        if let (Some(Hook::Input | Hook::Output), [rule, ..]) = (hook, &*chain.rules) {
            let what = format!("{}: nothing on a wire comes to this chain", chain.name);
            idle.push((rule.line, what));
            continue;
        }
        for rule in &chain.rules {
            if matches!(&rule.action, Action::Target(target) if &*target.name == "REDIRECT") {
                let what =
                    "nothing on a wire is the host's: what it redirects leaves by the other port";
                idle.push((rule.line, format!("-j REDIRECT: {what}")));
            }
            let Some(header) = &rule.header else { continue };
            for (option, test) in [("-i", header.input()), ("-o", header.output())] {
                let Some(test) = test else { continue };
                if test.invert || settings.joined().any(|port| admits(test, &port.name)) {
                    continue;
                }
                let plus = if test.prefix { "+" } else { "" };
                let what = format!("{option} {}{plus}: no wire has such a port", test.name);
                idle.push((rule.line, what));
            }
        }
    }
    idle
}

/// Warns of an IP family that passes without a rule, where rules of the other are given and none of a bridge, which see
/// both.
pub(crate) fn without_rules(settings: &Settings) -> Option<String> {
    let has = |family| settings.rules.iter().any(|rules| rules.family == family);
    if has(Family::Bridge) {
        return None;
    }
    let missing = match (has(Family::Ipv4), has(Family::Ipv6)) {
        (true, false) => "ip6: no rules are given for IPv6, so all of it passes",
        (false, true) => "ip: no rules are given for IPv4, so all of it passes",
        _ => return None,
    };
    let ages = settings.wires.iter().any(|wire| wire.ttl == Ttl::Lower);
    let as_it_is = if ages { ", and does not age" } else { "" };
    Some(format!("{}: {missing}{as_it_is}", settings.file))
}

/// Warns of wires on which the rules drop IPv6 neighbour discovery: nothing passes there for long.
pub(crate) fn neighbours_dropped(
    settings: &Settings,
    rulesets: &[Arc<Ruleset>],
    config: &Config,
) -> Option<String> {
    let rules = rulesets.iter().find(|ruleset| ruleset.family == Family::Ipv6)?;
    let program = Program::new([Arc::clone(rules)], config.clone());
    let names = settings.wires.iter().flat_map(|wire| {
        let [first, second] = wire.ports;
        [[first, second], [second, first]]
    });
    let drops = |[from, to]: [usize; 2]| {
        let [input, output] = [from, to].map(|place| &*settings.ports[place].name);
        let mut evaluator = Evaluator::new(&program);
        let crossing = Crossing::default();
        solicitations().any(|mut frame| {
            let arrival = Arrival {
                input: Some(input),
                output: Some(output),
                wire: Some(&crossing),
                origin: Origin::Wire,
                time: Some(0),
                ..Arrival::new(1, Link::Wire, frame.len())
            };
            let outcome = evaluator.handle(&mut frame, &arrival, &mut Nobody).outcome;
            debug_assert_eq!(outcome.input, Iface::Named(input));
            matches!(outcome.end.verdict, FinalVerdict::Drop(_) | FinalVerdict::Reject(_))
        })
    };
    let mut dropped = names.filter(|ends| drops(*ends));
    let [from, to] = dropped.next()?.map(|place| &*settings.ports[place].name);
    let file = settings.rules.iter().find(|rules| rules.family == Family::Ipv6)?;
    let (file, needed) = (file.file.path.display(), "-p icmpv6 --icmpv6-type 135 and 136");
    Some(format!(
        "{file}: neighbour discovery from {from} to {to} is dropped, and IPv6 needs it: {needed}"
    ))
}

/// A neighbour solicitation and an advertisement, as RFC 4861 (sections 4.3 and 4.4) sends them.
fn solicitations() -> impl Iterator<Item = Vec<u8>> {
    const NEEDED_HOP_LIMIT: u8 = 255;
    let sent = [("fe80::1", "ff02::1:ff00:2", 135), ("fe80::2", "fe80::1", 136)];
    sent.into_iter().filter_map(|(source, destination, kind)| {
        let [source, destination] = [source, destination].map(str::parse::<IpAddr>);
        let addresses = Addresses::new(source.ok()?, destination.ok()?)?;
        let message = Message::Icmp { kind, code: 0, id: 0, sequence: 0 };
        let craft =
            Craft { ttl: NEEDED_HOP_LIMIT, payload_len: 16, ..Craft::new(addresses, message) };
        Some(craft.frame())
    })
}

/// Whether a test of an interface accepts a port.
pub(crate) fn admits(test: &IfaceTest, port: &str) -> bool {
    let is_it = if test.prefix { port.starts_with(&*test.name) } else { *test.name == *port };
    is_it != test.invert
}
