//! From the files of a configuration to rules that are published, and what is to be said of them before they run.
//!
//! Contract: what cannot work on a wire is refused: a translation to the address of a port. What works and does
//! nothing there is a warning: chains that nothing on a wire comes to, interfaces that are no ports, neighbour
//! discovery that the rules drop, a family without rules.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::visible;
use rules::ipset::Sets;
use rules::model::{Action, Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Entropy, Iface};

use super::config::{ConfigError, Named, Settings};
use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::disposition::FinalVerdict;
use crate::evaluator::Evaluator;
use crate::program::Program;

/// Rules as a configuration gives them.
#[derive(Debug)]
pub struct Loaded {
    /// One for each family that has a file.
    pub rulesets: Vec<Arc<Ruleset>>,
    /// How packets are taken to walk them.
    pub config: Config,
    /// What is odd about them, each in one line.
    pub warnings: Vec<String>,
}

/// Targets that translate to an address of the interface that a packet passes.
const NEED_AN_ADDRESS: [&str; 2] = ["MASQUERADE", "REDIRECT"];

/// Reads rules and sets.
///
/// # Errors
/// A file cannot be read, is refused, or holds what no wire can do.
pub(super) fn rules(settings: &Settings) -> Result<Loaded, ConfigError> {
    let (mut rulesets, mut warnings) = (Vec::new(), Vec::new());
    for rules in &settings.rules {
        let file = rules.file.path.display();
        let options = LoadOptions { family: Some(rules.family), ..LoadOptions::default() };
        let loaded = load(&text(settings, &rules.file)?, &options);
        let loaded = loaded
            .map_err(|error| settings.refuse(rules.file.at, format_args!("{file}:{error}")))?;
        if let Some((line, target)) = needs_an_address(&loaded.ruleset) {
            let why = "translates to the address of a port, and ports have none in this tamis";
            let what = format!("{file}:{line}: -j {target} {why}");
            return Err(settings.refuse(rules.file.at, what));
        }
        let odd = loaded.warnings.iter();
        warnings.extend(odd.map(|odd| format!("{file}:{}: {}", odd.line, odd.what)));
        let idle = idle_rules(&loaded.ruleset, settings);
        warnings.extend(idle.into_iter().map(|(line, what)| format!("{file}:{line}: {what}")));
        rulesets.push(Arc::new(loaded.ruleset));
    }
    let sets = match &settings.ipset {
        Some(named) => Some(Sets::parse(&text(settings, named)?).map_err(|error| {
            settings.refuse(named.at, format_args!("{}:{error}", named.path.display()))
        })?),
        None => None,
    };
    let config = config(settings, sets);
    warnings.extend(without_rules(settings));
    warnings.extend(neighbours_dropped(settings, &rulesets, &config));
    let warnings = warnings.into_iter().map(|line| visible::word(&line).into_owned()).collect();
    Ok(Loaded { rulesets, config, warnings })
}

/// What packets on a wire are taken to walk by: their table of connections is the only one, and what rules draw is
/// drawn here.
fn config(settings: &Settings, sets: Option<Sets>) -> Config {
    let ct = conntrack::Config {
        mode: conntrack::Mode::Kernel,
        max: settings.connections,
        ..conntrack::Config::default()
    };
    Config {
        ct,
        sets,
        entropy: Entropy::System,
        unknown: settings.unknown,
        pair: false,
        ..Config::default()
    }
}

fn text(settings: &Settings, Named { path, at }: &Named) -> Result<String, ConfigError> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| settings.refuse(*at, format_args!("{name}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| settings.refuse(*at, format_args!("{name}: {error}")))
}

/// The first rule that translates to the address of an interface.
fn needs_an_address(ruleset: &Ruleset) -> Option<(u32, &str)> {
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    let rules = chains.flat_map(|chain| &chain.rules);
    let targets = rules.filter_map(|rule| match &rule.action {
        Action::Target(target) => Some((rule.line, &*target.name)),
        _ => None,
    });
    targets.into_iter().find(|(_, name)| NEED_AN_ADDRESS.contains(name))
}

/// Rules that nothing on a wire matches, by their lines.
fn idle_rules(ruleset: &Ruleset, settings: &Settings) -> Vec<(u32, String)> {
    let mut idle = Vec::new();
    for chain in ruleset.tables.iter().flat_map(|table| &table.chains) {
        let hook = chain.base.map(|base| base.hook);
        if let (Some(Hook::Input | Hook::Output), [rule, ..]) = (hook, &*chain.rules) {
            let what = format!("{}: nothing on a wire comes to this chain", chain.name);
            idle.push((rule.line, what));
            continue;
        }
        for rule in &chain.rules {
            let Some(header) = &rule.header else { continue };
            for (option, test) in [("-i", &header.input), ("-o", &header.output)] {
                let is_port = |name: &str, prefix| match prefix {
                    true => settings.joined().any(|port| port.starts_with(name)),
                    false => settings.joined().any(|port| port == name),
                };
                let Some(test) = test else { continue };
                if test.invert || is_port(&test.name, test.prefix) {
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

/// IP families that pass without a rule, where rules of the other are given.
fn without_rules(settings: &Settings) -> Option<String> {
    let has = |family| settings.rules.iter().any(|rules| rules.family == family);
    let missing = match (has(Family::Ipv4), has(Family::Ipv6)) {
        (true, false) => "ip6: no rules are given for IPv6, so all of it passes",
        (false, true) => "ip: no rules are given for IPv4, so all of it passes",
        _ => return None,
    };
    Some(format!("{}: {missing}", settings.file))
}

/// Wires on which the rules drop the messages that IPv6 finds neighbours by: nothing passes there for long.
fn neighbours_dropped(
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
        solicitations().any(|mut frame| {
            let arrival = Arrival {
                input: Some(input),
                output: Some(output),
                on_wire: true,
                origin: Origin::Wire,
                time: Some(0),
                ..Arrival::new(1, Link::Wire, frame.len())
            };
            let outcome = evaluator.handle(&mut frame, &arrival, &mut Nobody);
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

struct Nobody;

impl rules::eval::Observer for Nobody {}
impl crate::observer::Observer for Nobody {}

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

/// A path, for who names a file to users.
pub(super) fn shown(path: &Path) -> String {
    visible::word(&path.to_string_lossy()).into_owned()
}
