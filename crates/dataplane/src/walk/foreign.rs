//! Chains of rulesets that are not evaluated ([`ForeignChain`]), and their turns between the tables that are.
//!
//! Contract: a chain whose turn is that of a table may come before it or after it, so it stands at both.

use std::collections::{BTreeSet, HashMap};

use host::foreign::{Effects, ForeignChain, ForeignFamily, ForeignHook};
use host::{Host, LinkKind};
use rules::model::{Family, Hook};

/// A chain where packets of a family meet it.
#[derive(Debug, Clone)]
pub(super) struct Met {
    /// Its place in [`Host::foreign`].
    pub(super) chain: u16,
    /// What it changes has an own packet routed again.
    pub(super) reroutes: bool,
    pub(super) does: Does,
    pub(super) devices: Devices,
}

/// What it does there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Does {
    /// This.
    Effects(Effects),
    /// Packets of connections whose source it translated are given back theirs.
    TranslatesBack,
}

/// Whose packets meet it.
#[derive(Debug, Clone)]
pub(super) enum Devices {
    All,
    /// Packets that arrive on these interfaces, in order of their names.
    In(Vec<Box<str>>),
    /// Packets that leave on these interfaces.
    Out(Vec<Box<str>>),
}

/// A chain, and its turn at a hook.
pub(super) struct Placed {
    pub(super) hook: Hook,
    pub(super) priority: i32,
    pub(super) met: Met,
}

/// Turns at which destinations and sources are translated.
const NAT_DESTINATION: i32 = -100;
const NAT_SOURCE: i32 = 100;

/// Where packets of a family meet chains of the host.
pub(super) fn placed(host: &Host, family: Family) -> Vec<Placed> {
    let mut all = Vec::new();
    for (number, chain) in host.foreign.met() {
        let Some((hook, priority, devices)) = attached(chain, family, host) else { continue };
        if family.is_ip() && chain.effects.has(Effects::SOURCE) {
            // Answers are given back the destination that their connection's source was before.
            let hook = match chain.hook {
                ForeignHook::Input => Hook::Output,
                _ => Hook::Prerouting,
            };
            let (does, devices) = (Does::TranslatesBack, Devices::All);
            let met = Met { chain: number, reroutes: false, does, devices };
            all.push(Placed { hook, priority: NAT_DESTINATION, met });
        }
        let does = Does::Effects(chain.effects);
        let met = Met { chain: number, reroutes: chain.reroutes, does, devices };
        all.push(Placed { hook, priority, met });
    }
    all.sort_by_key(|placed| placed.priority);
    all
}

/// The hook where packets of a family meet a chain, its turn there, and whose do.
fn attached(chain: &ForeignChain, family: Family, host: &Host) -> Option<(Hook, i32, Devices)> {
    let is_own = match (chain.family, family) {
        (ForeignFamily::Ip, Family::Ipv4) | (ForeignFamily::Ip6, Family::Ipv6) => true,
        (ForeignFamily::Inet, Family::Ipv4 | Family::Ipv6) => true,
        (ForeignFamily::Arp, Family::Arp) | (ForeignFamily::Bridge, Family::Bridge) => true,
        (ForeignFamily::Netdev | ForeignFamily::Bridge, _) => false,
        _ => return None,
    };
    let hook = match chain.hook {
        ForeignHook::Ingress => {
            let devices = above(&chain.devices, host).map_or(Devices::All, Devices::In);
            return Some((Hook::Prerouting, i32::MIN, devices));
        }
        ForeignHook::Egress => {
            let devices = above(&chain.devices, host).map_or(Devices::All, Devices::Out);
            return Some((Hook::Postrouting, i32::MAX, devices));
        }
        ForeignHook::Prerouting => Hook::Prerouting,
        ForeignHook::Input => Hook::Input,
        ForeignHook::Forward => Hook::Forward,
        ForeignHook::Output => Hook::Output,
        ForeignHook::Postrouting => Hook::Postrouting,
    };
    if !is_own {
        return on_bridges(hook, host);
    }
    let priority = match (chain.is_nat, hook) {
        (false, _) => chain.priority,
        (true, Hook::Prerouting | Hook::Output) => NAT_DESTINATION,
        (true, _) => NAT_SOURCE,
    };
    Some((hook, priority, Devices::All))
}

/// These devices, and those that stand on them; `None` where that is not known.
fn above(devices: &[Box<str>], host: &Host) -> Option<Vec<Box<str>>> {
    let links = host.links().all();
    // Newer kernels take names with a `*` at the end.
    if devices.is_empty() || links.is_empty() || devices.iter().any(|name| name.ends_with('*')) {
        return None;
    }
    let mut uppers: HashMap<&str, Vec<&str>> = HashMap::new();
    for link in links {
        if let Some(master) = &link.master {
            uppers.entry(&link.name).or_default().push(master);
        }
        if let Some(parent) = &link.parent {
            uppers.entry(parent).or_default().push(&link.name);
        }
    }
    for port in &host.ports {
        uppers.entry(&port.name).or_default().extend(port.bridge.as_deref());
    }
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = devices.iter().map(|name| &**name).collect();
    while let Some(name) = open.pop() {
        if names.insert(name) {
            open.extend(uppers.get(name).into_iter().flatten());
        }
    }
    Some(names.into_iter().map(Box::from).collect())
}

/// Where packets that are no frames of a bridge to their rules meet a chain of bridges at this hook of theirs.
fn on_bridges(hook: Hook, host: &Host) -> Option<(Hook, i32, Devices)> {
    let links = host.links().all();
    let known = links.iter().filter(|link| link.kind == LinkKind::Bridge);
    let mut bridges: Vec<Box<str>> = known.map(|link| link.name.clone()).collect();
    bridges.extend(host.ports.iter().filter_map(|port| port.bridge.clone()));
    bridges.extend(host.bridge.as_deref().map(Box::from));
    if bridges.is_empty() && !links.is_empty() {
        return None;
    }
    let names = above(&bridges, host);
    Some(match hook {
        Hook::Prerouting | Hook::Input => {
            (Hook::Prerouting, i32::MIN, names.map_or(Devices::All, Devices::In))
        }
        Hook::Forward => (hook, i32::MIN, names.map_or(Devices::All, Devices::Out)),
        _ => (Hook::Postrouting, i32::MAX, names.map_or(Devices::All, Devices::Out)),
    })
}

impl Met {
    /// Whether an own packet that it changes is routed again.
    pub(super) fn reroutes(&self) -> bool {
        self.reroutes
    }
}
