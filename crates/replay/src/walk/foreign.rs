//! Rulesets of a folder that no packet walks here: native tables of nft (`nft.json`, else `rules.nft`), and iptables-legacy's
//! where the folder does not say whether they come before the tables of iptables-nft ([`super::legacy`]).
//!
//! Contract: chains that `iptables.save` and its siblings have are theirs, and not reported again.

use std::collections::BTreeMap;

use host::foreign::{Effects, ForeignChain, ForeignFamily, ForeignHook, ForeignProgram};
use rules::ext::{Course, Effect, TargetUse};
use rules::model::{Action, Chain, Family, Hook, Policy, Table};
use rules::nat::side_at;
use rules::save::LoadOptions;

use super::files::{Files, Saved};
use super::legacy::Legacy;
use super::native::{LISTINGS, Native};
use crate::error::Error;
use crate::nftables::{self, Language};

/// The chains of a folder that no packet walks; with `joins` chains of nft and of iptables-legacy that can be
/// are walked.
pub(super) fn chains(files: &Files<'_>, joins: bool) -> Result<Vec<ForeignChain>, Error> {
    let mut all = of_nft(files)?;
    if let Some(native) = joins.then(|| Native::of(files)).transpose()?.flatten() {
        all.retain(|chain| !native.walks(chain));
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        let ruleset = match Legacy::of(files, family, &LoadOptions::default())? {
            Some(Legacy::Unordered(ruleset)) => Some(ruleset),
            Some(Legacy::Beside { file, .. }) if !joins => file.into_rules(),
            Some(Legacy::Beside { .. } | Legacy::Alone) | None => None,
        };
        let Some(ruleset) = ruleset else { continue };
        let tracks = ruleset.tracks();
        for table in &ruleset.tables {
            all.extend(of_legacy(family, table, tracks));
        }
    }
    if all.len() > usize::from(u16::MAX) {
        let (file, most) = ((files.path)("nft.json"), u16::MAX);
        return Err(Error::Read { file, what: format!("expected at most {most} base chains") });
    }
    Ok(all)
}

fn of_nft(files: &Files<'_>) -> Result<Vec<ForeignChain>, Error> {
    for (name, language) in LISTINGS {
        let Some(mut ruleset) = listed(files, name, language)? else { continue };
        if language == Language::Json && has_nameless(&ruleset) {
            let text = listed(files, "rules.nft", Language::Text)?;
            text.iter().for_each(|text| take_devices(&mut ruleset, text));
        }
        let mut chains = nft::foreign::chains(&ruleset);
        let families = [
            (ForeignFamily::Ip, "iptables.save"),
            (ForeignFamily::Ip6, "ip6tables.save"),
            (ForeignFamily::Arp, "arptables.save"),
            (ForeignFamily::Bridge, "ebtables.save"),
        ];
        for (family, file) in families {
            if chains.iter().any(|chain| chain.family == family)
                && let Some(text) = (files.text)(file)?
            {
                let saved = Saved::of(&text);
                chains.retain(|chain| chain.family != family || !saved.has(chain));
            }
        }
        return Ok(chains);
    }
    Ok(Vec::new())
}

/// What a listing of a folder has, if it is there.
fn listed(
    files: &Files<'_>,
    name: &str,
    language: Language,
) -> Result<Option<nft::model::Ruleset>, Error> {
    let text = (files.text)(name)?.filter(|text| !text.trim().is_empty());
    text.map(|text| nftables::read(&(files.path)(name), &text, language)).transpose()
}

/// The hooks of chains of devices.
const OF_DEVICES: [&str; 2] = ["ingress", "egress"];

/// Whether it has chains of devices of which it does not name the devices: nft 1.0 leaves them out of JSON.
fn has_nameless(ruleset: &nft::model::Ruleset) -> bool {
    let mut chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    chains.any(|chain| {
        let attached = chain.attached.as_ref();
        attached.is_some_and(|at| OF_DEVICES.contains(&&*at.hook) && at.devices.is_empty())
    })
}

/// Gives chains of devices the devices that another listing of the same ruleset names.
fn take_devices(ruleset: &mut nft::model::Ruleset, named: &nft::model::Ruleset) {
    let mut devices = BTreeMap::new();
    for table in &named.tables {
        for chain in &table.chains {
            if let Some(attached) = &chain.attached {
                devices.insert((table.family, &*table.name, &*chain.name), &attached.devices);
            }
        }
    }
    for table in &mut ruleset.tables {
        for chain in &mut table.chains {
            let key = (table.family, &*table.name, &*chain.name);
            if let (Some(attached), Some(devices)) = (&mut chain.attached, devices.get(&key)) {
                attached.devices = (*devices).clone();
            }
        }
    }
}

/// The built-in chains of a table of iptables-legacy that may do anything; `tracks` is whether its ruleset does.
fn of_legacy(family: Family, table: &Table, tracks: bool) -> Vec<ForeignChain> {
    let kind = family.table(&table.name);
    let base_chains = table.chains.iter().filter_map(|chain| {
        let base = chain.base.as_ref()?;
        let mut effects = if tracks { Effects::TRACKS } else { Effects::default() };
        if base.policy == Policy::Drop {
            effects.add(Effects::DROPS);
        }
        let mut met = vec![false; table.chains.len()];
        let mut open = vec![chain];
        while let Some(chain) = open.pop() {
            open.extend(called(chain, table, &mut met));
            for rule in &chain.rules {
                effects.add(of_action(&rule.action, base.hook));
            }
        }
        Some(ForeignChain {
            program: ForeignProgram::Legacy,
            family: if family == Family::Ipv6 { ForeignFamily::Ip6 } else { ForeignFamily::Ip },
            table: (&*table.name).into(),
            name: chain.name.clone(),
            hook: hook_of(base.hook)?,
            priority: kind?.priority(base.hook)?,
            is_nat: table.name == rules::TableKind::NAT,
            reroutes: table.name == rules::TableKind::MANGLE,
            devices: Vec::new(),
            effects,
        })
    });
    base_chains.filter(|chain| chain.effects != Effects::default()).collect()
}

/// The chains that a chain calls and that were not met yet.
fn called<'t>(chain: &Chain, table: &'t Table, met: &mut [bool]) -> Vec<&'t Chain> {
    let calls = chain.rules.iter().filter_map(|rule| match rule.action {
        Action::Jump(to) | Action::Goto(to) => Some(to as usize),
        _ => None,
    });
    let new = calls.filter(|to| met.get_mut(*to).is_some_and(|met| !std::mem::replace(met, true)));
    new.filter_map(|to| table.chains.get(to)).collect()
}

fn of_action(action: &Action, hook: Hook) -> Effects {
    match action {
        Action::None | Action::Accept | Action::Return | Action::Jump(_) | Action::Goto(_) => {
            Effects::default()
        }
        Action::Drop => Effects::DROPS,
        Action::Target(target) => of_target(target, hook),
    }
}

fn of_target(target: &TargetUse, hook: Hook) -> Effects {
    if target.body.translates() {
        return match side_at(hook) {
            conntrack::Side::Source => Effects::SOURCE,
            conntrack::Side::Destination => Effects::DESTINATION,
        };
    }
    match (target.body.course(), &*target.name) {
        _ if target.body.only_watches() => Effects::default(),
        (Course::Ends(Effect::Drop | Effect::Reject), _) => Effects::DROPS,
        (Course::Ends(Effect::Accept | Effect::Return), _) => Effects::default(),
        (_, "MARK" | "CONNMARK") => Effects::MARKS,
        (_, "TCPMSS" | "TCPOPTSTRIP") => Effects::OPTIONS,
        _ => Effects::ALL,
    }
}

fn hook_of(hook: Hook) -> Option<ForeignHook> {
    Some(match hook {
        Hook::Prerouting => ForeignHook::Prerouting,
        Hook::Input => ForeignHook::Input,
        Hook::Forward => ForeignHook::Forward,
        Hook::Output => ForeignHook::Output,
        Hook::Postrouting => ForeignHook::Postrouting,
        Hook::Brouting => return None,
    })
}
