//! [`Native`]: tables of nft on a host, which packets walk alone or along with tables of iptables.
//!
//! Contract: the kernel runs what is attached to a hook by priority, and of equal ones what was registered last. A listing
//! has the tables of iptables-nft among its own, in the order in which they were made; `iptables.save`
//! has their rules, with parameters that a listing lacks. Tables of iptables-legacy are in no listing: where they and
//! chains of nft act at one hook with one priority, `registered.txt` may say who was first ([`super::legacy`]); else nft's
//! are [`super::foreign`] to the rules.

use std::collections::HashMap;
use std::sync::Arc;

use host::foreign::{ForeignChain, ForeignFamily, ForeignHook};
use rules::Backend;
use rules::model::{Chain, Family, Hook, Ruleset, Table};
use rules::save::{LoadOptions, Warning, load};

use super::files::{Files, Saved, has_tables};
use super::legacy::{self, Legacy};
use crate::error::Error;
use crate::nftables::{self, Language, Listing, OfFamily};

/// The files of a listing, and the files of iptables' rules.
pub(super) const LISTINGS: [(&str, Language); 2] =
    [("nft.json", Language::Json), ("rules.nft", Language::Text)];
const SAVED: [(Family, nft::model::Family, &str); 2] = [
    (Family::Ipv4, nft::model::Family::Ip, "iptables.save"),
    (Family::Ipv6, nft::model::Family::Ip6, "ip6tables.save"),
];

/// Tables of nft that packets walk.
pub(super) struct Native {
    /// The file that lists them.
    pub(super) file: String,
    /// What it lists.
    pub(super) listing: Arc<Listing>,
    /// What packets walk of it: neither tables of iptables-nft nor chains of devices.
    walked: nft::model::Ruleset,
    /// All tables that it lists, in its order.
    order: Vec<ListedTable>,
    /// By family: what it says otherwise than the family's file.
    differs: Vec<(Family, Warning)>,
    /// By family: where the tables stand that it does not list.
    unlisted: [Place; SAVED.len()],
}

/// The place of tables among the tables of a listing.
#[derive(Clone, Copy, Default)]
struct Place {
    /// How many were registered before them.
    before: usize,
    /// Whether it is known which tables of nft were.
    is_known: bool,
}

/// A table of a listing.
struct ListedTable {
    /// The name that its ruleset has for it.
    name: String,
    /// The family whose file has it, if it is one of iptables-nft.
    saved: Option<Family>,
}

impl ListedTable {
    fn is(&self, table: &Table, ruleset: &Ruleset) -> bool {
        let is_saved = |saved| saved == ruleset.family && table.backend == ruleset.backend;
        table.name == *self.name && self.saved.is_none_or(is_saved)
    }
}

impl Native {
    /// The tables of a folder; `None` if it has none, or none that can be evaluated among others.
    pub(super) fn of(files: &Files<'_>) -> Result<Option<Self>, Error> {
        let mut found = None;
        for (name, language) in LISTINGS {
            let text = (files.text)(name)?.filter(|text| !text.trim().is_empty());
            if let Some(text) = text {
                found = Some(((files.path)(name), text, language));
                break;
            }
        }
        let Some((file, text, language)) = found else { return Ok(None) };
        // What cannot be read is not evaluated.
        let Ok(listing) = Listing::read(&file, text, language) else { return Ok(None) };
        let mut saved = Vec::new();
        for (of, family, name) in SAVED {
            let text = (files.text)(name)?.filter(|text| has_tables(text));
            saved.extend(text.map(|text| (of, family, Saved::of(&text))));
        }
        let mut order = Vec::new();
        let mut own = Vec::new();
        let mut differs = Vec::new();
        let lines = nftables::lines_of_chains(&listing.text);
        for table in &listing.ruleset.tables {
            let of_family = saved.iter().find(|(_, family, _)| *family == table.family);
            let is_saved = |chain: &&nft::model::Chain| {
                of_family.is_some_and(|(.., saved)| saved.has_base(&table.name, &chain.name))
            };
            let bases = || table.chains.iter().filter(|chain| chain.attached.is_some());
            match (bases().any(|chain| is_saved(&chain)), bases().all(|chain| is_saved(&chain))) {
                (true, true) => {
                    let saved = of_family.map(|(family, ..)| *family);
                    order.push(ListedTable { name: table.name.to_string(), saved });
                    differs.extend(of_family.into_iter().flat_map(|(family, _, saved)| {
                        let unlike = unlike(table, saved, &lines);
                        unlike.map(|warning| (*family, warning))
                    }));
                }
                // A table that iptables-nft and somebody else use.
                (true, false) => return Ok(None),
                (false, _) => {
                    let name = format!("{} {}", table.family.name(), table.name);
                    order.push(ListedTable { name, saved: None });
                    own.push(table.clone());
                }
            }
        }
        own.iter_mut().for_each(detach_ingress);
        let walked = nft::model::Ruleset { tables: own, ..Default::default() };
        let listing = Arc::new(listing);
        let unlisted = Default::default();
        let mut native = Self { file, listing, walked, order, differs, unlisted };
        Ok(native.put_in_order(files)?.then_some(native).filter(Self::is_any))
    }

    /// Whether it has base chains that packets of IP walk.
    fn is_any(&self) -> bool {
        SAVED.iter().any(|(family, ..)| {
            let lowered = self.of_family(*family).ruleset;
            lowered.tables.iter().flat_map(|table| &table.chains).any(|chain| chain.base.is_some())
        })
    }

    /// Finds out the order of its tables and the tables that it does not list; whether that is known where it matters.
    fn put_in_order(&mut self, files: &Files<'_>) -> Result<bool, Error> {
        for (index, (family, _, name)) in SAVED.into_iter().enumerate() {
            let own = self.of_family(family).ruleset;
            let (ruleset, name, of_saved) = match self.unlisted(files, family, name, &own)? {
                Unlisted::Nothing => continue,
                Unlisted::Meets => return Ok(false),
                Unlisted::Tables { ruleset, name, is_earlier } => (ruleset, name, is_earlier),
            };
            let mut of_own = None;
            for (listing, _) in LISTINGS {
                of_own = of_own.or(legacy::order(files, listing, name)?);
            }
            if of_own.is_none() && meets(&own, &ruleset) {
                return Ok(false);
            }
            let is_earlier = |table: &ListedTable| match table.saved {
                Some(saved) => of_saved.filter(|_| saved == family),
                None => of_own,
            };
            let last = self.order.iter().rposition(|table| is_earlier(table) == Some(false));
            let before = last.map_or(0, |last| last + 1);
            if self.order.iter().take(before).any(|table| is_earlier(table) == Some(true)) {
                return Ok(false);
            }
            self.unlisted[index] = Place { before, is_known: of_own.is_some() };
        }
        Ok(true)
    }

    /// The tables of iptables of a family that a listing does not have.
    fn unlisted(
        &self,
        files: &Files<'_>,
        family: Family,
        saved: &'static str,
        own: &Ruleset,
    ) -> Result<Unlisted, Error> {
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        let other = legacy::file(family);
        let read = |name| -> Result<Option<Ruleset>, Error> {
            let Some(text) = (files.text)(name)?.filter(|text| has_tables(text)) else {
                return Ok(None);
            };
            let file = (files.path)(name);
            let loaded = load(&text, &options).map_err(|source| Error::Rules { file, source })?;
            Ok(Some(loaded.ruleset))
        };
        let legacy = match (Legacy::of(files, family, &options)?, other) {
            (Some(Legacy::Unordered(_)), _) => return Ok(Unlisted::Meets),
            (Some(Legacy::Beside { file, .. }), Some(name)) => {
                file.into_rules().map(|rules| (rules, name))
            }
            (Some(Legacy::Alone), Some(name)) => read(name)?.map(|rules| (rules, name)),
            _ => None,
        };
        let Some(ruleset) = read(saved)? else { return Ok(Unlisted::of(legacy, None)) };
        let is_listed = |table| self.place(table, &ruleset).is_some();
        let is_nft = !Saved::of(&(files.text)(saved)?.unwrap_or_default()).is_legacy;
        if is_nft && ruleset.tables.iter().all(is_listed) {
            let order = other.map(|name| legacy::order(files, saved, name)).transpose()?;
            return Ok(Unlisted::of(legacy, order.flatten()));
        }
        match legacy {
            _ if is_nft && meets(own, &ruleset) => Ok(Unlisted::Meets),
            Some(_) if is_nft => Ok(Unlisted::of(legacy, None)),
            _ => Ok(Unlisted::of(Some((ruleset, saved)), None)),
        }
    }

    /// The place of a table among the listed ones.
    fn place(&self, table: &Table, ruleset: &Ruleset) -> Option<usize> {
        self.order.iter().position(|listed| listed.is(table, ruleset))
    }

    /// What packets of each family walk, which may be nothing.
    pub(super) fn families(&self) -> impl Iterator<Item = OfFamily> {
        SAVED.iter().map(|(family, ..)| self.of_family(*family))
    }

    fn of_family(&self, family: Family) -> OfFamily {
        nftables::of_family(&self.walked, &self.listing.text, family)
    }

    /// Whether these are no tables of iptables-nft, but what its save tool prints in place of nft's own: it names a table
    /// whose chains it does not know, with chains that nothing attached.
    pub(super) fn stands_for(&self, ruleset: &Ruleset) -> bool {
        let is_made_up = |table: &Table| {
            let is_listed = self.place(table, ruleset).is_some();
            !is_listed && !table.chains.iter().any(Chain::acts)
        };
        ruleset.backend == Backend::Nft && ruleset.tables.iter().all(is_made_up)
    }

    /// What the listing says otherwise than the file of a family.
    pub(super) fn differs(&self, family: Family) -> impl Iterator<Item = &Warning> {
        self.differs.iter().filter(move |(of, _)| *of == family).map(|(_, warning)| warning)
    }

    /// Whether a table is one of nft's own.
    fn is_own(&self, table: &Table) -> bool {
        self.order.iter().any(|listed| listed.saved.is_none() && table.name == *listed.name)
    }

    /// Puts tables in the order in which they were made.
    pub(super) fn sort(&self, ruleset: &mut Ruleset) {
        let index = SAVED.iter().position(|(family, ..)| *family == ruleset.family);
        let Place { before, is_known } = index.map_or_else(Place::default, |at| self.unlisted[at]);
        let mut tables = std::mem::take(&mut ruleset.tables);
        // Those that are not listed stand between two that are.
        let place = |table: &Table| self.place(table, ruleset).map_or(2 * before, |at| 2 * at + 1);
        tables.sort_by_key(place);
        if !is_known {
            let own = tables.iter().filter(|table| self.is_own(table));
            let turns = turns(own);
            let unlisted = |table: &&mut Table| self.place(table, ruleset).is_none();
            leave_out_idle(tables.iter_mut().filter(unlisted), &turns);
        }
        ruleset.tables = tables;
        ruleset.number();
    }

    /// Whether packets walk a chain here.
    pub(super) fn walks(&self, chain: &ForeignChain) -> bool {
        let is_of_ip =
            matches!(chain.family, ForeignFamily::Ip | ForeignFamily::Ip6 | ForeignFamily::Inet);
        is_of_ip && !matches!(chain.hook, ForeignHook::Ingress | ForeignHook::Egress)
    }
}

/// What a host has besides the tables of a listing.
enum Unlisted {
    /// No tables, or none that act.
    Nothing,
    /// Tables whose turns are not known.
    Meets,
    /// Tables of a file, and whether they were registered before the tables of iptables-nft, if that is known.
    Tables { ruleset: Ruleset, name: &'static str, is_earlier: Option<bool> },
}

impl Unlisted {
    fn of(tables: Option<(Ruleset, &'static str)>, is_earlier: Option<bool>) -> Self {
        match tables {
            Some((ruleset, name)) => Self::Tables { ruleset, name, is_earlier },
            None => Self::Nothing,
        }
    }
}

/// Chains of a table of iptables-nft that have more rules, or fewer, in the listing than as saved: both are not of one time.
fn unlike(
    table: &nft::model::Table,
    saved: &Saved,
    lines: &HashMap<(&str, &str), u32>,
) -> impl Iterator<Item = Warning> {
    let name = format!("{} {}", table.family.name(), table.name);
    table.chains.iter().filter_map(move |chain| {
        let has = saved.rules(&table.name, &chain.name)?;
        let listed = chain.rules.len();
        let line = lines.get(&(&*name, &*chain.name)).copied().unwrap_or(0);
        let what = format!(
            "chain {} of table {name} has {listed} rules, as saved by iptables {has}: they are not of one time",
            chain.name
        );
        (has != listed).then_some(Warning { what, line, count: 1 })
    })
}

/// Takes the chains of devices from their hooks: what a device receives may be another's packet to the rules (a bridge's, a
/// VLAN's), so these chains stay [`super::foreign`].
fn detach_ingress(table: &mut nft::model::Table) {
    for chain in &mut table.chains {
        chain.attached.take_if(|attached| &*attached.hook == "ingress");
    }
}

/// Hooks and priorities at which tables act.
fn turns<'t>(tables: impl Iterator<Item = &'t Table>) -> Vec<(Hook, i32)> {
    let chains = tables.flat_map(|table| &table.chains);
    let bases = chains.filter(|chain| chain.acts()).filter_map(|chain| chain.base);
    bases.map(|base| (base.hook, base.priority)).collect()
}

/// Whether chains of both act at one hook with one priority.
fn meets(one: &Ruleset, other: &Ruleset) -> bool {
    let others = turns(other.tables.iter());
    turns(one.tables.iter()).iter().any(|turn| others.contains(turn))
}

/// Has chains that let all packets go see none at these turns: what they would count depends on who is first.
fn leave_out_idle<'t>(tables: impl Iterator<Item = &'t mut Table>, turns: &[(Hook, i32)]) {
    for chain in tables.flat_map(|table| &mut table.chains) {
        if !chain.acts() {
            chain.base.take_if(|base| turns.contains(&(base.hook, base.priority)));
        }
    }
}
