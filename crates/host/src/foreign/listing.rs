//! [`Listing`]: a ruleset as it is read, and the effects of its base chains and of all that they call.

use std::collections::{HashMap, HashSet};

use super::chain::{ForeignChain, ForeignFamily};
use super::effects::Effects;

/// The name of a chain, map or table within a listing.
pub(super) type Name = (ForeignFamily, Box<str>, Box<str>);

/// A chain's or verdict map's own effects, and the chains and maps it calls.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) effects: Effects,
    pub(super) chains: Vec<Box<str>>,
    pub(super) maps: Vec<Box<str>>,
}

/// What is called: a map of verdicts, or a chain.
type Callee = (bool, Name);

/// A listing, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) bases: Vec<ForeignChain>,
    pub(super) chains: HashMap<Name, Body>,
    pub(super) maps: HashMap<Name, Body>,
    /// Tables whose chains are not attached.
    pub(super) dormant: HashSet<(ForeignFamily, Box<str>)>,
}

impl Listing {
    pub(super) fn chain(&mut self, family: ForeignFamily, table: &str, name: &str) -> &mut Body {
        self.chains.entry((family, table.into(), name.into())).or_default()
    }

    pub(super) fn map(&mut self, family: ForeignFamily, table: &str, name: &str) -> &mut Body {
        self.maps.entry((family, table.into(), name.into())).or_default()
    }

    /// Base chains, each with the effects of everything it calls. A chain that the listing lacks may do anything.
    pub(super) fn base_chains(mut self) -> Vec<ForeignChain> {
        let bodies =
            std::mem::take(&mut self.chains).into_iter().map(|(name, body)| ((false, name), body));
        let maps =
            std::mem::take(&mut self.maps).into_iter().map(|(name, body)| ((true, name), body));
        let effects = effects_of(&bodies.chain(maps).collect());
        let dormant = std::mem::take(&mut self.dormant);
        let bases = std::mem::take(&mut self.bases).into_iter();
        let attached = bases.filter(|base| !dormant.contains(&(base.family, base.table.clone())));
        let told = attached.map(|mut base| {
            let name = (false, (base.family, base.table.clone(), base.name.clone()));
            base.effects.add(effects.get(&name).copied().unwrap_or(Effects::ALL));
            base
        });
        told.filter(|base| base.effects != Effects::default()).collect()
    }
}

/// Returns the effects of each chain and map, with all that it calls. Effects are handed from callees to callers, each
/// once for every bit, so time is linear in calls.
fn effects_of(bodies: &HashMap<Callee, Body>) -> HashMap<Callee, Effects> {
    let mut callers: HashMap<Callee, Vec<&Callee>> = HashMap::new();
    let mut effects: HashMap<Callee, Effects> = HashMap::new();
    for (caller, body) in bodies {
        let (_, (family, table, _)) = caller;
        let calls = body.chains.iter().map(|name| (false, name));
        let calls = calls.chain(body.maps.iter().map(|name| (true, name)));
        let mut own = body.effects;
        for (is_map, name) in calls {
            let callee = (is_map, (*family, table.clone(), name.clone()));
            match bodies.contains_key(&callee) {
                true => callers.entry(callee).or_default().push(caller),
                false => own.add(Effects::ALL),
            }
        }
        effects.insert(caller.clone(), own);
    }
    let mut open: Vec<Callee> = effects.keys().cloned().collect();
    while let Some(callee) = open.pop() {
        let has = effects.get(&callee).copied().unwrap_or_default();
        for caller in callers.get(&callee).into_iter().flatten() {
            let known = effects.entry((*caller).clone()).or_default();
            if !known.has(has) {
                known.add(has);
                open.push((*caller).clone());
            }
        }
    }
    effects
}
