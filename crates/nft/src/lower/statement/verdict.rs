//! Verdicts, and maps that give them.

use std::collections::HashSet;

use crate::lower::load::lookup::Lookup;
use rules::Transit;
use rules::ext::Effect;

/// What may come of a verdict map.
pub(crate) fn of_map(lookup: &Lookup<Effect>, transit: &Transit<'_, '_>) -> Effect {
    let (possible, breaks) = lookup.find(transit);
    let Some(given) = lookup.given(&possible) else { return Effect::Unknown };
    let mut effects = given.into_iter().copied();
    let Some(first) = effects.next() else { return Effect::Continue };
    let goes_on = breaks || possible.misses;
    let same = effects.clone().all(|effect| effect == first);
    if same && (!goes_on || first == Effect::Continue) {
        return first;
    }
    let ends = |effect: Effect| matches!(effect, Effect::Accept | Effect::Drop);
    if !goes_on && ends(first) && effects.all(ends) { Effect::Either } else { Effect::Unknown }
}

/// Everything that may come of a verdict map, each once.
pub(crate) fn possible(lookup: &Lookup<Effect>, transit: &Transit<'_, '_>) -> Vec<Effect> {
    let (possible, breaks) = lookup.find(transit);
    let given = lookup.given(&possible);
    let goes_on = breaks || possible.misses || given.is_none();
    let given = given.unwrap_or_else(|| lookup.map.data.iter().collect());
    let mut all: Vec<Effect> = given.into_iter().copied().collect();
    all.extend(goes_on.then_some(Effect::Continue));
    let mut known = HashSet::new();
    all.retain(|effect| known.insert(*effect));
    all
}

/// The chains that effects lead to, each once.
pub(crate) fn chains(effects: impl IntoIterator<Item = Effect>) -> Box<[u32]> {
    let chain = |effect| match effect {
        Effect::Jump(chain) | Effect::Goto(chain) => Some(chain),
        _ => None,
    };
    let mut chains: Vec<u32> = effects.into_iter().filter_map(chain).collect();
    chains.sort_unstable();
    chains.dedup();
    chains.into()
}
