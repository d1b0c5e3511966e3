//! The next command worth typing: what would tell most about this replay.

use std::collections::BTreeMap;
use std::fmt::Write;

use conntrack::{Mode, config::DEFAULT_MAX};
use dataplane::{Config, Why};
use packet::Checksums;
use rules::model::{Action, Family, Rule};

use super::{Report, ct_name};
use crate::rules_file::RulesFile;
use crate::shell::{command, option};

/// Share of packets that must lack an interface before naming them comes first.
const MANY: f64 = 0.2;

/// A packet to ask about where a capture has none.
const EXAMPLE: &str = "tcp 192.0.2.1:40000 > 198.51.100.1:443 syn";
const EXAMPLE6: &str = "tcp [2001:db8:1::1]:40000 > [2001:db8:2::1]:443 syn";

impl Report {
    /// A whole command line.
    #[must_use]
    pub fn next_command(&self) -> String {
        if self.packets == 0 {
            return self.why_in_words();
        }
        let flags = self.flags() + &self.filter_flag();
        if let Some(missing) = self.missing(&flags) {
            return missing;
        }
        let changed = self.changes.as_ref().filter(|changes| changes.packets > 0);
        if let (Some(changes), true) = (changed, self.listed.is_empty()) {
            // A folder named all of its own.
            let given = changes.files.first().map(|file| &*file.given);
            let named = changes.files.iter().enumerate();
            let named = named.filter(|(at, file)| *at == 0 || Some(&*file.given) != given);
            let new: String = ["vs", "vs6"]
                .iter()
                .zip(named)
                .map(|(name, (_, file))| option(name, &file.given))
                .collect();
            return self.replay(&[&flags, &new, &self.vs_flags(), " --list change"]);
        }
        let groups = self.groups.iter().filter(|grouping| grouping.asked);
        let example = groups.filter_map(|grouping| grouping.groups.first()?.example).next();
        if let Some((frame, _)) = example {
            return self.why_command(self.numbers.show(frame));
        }
        let list = if self.verdicts.unknown.packets > 0 {
            "unknown"
        } else if self.verdicts.drop.packets > 0 {
            "drop"
        } else if self.verdicts.reject.packets > 0 {
            "reject"
        } else if self.selection.filter.is_some() {
            // The first packet may be none of those that passed.
            "accept"
        } else {
            return self.why_command(1);
        };
        match self.listed.first() {
            Some(listed) => self.why_command(self.numbers.show(listed.frame)),
            None => self.replay(&[&flags, " --list ", list]),
        }
    }

    /// What would tell where many packets come from and go to. What was given already is not asked for again.
    fn missing(&self, flags: &str) -> Option<String> {
        let is_many = |packets: u64| packets as f64 > MANY * self.packets as f64;
        let ways = self.unknown_because.get(&Why::Way).copied().unwrap_or(0);
        if !is_many(self.lacked_interface) && !is_many(ways) {
            return None;
        }
        let is_named = !self.config.nets.is_empty()
            || self.config.input.is_some()
            || self.config.output.is_some();
        let nets = self.files.first().map_or(Some(String::new()), nets);
        if !is_many(ways) && !is_named {
            match nets {
                Some(nets) if nets.is_empty() => {
                    return Some(self.replay(&[flags, " ", &self.any_interfaces()]));
                }
                Some(nets) => return Some(self.replay(&[flags, &nets])),
                None => {}
            }
        }
        let is_host = self.files.iter().any(|file| file.given != file.file);
        let mut names = self.names();
        names[0] = "HOST";
        let then = command("replay", &names, "");
        (!is_host).then(|| format!("tamis collect HOST  # where these rules are; then: {then}"))
    }

    /// Interfaces for rules that name none of their own: any name is as good as another.
    fn any_interfaces(&self) -> String {
        let wanted = [("--in eth0", self.input_unknown), ("--out eth1", self.output_unknown)];
        let wanted = wanted.into_iter().filter(|(_, unknown)| *unknown > 0);
        wanted.map(|(option, _)| option).collect::<Vec<_>>().join(" ")
    }

    /// The command for a packet spec, where there was none to evaluate.
    fn why_in_words(&self) -> String {
        let (rules, example) = match self.files.first() {
            Some(file) if file.ruleset.family == Family::Ipv6 => (&*file.given, EXAMPLE6),
            Some(file) => (&*file.given, EXAMPLE),
            None => ("RULES", EXAMPLE),
        };
        command("why", &[rules], &(self.flags() + &option("packet", example)))
    }

    /// The filter that packets passed.
    fn filter_flag(&self) -> String {
        let filter = self.selection.filter.as_ref();
        filter.map_or_else(String::new, |filter| option("filter", filter.expression()))
    }

    /// What else was given about the rules to compare with.
    fn vs_flags(&self) -> String {
        let file = self.changes.as_ref().and_then(|changes| changes.files.first());
        let given = file.filter(|file| file.semantics_given);
        given.map_or_else(String::new, |file| {
            format!(" --vs-semantics {}", file.ruleset.backend.name())
        })
    }

    /// The command that tells the story of one packet.
    pub(super) fn why_command(&self, packet: impl std::fmt::Display) -> String {
        let packet = option("packet", &packet.to_string());
        command("why", &self.names(), &(self.flags() + &packet))
    }

    /// The command that replays this with these options.
    fn replay(&self, options: &[&str]) -> String {
        command("replay", &self.names(), &options.concat())
    }

    /// The options that give how packets walk.
    fn flags(&self) -> String {
        walk_flags(&self.files, &self.config, Mode::default()) + &self.also
    }

    /// Rules and captures, as given.
    fn names(&self) -> Vec<&str> {
        let rules = self.files.first().map_or("RULES", |file| &*file.given);
        let captures = self.captures.iter().map(|capture| &*capture.name.given);
        std::iter::once(rules).chain(captures).collect()
    }
}

/// The options that give how packets walk, to be typed again, each with a blank before it.
///
/// `usual` is how connections are tracked unless that is given.
pub(crate) fn walk_flags(files: &[RulesFile], config: &Config, usual: Mode) -> String {
    let mut flags = String::new();
    // Writing to a String cannot fail.
    let _ = config.path.map(|path| write!(flags, " --path {}", path.name()));
    let _ = config.input.as_ref().map(|name| write!(flags, "{}", option("in", name)));
    let _ = config.output.as_ref().map(|name| write!(flags, "{}", option("out", name)));
    for (name, net) in &config.nets {
        let _ = write!(flags, "{}", option("net", &format!("{name}={net}")));
    }
    for net in config.host.local.iter().flatten() {
        let _ = write!(flags, " --local {net}");
    }
    for (name, address) in &config.host.addresses {
        let _ = write!(flags, "{}", option("addr", &format!("{name}={address}")));
    }
    match config.checksums {
        Checksums::Arrivals => {}
        Checksums::Ignore => flags.push_str(" --checksums ignore"),
        Checksums::Verify => flags.push_str(" --checksums verify"),
    }
    if !config.pair {
        flags.push_str(" --no-pair");
    }
    if config.ct.mode != usual {
        let _ = write!(flags, " --ct {}", ct_name(config.ct.mode));
    }
    if config.ct.max != DEFAULT_MAX {
        let _ = write!(flags, " --ct-max {}", config.ct.max);
    }
    if let Some(file) = files.iter().find(|file| file.semantics_given) {
        let _ = write!(flags, " --semantics {}", file.ruleset.backend.name());
    }
    // A folder named all of its own.
    let given = files.first().map(|file| &*file.given);
    for file in files.iter().skip(1).filter(|file| Some(&*file.given) != given) {
        let _ = write!(flags, "{}", option("rules6", &file.given));
    }
    flags
}

/// `--net` for every interface that the rules name: the network that a rule pairs with it, else all. None where that
/// would say all of more than one.
fn nets(file: &RulesFile) -> Option<String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (.., rule) in file.rules() {
        for (name, network) in pairs(file, rule) {
            let slot = found.entry(name).or_default();
            *slot = slot.take().or(network);
        }
    }
    if found.values().filter(|network| network.is_none()).count() > 1 {
        return None;
    }
    let everything = if file.ruleset.family.addr_len() == 16 { "::/0" } else { "0.0.0.0/0" };
    let options = found.into_iter().take(4).map(|(name, network)| {
        option("net", &format!("{name}={}", network.as_deref().unwrap_or(everything)))
    });
    Some(options.collect())
}

/// The interfaces of one rule, each with the network that it names beside.
fn pairs(file: &RulesFile, rule: &Rule) -> Vec<(String, Option<String>)> {
    let Some(header) = &rule.header else { return Vec::new() };
    let accepts = !matches!(rule.action, Action::Drop);
    let sides = [(header.input(), header.source()), (header.output(), header.destination())];
    let mut pairs = Vec::new();
    for (iface, addr) in sides {
        let Some(iface) = iface else { continue };
        if iface.prefix || iface.invert || &*iface.name == "lo" {
            continue;
        }
        let network =
            addr.filter(|addr| accepts && !addr.invert).map(|addr| addr.text(file.ruleset.family));
        pairs.push((iface.name.to_string(), network));
    }
    pairs
}
