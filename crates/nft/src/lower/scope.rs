//! [`Scope`]: the table whose rules are lowered: its sets, maps and chains, each prepared once and shared by all rules.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::constants;
use super::load::lookup::Map;
use super::set::{Entry, Key, Search};
use super::width;
use crate::expr::{Element, Expr};
use crate::model::{self, KeyType, Set, Table};
use crate::stmt::{Stmt, Verdict};
use crate::types::{Data, Value};
use rules::ext::Effect;
use rules::model::Family;

/// Why a set cannot be asked.
pub(crate) type Lacks = &'static str;

/// What a table gives the rules in it, for one family of packets.
#[derive(Debug)]
pub(crate) struct Scope<'r> {
    /// The table.
    pub table: &'r Table,
    /// The family of the packets.
    pub family: Family,
    chains: HashMap<&'r str, u32>,
    sets: HashMap<&'r str, &'r Set>,
    changed: Vec<&'r str>,
    /// Objects, by kind and name, that a rule names after a statement that acts: it is not known which packets ask them there.
    after_acts: HashSet<(&'static str, &'r str)>,
    searches: Prepared<'r, Search>,
    maps: Prepared<'r, Map<Key>>,
    vmaps: Prepared<'r, Map<Effect>>,
    /// The rule being lowered, and how many states it has so far.
    place: RefCell<(String, usize)>,
}

/// Sets that were prepared, by name.
type Prepared<'r, T> = RefCell<HashMap<&'r str, Result<Arc<T>, Lacks>>>;

impl<'r> Scope<'r> {
    /// Makes the scope of a table.
    pub(crate) fn new(table: &'r Table, family: Family) -> Self {
        let stmts = table.chains.iter().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.stmts);
        let changed = stmts.filter_map(|stmt| match stmt {
            Stmt::Update(update) => Some(&*update.set),
            _ => None,
        });
        let rules = table.chains.iter().flat_map(|chain| &chain.rules);
        let after_acts = rules.flat_map(|rule| named_after_acts(&rule.stmts)).collect();
        let chains = table.chains.iter().enumerate().map(|(at, chain)| (&*chain.name, at as u32));
        Self {
            table,
            family,
            chains: chains.collect(),
            sets: table.sets.iter().map(|set| (&*set.name, set)).collect(),
            changed: changed.collect(),
            after_acts,
            searches: Prepared::default(),
            maps: Prepared::default(),
            vmaps: Prepared::default(),
            place: RefCell::default(),
        }
    }

    /// Goes on with a rule of a chain: its handle, or its number.
    pub(crate) fn enter(&self, chain: &str, rule: u64) {
        *self.place.borrow_mut() = (format!("{chain} {rule}"), 0);
    }

    /// Names the next state of the rule at hand, if rules for packets of two families are lowered from it: they share it.
    pub(crate) fn shared_state(&self) -> Option<Box<str>> {
        if self.table.family != model::Family::Inet {
            return None;
        }
        let mut place = self.place.borrow_mut();
        place.1 += 1;
        Some(format!("inet {} rule {} {}", self.table.name, place.0, place.1).into())
    }

    /// Whether packets of which it is not known ask an object, too.
    pub(crate) fn is_asked_after_acts(&self, kind: &'static str, name: &str) -> bool {
        self.after_acts.contains(&(kind, name))
    }

    /// Finds a chain.
    pub(crate) fn chain(&self, name: &str) -> Option<u32> {
        self.chains.get(name).copied()
    }

    /// Prepares what a set of the rule, or a named one, holds; `bits` are the widths of what is looked up.
    pub(crate) fn search(&self, of: &Expr, bits: &[u32]) -> Result<Arc<Search>, Lacks> {
        match of {
            Expr::Set(elements) => search(elements, bits).map(Arc::new),
            Expr::Named(name) => {
                self.named(name, &self.searches, |set, bits| search(&set.elements, bits))
            }
            _ => Err("a set that is computed"),
        }
    }

    /// Prepares a map.
    pub(crate) fn map(&self, of: &Expr, key: &[u32], data: &[u32]) -> Result<Arc<Map<Key>>, Lacks> {
        match of {
            Expr::Set(elements) => map(elements, key, data).map(Arc::new),
            Expr::Named(name) => self.named(name, &self.maps, |set, bits| {
                let types = set.data.as_ref().map(KeyType::types).unwrap_or_default();
                let data: Vec<u32> = types.iter().map(|ty| width::of_type(ty)).collect();
                map(&set.elements, bits, &data)
            }),
            _ => Err("a map that is computed"),
        }
    }

    /// Prepares a map of verdicts.
    pub(crate) fn vmap(&self, of: &Expr, key: &[u32]) -> Result<Arc<Map<Effect>>, Lacks> {
        match of {
            Expr::Set(elements) => self.verdicts(elements, key).map(Arc::new),
            Expr::Named(name) => {
                self.named(name, &self.vmaps, |set, bits| self.verdicts(&set.elements, bits))
            }
            _ => Err("a map that is computed"),
        }
    }

    /// The effect of a verdict; `None` if its chain is not there.
    pub(crate) fn effect(&self, verdict: &Verdict) -> Option<Effect> {
        Some(match verdict {
            Verdict::Accept => Effect::Accept,
            Verdict::Drop => Effect::Drop,
            Verdict::Continue => Effect::Continue,
            Verdict::Return => Effect::Return,
            Verdict::Jump(chain) => Effect::Jump(self.chain(chain)?),
            Verdict::Goto(chain) => Effect::Goto(self.chain(chain)?),
        })
    }

    fn verdicts(&self, elements: &[Element], key: &[u32]) -> Result<Map<Effect>, Lacks> {
        let Some(data) = self.effects_of(elements) else {
            return Err("a verdict map to a chain that is not there");
        };
        Ok(Map { search: search(elements, key)?, data })
    }

    /// What may come of a map of verdicts whose key is not evaluated, or whose elements change: the key may have none.
    pub(crate) fn effects(&self, of: &Expr) -> Option<Box<[Effect]>> {
        let elements = match of {
            Expr::Set(elements) => elements,
            Expr::Named(name) => &self.sets.get(&**name)?.elements,
            _ => return None,
        };
        let mut all = self.effects_of(elements)?.into_vec();
        all.push(Effect::Continue);
        let mut known = HashSet::new();
        all.retain(|effect| known.insert(*effect));
        Some(all.into())
    }

    fn effects_of(&self, elements: &[Element]) -> Option<Box<[Effect]>> {
        let effect = |element: &Element| match &element.data {
            Some(Expr::Verdict(verdict)) => self.effect(verdict),
            _ => None,
        };
        elements.iter().map(effect).collect()
    }

    fn named<T>(
        &self,
        name: &str,
        prepared: &Prepared<'r, T>,
        prepare: impl FnOnce(&Set, &[u32]) -> Result<T, Lacks>,
    ) -> Result<Arc<T>, Lacks> {
        if let Some(done) = prepared.borrow().get(name) {
            return done.clone();
        }
        let Some(set) = self.sets.get(name) else { return Err("a set that is not there") };
        let made = if self.changed.contains(&name) || set.flags & DYNAMIC != 0 {
            Err("a set that rules change")
        } else {
            prepare(set, &width::of_key(&set.key)).map(Arc::new)
        };
        prepared.borrow_mut().insert(&set.name, made.clone());
        made
    }
}

/// The objects that are named after a statement which may be an act of its rule.
fn named_after_acts(stmts: &[Stmt]) -> impl Iterator<Item = (&'static str, &str)> {
    use Stmt::{Compare, Counter, CtCount, Limit, Named, Quota};
    let asks = |stmt: &&Stmt| match stmt {
        Named(named) => matches!(named.kind.name, "counter" | "limit" | "quota"),
        other => matches!(other, Compare(_) | Counter(_) | Limit(_) | Quota(_) | CtCount(..)),
    };
    stmts.iter().skip_while(asks).filter_map(|stmt| {
        let Named(named) = stmt else { return None };
        let Expr::Value(Value { data: Data::Text(name), .. }) = &named.name else { return None };
        Some((named.kind.name, &**name))
    })
}

/// The flag of sets that rules change.
const DYNAMIC: u8 = 8;

/// Keys of elements, each with its number, and the element of all other keys.
type Entries = (Vec<(u32, Entry)>, Option<u32>);

fn entries(elements: &[Element], bits: &[u32]) -> Result<Entries, Lacks> {
    let mut entries = Vec::with_capacity(elements.len());
    let mut other = None;
    for (at, element) in elements.iter().enumerate() {
        let watches = |stmt: &Stmt| matches!(stmt, Stmt::Counter(_) | Stmt::Last(_));
        if !element.stmts.iter().all(watches) {
            return Err("an element with a limit of its own");
        }
        if element.key == Expr::Any {
            other = Some(at as u32);
            continue;
        }
        // Ranges of hours and names may end before they begin.
        let key = constants::key(&element.key, bits);
        let key = key.filter(|key| key.iter().all(|span| span.low <= span.high));
        let Some(key) = key else {
            return Err("an element that is no constant");
        };
        let doubtful = element.timeout.is_some_and(|timeout| timeout > 0);
        entries.push((at as u32, Entry { key, doubtful }));
    }
    Ok((entries, other))
}

fn search(elements: &[Element], bits: &[u32]) -> Result<Search, Lacks> {
    let (entries, other) = entries(elements, bits)?;
    Ok(Search::new(bits, entries, other))
}

fn map(elements: &[Element], key: &[u32], data: &[u32]) -> Result<Map<Key>, Lacks> {
    let data = elements.iter().map(|element| constants::key(element.data.as_ref()?, data));
    let Some(data) = data.collect::<Option<Vec<Key>>>() else {
        return Err("a map to what is no constant");
    };
    Ok(Map { search: search(elements, key)?, data: data.into() })
}
