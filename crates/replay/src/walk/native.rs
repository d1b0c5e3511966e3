//! [`Native`]: tables of nft on a host, which packets walk alone or along with tables of iptables.
//!
//! Contract: the kernel runs what is attached to a hook by priority, and of equal ones what was registered last. A listing
//! has the tables of iptables-nft among its own, in the order in which they were made; `iptables.save`
//! has their rules, with parameters that a listing lacks. Tables of iptables-legacy are in no listing: where they and
//! chains of nft act at one hook with one priority, nft's are [`super::foreign`] to the rules.

use host::foreign::{ForeignChain, ForeignFamily, ForeignHook};
use rules::Backend;
use rules::model::{Chain, Family, Policy, Ruleset, Table};
use rules::save::{LoadOptions, load};

use super::files::{Files, Saved, has_tables};
use super::legacy::Legacy;
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
    /// What it lists, but for the tables of iptables-nft.
    pub(super) listing: Listing,
    /// All tables that it lists, in its order, by the names that their rulesets have for them.
    pub(super) order: Vec<String>,
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
        let Ok(mut listing) = Listing::read(&file, text, language) else { return Ok(None) };
        let mut saved = Vec::new();
        for (_, family, name) in SAVED {
            let text = (files.text)(name)?.filter(|text| has_tables(text));
            saved.extend(text.map(|text| (family, Saved::of(&text))));
        }
        let mut order = Vec::new();
        let mut own = Vec::new();
        for table in std::mem::take(&mut listing.ruleset.tables) {
            let of_family = saved.iter().find(|(family, _)| *family == table.family);
            let is_saved = |chain: &&nft::model::Chain| {
                of_family.is_some_and(|(_, saved)| saved.has_base(&table.name, &chain.name))
            };
            let bases = || table.chains.iter().filter(|chain| chain.attached.is_some());
            match (bases().any(|chain| is_saved(&chain)), bases().all(|chain| is_saved(&chain))) {
                (true, true) => order.push(table.name.to_string()),
                // A table that iptables-nft and somebody else use.
                (true, false) => return Ok(None),
                (false, _) => {
                    order.push(format!("{} {}", table.family.name(), table.name));
                    own.push(table);
                }
            }
        }
        own.iter_mut().for_each(detach_ingress);
        listing.ruleset.tables = own;
        let native = Self { file, listing, order };
        Ok(native.is_in_order(files)?.then_some(native).filter(Self::is_any))
    }

    /// Whether it has base chains that packets of IP walk.
    fn is_any(&self) -> bool {
        SAVED.iter().any(|(family, ..)| {
            let lowered = nftables::of_family(&self.listing, *family).ruleset;
            lowered.tables.iter().flat_map(|table| &table.chains).any(|chain| chain.base.is_some())
        })
    }

    /// Whether the order of its chains and the chains of iptables is known where it matters.
    fn is_in_order(&self, files: &Files<'_>) -> Result<bool, Error> {
        let whole = LoadOptions::default();
        for (family, _, name) in SAVED {
            let options = LoadOptions { family: Some(family), ..whole };
            match Legacy::of(files, family, &options)? {
                Some(Legacy::Alone) | None => {}
                Some(Legacy::Beside { .. } | Legacy::Unordered(_)) => return Ok(false),
            }
            let legacy = Legacy::file(family).map(files.text).transpose()?.flatten();
            let Some(text) = (files.text)(name)?.or(legacy).filter(|text| has_tables(text)) else {
                continue;
            };
            let file = (files.path)(name);
            let loaded = load(&text, &options).map_err(|source| Error::Rules { file, source })?;
            let mut tables = loaded.ruleset.tables.iter();
            let is_listed = !Saved::of(&text).is_legacy
                && tables.all(|table| self.order.iter().any(|name| table.name == **name));
            let own = nftables::of_family(&self.listing, family).ruleset;
            if !is_listed && meets(&own, &loaded.ruleset) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What packets of each family walk, which may be nothing.
    pub(super) fn families(&self) -> impl Iterator<Item = OfFamily> {
        SAVED.iter().map(|(family, ..)| nftables::of_family(&self.listing, *family))
    }

    /// Whether these are no tables of iptables-nft, but what its save tool prints in place of nft's own: it names a table
    /// whose chains it does not know, with chains that nothing attached.
    pub(super) fn stands_for(&self, ruleset: &Ruleset) -> bool {
        let is_made_up = |table: &Table| {
            let is_listed = self.order.iter().any(|name| table.name == **name);
            !is_listed && !table.chains.iter().any(acts)
        };
        ruleset.backend == Backend::Nft && ruleset.tables.iter().all(is_made_up)
    }

    /// Puts tables in the order in which they were made.
    pub(super) fn sort(&self, ruleset: &mut Ruleset) {
        let place = |table: &Table| self.order.iter().position(|name| table.name == **name);
        ruleset.tables.sort_by_key(place);
        ruleset.number();
    }

    /// Whether packets walk a chain here.
    pub(super) fn walks(&self, chain: &ForeignChain) -> bool {
        let is_of_ip =
            matches!(chain.family, ForeignFamily::Ip | ForeignFamily::Ip6 | ForeignFamily::Inet);
        is_of_ip && !matches!(chain.hook, ForeignHook::Ingress | ForeignHook::Egress)
    }
}

/// Takes the chains of devices from their hooks: what a device receives may be another's packet to the rules (a bridge's, a
/// VLAN's), so these chains stay [`super::foreign`].
fn detach_ingress(table: &mut nft::model::Table) {
    for chain in &mut table.chains {
        chain.attached.take_if(|attached| &*attached.hook == "ingress");
    }
}

/// Whether a base chain does anything but let packets go.
fn acts(chain: &Chain) -> bool {
    chain.base.is_some_and(|base| !chain.rules.is_empty() || base.policy == Policy::Drop)
}

/// Whether chains of both act at one hook with one priority.
fn meets(one: &Ruleset, other: &Ruleset) -> bool {
    let bases = |ruleset: &Ruleset| -> Vec<_> {
        let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
        let bases = chains.filter(|chain| acts(chain)).filter_map(|chain| chain.base);
        bases.map(|base| (base.hook, base.priority)).collect()
    };
    let others = bases(other);
    bases(one).iter().any(|turn| others.contains(turn))
}
